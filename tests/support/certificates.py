"""Certificates for tests: with keys that take no time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kedge.admission.certificate import CertificateRequest, GeneratedCertificate, elliptic, generate

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAME = "rollout-operator.shop.svc"
YEAR = timedelta(days=365)


def made(
    *names: str, at: datetime = NOW, expiration: timedelta = YEAR, organization: str = "Grafana Labs"
) -> GeneratedCertificate:
    wanted = CertificateRequest(names or (NAME,), organization, expiration)
    return generate(wanted, at, new_key=elliptic)


def data_of(certificate: GeneratedCertificate, *more_authorities: bytes) -> dict[str, bytes]:
    """What the Secret holds with this certificate."""
    ca = b"".join((certificate.ca, *more_authorities))
    return {"ca": ca, "cert": certificate.certificate, "key": certificate.key}


def with_next(data: dict[str, bytes], following: GeneratedCertificate) -> dict[str, bytes]:
    """The same with a certificate that comes next, whose authority is trusted already."""
    more = {"next-cert": following.certificate, "next-key": following.key}
    return {**data, "ca": following.ca + data["ca"], **more}

"""The document a credential program is given and the one it prints: `ExecCredential`, v1 and v1beta1.

Refuses answers of another version than asked, without a status, without a token or a whole key pair. What a program
printed is never part of an error: it may hold a secret.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from cryptography import x509
from msgspec import UNSET, Meta, Struct, UnsetType

from kedge.kube.connect.credentials import ClientCertificate, Identity, IssuedIdentity, Redacted, bearer

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
KIND = "ExecCredential"


class ClusterInfo(Redacted, Struct, frozen=True, rename="kebab", omit_defaults=True):
    """What a program may know of the cluster it logs in to (`provideClusterInfo`)."""

    server: str
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority_data: bytes = b""
    proxy_url: str = ""
    config: Any = None


class _Spec(Struct, frozen=True):
    interactive: bool
    cluster: ClusterInfo | UnsetType = UNSET


class _Question(Struct, frozen=True, rename="camel"):
    api_version: str
    spec: _Spec
    kind: str = KIND


class _Status(Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, Meta(tz=True)] | None = None


class _Answer(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


def question(api_version: str, *, interactive: bool, cluster: ClusterInfo | None) -> str:
    """What goes into `KUBERNETES_EXEC_INFO`."""
    spec = _Spec(interactive, UNSET if cluster is None else cluster)
    return msgspec.json.encode(_Question(api_version, spec)).decode()


def issued(printed: bytes, *, api_version: str) -> IssuedIdentity:
    """The identity in what a program printed. Raises ValueError, saying what is wrong with it."""
    status = _status(printed, api_version)
    certificate = _certificate(status)
    if not status.token and certificate is None:
        raise ValueError("its status has no token and no clientCertificateData")
    identity = Identity(bearer(status.token) if status.token else None, certificate)
    return IssuedIdentity(identity, _earliest(status.expiration_timestamp, certificate))


def _status(printed: bytes, api_version: str) -> _Status:
    try:
        answer = msgspec.json.decode(printed, type=_Answer)
    except msgspec.DecodeError as error:
        raise ValueError(f"what it printed is no {KIND}: {error}") from None
    if (answer.kind, answer.api_version) != (KIND, api_version):
        raise ValueError(
            f"it printed kind {answer.kind!r} of {answer.api_version!r}, "
            f"but is configured for {KIND} of {api_version!r}"
        )
    if answer.status is None:
        raise ValueError("what it printed has no status")
    return answer.status


def _certificate(status: _Status) -> ClientCertificate | None:
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise ValueError("its status has one of clientCertificateData and clientKeyData; it takes both or none")
    return ClientCertificate(certificate.encode(), key.encode()) if certificate and key else None


def _earliest(stated: datetime | None, certificate: ClientCertificate | None) -> datetime | None:
    """When the identity ends: as stated, or with its certificate, if that comes first."""
    if certificate is None:
        return stated
    try:
        ends = x509.load_pem_x509_certificate(certificate.certificate).not_valid_after_utc
    except ValueError:
        raise ValueError("its clientCertificateData is no PEM certificate") from None
    return ends if stated is None else min(stated, ends)

"""Certificate: what the Secret of a webhook server holds, and what is wrong with it.

    stored = read_secret({"ca": …, "cert": …, "key": …}, now)      # raises BadCertificate, which says why
    stored.current.problem(now)                                    # empty while it can be served

The keys `ca`, `cert` and `key` are those of Grafana's rollout-operator, all PEM. Here `ca` may hold several
authorities, so that a new one is trusted before it is needed, and an old one as long as somebody may still show a
certificate of it. `next-cert` and `next-key` hold the certificate that comes next. The key of an authority is stored
nowhere: it signs one certificate and is forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from msgspec import Struct

from kedge.api.redacted import Redacted

CA: Final = "ca"
CERT: Final = "cert"
KEY: Final = "key"
NEXT_CERT: Final = "next-cert"
NEXT_KEY: Final = "next-key"
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class BadCertificate(Exception):
    """The certificate cannot be served; the message says why."""


class ServingPair(Redacted, Struct, frozen=True):
    """A certificate chain and its key (PEM), with what the chain says."""

    certificate: bytes
    key: bytes
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime

    def problem(self, now: datetime) -> str:
        """Why it cannot be served now; empty if it can."""
        if now < self.not_before:
            return f"it is not valid before {_moment(self.not_before)}"
        return f"it expired at {_moment(self.not_after)}" if now >= self.not_after else ""


class Authority(Struct, frozen=True):
    """One certificate of an authority (PEM), and until when it counts."""

    pem: bytes
    not_before: datetime
    not_after: datetime


class StoredCertificate(Struct, frozen=True):
    """A Secret that can be served: `ca` is its text, `authorities` what it holds."""

    ca: bytes
    authorities: tuple[Authority, ...]
    current: ServingPair
    issuer: Authority
    """The authority behind `current`."""
    next: ServingPair | None = None
    next_problem: str = ""
    """Why there is no next one although something is stored for it."""


def read_secret(data: Mapping[str, bytes], now: datetime) -> StoredCertificate:
    """What a Secret holds. Raises `BadCertificate` if its certificate is missing, broken, foreign or out of date."""
    _check_filled(data)
    authorities = _authorities(data[CA])
    current, issuer = _issued_pair(data, CERT, KEY, authorities)
    if problem := current.problem(now):
        raise BadCertificate(problem)
    found = StoredCertificate(data[CA], authorities, current, issuer)
    if not (data.get(NEXT_CERT) or data.get(NEXT_KEY)):
        return found
    return _with_next(found, data, now)


def _with_next(stored: StoredCertificate, data: Mapping[str, bytes], now: datetime) -> StoredCertificate:
    """A broken next certificate harms nobody yet: it is only reported."""
    following, problem = None, ""
    try:
        following, _ = _issued_pair(data, NEXT_CERT, NEXT_KEY, stored.authorities)
        problem = following.problem(now)
    except BadCertificate as error:
        problem = str(error)
    return StoredCertificate(
        stored.ca, stored.authorities, stored.current, stored.issuer, None if problem else following, problem
    )


def read_pair(certificate: bytes, key: bytes) -> ServingPair:
    """A certificate chain and its key, as given. Raises `BadCertificate` if they are no such thing."""
    chain = _certificates(certificate, CERT)
    return _pair(certificate, key, chain, KEY, CERT)


def readable_authorities(ca: bytes, now: datetime) -> tuple[Authority, ...]:
    """The authorities in a text that may be broken: those that can be read and have not expired."""
    found: list[Authority] = []
    for block in _PEM.findall(ca):
        with suppress(BadCertificate):
            found += _authorities(block + b"\n")
    return tuple(one for one in found if now < one.not_after)


def bundle(authorities: Iterable[Authority]) -> bytes:
    """The text of several authorities, each once."""
    return b"".join(dict.fromkeys(one.pem for one in authorities))


def _check_filled(data: Mapping[str, bytes]) -> None:
    missing = [name for name in (CA, CERT, KEY) if not data.get(name, b"").strip()]
    if len(missing) == 3:
        raise BadCertificate("it is empty")
    if missing:
        raise BadCertificate(f"it has no {' and no '.join(missing)}")


def _issued_pair(
    data: Mapping[str, bytes], cert: str, key: str, authorities: tuple[Authority, ...]
) -> tuple[ServingPair, Authority]:
    """A pair that one of the authorities has signed, and which one. It counts no longer than the authority does."""
    certificate = data.get(cert, b"")
    chain = _certificates(certificate, cert)
    pair = _pair(certificate, data.get(key, b""), chain, key, cert)
    issuer = next((one for one in authorities if _is_issued_by(chain, _certificates(one.pem, CA)[0])), None)
    if issuer is None:
        raise BadCertificate(f"{cert} is not signed by {CA}")
    lifetime = (max(pair.not_before, issuer.not_before), min(pair.not_after, issuer.not_after))
    return ServingPair(pair.certificate, pair.key, pair.names, *lifetime), issuer


def _pair(certificate: bytes, key: bytes, chain: list[x509.Certificate], key_name: str, cert_name: str) -> ServingPair:
    leaf = chain[0]
    if _public(_private_key(key, key_name).public_key()) != _public(leaf.public_key()):
        raise BadCertificate(f"{key_name} does not belong to {cert_name}")
    return ServingPair(certificate, key, _names(leaf), leaf.not_valid_before_utc, leaf.not_valid_after_utc)


def _is_issued_by(chain: list[x509.Certificate], authority: x509.Certificate) -> bool:
    """Whether each certificate of a chain is signed by the one after it, and the last by the authority."""
    return all(_is_signed_by(one, issuer) for one, issuer in zip(chain, [*chain[1:], authority], strict=True))


def _is_signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _authorities(ca: bytes) -> tuple[Authority, ...]:
    return tuple(
        Authority(one.public_bytes(serialization.Encoding.PEM), one.not_valid_before_utc, one.not_valid_after_utc)
        for one in _certificates(ca, CA)
    )


def _certificates(pem: bytes, name: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise BadCertificate(f"{name} is not a PEM certificate") from None


def _private_key(pem: bytes, name: str) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):  # TypeError: it is encrypted
        # The error of the library may quote what it read.
        raise BadCertificate(f"{name} is not a PEM key without a pass phrase") from None


def _public(key: object) -> bytes:
    encoded: bytes = key.public_bytes(  # type: ignore[attr-defined]  # every kind of key has it
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return encoded


def _names(leaf: x509.Certificate) -> tuple[str, ...]:
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    names = found.get_values_for_type(x509.DNSName)
    return (*names, *(str(one) for one in found.get_values_for_type(x509.IPAddress)))


def _moment(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"

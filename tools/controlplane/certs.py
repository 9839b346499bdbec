"""Certificates: an authority of our own, and the serving and client certificates it signs.

Promises files of mode 0600, EC keys (fast to make), and certificates that a strict client accepts: subject
alternative names, key identifiers, key usages. A client certificate's common name is the user, its
organizations are the groups.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

A_DAY = timedelta(days=1)
_CLOCK_SKEW = timedelta(minutes=5)
_SERVING_NAMES: tuple[x509.GeneralName, ...] = (
    x509.DNSName("localhost"),
    x509.DNSName("kubernetes"),
    x509.DNSName("kubernetes.default"),
    x509.DNSName("kubernetes.default.svc"),
    x509.DNSName("kubernetes.default.svc.cluster.local"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("10.0.0.1")),  # the first service address, which `kubernetes` gets
)


@dataclass(frozen=True)
class KeyPair:
    """Paths of a certificate and its private key, PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that lives in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name, ())
        self._certificate = self._sign_itself()
        self.file = folder / "ca.crt"
        _write(self.file, self._certificate.public_bytes(serialization.Encoding.PEM))

    def __getstate__(self) -> dict[str, Any]:
        """For another process: keys and certificates as PEM."""
        certificate = self._certificate.public_bytes(serialization.Encoding.PEM)
        return {**self.__dict__, "_key": _private_pem(self._key), "_certificate": certificate, "_name": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        key = serialization.load_pem_private_key(state["_key"], password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key
        self._certificate = x509.load_pem_x509_certificate(state["_certificate"])
        self._name = self._certificate.subject

    def serving(self, file_name: str) -> KeyPair:
        """A certificate for a server on loopback."""
        names = x509.SubjectAlternativeName(_SERVING_NAMES)
        subject = _name("localhost", ())
        return self._issue(file_name, subject, ExtendedKeyUsageOID.SERVER_AUTH, A_DAY * 30, [names])

    def client(
        self, file_name: str, user: str, groups: Iterable[str] = (), *, lifetime: timedelta = A_DAY * 30
    ) -> KeyPair:
        """A certificate by which a user in some groups is known; expires after `lifetime`."""
        return self._issue(file_name, _name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, lifetime, [])

    def _issue(
        self,
        file_name: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        lifetime: timedelta,
        extensions: Sequence[x509.ExtensionType],
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._name, key.public_key(), lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pair = KeyPair(self._folder / f"{file_name}.crt", self._folder / f"{file_name}.key")
        _write(pair.key, _private_pem(key))
        _write(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))
        return pair

    def _sign_itself(self) -> x509.Certificate:
        public = self._key.public_key()
        return (
            _builder(self._name, self._name, public, A_DAY * 365)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def service_account_keys(folder: Path) -> KeyPair:
    """The pair that signs and proves service-account tokens; its `certificate` is a bare public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(folder / "service-accounts.pub", folder / "service-accounts.key")
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write(pair.key, _private_pem(key))
    _write(pair.certificate, public)
    return pair


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _name(common_name: str, organizations: Iterable[str]) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)

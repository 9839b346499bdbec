"""Certificates: the serving certificate of a server on loopback.

Clients send tokens over TLS only, so even a server that nobody outside can reach has a certificate. It is signed by an
authority that lives as long as the process, whose key is never written to disk.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_NAMES = x509.SubjectAlternativeName(
    [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))],
)
_SKEW = timedelta(minutes=5)
_LIFETIME = timedelta(days=365)


class ServingCertificate:
    """A certificate for 127.0.0.1 and localhost: `context` serves it, `authority` (PEM) is what clients trust."""

    def __init__(self, now: datetime) -> None:
        key, name = ec.generate_private_key(ec.SECP256R1()), _named("kedge-embedded-ca")
        root = _builder(name, name, key.public_key(), now)
        root = root.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        root = root.add_extension(_usage(signs=True), critical=True)
        self.authority = _pem(root.sign(key, hashes.SHA256()))
        self.context = self._context(key, name, now)

    def _context(self, authority: ec.EllipticCurvePrivateKey, issuer: x509.Name, now: datetime) -> ssl.SSLContext:
        own = ec.generate_private_key(ec.SECP256R1())
        leaf = _builder(_named("kedge-embedded"), issuer, own.public_key(), now)
        leaf = leaf.add_extension(_NAMES, critical=False)
        leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        leaf = leaf.add_extension(_usage(signs=False), critical=True)
        leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        trusted = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
        leaf = leaf.add_extension(trusted, critical=False)
        return _loaded(_pem(leaf.sign(authority, hashes.SHA256())), own)


def _loaded(certificate: bytes, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    """A context with the certificate. Python loads keys from files only: this one is readable by us, for a moment."""
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    handle, name = tempfile.mkstemp(prefix="kedge-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate + private)
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()
    return context


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), now - _SKEW, now + _LIFETIME)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)

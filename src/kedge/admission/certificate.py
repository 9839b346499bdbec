"""Certificate: makes the certificate that a webhook server shows, signed by an authority of its own.

    wanted = CertificateRequest(names=("rollout-operator.shop.svc",), organization="Grafana Labs")
    made = generate(wanted, clock.now())              # takes a while: call it in a thread
    made.ca, made.certificate, made.key               # PEM

The certificate has the attributes that Grafana's rollout-operator gives it: common name `rollout-operator`, the names
as subject alternative names, for servers and clients, as long as the authority. The key is PKCS#1. Names that are IP
addresses become addresses. The names are taken as given: kube-apiserver calls a webhook of a Service as
`<service>.<namespace>.svc`, and no longer name is needed.

Keys are RSA-2048, not 4096. Clients cannot tell, and two keys of 4096 bits take seconds of a whole processor: with the
usual request of a tenth of one, the webhooks of a new installation would be missing for a minute.

The only chance here that is not injected: keys come from the system, as they must.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from kedge.api.redacted import Redacted

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
NewKey: TypeAlias = Callable[[], PrivateKey]

COMMON_NAME: Final = "rollout-operator"
YEAR: Final = timedelta(days=365)
CLOCKS_DIFFER_BY: Final = timedelta(hours=1)
"""How long before now a certificate begins to count: clocks may be behind. A tenth of its life, if that is shorter."""


class CertificateRequest(Struct, frozen=True):
    """What to put into a certificate."""

    names: tuple[str, ...]
    organization: str = "Grafana Labs"
    expiration: timedelta = YEAR


class GeneratedCertificate(Redacted, Struct, frozen=True):
    """An authority, and the one certificate that it has signed, with its key; all PEM."""

    ca: bytes
    certificate: bytes
    key: bytes


def rsa_2048() -> PrivateKey:
    """The kind of key that is used. Its making lets other threads run."""
    return rsa.generate_private_key(65537, 2048)


def elliptic() -> PrivateKey:
    """A key that takes no time: for simulations and tests."""
    return ec.generate_private_key(ec.SECP256R1())


def generate(wanted: CertificateRequest, now: datetime, *, new_key: NewKey = rsa_2048) -> GeneratedCertificate:
    """A new authority and a certificate of it, both for as long as wanted. The key of the authority is forgotten."""
    authority, own = new_key(), new_key()
    issuer = _subject(wanted.organization or COMMON_NAME)
    lifetime = (now - min(CLOCKS_DIFFER_BY, wanted.expiration / 10), now + wanted.expiration)
    root = _builder(issuer, issuer, authority, lifetime)
    root = root.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    root = root.add_extension(_usage(signs=True), critical=True)
    leaf = _builder(issuer, _subject(wanted.organization, COMMON_NAME), own, lifetime)
    leaf = leaf.add_extension(x509.SubjectAlternativeName([_general_name(one) for one in wanted.names]), critical=False)
    leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    leaf = leaf.add_extension(_usage(signs=False), critical=True)
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    leaf = leaf.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    leaf = leaf.add_extension(signed_by, critical=False)
    return GeneratedCertificate(_signed(root, authority), _signed(leaf, authority), _private(own))


def _builder(
    issuer: x509.Name, subject: x509.Name, key: PrivateKey, lifetime: tuple[datetime, datetime]
) -> x509.CertificateBuilder:
    public = key.public_key()
    builder = x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number(), *lifetime)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)


def _signed(builder: x509.CertificateBuilder, authority: PrivateKey) -> bytes:
    return builder.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _private(key: PrivateKey) -> bytes:
    """The key as rollout-operator writes and reads it: `RSA PRIVATE KEY`."""
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _subject(organization: str, common_name: str = "") -> x509.Name:
    parts = ((NameOID.ORGANIZATION_NAME, organization), (NameOID.COMMON_NAME, common_name))
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in parts if value])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    if not name.isascii() or any(one in name for one in " /:@"):
        raise ValueError(f"{name!r} is no name of a server: write a DNS name such as rollout-operator.shop.svc")
    return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )

"""Certificates that are made: their attributes are those of rollout-operator's."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kedge.admission.certificate import CertificateRequest, generate
from kedge.plan.zoning.certificate import read_secret
from support.certificates import NAME, NOW, data_of, made


def test_the_certificate_has_the_attributes_of_the_peers() -> None:
    one = made(NAME, "other.shop.svc", "127.0.0.1", expiration=timedelta(days=7))
    authority, leaf = map(x509.load_pem_x509_certificate, (one.ca, one.certificate))
    assert authority.subject == authority.issuer == leaf.issuer
    assert authority.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "Grafana Labs"
    assert leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "rollout-operator"
    assert leaf.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "Grafana Labs"
    assert leaf.not_valid_after_utc == authority.not_valid_after_utc == NOW + timedelta(days=7)
    assert leaf.not_valid_before_utc == authority.not_valid_before_utc == NOW - timedelta(hours=1)
    uses = set(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    assert uses == {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH}
    assert leaf.extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert read_secret(data_of(one), NOW).current.names == (NAME, "other.shop.svc", "127.0.0.1")


def test_the_key_is_RSA_in_the_form_that_the_peer_reads() -> None:
    one = generate(CertificateRequest((NAME,)), NOW)
    assert one.key.startswith(b"-----BEGIN RSA PRIVATE KEY-----\n")
    key = load_pem_private_key(one.key, None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048
    assert read_secret(data_of(one), NOW).current.names == (NAME,)


def test_two_certificates_have_nothing_in_common() -> None:
    one, other = made(), made()
    assert len({one.ca, other.ca, one.certificate, other.certificate, one.key, other.key}) == 6
    serials = [x509.load_pem_x509_certificate(pem).serial_number for pem in (one.ca, other.ca)]
    assert serials[0] != serials[1]


def test_a_short_life_begins_only_a_tenth_of_it_before_now() -> None:
    one = x509.load_pem_x509_certificate(made(expiration=timedelta(minutes=10)).certificate)
    assert one.not_valid_before_utc == NOW - timedelta(minutes=1)


def test_without_an_organization_the_authority_still_has_a_name() -> None:
    assert read_secret(data_of(made(organization="")), NOW).current.names == (NAME,)


def test_printing_shows_no_key() -> None:
    one = made()
    stored = read_secret(data_of(one), NOW)
    assert "PRIVATE" not in f"{one!r} {one} {stored!r} {stored}"


@pytest.mark.parametrize("name", ["https://a.b.svc", "a.b.svc:443", "a b", "ä.svc", "me@b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a server"):
        made("a.svc", name)


def test_OpenSSL_accepts_the_certificate_under_its_authority(tmp_path: Path) -> None:
    one, other = made(), made()
    (tmp_path / "ca.pem").write_bytes(other.ca + one.ca)
    (tmp_path / "cert.pem").write_bytes(one.certificate)
    at = str(int(NOW.timestamp()))
    command = ["openssl", "verify", "-attime", at, "-x509_strict", "-purpose", "sslserver", "-verify_hostname", NAME]
    done = subprocess.run(
        [*command, "-CAfile", "ca.pem", "cert.pem"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "cert.pem: OK\n"), done.stderr

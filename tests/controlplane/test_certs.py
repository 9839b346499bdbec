"""Certificates as a Kubernetes API server reads them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store

from controlplane.certs import Authority, KeyPair, service_account_keys


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "test-ca")


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def attributes(certificate: x509.Certificate, kind: x509.ObjectIdentifier) -> list[str | bytes]:
    return [attribute.value for attribute in certificate.subject.get_attributes_for_oid(kind)]


def test_a_client_certificate_says_who_and_in_which_groups(authority: Authority) -> None:
    certificate = load(authority.client("u", "jane", ["dev", "ops"]).certificate)
    assert attributes(certificate, NameOID.COMMON_NAME) == ["jane"]
    assert attributes(certificate, NameOID.ORGANIZATION_NAME) == ["dev", "ops"]


def test_a_client_certificate_lives_as_long_as_told(authority: Authority) -> None:
    certificate = load(authority.client("u", "jane", lifetime=timedelta(minutes=1)).certificate)
    assert certificate.not_valid_after_utc <= datetime.now(UTC) + timedelta(minutes=1)
    assert certificate.not_valid_before_utc < datetime.now(UTC)


@pytest.mark.parametrize("name", ["localhost", "kubernetes.default", "kubernetes.default.svc"])
def test_a_strict_client_accepts_the_serving_certificate(authority: Authority, name: str) -> None:
    store = Store([load(authority.file)])
    verifier = PolicyBuilder().store(store).build_server_verifier(x509.DNSName(name))
    assert verifier.verify(load(authority.serving("server").certificate), [])


def test_keys_can_be_read_by_their_owner_only(authority: Authority, tmp_path: Path) -> None:
    pairs: list[KeyPair] = [authority.serving("s"), authority.client("c", "jane"), service_account_keys(tmp_path)]
    assert {oct(pair.key.stat().st_mode & 0o777) for pair in pairs} == {"0o600"}


def test_service_account_keys_belong_together(tmp_path: Path) -> None:
    pair = service_account_keys(tmp_path)
    private = load_pem_private_key(pair.key.read_bytes(), password=None)
    assert private.public_key() == load_pem_public_key(pair.certificate.read_bytes())

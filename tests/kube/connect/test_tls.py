"""TLS contexts: whom they trust, what they show, and what they refuse."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from kedge.kube.connect import tls
from kedge.kube.connect.credentials import ClientCertificate
from kedge.kube.connect.tls import TlsRefused
from kube.connect.tlsfixtures import Authority

AUTHORITY = Authority()
PAIR = AUTHORITY.client("jane")


def encrypted(pair: ClientCertificate) -> ClientCertificate:
    key = serialization.load_pem_private_key(pair.key, None)
    return ClientCertificate(
        pair.certificate,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"pass phrase"),
        ),
    )


def test_a_given_ca_is_the_only_one() -> None:
    context = tls.context(AUTHORITY.pem)
    assert len(context.get_ca_certs()) == 1
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_several_cas_and_remarks_may_be_in_one_file() -> None:
    remarks = "# Zürich\n".encode()
    assert len(tls.context(remarks + AUTHORITY.pem + remarks + Authority("two").pem).get_ca_certs()) == 2


def test_the_systems_cas_are_loaded_once() -> None:
    assert tls.context() is tls.context()


def test_a_context_of_ones_own_is_not_shared() -> None:
    assert tls.context(AUTHORITY.pem) is not tls.context(AUTHORITY.pem)
    assert tls.context(certificate=PAIR) is not tls.context()


def test_insecure_checks_nothing() -> None:
    context = tls.context(insecure=True)
    assert context.verify_mode == ssl.CERT_NONE
    assert not context.check_hostname


@pytest.mark.parametrize(
    ("ca", "told"),
    [
        (b"", "no PEM certificate"),
        (b"junk", "no PEM certificate"),
        (b"-----BEGIN CERTIFICATE-----\njunk\n-----END CERTIFICATE-----\n", "broken PEM certificate"),
        ("-----BEGIN CERTIFICATE-----\nü\n-----END CERTIFICATE-----\n".encode(), "broken PEM certificate"),
    ],
)
def test_what_is_no_ca_is_refused(ca: bytes, told: str) -> None:
    with pytest.raises(TlsRefused, match=told):
        tls.context(ca)


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        (ClientCertificate(PAIR.certificate, AUTHORITY.client("joe").key), "do not belong together"),
        (ClientCertificate(b"junk", b"junk"), "are not a PEM certificate chain and its PEM key"),
        (encrypted(PAIR), "is encrypted: give it without a pass phrase"),
    ],
)
def test_what_is_no_pair_is_refused(pair: ClientCertificate, told: str) -> None:
    with pytest.raises(TlsRefused, match=told):
        tls.context(AUTHORITY.pem, certificate=pair)


def test_without_memory_files_a_key_is_in_a_private_file_and_only_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def note(self: ssl.SSLContext, path: str, *, password: object) -> None:
        modes.extend(part.stat().st_mode & 0o777 for part in (Path(path), Path(path).parent))
        load(self, path)

    monkeypatch.delattr("os.memfd_create", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", note)
    tls.context(AUTHORITY.pem, certificate=PAIR)
    assert modes == [0o600, 0o700]
    assert not list(tmp_path.iterdir())

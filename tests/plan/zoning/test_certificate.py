"""What a Secret holds, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kedge.plan.zoning.certificate import (
    BadCertificate,
    bundle,
    read_pair,
    read_secret,
    readable_authorities,
)
from support.certificates import NAME, NOW, data_of, made, with_next

ONE, OTHER = made(), made(expiration=timedelta(days=10))
GOOD = data_of(ONE)
DAY = timedelta(days=1)


def test_a_good_one_says_what_it_holds() -> None:
    stored = read_secret(data_of(ONE, OTHER.ca), NOW)
    assert stored.current.certificate == ONE.certificate
    assert stored.current.names == (NAME,)
    assert stored.current.not_after == NOW + 365 * DAY
    assert stored.ca == ONE.ca + OTHER.ca
    assert [one.pem for one in stored.authorities] == [ONE.ca, OTHER.ca]
    assert stored.issuer.pem == ONE.ca
    assert stored.next is None
    assert stored.next_problem == ""


BAD: dict[str, tuple[dict[str, bytes], str]] = {
    "nothing": ({}, "it is empty"),
    "empty values": ({"ca": b"", "cert": b" \n", "key": b""}, "it is empty"),
    "no key": ({**GOOD, "key": b""}, "it has no key"),
    "no ca and cert": ({"key": ONE.key}, "it has no ca and no cert"),
    "garbled ca": ({**GOOD, "ca": b"garbage"}, "ca is not a PEM certificate"),
    "half of ca": ({**GOOD, "ca": ONE.ca[:200]}, "ca is not a PEM certificate"),
    "garbled cert": ({**GOOD, "cert": b"garbage"}, "cert is not a PEM certificate"),
    "half of cert": ({**GOOD, "cert": ONE.certificate[:300]}, "cert is not a PEM certificate"),
    "garbled key": ({**GOOD, "key": b"garbage"}, "key is not a PEM key without a pass phrase"),
    "half of key": ({**GOOD, "key": ONE.key[:60]}, "key is not a PEM key without a pass phrase"),
    "key of another": ({**GOOD, "key": OTHER.key}, "key does not belong to cert"),
    "cert of another": ({**GOOD, "cert": OTHER.certificate}, "key does not belong to cert"),
    "ca of another": ({**GOOD, "ca": OTHER.ca}, "cert is not signed by ca"),
    "expired": (data_of(made(at=NOW - 400 * DAY)), "it expired at 2029-11-27T00:00:00Z"),
    "ends now": (data_of(made(at=NOW - 365 * DAY)), "it expired at 2030-01-01T00:00:00Z"),
    "not yet": (data_of(made(at=NOW + DAY)), "it is not valid before 2030-01-01T23:00:00Z"),
}


@pytest.mark.parametrize("row", BAD)
def test_a_bad_one_says_why(row: str) -> None:
    data, why = BAD[row]
    with pytest.raises(BadCertificate) as caught:
        read_secret(data, NOW)
    assert str(caught.value) == why


def test_it_counts_from_the_first_moment_to_the_last() -> None:
    pair = read_secret(GOOD, NOW).current
    assert not pair.problem(pair.not_before)
    assert not pair.problem(pair.not_after - timedelta(seconds=1))
    assert pair.problem(pair.not_after)
    assert pair.problem(pair.not_before - timedelta(seconds=1))


def test_a_next_one_is_read_too() -> None:
    stored = read_secret(with_next(GOOD, OTHER), NOW)
    assert stored.next is not None
    assert stored.next.certificate == OTHER.certificate
    assert stored.next.not_after == NOW + 10 * DAY
    assert stored.issuer.pem == ONE.ca
    assert stored.next_problem == ""


NEXT: dict[str, tuple[Callable[[], dict[str, bytes]], str]] = {
    "no key": (lambda: {**with_next(GOOD, OTHER), "next-key": b""}, "next-key is not a PEM key without a pass phrase"),
    "no cert": (lambda: {**GOOD, "next-key": OTHER.key}, "next-cert is not a PEM certificate"),
    "not trusted": (lambda: {**with_next(GOOD, OTHER), "ca": ONE.ca}, "next-cert is not signed by ca"),
    "key of another": (
        lambda: {**with_next(GOOD, OTHER), "next-key": ONE.key},
        "next-key does not belong to next-cert",
    ),
    "expired": (lambda: with_next(GOOD, made(at=NOW - 400 * DAY)), "it expired at 2029-11-27T00:00:00Z"),
}


@pytest.mark.parametrize("row", NEXT)
def test_a_bad_next_one_is_only_reported(row: str) -> None:
    data, why = NEXT[row]
    stored = read_secret(data(), NOW)
    assert stored.next is None
    assert stored.next_problem == why
    assert stored.current.certificate == ONE.certificate


def test_of_a_broken_list_of_authorities_the_readable_ones_count() -> None:
    expired = made(at=NOW - 400 * DAY)
    text = b"garbage" + ONE.ca + ONE.ca.replace(b"M", b"!") + OTHER.ca + expired.ca + made().ca[:100]
    found = readable_authorities(text, NOW)
    assert [one.pem for one in found] == [ONE.ca, OTHER.ca]
    assert bundle((*found, *found)) == ONE.ca + OTHER.ca
    assert readable_authorities(b"", NOW) == ()
    assert readable_authorities(OTHER.ca, NOW + 10 * DAY) == ()


def test_a_pair_from_files_needs_no_authority() -> None:
    pair = read_pair(ONE.certificate + ONE.ca, ONE.key)
    assert pair.certificate == ONE.certificate + ONE.ca
    assert pair.names == (NAME,)
    with pytest.raises(BadCertificate, match="key does not belong to cert"):
        read_pair(ONE.certificate, OTHER.key)


def test_a_chain_that_ends_with_its_authority_is_trusted() -> None:
    assert read_secret({**GOOD, "cert": ONE.certificate + ONE.ca}, NOW).issuer.pem == ONE.ca
    for ca in (ONE.ca, OTHER.ca):
        with pytest.raises(BadCertificate, match="cert is not signed by ca"):
            read_secret({"ca": ca, "cert": ONE.certificate + OTHER.ca, "key": ONE.key}, NOW)


def test_a_certificate_counts_only_as_long_as_its_authority() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "shop")])

    def signed(begins: timedelta, ends: timedelta) -> bytes:
        builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(NOW + begins).not_valid_after(NOW + ends)
        return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)

    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    long, short = signed(-5 * DAY, 5 * DAY), signed(-DAY, DAY)
    for ca, cert in ((long, short), (short, long)):
        pair = read_secret({"ca": ca, "cert": cert, "key": secret}, NOW).current
        assert (pair.not_before, pair.not_after) == (NOW - DAY, NOW + DAY)
        assert pair.names == ()

"""What is done next about a certificate."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.zoning.certificate import BadCertificate, ServingPair, StoredCertificate, read_secret
from kedge.plan.zoning.certificate_renewal import (
    ABSENT,
    CertificateFacts,
    Generate,
    RenewalWait,
    Serve,
    ServedPair,
    WriteSecret,
    generated_data,
    latest_switch,
    lead_time,
    next_step,
    renewal_time,
)
from support.certificates import NAME, NOW, data_of, made, with_next

DAY = timedelta(days=1)
ONE, NEW, OTHER = made(), made(at=NOW + 336 * DAY), made()
GOOD, RENEWING = data_of(ONE), with_next(data_of(ONE), NEW)
DUE = NOW + 336 * DAY  # 29 days before its end


def stored(data: dict[str, bytes], now: datetime = NOW) -> StoredCertificate:
    return read_secret(data, now)


def served(data: dict[str, bytes], now: datetime = NOW) -> ServedPair:
    found = stored(data, now)
    return ServedPair(found.current, found.issuer)


def facts(data: dict[str, bytes] | None, now: datetime = NOW, **more: Any) -> CertificateFacts:
    """What is known when this is in the Secret; None: there is no Secret."""
    if data is None:
        return CertificateFacts({}, None, ABSENT, **more)
    try:
        return CertificateFacts(data, read_secret(data, now), **more)
    except BadCertificate as error:
        return CertificateFacts(data, None, str(error), **more)


def step(known: CertificateFacts, now: datetime = NOW, *, jitter: float = 0.0, names: tuple[str, ...] = (NAME,)) -> Any:
    return next_step(known, names=names, jitter=jitter, now=now)


# Repairing


@pytest.mark.parametrize(
    "data", [None, {}, {**GOOD, "key": b""}, {**GOOD, "ca": OTHER.ca}, data_of(made(at=NOW - 400 * DAY))]
)
def test_what_cannot_be_served_is_replaced_by_a_new_certificate(data: dict[str, bytes] | None) -> None:
    known = facts(data)
    assert step(known) == Generate((NAME,), known.problem, is_next=False)


@pytest.mark.parametrize("data", [None, {}, {**GOOD, "cert": b"x"}])
def test_what_was_good_a_moment_ago_is_written_back(data: dict[str, bytes] | None) -> None:
    known = facts(data, DUE, last_good=stored(RENEWING, DUE), served=served(GOOD))
    assert step(known, DUE) == WriteSecret(RENEWING, f"it was damaged: {known.problem}")


def test_what_was_good_once_and_has_expired_is_not_written_back() -> None:
    later = NOW + 366 * DAY
    known = facts(None, later, last_good=stored(GOOD), served=served(GOOD))
    assert step(known, later) == Generate((NAME,), ABSENT, is_next=False)


def test_a_new_certificate_keeps_the_authorities_that_somebody_may_still_need() -> None:
    known = facts({**GOOD, "key": b"x"}, served=served(data_of(OTHER)))
    data = generated_data(known, NEW.ca, NEW.certificate, NEW.key, is_next=False, now=NOW)
    assert data == {"ca": NEW.ca + OTHER.ca + ONE.ca, "cert": NEW.certificate, "key": NEW.key}


def test_a_first_certificate_stands_alone() -> None:
    data = generated_data(facts(None), NEW.ca, NEW.certificate, NEW.key, is_next=False, now=NOW)
    assert data == data_of(NEW)


def test_a_certificate_that_is_used_at_once_takes_the_place_of_the_old_one() -> None:
    data = generated_data(facts(GOOD), NEW.ca, NEW.certificate, NEW.key, is_next=False, now=NOW)
    assert data == data_of(NEW, ONE.ca)


# Taking over


def test_the_first_certificate_is_served_at_once() -> None:
    assert step(facts(GOOD)) == Serve(served(GOOD))


TAKEN = {**data_of(OTHER), "ca": OTHER.ca + ONE.ca}


def test_another_one_is_served_when_it_is_trusted() -> None:
    waits = step(facts(TAKEN, served=served(GOOD), trusted=False))
    assert waits == RenewalWait(latest_switch(served(GOOD).pair), for_trust=True)
    assert step(facts(TAKEN, served=served(GOOD), trusted=True)) == Serve(served(TAKEN))


def test_another_one_is_served_at_once_if_nobody_can_know_whether_it_is_trusted() -> None:
    assert step(facts(TAKEN, served=served(GOOD), trusted=None)) == Serve(served(TAKEN))


def test_another_one_is_served_at_the_latest_before_the_old_one_ends() -> None:
    limit = latest_switch(served(GOOD).pair)
    assert isinstance(step(facts(TAKEN, served=served(GOOD), trusted=False), limit - DAY), RenewalWait)
    renewed = {**data_of(NEW), "ca": NEW.ca + ONE.ca}
    found = step(facts(renewed, limit, served=served(GOOD), trusted=False), limit)
    assert found == Serve(served(renewed, limit))


def test_another_one_is_served_at_once_if_the_old_one_has_expired() -> None:
    later = NOW + 365 * DAY
    renewed = {**data_of(NEW), "ca": NEW.ca + ONE.ca}
    found = step(facts(renewed, later, served=served(GOOD), trusted=False), later)
    assert found == Serve(served(renewed, later))


def test_the_authority_of_what_is_served_is_added_to_what_somebody_else_has_stored() -> None:
    found = step(facts(data_of(OTHER), served=served(GOOD), trusted=True))
    assert found == WriteSecret(TAKEN, "the old authority is still in use")


def test_a_next_certificate_is_kept_when_an_authority_is_added() -> None:
    data = with_next(data_of(OTHER), NEW)
    later = NOW + 337 * DAY
    found = step(facts(data, later, served=served(GOOD), trusted=True), later)
    assert found.data == {**data, "ca": OTHER.ca + ONE.ca + NEW.ca}


# Renewing


def test_a_certificate_is_renewed_thirty_days_before_its_end() -> None:
    pair = stored(GOOD).current
    assert lead_time(pair) == 30 * DAY
    assert renewal_time(pair, 0.0) == NOW + 335 * DAY
    assert renewal_time(pair, 1.0) == NOW + 338 * DAY
    assert latest_switch(pair) == NOW + 350 * DAY


def test_a_short_certificate_is_renewed_after_two_thirds_of_its_life() -> None:
    pair = ServingPair(b"", b"", (), NOW, NOW + timedelta(hours=3))
    assert renewal_time(pair, 0.0) == NOW + timedelta(hours=2)
    assert latest_switch(pair) == NOW + timedelta(hours=2.5)


def test_until_then_nothing_is_done() -> None:
    due = NOW + 335 * DAY
    known = facts(GOOD, served=served(GOOD))
    assert step(known, due - timedelta(seconds=1)) == RenewalWait(due)
    assert step(known, due) == Generate((NAME,), "it expires at 2031-01-01T00:00:00Z", is_next=True)
    assert step(known, due, jitter=0.5) == RenewalWait(due + 1.5 * DAY)


def test_the_new_authority_is_trusted_before_the_new_certificate_is_used() -> None:
    known = facts(GOOD, DUE, served=served(GOOD))
    data = generated_data(known, NEW.ca, NEW.certificate, NEW.key, is_next=True, now=DUE)
    assert data == RENEWING
    assert data["cert"] == ONE.certificate


def test_the_new_certificate_is_used_when_all_trust_it() -> None:
    for trusted in (False, None):
        waits = step(facts(RENEWING, DUE, served=served(GOOD), trusted=trusted), DUE)
        assert waits == RenewalWait(NOW + 350 * DAY, for_trust=True)
    found = step(facts(RENEWING, DUE, served=served(GOOD), trusted=True), DUE)
    promoted = {"ca": NEW.ca + ONE.ca, "cert": NEW.certificate, "key": NEW.key}
    assert found == WriteSecret(promoted, "the next certificate is trusted")


@pytest.mark.parametrize("trusted", [False, None])
def test_the_new_certificate_is_used_at_the_latest_half_way_to_the_end(trusted: bool | None) -> None:
    limit = NOW + 350 * DAY
    found = step(facts(RENEWING, limit, served=served(GOOD), trusted=trusted), limit)
    assert found.data["cert"] == NEW.certificate
    assert found.why == "the certificate ends soon"


def test_a_damaged_next_certificate_is_made_again_when_it_is_due_and_else_removed() -> None:
    damaged = {**RENEWING, "next-key": b"x"}
    assert isinstance(step(facts(damaged, DUE, served=served(GOOD)), DUE), Generate)
    removed = step(facts(damaged, served=served(GOOD)))
    assert removed.data == {**GOOD, "ca": NEW.ca + ONE.ca}
    assert removed.why == "the next certificate cannot be used: next-key is not a PEM key without a pass phrase"


def test_other_names_make_a_new_certificate_that_keeps_the_old_ones() -> None:
    found = step(facts(GOOD, served=served(GOOD)), names=("a.shop.svc", "b.shop.svc"))
    wanted = ("a.shop.svc", "b.shop.svc", NAME)
    assert found == Generate(wanted, "it has no name a.shop.svc, b.shop.svc", is_next=True)


def test_more_names_than_needed_do_not_matter() -> None:
    data = data_of(made(NAME, "b.shop.svc"))
    assert isinstance(step(facts(data, served=served(data))), RenewalWait)


def test_a_regular_renewal_drops_names_that_are_no_longer_needed() -> None:
    data = data_of(made(NAME, "b.shop.svc"))
    assert step(facts(data, DUE, served=served(data)), DUE).names == (NAME,)


def test_an_expired_authority_is_removed() -> None:
    old = made(at=NOW - 360 * DAY)
    data, later = data_of(ONE, old.ca), NOW + 5 * DAY
    assert isinstance(step(facts(data, served=served(data))), RenewalWait)
    found = step(facts(data, later, served=served(data)), later)
    assert found == WriteSecret(GOOD, "an old authority has expired")


def test_authorities_do_not_become_more_and_more() -> None:
    data = data_of(ONE, *(made().ca for _ in range(5)))
    known = facts(data, DUE, served=served(data))
    renewing = generated_data(known, NEW.ca, NEW.certificate, NEW.key, is_next=True, now=DUE)
    assert renewing["ca"].startswith(NEW.ca + ONE.ca)
    assert renewing["ca"].count(b"BEGIN CERTIFICATE") == 4


# Always

DATA = {
    "none": None,
    "empty": {},
    "good": GOOD,
    "renewing": RENEWING,
    "other": data_of(OTHER),
    "taken": TAKEN,
    "promoted": {**data_of(NEW), "ca": NEW.ca + ONE.ca},
    "garbled": {**GOOD, "key": b"x"},
}
SHOWN = {"nothing": None, "good": served(GOOD), "other": served(data_of(OTHER)), "new": served(data_of(NEW), DUE)}


@given(
    st.sampled_from(sorted(DATA)),
    st.sampled_from(sorted(SHOWN)),
    st.sampled_from([True, False, None]),
    st.integers(0, 700),
    st.floats(0, 1),
)
def test_what_is_served_stays_trusted_and_can_be_served(
    data: str, shown: str, trusted: bool | None, days: int, jitter: float
) -> None:
    """No step takes away the trust in what is served, and none serves what has expired."""
    now, now_served = NOW + days * DAY, SHOWN[shown]
    known = facts(DATA[data], now, served=now_served, trusted=trusted)
    found = step(known, now, jitter=jitter)
    if isinstance(found, WriteSecret):
        after = stored(dict(found.data), now)
        alive = now_served is not None and not now_served.pair.problem(now)
        was_trusted = (
            alive and now_served is not None and known.stored and now_served.issuer in known.stored.authorities
        )
        assert not was_trusted or now_served.issuer in after.authorities  # type: ignore[union-attr]
    if isinstance(found, Serve):
        assert not found.served.pair.problem(now)
    if isinstance(found, RenewalWait):
        assert found.until > now

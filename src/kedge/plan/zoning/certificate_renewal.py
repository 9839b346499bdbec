"""Certificate renewal: what to do next about the certificate of a webhook server.

    step = next_step(facts, names=("rollout-operator.shop.svc",), jitter=0.3, now=now)

Promises that a client never meets a certificate that it does not trust yet. A renewal has three steps, each a write of
the Secret that all replicas read: the new authority is added to `ca` and the new certificate is kept beside the old
one; once every webhook configuration trusts the new authority, the new certificate takes the place of the old one; an
old authority is removed when it has expired. So a replica that is late may still show the old certificate. A crash
between two steps loses nothing.

A Secret that was deleted or damaged gets back what this replica last read of it. Only if that cannot be served any
more, a new certificate is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from msgspec import Struct

from kedge.api.redacted import Redacted
from kedge.plan.zoning.certificate import (
    CA,
    CERT,
    KEY,
    NEXT_CERT,
    NEXT_KEY,
    Authority,
    ServingPair,
    StoredCertificate,
    bundle,
    readable_authorities,
)

SecretData: TypeAlias = Mapping[str, bytes]

LONGEST_LEAD: Final = timedelta(days=30)
MOST_AUTHORITIES: Final = 4
ABSENT: Final = "there is none"


class ServedPair(Struct, frozen=True):
    """What this replica shows its clients now."""

    pair: ServingPair
    issuer: Authority


class CertificateFacts(Redacted, Struct, frozen=True):
    """What is known of the certificate."""

    data: SecretData
    """All that the Secret holds."""
    stored: StoredCertificate | None
    problem: str = ""
    """Why the Secret cannot be served, if so."""
    last_good: StoredCertificate | None = None
    """What was last read of the Secret while it could be served."""
    served: ServedPair | None = None
    trusted: bool | None = None
    """Whether all webhook configurations have `ca` of the Secret; None if nobody can know."""


class WriteSecret(Redacted, Struct, frozen=True):
    """Store this, in place of what was read."""

    data: SecretData
    why: str


class Generate(Struct, frozen=True):
    """Make a new certificate with these names: the next one, or at once the current one."""

    names: tuple[str, ...]
    why: str
    is_next: bool


class Serve(Struct, frozen=True):
    """Show this certificate from now on."""

    served: ServedPair


class RenewalWait(Struct, frozen=True):
    """Nothing to do before this moment, if nothing changes. `for_trust`: webhook configurations are being updated."""

    until: datetime
    for_trust: bool = False


RenewalStep: TypeAlias = WriteSecret | Generate | Serve | RenewalWait


def next_step(facts: CertificateFacts, *, names: tuple[str, ...], jitter: float, now: datetime) -> RenewalStep:
    """What to do now. `names` have to be in the certificate; `jitter` (0 to 1) keeps replicas from acting at once."""
    stored = facts.stored
    if stored is None:
        return _repair(facts, names, now)
    return (
        _taken_over(facts, stored, now)
        or _renewed(facts, stored, names, jitter, now)
        or _tidied(stored, now)
        or RenewalWait(renewal_time(stored.current, jitter))
    )


def lead_time(pair: ServingPair) -> timedelta:
    """How long before its end a certificate is renewed: a third of its life, and 30 days at most."""
    return min(LONGEST_LEAD, (pair.not_after - pair.not_before) / 3)


def renewal_time(pair: ServingPair, jitter: float) -> datetime:
    """When the next certificate is made."""
    return pair.not_after - lead_time(pair) * (1 - jitter / 10)


def latest_switch(pair: ServingPair) -> datetime:
    """When the next certificate is shown even if nobody knows whether it is trusted: the old one ends soon."""
    return pair.not_after - lead_time(pair) / 2


def generated_data(
    facts: CertificateFacts, ca: bytes, certificate: bytes, key: bytes, *, is_next: bool, now: datetime
) -> SecretData:
    """What the Secret is to hold with a certificate that was just made."""
    made = readable_authorities(ca, now)
    if is_next and facts.stored is not None:
        kept = (facts.stored.issuer, *facts.stored.authorities)
        return _data(facts.stored, ca=_joined(made, kept), following=(certificate, key))
    kept = readable_authorities(facts.data.get(CA, b""), now)
    if facts.served is not None:
        kept = (facts.served.issuer, *kept)
    return {CA: _joined(made, kept), CERT: certificate, KEY: key}


def _repair(facts: CertificateFacts, names: tuple[str, ...], now: datetime) -> RenewalStep:
    good = facts.last_good
    if good is not None and not good.current.problem(now):
        return WriteSecret(_data(good, following=_following(good)), f"it was damaged: {facts.problem}")
    return Generate(names, facts.problem, is_next=False)


def _taken_over(facts: CertificateFacts, stored: StoredCertificate, now: datetime) -> RenewalStep | None:
    """Show what is stored, as soon as it is trusted; until then, what is shown has to stay trusted."""
    served, stored_pair = facts.served, ServedPair(stored.current, stored.issuer)
    if served is None or served.pair.problem(now):
        return Serve(stored_pair)
    if served.pair == stored.current:
        return None
    if served.issuer not in stored.authorities:
        kept = _joined((stored.issuer, served.issuer), stored.authorities)
        return WriteSecret(_data(stored, ca=kept, following=_following(stored)), "the old authority is still in use")
    limit = latest_switch(served.pair)
    return RenewalWait(limit, for_trust=True) if facts.trusted is False and now < limit else Serve(stored_pair)


def _renewed(
    facts: CertificateFacts, stored: StoredCertificate, names: tuple[str, ...], jitter: float, now: datetime
) -> RenewalStep | None:
    if stored.next is not None:
        return _switched(facts, stored, stored.next, now)
    missing = [name for name in names if name not in stored.current.names]
    if missing:
        # Those of the old one too: replicas with different names would replace each other's certificates for ever.
        wanted = tuple(dict.fromkeys((*names, *stored.current.names)))
        return Generate(wanted, f"it has no name {', '.join(missing)}", is_next=True)
    if now >= renewal_time(stored.current, jitter):
        return Generate(names, f"it expires at {stored.current.not_after:%Y-%m-%dT%H:%M:%SZ}", is_next=True)
    if stored.next_problem:
        return WriteSecret(_data(stored), f"the next certificate cannot be used: {stored.next_problem}")
    return None


def _switched(facts: CertificateFacts, stored: StoredCertificate, following: ServingPair, now: datetime) -> RenewalStep:
    limit = latest_switch(stored.current)
    if facts.trusted or now >= limit:
        why = "the next certificate is trusted" if facts.trusted else "the certificate ends soon"
        return WriteSecret({CA: stored.ca, CERT: following.certificate, KEY: following.key}, why)
    return RenewalWait(limit, for_trust=True)


def _tidied(stored: StoredCertificate, now: datetime) -> RenewalStep | None:
    alive = tuple(one for one in stored.authorities if now < one.not_after)
    if len(alive) == len(stored.authorities):
        return None
    return WriteSecret(_data(stored, ca=bundle(alive)), "an old authority has expired")


def _joined(first: Iterable[Authority], kept: Iterable[Authority]) -> bytes:
    """Authorities, the needed ones first, and not more and more of them."""
    return bundle(list(dict.fromkeys((*first, *kept)))[:MOST_AUTHORITIES])


def _following(stored: StoredCertificate) -> tuple[bytes, bytes] | None:
    return (stored.next.certificate, stored.next.key) if stored.next is not None else None


def _data(
    stored: StoredCertificate, *, ca: bytes | None = None, following: tuple[bytes, bytes] | None = None
) -> SecretData:
    data = {CA: stored.ca if ca is None else ca, CERT: stored.current.certificate, KEY: stored.current.key}
    return data | ({NEXT_CERT: following[0], NEXT_KEY: following[1]} if following is not None else {})

"""Certificates: keeps a webhook server supplied with a certificate that its clients trust.

    secret = CertificateSecret(cluster.client, "shop", "rollout-operator-self-signed-certificate")
    bundles = CaBundles(cluster, namespaces=["shop"], secret=secret, registry=registry)
    certificates = Certificates(cluster, secret, names=names, clock=clock, rng=rng, generate=…, show=…, bundles=bundles)
    manager.add_controller(certificates.controller)

The certificate lives in a Secret, which every replica reads; what to do about it is decided in
`plan.zoning.certificate_renewal`. The Secret may not be watched, so it is read every half minute, and every few seconds
while a new authority is being made known. Each replica has to run this, also one that does not lead: each serves.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from kedge.controllers.zone.certificate_secret import CertificateSecret, ReadSecret
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import Forbidden
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Signal
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
    lead_time,
    next_step,
)

READ_EVERY: Final = 30.0
KNOWN_AFTER: Final = 60.0
MAKING: Final = 600.0
"""Seconds in which even a busy machine makes two keys."""
_AT_ONCE: Final = 0.001
log = logging.getLogger(__name__)


class MadeCertificate(Protocol):
    """A new authority, and the certificate that it signed, with its key; all PEM."""

    @property
    def ca(self) -> bytes: ...
    @property
    def certificate(self) -> bytes: ...
    @property
    def key(self) -> bytes: ...


class Bundles(Protocol):
    """Makes authorities known to those who call."""

    def publish(self, bundle: bytes) -> None:
        """From now on, this is whom to trust."""
        ...

    def holds(self, bundle: bytes) -> bool | None:
        """Whether all callers trust exactly these; None if that cannot be known."""
        ...

    def on_outdated(self, handler: Callable[[], None]) -> None:
        """Tell this handler if somebody else has published something newer."""
        ...


GenerateCertificate: TypeAlias = Callable[[tuple[str, ...], datetime], Awaitable[MadeCertificate]]
"""Makes a certificate with these names, from now on."""
ShowCertificate: TypeAlias = Callable[[ServingPair], Awaitable[None]]
"""Has the server show this certificate to new connections."""


class Certificates:
    """The certificate of one webhook server, as this replica sees and serves it."""

    def __init__(
        self,
        cluster: Cluster,
        secret: CertificateSecret,
        *,
        names: tuple[str, ...],
        clock: Clock,
        rng: random.Random,
        generate: GenerateCertificate,
        show: ShowCertificate,
        bundles: Bundles | None = None,
        read_every: float = READ_EVERY,
        known_after: float = KNOWN_AFTER,
    ) -> None:
        """Without `bundles`, somebody else makes the authorities known, and has half of the time before the end.

        `read_every`: seconds between two reads of the Secret at most, and six times more often during a renewal;
        `known_after`: seconds until every API server has surely seen a change of a webhook configuration.
        """
        self._secret = secret
        self._names = names
        self._clock = clock
        self._rng = rng
        self._jitter = rng.random()
        self._generate = generate
        self._show = show
        self._bundles = bundles
        self._read_every = read_every
        self._known_after = known_after
        self._last_good: StoredCertificate | None = None
        self._served: ServedPair | None = None
        self._refusal = ""
        self._held_since: tuple[bytes, float] | None = None  # which bundle all have, and since when
        key = Key(cluster.name, None, str(secret))
        wakes = Signal(cluster.name, at_start=[key])
        if bundles is not None:
            bundles.on_outdated(lambda: wakes.wake(key))
        self.controller = Controller("certificates", self.reconcile, [wakes], workers=1, timeout=MAKING)

    @property
    def served(self) -> ServingPair | None:
        """What is shown now."""
        return self._served.pair if self._served is not None else None

    @property
    def ca_bundle(self) -> bytes:
        """Whom clients have to trust (PEM); empty as long as there is no certificate."""
        return self._last_good.ca if self._last_good is not None else b""

    async def reconcile(self, _: Key) -> Outcome:
        try:
            return await self._look_and_act()
        except Forbidden as error:
            if error.message != self._refusal:
                log.warning(
                    "%s: grant create of secrets, and get and update of this one (%s)", self._secret, error.message
                )
            self._refusal = error.message
            return Outcome.again(after=self._read_every)

    async def _look_and_act(self) -> Outcome:
        read = await self._secret.read()
        now = self._clock.now()
        facts = self._facts(read, now)
        step = next_step(facts, names=self._names, jitter=self._jitter, now=now)
        if isinstance(step, RenewalWait):
            return Outcome.again(after=self._pause(step, facts, now))
        await self._take(step, facts, read, now)
        return Outcome.again(after=_AT_ONCE)

    # Looking

    def _facts(self, read: ReadSecret | None, now: datetime) -> CertificateFacts:
        stored, problem = None, ABSENT
        if read is not None:
            try:
                stored = read_secret(read.data, now)
            except BadCertificate as error:
                problem = str(error)
        trusted = self._is_trusted(stored) if stored is not None else None
        data = read.data if read is not None else {}
        if stored is None:
            return CertificateFacts(data, None, problem, self._last_good, self._served, trusted)
        self._last_good = stored
        return CertificateFacts(data, stored, "", stored, self._served, trusted)

    def _is_trusted(self, stored: StoredCertificate) -> bool | None:
        """Whether all callers have known what is stored for long enough."""
        if self._bundles is None:
            return None
        if self._served is None or self._served.issuer in stored.authorities:
            # Else those who call this replica would trust it no more.
            self._bundles.publish(stored.ca)
        held, now = self._bundles.holds(stored.ca), asyncio.get_running_loop().time()
        if not held:
            self._held_since = None
            return held
        if self._held_since is None or self._held_since[0] != stored.ca:
            self._held_since = (stored.ca, now)
        return now - self._held_since[1] >= self._known_after

    def _pause(self, step: RenewalWait, facts: CertificateFacts, now: datetime) -> float:
        """Seconds until the next look: the moment itself, or sooner, since the Secret and the clock may change."""
        usual = self._read_every / 6 if step.for_trust and facts.trusted is not None else self._read_every
        if self._served is not None:
            usual = min(usual, lead_time(self._served.pair).total_seconds() / 20)
        due = (step.until - now).total_seconds()
        return max(_AT_ONCE, min(due, usual * self._rng.uniform(0.8, 1.0)))

    # Acting

    async def _take(
        self, step: WriteSecret | Generate | Serve, facts: CertificateFacts, read: ReadSecret | None, now: datetime
    ) -> None:
        match step:
            case Serve(served):
                await self._show(served.pair)
                self._served = served
                log.info("serving the certificate of %s, which ends at %s", self._secret, served.pair.not_after)
            case WriteSecret(data, why):
                await self._secret.write(data, read)
                log.info("updated %s: %s", self._secret, why)
            case Generate():
                await self._make(step, facts, read, now)

    async def _make(self, step: Generate, facts: CertificateFacts, read: ReadSecret | None, now: datetime) -> None:
        level = logging.INFO if step.is_next or read is None else logging.WARNING
        log.log(level, "making a new certificate for %s: %s", self._secret, step.why)
        made = await self._generate(step.names, now)
        data = generated_data(facts, made.ca, made.certificate, made.key, is_next=step.is_next, now=now)
        await self._secret.write(data, read)

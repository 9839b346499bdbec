"""Prepare-downscale: tells pods before they go, and lets the zones of a group shrink one at a time.

For StatefulSets with the label `grafana.com/prepare-downscale: "true"`. A downscale is allowed once every check of
`plan.zoning.downscale` passes, every pod that would go has answered its POST with 2xx, and the time of the downscale is
recorded. If anything fails after a pod was told, all of them are told that it is off, in time of their own: also if the
request has ended by then, and also if the API server does not store the downscale after all. A dry run is allowed
without a single call.

Zones of one group are checked and prepared one after another: of two downscales at the same time one is denied. A zone
stays taken until its pods were told that a failed downscale is off; a DELETE that comes late would undo the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Final, TypeVar

from msgspec import Struct

from kedge.admission.confirmations import Confirmations
from kedge.admission.downscale_records import AnotherWasFaster, DownscaleRecord, Loaded, LoadFailed, Records
from kedge.admission.no_downscale import UnknownResource, answer, in_words
from kedge.admission.prepare_calls import PodFailed, PrepareCalls
from kedge.admission.zone_claims import Claim, ZoneClaims
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.api.zones import ROLLOUT_GROUP
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import KubeError
from kedge.plan.zoning import downscale as checks
from kedge.plan.zoning.downscale import NAME, BadRecord, ZoneCount, name_label, ready_pods
from kedge.plan.zoning.pod_hosts import CLUSTER_DOMAIN
from kedge.plan.zoning.replica_change import (
    ALLOWED,
    STATEFUL_SET,
    UNNAMED,
    CannotDecode,
    Downscale,
    HasNoReplicas,
    RuleVerdict,
    Unnamed,
    allowed_with,
    read,
    replica_change,
)

T = TypeVar("T")
PATH: Final = "/admission/prepare-downscale"
_DECIDED: Final = 0.85  # of the time that a rule has; then nothing new is begun
_ANSWERED: Final = 0.95  # of the time that a rule has; then undoing goes on without the request
_RESTORING: Final = 10.0
log = logging.getLogger(__name__)


class _Denied(Exception):
    """The downscale may not happen; the message says why."""


class _Preparation(Struct, frozen=True):
    """A downscale whose zone says how its pods are told, and until when to decide (of the loop's time)."""

    zone: StatefulSet
    downscale: Downscale
    claim: Claim
    decide_by: float
    answer_by: float


class PrepareDownscale:
    """The rule. `deadline` is how many seconds it has; `domain` the DNS domain of the cluster."""

    def __init__(
        self,
        client: Client,
        calls: PrepareCalls,
        records: Records,
        *,
        clock: Clock,
        deadline: float,
        domain: str = CLUSTER_DOMAIN,
    ) -> None:
        self._client = client
        self._calls = calls
        self._records = records
        self._clock = clock
        self._deadline = deadline
        self._domain = domain
        self._claims = ZoneClaims()
        self._confirmations = Confirmations(client)
        self._undoing: set[asyncio.Task[None]] = set()

    async def __call__(self, request: AdmissionRequest) -> AdmissionResponse:
        return answer(request, ALLOWED if request.dry_run else await self._verdict(request))

    async def close(self) -> None:
        """Wait until nothing is being undone any more. What was allowed is not looked at again."""
        await self._confirmations.close()
        while self._undoing:
            await asyncio.wait(self._undoing)

    async def _verdict(self, request: AdmissionRequest) -> RuleVerdict:
        begun = asyncio.get_running_loop().time()
        change = replica_change(request, decode_says_it_all=True)
        if isinstance(change, RuleVerdict):
            return change
        try:
            async with asyncio.timeout_at(begun + _DECIDED * self._deadline):
                zone = await self._zone(request, change)
        except (KubeError, TimeoutError, CannotDecode, HasNoReplicas, UnknownResource, Unnamed) as error:
            return allowed_with(f"{in_words(error)}, allowing the change")
        if not checks.wants_preparation(zone):
            return ALLOWED
        return checks.unprepared(zone, change) or await self._claimed(zone, change, begun)

    async def _zone(self, request: AdmissionRequest, downscale: Downscale) -> StatefulSet:
        """The StatefulSet as it is stored now."""
        kind = downscale.before.kind
        if kind == STATEFUL_SET:
            return read(request.old_object or {}, StatefulSet)
        if not downscale.before.is_scale:
            raise HasNoReplicas(f"unsupported type {kind[0]}, Kind={kind[1]} (go type *v1.{kind[1]})")
        if downscale.resource != StatefulSet.resource.plural:
            raise UnknownResource(f"unsupported resource {downscale.resource}")
        if not downscale.is_named:
            raise Unnamed(UNNAMED)
        return await self._client.get(StatefulSet, downscale.name, downscale.namespace)

    async def _claimed(self, zone: StatefulSet, downscale: Downscale, begun: float) -> RuleVerdict:
        """The verdict of all that touches the other zones, the pods and the record: one at a time in a group."""
        decide_by, answer_by = begun + _DECIDED * self._deadline, begun + _ANSWERED * self._deadline
        with self._claims.claim(downscale.namespace, _group(zone), downscale.name) as claim:
            try:
                await self._prepared(_Preparation(zone, downscale, claim, decide_by, answer_by))
            except _Denied as denied:
                log.warning("denied: %s", denied)
                return downscale.denied(str(denied))
        log.info("prepared %d pods for their shutdown", downscale.old - downscale.new)
        return RuleVerdict(True, f"{downscale.text} is allowed -- all pods successfully prepared for shutdown.")

    async def _prepared(self, it: _Preparation) -> None:
        """Check, tell the pods, record it. Raises `_Denied`; then everything is undone, or about to be."""
        record = await self._checked(it)
        urls = checks.endpoints(it.zone, it.downscale, domain=self._domain)
        try:
            calls = self._calls.prepare(urls, cluster=it.downscale.namespace)
            await self._or_denied(calls, it.decide_by, checks.PREPARE_FAILED)
            await self._or_denied(self._records.write(record), it.decide_by, self._records.unwritable)
        except _Denied:
            undo = self._start_undo(it.claim, urls, record)
            await asyncio.wait({undo}, timeout=max(0.0, it.answer_by - asyncio.get_running_loop().time()))
            raise
        except BaseException:  # the request was given up: the pods must hear of it all the same
            self._start_undo(it.claim, urls, record)
            raise
        self._confirmations.expect(it.zone, it.downscale, lambda: self._take_back(urls, record))

    async def _checked(self, it: _Preparation) -> DownscaleRecord:
        """What is to be recorded, once every check has passed. Raises `_Denied`."""
        group = await self._members(it)
        loading = self._records.load(it.downscale.namespace, group)
        loaded = await self._or_denied(loading, it.decide_by, "loading zones failed.")
        others = [zone for zone in group if zone.metadata.name != it.downscale.name]
        now = self._clock.now()
        self._refuse_too_soon(others, loaded, now)
        counts = await asyncio.gather(*(self._count(zone, it.decide_by) for zone in others))
        if why := checks.unsettled(counts):
            raise _Denied(why)
        if it.claim.held_by:
            raise _Denied(f"statefulset {it.claim.held_by} is already in process of updating replicas")
        return DownscaleRecord(it.zone, it.downscale, others, loaded, now)

    async def _members(self, it: _Preparation) -> Sequence[StatefulSet]:
        """All zones of its group; itself if it is in none."""
        group = _group(it.zone)
        if not group:
            return (it.zone,)
        listing = self._client.list(StatefulSet, it.downscale.namespace, labels={ROLLOUT_GROUP: group})
        found = await self._or_denied(listing, it.decide_by, checks.FIND_FAILED)
        if found.unreadable:
            log.warning("a StatefulSet of the group cannot be read: %s", found.unreadable[0].problem)
            raise _Denied(checks.FIND_FAILED)
        return found.items

    def _refuse_too_soon(self, others: Sequence[StatefulSet], loaded: Loaded, now: datetime) -> None:
        try:
            recent = checks.too_soon(others, loaded.times, now)
        except BadRecord as error:
            log.warning("cannot tell when a zone was scaled down: %s", error)
            raise _Denied(self._records.unreadable) from error
        if recent is not None:
            raise _Denied(recent.text)

    async def _count(self, zone: StatefulSet, by: float) -> ZoneCount:
        """How many of its pods are running and ready now."""
        labels = (zone.selector.match_labels if zone.selector is not None else None) or {NAME: name_label(zone)}
        try:
            async with asyncio.timeout_at(by):
                found = await self._client.list(Pod, zone.metadata.namespace, labels=labels)
        except (KubeError, TimeoutError) as error:
            log.warning("cannot count the pods of a zone: %s", in_words(error), extra={"zone": zone.metadata.name})
            return ZoneCount(zone, None)
        return ZoneCount(zone, ready_pods(zone, found.items))

    async def _or_denied(self, step: Awaitable[T], by: float, why: str) -> T:
        """What a step gives. If it fails, or takes too long, the downscale is denied."""
        try:
            async with asyncio.timeout_at(by):
                return await step
        except AnotherWasFaster as error:
            raise _Denied(str(error)) from error
        except (KubeError, LoadFailed, PodFailed, TimeoutError) as error:
            log.warning("%s %s", why, in_words(error))
            raise _Denied(why) from error

    def _start_undo(self, claim: Claim, urls: Sequence[str], record: DownscaleRecord) -> asyncio.Task[None]:
        """Undo in a task of its own; the zone stays taken until that has ended."""
        task = asyncio.create_task(self._undo(urls, record))
        self._undoing.add(task)
        task.add_done_callback(self._undoing.discard)
        claim.keep_until(task)
        return task

    async def _take_back(self, urls: Sequence[str], record: DownscaleRecord) -> bool:
        """Undo what was allowed; not while a zone of the group is taken."""
        zone, downscale = record.zone, record.downscale
        with self._claims.claim(downscale.namespace, _group(zone), downscale.name) as claim:
            if claim.held_by:
                return False
            await asyncio.wait({self._start_undo(claim, urls, record)})
            return True

    async def _undo(self, urls: Sequence[str], record: DownscaleRecord) -> None:
        await self._calls.undo(urls, cluster=record.downscale.namespace)
        try:
            async with asyncio.timeout(_RESTORING):
                await self._records.restore(record)
        except (KubeError, TimeoutError) as error:
            log.warning("the time of a downscale that did not happen may be left behind: %s", in_words(error))


def _group(zone: StatefulSet) -> str:
    return zone.metadata.labels.get(ROLLOUT_GROUP, "")

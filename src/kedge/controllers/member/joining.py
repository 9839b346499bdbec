"""Joining: a member's agent joins the fleet, reports with every heartbeat, and leaves when it is told to.

It talks to the hub through the InternalMemberCluster in its own namespace there, and needs to see nothing else of it.
A heartbeat says that the agent lives, whether the member's API server is ready, and, where it changed, what the member
has. An agent that can apply nothing, for want of the kind it writes down in what it applied, has not joined, and says
why. Until the hub has made that object, and while the hub cannot be reached, the agent waits; what it applied stays.
Told to leave, it lets go of all it applied, without removing any of it, and only then says that it has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from random import Random
from typing import Final, Protocol

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.cluster import (
    AgentStatus,
    InternalMemberCluster,
    InternalMemberClusterStatus,
    PropertyValue,
    ResourceUsage,
)
from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, is_true, new_condition, set_condition
from kedge.api.fleet import MEMBER_AGENT, member_namespace
from kedge.api.work import AppliedWork
from kedge.controllers.member.namespaces import Namespaces
from kedge.controllers.member.properties import Properties
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import KubeError
from kedge.kube.limits import BackoffSteps
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import NORMAL, Key
from kedge.kube.source import Signal, Source, Wake, generation_changed
from kedge.kube.store import Change
from kedge.plan import membership

MANAGER = "kedge-member-agent"
PROBE: Final = 5.0  # seconds the member's API server has to say that it is ready
FIRST_COUNT: Final = 5.0  # seconds the first report waits for the member's nodes and pods to be counted
NAMESPACES_AFTER: Final = 1.0  # seconds: namespaces mostly come and go together
JITTER: Final = 0.05


class Applies(Protocol):
    """Who applies Works to the member."""

    def join(self) -> None:
        """Apply from now on."""
        ...

    async def leave(self) -> None:
        """Apply nothing more, and let go of all that was applied without removing it."""
        ...


class Health(Struct, frozen=True):
    """Whether the member's API server is ready, and which version it is of."""

    problem: str = ""
    version: str = ""


class Joining:
    """The agent of one member."""

    def __init__(
        self,
        hub: Cluster,
        member: Cluster,
        name: str,
        *,
        clock: Clock,
        rng: Random,
        applier: Applies,
        report_namespaces: bool = False,
    ) -> None:
        """`report_namespaces`: whether the hub is told which namespaces the member has."""
        self._hub = hub.client
        self._member = member.client.without_retry()
        self._clock = clock
        self._rng = rng
        self._applier = applier
        self._properties = Properties(member)
        self._internals = hub.cache(InternalMemberCluster, member_namespace(name))
        self._name = name
        self._signal = Signal(member.name)
        self._applied = member.cache(AppliedWork)
        self._applied.on_problem(self._looked_at_applied)
        self._could_apply = False
        self._namespace_reports = Throttle(NAMESPACES_AFTER)
        self._namespaces = Namespaces(member, self._namespaces_changed) if report_namespaces else None
        self._namespaces_differ = False
        self._key = Key(hub.name, member_namespace(name), name)
        self._started: float | None = None
        sources: list[Source] = [
            hub.watch(self._internals, when=_asks_for_a_report),
            Counted(member.name, self._properties, self._key),
            self._signal,
        ]
        wait = BackoffSteps(first=0.1, longest=10.0)  # when the hub is back, it should not be long until it hears of us
        self.controller = Controller(f"joining of {name}", self.reconcile, sources, workers=1, wait=wait)

    async def reconcile(self, key: Key) -> Outcome:
        asked = self._internals.get(key.name, key.namespace)
        if key != self._key or asked is None:
            return Outcome.done  # the hub has not made our place yet, or has taken it away
        if asked.spec.state == membership.LEAVE:
            return await self._leave(asked)
        self._applier.join()
        if wait := self._wait_at_first(asked) or self._wait_for_namespaces():
            return Outcome.again(after=wait)
        self._namespaces_differ = False
        self._namespace_reports.reset(self._key)
        await self._report(asked)
        return Outcome.again(after=asked.spec.heartbeat_period_seconds * self._rng.uniform(1 - JITTER, 1 + JITTER))

    def _wait_at_first(self, asked: InternalMemberCluster) -> float:
        """Seconds to wait before the first report, for what it says of the member to be known.

        One without numbers would have placements pick by chance.
        """
        now = asyncio.get_running_loop().time()
        self._started = now if self._started is None else self._started
        is_counted = self._properties.are_known or membership.agent_of(asked.status.agent_status) is not None
        if is_counted and (self._applied.is_synced or self._applied.kind_is_missing):
            return 0.0
        return max(0.0, self._started + FIRST_COUNT - now)

    def _wait_for_namespaces(self) -> float:
        """Seconds until changed namespaces are reported; 0 if none did, or now."""
        return self._namespace_reports.wait(self._key) if self._namespaces_differ else 0.0

    # Reporting

    async def _report(self, asked: InternalMemberCluster) -> None:
        health = await self._health()
        obstacle = self._obstacle()
        now = self._clock.now().replace(microsecond=0)
        status = replace(
            asked.status,
            agent_status=with_agent(
                asked, (_health(asked, health.problem or obstacle, now), _joined(asked, obstacle, now)), heartbeat=now
            ),
        )
        if self._properties.are_known:
            status = _with_counts(
                status, self._properties.facts(health.version, now), self._properties.usage(now), bool(health.problem)
            )
        await self._write(asked, self._with_namespaces(asked, status, now))

    def _with_namespaces(
        self, asked: InternalMemberCluster, status: InternalMemberClusterStatus, now: datetime
    ) -> InternalMemberClusterStatus:
        """With the member's namespaces; without any, where they are not to be reported."""
        if self._namespaces is None:
            others = tuple(one for one in status.conditions if one.type != membership.NAMESPACES_COLLECTED)
            return replace(status, conditions=others, namespaces={})
        if not self._namespaces.are_known:
            return status
        said = membership.namespaces_condition(asked, now, all_of_them=not self._namespaces.are_too_many)
        return replace(status, conditions=set_condition(status.conditions, said), namespaces=self._namespaces.by_work())

    def _namespaces_changed(self) -> None:
        self._namespaces_differ = True
        self._signal.wake(self._key)

    def _looked_at_applied(self, _: str | None) -> None:
        """Whether it can work is news at once, whenever the next heartbeat is due."""
        if (can_apply := not self._obstacle()) != self._could_apply:
            self._could_apply = can_apply
            self._signal.wake(self._key)

    def _obstacle(self) -> str:
        """What keeps the agent from applying anything; empty if nothing does."""
        if self._applied.kind_is_missing:
            return f"its cluster serves no AppliedWorks: `kedge install member {self._name} | kubectl apply -f -`"
        return "" if self._applied.is_synced else f"its AppliedWorks cannot be read: {self._applied.problem}"

    async def _health(self) -> Health:
        """What the member's API server says of itself."""
        try:
            async with asyncio.timeout(PROBE):
                await self._member.document("/readyz")
                version = _version(await self._member.document("/version"))
        except KubeError as error:
            return Health(problem=f"its API server is not ready: {error.answer}")
        except TimeoutError:
            return Health(problem=f"its API server is not ready: no answer within {PROBE:g} s")
        return Health(version=version)

    # Leaving

    async def _leave(self, asked: InternalMemberCluster) -> Outcome:
        await self._applier.leave()
        now = self._clock.now().replace(microsecond=0)
        await self._write(asked, replace(asked.status, agent_status=with_agent(asked, (_left(asked, now),))))
        return Outcome.done

    async def _write(self, asked: InternalMemberCluster, status: InternalMemberClusterStatus) -> None:
        """Write what differs, if the object still is what was seen: other agents write to it too."""
        change = difference(to_builtins(asked.status), to_builtins(status))
        if not change:
            return
        meta = asked.metadata
        await self._hub.amend(InternalMemberCluster, meta, {"status": change}, subresource="status", manager=MANAGER)


class Counted:
    """Wakes the agent once, when the member's nodes and pods have first been counted."""

    def __init__(self, cluster: str, properties: Properties, key: Key) -> None:
        self.cluster = cluster
        self._properties = properties
        self._key = key

    async def ready(self) -> None:
        await self._properties.known()

    def subscribe(self, wake: Wake) -> None:
        wake(self._key, NORMAL)


def with_agent(
    asked: InternalMemberCluster, said: Iterable[Condition], *, heartbeat: datetime | None = None
) -> tuple[AgentStatus, ...]:
    """What the agents say of themselves, with these words of ours among them."""
    before = asked.status.agent_status
    ours = membership.agent_of(before) or AgentStatus(type=MEMBER_AGENT)
    conditions = ours.conditions
    for condition in said:
        conditions = set_condition(conditions, condition)
    new = replace(ours, conditions=conditions, last_received_heartbeat=heartbeat or ours.last_received_heartbeat)
    if membership.agent_of(before) is None:
        return (*before, new)
    return tuple(new if agent.type == MEMBER_AGENT else agent for agent in before)


def _with_counts(
    status: InternalMemberClusterStatus, facts: dict[str, PropertyValue], usage: ResourceUsage, is_old: bool
) -> InternalMemberClusterStatus:
    """With what the member has, each part as it was seen when it last changed; nothing new while it cannot be seen."""
    if is_old and status.resource_usage is not None:
        return status
    known = status.properties
    kept = {name: known[name] if _same(known.get(name), fact) else fact for name, fact in facts.items()}
    before = status.resource_usage
    same = before is not None and replace(before, observation_time=None) == replace(usage, observation_time=None)
    return replace(status, properties=kept, resource_usage=before if same else usage)


def _asks_for_a_report(change: Change[InternalMemberCluster]) -> bool:
    """Whether it is asked for something new; or has left, and no longer says so, as after a restore of the hub's etcd.

    What an agent reports that has joined, it reports again with its next heartbeat.
    """
    new = change.new
    is_lost = new is not None and new.spec.state == membership.LEAVE and not membership.has_left(new)
    return is_lost or generation_changed(change)


def _same(before: PropertyValue | None, now: PropertyValue) -> bool:
    return before is not None and before.value == now.value


def _health(asked: InternalMemberCluster, problem: str, now: datetime) -> Condition:
    if problem:
        return _said(asked, reasons.HEALTHY, FALSE, reasons.AGENT_UNHEALTHY, problem, now)
    return _said(asked, reasons.HEALTHY, TRUE, reasons.AGENT_HEALTHY, "its API server is ready", now)


def _joined(asked: InternalMemberCluster, obstacle: str, now: datetime) -> Condition:
    """Whether it has joined. An agent that has stays joined if it cannot work later: it is not healthy then."""
    agent = membership.agent_of(asked.status.agent_status)
    if obstacle and not (agent and is_true(agent.conditions, reasons.JOINED)):
        return _said(asked, reasons.JOINED, UNKNOWN, reasons.AGENT_FAILED_TO_JOIN, obstacle, now)
    return _said(asked, reasons.JOINED, TRUE, reasons.AGENT_JOINED, "its agent applies what it is told to", now)


def _left(asked: InternalMemberCluster, now: datetime) -> Condition:
    message = "its agent has let go of what was placed, and left it where it is"
    return _said(asked, reasons.JOINED, FALSE, reasons.AGENT_LEFT, message, now)


def _said(
    asked: InternalMemberCluster,
    type: str,  # noqa: A002  # the field's own name
    status: str,
    reason: str,
    message: str,
    now: datetime,
) -> Condition:
    return new_condition(type, status, reason, message, now=now, generation=asked.metadata.generation)


class _Version(Struct, rename="camel"):
    git_version: str = ""


def _version(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Version).git_version
    except msgspec.DecodeError:
        return ""

"""Binding story: where a binding stands: what each cluster was granted, what of it is in flight, what is proven.

Told by the functions with which the controller decides, from what it looks at. So a cluster that waits here waits for
what the controller waits for. Since when pods are there the controller alone knows: that they may only be starting is
told if it said so last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kedge.api.condition import find_condition, is_true
from kedge.api.karmada.bindings import AggregatedStatusItem, ResourceBinding
from kedge.api.karmada.works import Work
from kedge.plan.aligning.aggregating import APPLIED, aggregated_items
from kedge.plan.aligning.aim import AlignCode
from kedge.plan.aligning.alignment import Alignment
from kedge.plan.aligning.beside import BesideInput, BesidePlan, plan_beside
from kedge.plan.aligning.binding import BindingInput, BindingPlan, plan_binding
from kedge.plan.aligning.binding_conditions import AlignedPlan, says_starting
from kedge.plan.aligning.bounds import bounds
from kedge.plan.aligning.ledger import Member, Spec
from kedge.plan.aligning.observed import AnyBinding, resource_of
from kedge.plan.aligning.turns import TurnCode
from kedge.plan.aligning.wait_text import unfinished, wait_sentence
from kedge.plan.state import State
from kedge.plan.text import counted, first_few, object_name, path_of

_STATES: Final[Mapping[str, State]] = {
    AlignCode.rolling: State.moving,
    AlignCode.unacknowledged: State.moving,
    AlignCode.unreachable: State.unknown,
    AlignCode.suspended: State.paused,
    AlignCode.paused: State.paused,
    **dict.fromkeys(TurnCode, State.moving),
}
"""Of a cluster that waits for this; of others it is `waiting`."""
_HEALTH: Final[Mapping[str, State]] = {"Healthy": State.available, "Unhealthy": State.moving}
_WORST: Final = (State.failed, State.unknown, State.paused, State.moving, State.next, State.waiting, State.leaving)


class PodShare(Struct, frozen=True):
    """A part of the budget, in pods."""

    unavailable: int = 0
    surge: int = 0

    def __add__(self, other: PodShare) -> PodShare:
        return PodShare(self.unavailable + other.unavailable, self.surge + other.surge)

    def __str__(self) -> str:
        return f"{self.unavailable}+{self.surge}"


class BindingClusterStory(Struct, frozen=True):
    """Where one cluster stands."""

    name: str
    state: State
    why: str = ""
    wanted: int = 0
    """How many replicas are scheduled to it."""
    goal: int = 0
    """How many pods of the wanted template it is to have in the end."""
    pods: int = 0
    updated: int = 0
    available: int = 0
    proven: int = 0
    """How many pods of the wanted template are available for sure."""
    granted: PodShare | None = None
    """What it may spend by what was written last; None if nothing was."""
    in_flight: PodShare = PodShare()
    """What it may be spending: it counts until the cluster proves that it is not."""
    written: int = 0
    """The number of what was written last."""
    acknowledged: int = 0
    """The number of what it acts on, by its last report."""


class BindingStory(Struct, frozen=True):
    """Where a binding stands."""

    kind: str
    namespace: str
    name: str
    resource: str
    """What it propagates."""
    state: State
    why: str = ""
    is_aligned: bool = False
    """Whether its clusters share one budget; without that each gets a copy."""
    replicas: int = 0
    goal: int = 0
    """How many pods are to have the wanted template in the end."""
    fewest: int = 0
    """How many pods are to be available at every moment."""
    most: int = 0
    """How many pods there may be at every moment."""
    budget: PodShare = PodShare()
    """What all clusters together may spend."""
    clusters: tuple[BindingClusterStory, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    @property
    def title(self) -> str:
        return f"{self.kind} {self.path}"

    @property
    def is_done(self) -> bool:
        return self.state is State.available

    def total(self, name: str) -> int:
        """A number of all clusters together: `pods`, `updated`, `available` or `proven`."""
        return sum(getattr(one, name) for one in self.clusters)

    @property
    def in_flight(self) -> PodShare:
        return sum((one.in_flight for one in self.clusters), PodShare())

    def as_json(self) -> dict[str, Any]:
        """The story for programs."""
        counts = {name: self.total(name) for name in ("pods", "updated", "available", "proven")}
        return {**to_builtins(self), **counts, "in_flight": to_builtins(self.in_flight), "done": self.is_done}


def tell_binding(binding: AnyBinding, seen: BindingInput) -> BindingStory:
    """Where a binding stands, by what was observed of it."""
    works = {name: one.work for name, one in seen.clusters.items() if one.work is not None}
    plan = plan_binding(replace(seen, starting=_starting(binding, seen.clusters)))
    clusters = tuple(_clusters(works, plan))
    return _story(binding, plan, clusters, has_resource=seen.template is not None, is_deleting=seen.is_deleting)


def tell_refused(binding: AnyBinding, works: Mapping[str, Work], problem: str) -> BindingStory:
    """Where a binding stands that nothing is done about: what was written before, by cluster, stays as it is."""
    plan = BindingPlan(problems=(problem,))
    is_deleting = binding.metadata.deletion_timestamp is not None
    return _story(binding, plan, tuple(_clusters(works, plan)), has_resource=True, is_deleting=is_deleting)


def tell_beside(binding: ResourceBinding, seen: BesideInput | None, problem: str = "") -> BindingStory:
    """Where a binding stands that is to be aligned beside a Karmada. Nothing was observed if its resource is gone."""
    is_deleting = binding.metadata.deletion_timestamp is not None
    if seen is None:
        return _story(binding, BesidePlan(), (), has_resource=False, is_deleting=is_deleting)
    seen = replace(seen, starting=_starting(binding, seen.works))
    plan = BesidePlan(problems=(problem,)) if problem else plan_beside(seen)
    clusters = tuple(_clusters(seen.works, plan, plan.granted))
    return _story(binding, plan, clusters, has_resource=True, is_deleting=is_deleting)


def _starting(binding: AnyBinding, clusters: Iterable[str]) -> frozenset[str]:
    return frozenset(clusters) if says_starting(binding.status.conditions) else frozenset()


def _story(
    binding: AnyBinding,
    plan: AlignedPlan,
    clusters: tuple[BindingClusterStory, ...],
    *,
    has_resource: bool,
    is_deleting: bool,
) -> BindingStory:
    state, why = _whole(binding, plan, clusters, has_resource=has_resource)
    if is_deleting:
        state, why = State.leaving, "it is being deleted, and its pods with it"
    aim, bound = plan.aim, resource_of(binding)
    return BindingStory(
        kind=binding.resource.kind,
        namespace=binding.metadata.namespace or "",
        name=binding.metadata.name,
        resource=object_name(bound.kind, bound.namespace, bound.name),
        state=state,
        why=why,
        is_aligned=aim is not None,
        replicas=aim.replicas if aim is not None else 0,
        goal=sum(one.goal for one in clusters),
        fewest=aim.fewest if aim is not None else 0,
        most=aim.most if aim is not None else 0,
        budget=PodShare(aim.unavailable, aim.surge) if aim is not None else PodShare(),
        clusters=clusters,
        problems=plan.problems,
    )


def _whole(
    binding: AnyBinding, plan: AlignedPlan, clusters: Iterable[BindingClusterStory], *, has_resource: bool
) -> tuple[State, str]:
    bound, states = resource_of(binding), {one.state for one in clusters}
    if not has_resource:
        return State.failed, f"there is no {object_name(bound.kind, bound.namespace, bound.name)}"
    if plan.problems:
        return State.failed, first_few(plan.problems)
    if not binding.spec.clusters:
        scheduled = find_condition(binding.status.conditions, "Scheduled")
        said = f": {scheduled.message}" if scheduled is not None and scheduled.message else ""
        return State.waiting, f"it is scheduled to no cluster{said}"
    state = next((one for one in _WORST if one in states), State.available)
    return state, first_few(f"{one.name}: {one.why}" for one in clusters if one.why)


# Clusters


def _clusters(
    works: Mapping[str, Work], plan: AlignedPlan, granted: Mapping[str, Spec] | None = None
) -> Iterator[BindingClusterStory]:
    found = plan.alignment
    if found is None:
        for item in aggregated_items(works):
            yield _copied(item)
        return
    for member in plan.members:
        last = member.last if granted is None else granted.get(member.name)
        yield _aligned(member, found, works.get(member.name), last)
    known = {member.name for member in plan.members}
    for name, wait in found.waiting.items():
        if name not in known:
            yield BindingClusterStory(name, _STATES.get(wait.code, State.waiting), wait_sentence(wait))


def _copied(item: AggregatedStatusItem) -> BindingClusterStory:
    if item.applied_message:
        return BindingClusterStory(item.cluster_name, State.failed, f"it was not written there: {item.applied_message}")
    state = _HEALTH.get(item.health, State.moving) if item.applied else State.next
    return BindingClusterStory(item.cluster_name, state)


def _aligned(member: Member, found: Alignment, work: Work | None, last: Spec | None) -> BindingClusterStory:
    goal, report, held = found.goals.get(member.name, 0), member.report, bounds(member)
    state, why = _state(member, goal, found, work)
    told = _by_last_report(member)
    return BindingClusterStory(
        name=member.name,
        state=state,
        why=why,
        wanted=member.wanted,
        goal=goal,
        pods=report.pods,
        updated=told.updated,
        available=report.available,
        proven=told.proven,
        granted=PodShare(last.unavailable, last.surge) if last is not None else None,
        in_flight=PodShare(held.unavailable, held.surge),
        written=last.seq if last is not None else 0,
        acknowledged=max(0, report.seq),
    )


def _by_last_report(member: Member) -> Member:
    """The cluster as it reported last, also if it has not seen yet what was written since: its counts are of the wanted
    template all the same if it was asked for no other."""
    last = member.last
    if last is None or member.reported_template or any(one.template != member.template for one in member.specs):
        return member
    return replace(member, report=replace(member.report, seq=last.seq))


def _state(member: Member, goal: int, found: Alignment, work: Work | None) -> tuple[State, str]:
    refused = _refused(work)
    if refused:
        return State.failed, f"it was not written there: {refused}"
    if member.name in found.specs:
        return State.next, _next(found.specs[member.name])
    if member.name in found.waiting:
        wait = found.waiting[member.name]
        return _STATES.get(wait.code, State.waiting), wait_sentence(wait)
    why = unfinished(member, goal)
    if not why:
        return State.available, ""
    return State.moving if member.wanted or (member.stays and not member.report.pods) else State.leaving, why


def _refused(work: Work | None) -> str:
    """Why the last thing it was asked for was not written to a cluster."""
    if work is None or is_true(work.status.conditions, APPLIED):
        return ""
    applied = find_condition(work.status.conditions, APPLIED)
    return applied.message if applied is not None else ""


def _next(spec: Spec) -> str:
    parts = [counted(spec.replicas, "replica")]
    parts += [f"at most {spec.unavailable} unavailable"] if spec.unavailable else []
    parts += [f"{spec.surge} extra"] if spec.surge else []
    parts += [f"{spec.partition} kept back"] if spec.partition else []
    return f"it is written next: {', '.join(parts)}"

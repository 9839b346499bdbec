"""Template status: the status of a workload in all its clusters together, on the resource itself.

Counts are added up. A cluster that nothing of the last template was written to counts its old pods as updated; here
those are not. The resource's `observedGeneration` is its own generation only once every cluster has observed it, or is
not to have it yet by the partition, so that who waits for a rollout waits for all of them, and for no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kedge.api.karmada.bindings import TargetCluster
from kedge.api.karmada.works import Work
from kedge.plan.aligning.aim import AlignCode
from kedge.plan.aligning.binding_conditions import AlignedPlan
from kedge.plan.aligning.interpreter import interpret_rolling_status
from kedge.plan.aligning.ledger import Member
from kedge.plan.aligning.workload_kinds import is_counted
from kedge.plan.fields import Object, count, generation, whole

_OF_TEMPLATE: Final = ("updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas")
_ADDED: Final = ("replicas", "readyReplicas", "availableReplicas", "unavailableReplicas", *_OF_TEMPLATE)
_OBSERVED: Final = "observedGeneration"
_KEPT: Final = (AlignCode.kept_back, AlignCode.paused)
"""What a cluster waits for that is not to have the last template, until somebody says so."""


def template_status(
    template: Object, works: Mapping[str, Work], clusters: Iterable[TargetCluster], plan: AlignedPlan
) -> dict[str, Any] | None:
    """What its clusters report, by name, and how they are scheduled. None if it has no pods to count."""
    if whole(template, "spec", "replicas") is None and not is_counted(template):
        return None
    reported = {name: status for name, work in works.items() if (status := _reported(work)) is not None}
    members = {one.name: one for one in plan.members}
    of_template = [
        status for name, status in reported.items() if plan.alignment is None or _has_template(members.get(name))
    ]
    found: dict[str, Any] = {}
    for name in _ADDED:
        if any(name in one for one in reported.values()):
            found[name] = sum(count(one, name) for one in (of_template if name in _OF_TEMPLATE else reported.values()))
        elif count(template, "status", name):
            found[name] = 0  # members leave out what is 0; some kinds require the field, so that it is not removed
    own, before = generation(template), whole(template, "status", _OBSERVED)
    seen = own if own is not None and _is_observed(own, reported, clusters, plan) else before
    return found if seen is None else {**found, _OBSERVED: seen}


def is_news(template: Object, found: Mapping[str, Any]) -> bool:
    """Whether the resource does not say so already: a count of 0 may be left out there."""
    return any(count(template, "status", name) != value for name, value in found.items())


def _reported(work: Work) -> Mapping[str, Any] | None:
    statuses = work.status.manifest_statuses
    return statuses[0].status if statuses else None


def _has_template(member: Member | None) -> bool:
    """Whether what a cluster counts as updated is of the template that it is to have."""
    if member is None or not member.specs:
        return False
    return member.reported_template == member.template or all(one.template == member.template for one in member.specs)


def _is_observed(
    own: int, reported: Mapping[str, Object], clusters: Iterable[TargetCluster], plan: AlignedPlan
) -> bool:
    """Whether all clusters act on this generation, as far as they are to."""
    members = {one.name: one for one in plan.members}
    named = {*reported, *(one.name for one in clusters)}
    return all(
        (name in reported and _observed(reported[name]) == own)
        or (name in members and _stays_behind(members[name], plan))
        for name in named
    )


def _observed(status: Object) -> int | None:
    """The generation of the resource that a cluster's own controller has seen; None if it has not seen its last yet."""
    found = interpret_rolling_status(status)
    return found.resource_template_generation if found.generation == found.observed_generation else None


def _stays_behind(member: Member, plan: AlignedPlan) -> bool:
    """Whether nothing of the last generation is written to a cluster: it is to have no pods, or not those pods yet."""
    if member.last is None:
        return member.wanted == 0
    is_written = plan.alignment is None or member.name in plan.alignment.specs
    if is_written or not member.is_acknowledged or member.last.template == member.template:
        return False
    wait = plan.waiting.get(member.name)
    return member.last.replicas == member.wanted and (wait is None or wait.code in _KEPT)

"""Services: the two Services of a rollout's traffic, told apart by the pods they select, and given back. Pure.

A Service of a component selects the pods of every revision, so that moving traffic from one Service to another would
move nothing. For the time of the rollout each selects the pods of its own Deployments only, by the label that these
have with their Deployment's name. The selector from before is written to the Service in the same patch.

Only Services that the rollout's traffic names are narrowed. Without traffic that moves, whoever calls a Service would
be left with ever fewer pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kedge.api.oam.keys import SELECTOR_BEFORE, WORKLOAD_LABEL
from kedge.api.oam.rollout_plan import Traffic
from kedge.plan.batching.moves import Step, Workload, WorkloadRef, Workloads, Write
from kedge.plan.fields import Object, at, replacement, text, whole


class _Memory(Struct, frozen=True):
    """What is written to a Service that is narrowed."""

    rollout: str
    before: Mapping[str, str]


def narrowed(services: Iterable[Object], traffic: Traffic, workloads: Workloads) -> Step:
    """Narrow the Services of the traffic, each to the pods of its own side, as far as they select more."""
    sides = {traffic.target_service: [workloads.target], traffic.source_service: _with_pods(workloads.sources)}
    writes = [
        _narrow(one, side[0], workloads.claim)
        for one in services
        if len(side := sides.get(text(one, "metadata", "name"), [])) == 1 and _selects_too_much(one, side[0])
    ]
    return Step(tuple(writes))


def widened(services: Iterable[Object], claim: str) -> tuple[Write, ...]:
    """Give the selectors back that this rollout narrowed. What somebody else changed since stays."""
    taken = [(one, found) for one in services if (found := _memory(one)) is not None and found.rollout == claim]
    return tuple(_widen(one, found) for one, found in taken)


def _with_pods(sources: Sequence[Workload]) -> list[Workload]:
    """A selector cannot name two workloads, so that it has to be one that still has pods."""
    return [one for one in sources if one.obj is not None and whole(one.obj, "spec", "replicas") != 0]


def _selects_too_much(service: Object, workload: Workload) -> bool:
    """Whether a Service that selects pods of this workload may select others, too."""
    selector, labels = at(service, "spec", "selector") or {}, _pod_labels(workload)
    is_told_apart = labels.get(WORKLOAD_LABEL) == workload.ref.name
    selects = bool(selector) and all(labels.get(key) == value for key, value in selector.items())
    return is_told_apart and selects and WORKLOAD_LABEL not in selector and _memory(service) is None


def _pod_labels(workload: Workload) -> Mapping[str, Any]:
    found = at(workload.obj or workload.manifest, "spec", "template", "metadata", "labels")
    return found if isinstance(found, Mapping) else {}


def _narrow(service: Object, workload: Workload, claim: str) -> Write:
    memory = msgspec.json.encode(_Memory(claim, at(service, "spec", "selector") or {}), order="sorted").decode()
    own = {WORKLOAD_LABEL: workload.ref.name}
    return _write(service, {"metadata": {"annotations": {SELECTOR_BEFORE: memory}}, "spec": {"selector": own}})


def _widen(service: Object, found: _Memory) -> Write:
    selector = at(service, "spec", "selector") or {}
    patch: dict[str, Any] = {"metadata": {"annotations": {SELECTOR_BEFORE: None}}}
    if {key: value for key, value in selector.items() if key != WORKLOAD_LABEL} == dict(found.before):
        patch["spec"] = {"selector": replacement(selector, found.before)}
    return _write(service, patch)


def _memory(service: Object) -> _Memory | None:
    try:
        return msgspec.json.decode(text(service, "metadata", "annotations", SELECTOR_BEFORE) or "", type=_Memory)
    except msgspec.DecodeError:
        return None


def _write(service: Object, patch: Mapping[str, Any]) -> Write:
    meta = service["metadata"]
    ref = WorkloadRef("v1", "Service", meta["namespace"], meta["name"])
    return Write(ref, patch, uid=meta["uid"], resource_version=meta["resourceVersion"])

"""Three zones of three pods each, healthy unless told otherwise, and a budget over them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kedge.api.apps import StatefulSet, StatefulSetSpec, StatefulSetStatus
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.pods import ContainerState, ContainerStatus, Pod, PodCondition, PodStatus, Running
from kedge.api.zones import READY_TIME
from kedge.plan.zoning.budget_spec import PodPartitions, ZoneBudget
from kedge.plan.zoning.disruption import Decision, Disruption, SelectedZone, decide

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LABELS = {"rollout-group": "ingester"}
PARTITIONS = PodPartitions(r"^[a-z\-]+-zone-[a-z]-([0-9]+)$", 1)
STARTED = ContainerStatus(name="app", ready=True, state=ContainerState(running=Running()))
LETTERS = "abc"


def budget(**fields: Any) -> ZoneBudget:
    return ZoneBudget(**{"namespace": "mimir", "name": "ingester", "labels": LABELS} | fields)


def stateful_set(letter: str, spec: int = 3, status: int = 3, labels: Mapping[str, str] = LABELS) -> StatefulSet:
    name = f"ingester-zone-{letter}"
    template = {"metadata": {"labels": {"name": name, **LABELS}}}
    return StatefulSet(
        metadata=ObjectMeta(name=name, namespace="mimir", uid=f"uid-{name}", labels=labels),
        spec=StatefulSetSpec(replicas=spec, template=template),
        status=StatefulSetStatus(replicas=status),
    )


def pod(
    name: str,
    *,
    phase: str = "Running",
    ready_for: timedelta | str | None = None,
    condition_for: timedelta | None = None,
    **meta: Any,
) -> Pod:
    """A pod of a zone, such as `a-0`; ready for so long by its annotation, and by its condition."""
    letter = name.partition("-")[0]
    owner = OwnerReference(
        api_version="apps/v1",
        kind="StatefulSet",
        name=f"ingester-zone-{letter}",
        uid=f"uid-ingester-zone-{letter}",
        controller=True,
    )
    said = (NOW - ready_for).isoformat() if isinstance(ready_for, timedelta) else ready_for
    fields = {
        "name": f"ingester-zone-{name}",
        "namespace": "mimir",
        "uid": f"uid-{name}",
        "labels": {"name": f"ingester-zone-{letter}", **LABELS},
        "annotations": {} if said is None else {READY_TIME: said},
        "owner_references": (owner,),
    }
    status = PodStatus(phase=phase, conditions=_ready(condition_for), container_statuses=(STARTED,))
    return Pod(metadata=ObjectMeta(**fields | meta), status=status)


def _ready(since: timedelta | None) -> tuple[PodCondition, ...]:
    if since is None:
        return ()
    return (PodCondition(type="Ready", status="True", last_transition_time=NOW - since),)


def zone(
    letter: str,
    *,
    spec: int = 3,
    status: int | None = None,
    pods: int | None = None,
    phases: Mapping[int, str] | None = None,
    ready_for: timedelta | str | None = None,
    condition_for: timedelta | None = None,
    labels: Mapping[str, str] = LABELS,
) -> SelectedZone:
    """A zone, with so many of its pods there, of which some are in other phases than Running."""
    there = range(spec if pods is None else pods)
    return SelectedZone(
        stateful_set(letter, spec, spec if status is None else status, labels),
        tuple(
            pod(
                f"{letter}-{number}",
                phase=(phases or {}).get(number, "Running"),
                ready_for=ready_for,
                condition_for=condition_for,
            )
            for number in there
        ),
    )


def healthy(**others: SelectedZone) -> tuple[SelectedZone, ...]:
    return tuple(others.get(letter) or zone(letter) for letter in LETTERS)


def evict(
    name: str,
    zones: tuple[SelectedZone, ...] | None = None,
    *budgets: ZoneBudget,
    recent: Collection[str] = (),
    override: int | None = None,
    **fields: Any,
) -> Decision:
    """The decision on a pod, such as `a-0`."""
    there = healthy() if zones is None else zones
    letter = name.partition("-")[0]
    owner = next((one.stateful_set for one in there if one.stateful_set.metadata.name.endswith(letter)), None)
    asked = Disruption(
        pod=pod(name), budgets=budgets, owner=owner, zones=there, recent=recent, now=NOW, override=override
    )
    values = {key: getattr(asked, key) for key in asked.__struct_fields__}
    return decide(Disruption(**values | fields))

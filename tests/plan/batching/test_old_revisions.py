"""From which workloads a rollout to a component revision moves."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.api.oam.keys import FROZEN, REVISION_LABEL
from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollout_status import RolloutStatus, SourceRecord
from kedge.plan.batching.moves import WorkloadRef
from kedge.plan.batching.old_revisions import (
    OldRevision,
    changes_alone,
    changes_in_place,
    has_pods,
    old_revision,
    others,
    ran_last,
    recorded,
    running,
)
from kedge.plan.workloads import WorkloadHandler
from kedge.plan.workloads.daemon_sets import DaemonSets
from kedge.plan.workloads.deployments import Deployments
from kedge.plan.workloads.stateful_sets import StatefulSets

KIND = WorkloadRef("apps/v1", "Deployment", "shop", "anything")


def ref(name: str, kind: str = "Deployment") -> WorkloadRef:
    return WorkloadRef("apps/v1", kind, "shop", name)


def live(name: str, revision: str = "", *, asked: int | None = None, pods: int | None = None) -> dict[str, Any]:
    meta = {"name": name, "labels": {REVISION_LABEL: revision}} if revision else {"name": name}
    return {"metadata": meta, "spec": {"replicas": asked}, "status": {"replicas": pods}}


def test_what_the_status_records_is_moved_from_with_its_revision() -> None:
    records = (
        SourceRecord(api_version="apps/v1", kind="Deployment", name="web-v1", replicas=3, revision="web-v1"),
        SourceRecord(api_version="apps.kruise.io/v1alpha1", kind="CloneSet", name="web", replicas=3),
    )
    assert recorded(RolloutStatus(sources=records), "shop") == (
        OldRevision(ref("web-v1"), "web-v1"),
        OldRevision(WorkloadRef("apps.kruise.io/v1alpha1", "CloneSet", "shop", "web")),
    )
    assert recorded(RolloutStatus(), "shop") == ()


def test_what_it_moved_to_last_ran_last() -> None:
    named = ObjectReference(api_version="apps/v1", kind="Deployment", name="web-v2")
    assert ran_last(RolloutStatus(target_workload=named), "shop", "web-v2") == (OldRevision(ref("web-v2"), "web-v2"),)
    assert ran_last(RolloutStatus(), "shop", "web-v2") == ()


@pytest.mark.parametrize(
    ("asked", "pods", "found"),
    [
        (None, None, True),  # it asks for one
        (0, None, False),
        (0, 0, False),
        (0, 1, True),  # they have still to go
        (1, 0, True),
    ],
)
def test_whether_a_workload_has_pods_or_asks_for_some(asked: int | None, pods: int | None, found: bool) -> None:
    assert has_pods(live("web", asked=asked, pods=pods)) is found


def test_what_runs_of_a_component_is_one_pool_in_the_order_of_names() -> None:
    among = (live("web-v3", "web-v3", asked=2), live("web-v1", "web-v1", pods=1, asked=0), live("web-v2", asked=0))
    assert running(among, KIND) == (OldRevision(ref("web-v1"), "web-v1"), OldRevision(ref("web-v3"), "web-v3"))


def test_an_object_of_a_list_is_of_the_kind_that_was_asked_for() -> None:
    kind = WorkloadRef("apps/v1", "StatefulSet", "prod", "anything")
    assert old_revision(live("web", "web-v1"), kind) == OldRevision(
        WorkloadRef("apps/v1", "StatefulSet", "prod", "web"), "web-v1"
    )
    assert old_revision(live("web"), kind).revision == ""


def test_each_workload_is_moved_from_once_and_the_target_never() -> None:
    found = [OldRevision(ref("a"), "1"), OldRevision(ref("b")), OldRevision(ref("a"), "2"), OldRevision(ref("target"))]
    assert others(found, ref("target")) == (OldRevision(ref("a"), "2"), OldRevision(ref("b")))


# In place


SET, DAEMONS = StatefulSets(), DaemonSets()


def stateful(
    *, revision: str = "web-v2", asked: int = 3, pods: int = 3, updated: int = 3, seen: int = 2, frozen: str = ""
) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "web", "generation": 2, "labels": {REVISION_LABEL: revision}}
    if frozen:
        meta["annotations"] = {FROZEN: frozen}
    status = {"replicas": pods, "updatedReplicas": updated, "observedGeneration": seen}
    return {"metadata": meta, "spec": {"replicas": asked}, "status": status}


IN_PLACE: list[tuple[str, WorkloadHandler, dict[str, Any] | None, tuple[str, ...], bool]] = [
    ("there is nothing yet", SET, None, (), False),
    ("a kind that cannot be scaled is always changed", DAEMONS, None, (), True),
    ("all of it is of the revision already", SET, stateful(), (), False),
    ("its label says another revision", SET, stateful(revision="web-v1"), (), True),
    ("the status says what it moved from", SET, stateful(), ("web-v2", "web-v1"), True),
    ("the status says the same revision only", SET, stateful(), ("web-v2",), False),
    ("somebody wrote the template, and pods are old", SET, stateful(updated=2), (), True),
    ("nothing is reported of the new template yet", SET, stateful(seen=1, updated=0), (), False),
    ("nor of one that was frozen with its pods", SET, stateful(seen=1, frozen="{}", asked=1), (), True),
    ("nor of one that was frozen without any", SET, stateful(seen=1, frozen="{}", asked=0, pods=0), (), False),
]


@pytest.mark.parametrize(
    ("handler", "found", "known", "changes"), [row[1:] for row in IN_PLACE], ids=[r[0] for r in IN_PLACE]
)
def test_whether_a_workload_has_another_revision_to_move_from(
    handler: WorkloadHandler, found: dict[str, Any] | None, known: tuple[str, ...], changes: bool
) -> None:
    before = [OldRevision(ref("web", "StatefulSet"), name) for name in known]
    assert changes_in_place(handler, found, "web-v2", before) is changes


def alone(
    replicas: int = 3, *, updated: int | None = None, partition: int = 0, observed: int = 1, frozen: bool = False
) -> dict[str, Any]:
    """A StatefulSet whose pods are all there; updated, unless said."""
    counts = {"replicas": replicas, "updatedReplicas": replicas if updated is None else updated}
    return {
        "metadata": {"name": "web", "generation": 1, "annotations": {FROZEN: "{}"} if frozen else {}},
        "spec": {"replicas": replicas, "updateStrategy": {"rollingUpdate": {"partition": partition}}},
        "status": {"observedGeneration": observed, **counts},
    }


@pytest.mark.parametrize(
    ("found", "size", "expected"),
    [
        (alone(updated=0, partition=3), None, True),
        (alone(updated=0, partition=3), 3, True),
        (alone(updated=0, partition=3), 5, True),  # it is refused then: a rollout in place does not scale
        (alone(updated=1, partition=2), 3, True),
        (alone(updated=0, partition=2), 3, False),  # it still moves by itself: the rollout waits
        (alone(updated=0, partition=2), None, True),  # and here it says so
        (alone(), None, True),
        (alone(), 3, False),
        (alone(), 5, False),
        (alone(frozen=True), 3, True),
        (alone(frozen=True), 5, False),
        (alone(0), None, False),
        (alone(0, frozen=True), 0, False),
        (alone(updated=0, partition=3, observed=0), 3, False),  # nothing is known yet
        (None, None, False),
        (None, 3, False),
    ],
)
def test_a_workload_that_is_named_alone_is_changed_in_place_if_some_of_its_pods_are_old(
    found: dict[str, Any] | None, size: int | None, expected: bool
) -> None:
    assert changes_alone(StatefulSets(), found, size) is expected


def test_named_alone_a_daemon_set_is_changed_in_place_and_a_deployment_never() -> None:
    old = alone(updated=0, partition=3)
    assert changes_alone(DaemonSets(), None, None)
    assert changes_alone(DaemonSets(), old, 3)
    assert not changes_alone(Deployments(), old, None)

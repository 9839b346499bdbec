"""Which moves a workload has: by its kind, and by whether there is something to move from."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.plan.batching.daemon_moves import DaemonMoves
from kedge.plan.batching.moves import Moves, Workload, WorkloadRef, Workloads
from kedge.plan.batching.partition_moves import PartitionMoves
from kedge.plan.batching.registry import moves_for
from kedge.plan.batching.scale_moves import ScaleMoves
from kedge.plan.workloads import Patch, find_handler
from kedge.plan.workloads.deployments import Deployments
from kedge.plan.workloads.registry import BrokenHandler, Found
from kedge.plan.workloads.stateful_sets import StatefulSets


class TwoObjects(ScaleMoves, frozen=True):
    """Stands for the moves from one object to another."""


class Games(StatefulSets, frozen=True):
    """A kind of another distribution, with a partition."""

    group: str = "example.com"
    kind: str = "Game"


class Boards(Deployments, frozen=True):
    """A kind of another distribution that can only be scaled."""

    group: str = "example.com"
    kind: str = "Board"


class Stones(Boards, frozen=True):
    """A kind that cannot even be scaled."""

    kind: str = "Stone"

    def scale(self, replicas: int) -> Patch:
        return None  # type: ignore[return-value]


EXTRA: dict[tuple[str, str], Found] = {
    ("example.com", "Game"): Games(),
    ("example.com", "Board"): Boards(),
    ("example.com", "Stone"): Stones(),
    ("example.com", "Torn"): BrokenHandler("games", "Torn.example.com", "it has no replicas"),
}


def find(group: str, kind: str) -> Found | None:
    return EXTRA.get((group, kind)) or find_handler(group, kind)


def workload(kind: str, name: str = "web") -> Workload:
    version = {"CloneSet": "apps.kruise.io/v1alpha1", "Job": "batch/v1", "Pod": "v1"}.get(kind, "apps/v1")
    known = {one for _, one in EXTRA}
    return Workload(WorkloadRef("example.com/v1" if kind in known else version, kind, "shop", name))


def found(kind: str, *, source: bool = False, in_place: bool = False) -> Moves | str:
    sources = (workload(kind, "old"),) if source else ()
    return moves_for(Workloads(workload(kind), sources, in_place=in_place), TwoObjects, find)


@pytest.mark.parametrize(
    ("kind", "given", "moves"),
    [
        ("Deployment", {}, ScaleMoves),
        ("StatefulSet", {}, ScaleMoves),
        ("CloneSet", {}, ScaleMoves),
        ("DaemonSet", {}, ScaleMoves),
        ("Deployment", {"source": True}, TwoObjects),
        ("ReplicaSet", {"source": True}, TwoObjects),
        ("StatefulSet", {"in_place": True}, PartitionMoves),
        ("StatefulSet", {"in_place": True, "source": True}, PartitionMoves),
        ("CloneSet", {"in_place": True}, PartitionMoves),
        ("DaemonSet", {"in_place": True}, DaemonMoves),
        ("Game", {"in_place": True}, PartitionMoves),
        ("Game", {"source": True}, PartitionMoves),
        ("Board", {"source": True}, TwoObjects),
        ("Board", {}, ScaleMoves),
    ],
)
def test_each_kind_has_its_moves(kind: str, given: dict[str, Any], moves: type[Any]) -> None:
    answer: Any = found(kind, **given)
    assert type(answer) is moves
    assert answer.handler.kind == kind


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        ("Pod", {"source": True}, "the workload kind `Pod` is not supported"),
        ("Job", {}, "the workload kind `Job` is not supported"),
        ("Stone", {"source": True}, "the workload kind `Stone` is not supported"),
        (
            "Deployment",
            {"in_place": True},
            "a Deployment cannot be changed in place batch by batch: it has no partition",
        ),
        (
            "Torn",
            {},
            "the workload handler Torn.example.com of the distribution games cannot be used: it has no replicas",
        ),
    ],
)
def test_what_cannot_be_moved_is_refused(kind: str, given: dict[str, Any], text: str) -> None:
    assert found(kind, **given) == text


def test_a_source_of_another_kind_is_refused() -> None:
    seen = Workloads(workload("Deployment"), (workload("Deployment", "a"), workload("StatefulSet", "b")))
    text = "the source StatefulSet shop/b and the target Deployment shop/web are not of the same kind"
    assert moves_for(seen, TwoObjects) == text

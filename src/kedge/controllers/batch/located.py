"""Located: what a rollout of some kind is about, found by what it refers to.

Each kind of rollout has a `RolloutKind`: it reads the plan, says what the rollout is asked to move to and what it moves
to by its status, and finds the workloads. All else is the same for every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.plan.batching.app_control import ControlledApplication
from kedge.plan.batching.moves import Workload, WorkloadRef, Workloads, Write
from kedge.plan.fields import Object
from kedge.plan.moving.wait import Wait


class WorkloadPlace(Struct, frozen=True):
    """Where a workload is, and what its revision wants it to be, if somebody keeps that apart from the workload."""

    ref: WorkloadRef
    manifest: Object | None = None
    revision: str = ""
    uid: str = ""
    """Which object is meant, if only that one is."""
    is_recorded: bool = False
    """Whether nothing but the status names it: if it is gone, nobody waits for it."""


class Located(Struct, frozen=True):
    """The workloads of a rollout."""

    target: WorkloadPlace
    sources: tuple[WorkloadPlace, ...] = ()
    in_place: bool = False
    removes_sources: bool = False
    tells_services_apart: bool = False

    @property
    def unread(self) -> Workloads:
        """The workloads before anything is known of them."""
        sources = tuple(Workload(one.ref) for one in self.sources)
        return Workloads(Workload(self.target.ref), sources, in_place=self.in_place)


class NotLocated(Struct, frozen=True):
    """Why it is not known what moves: something to wait for, to write first, or a problem that no time mends."""

    wait: Wait | None = None
    problem: str = ""
    writes: tuple[Write, ...] = ()


LocateResult: TypeAlias = Located | NotLocated
FindRollouts: TypeAlias = Callable[[str], Iterable[tuple[Key, Any]]]
"""The rollouts of a namespace that have not ended, with their keys."""


class RolloutKind(Protocol):
    """One kind of rollout."""

    @property
    def kind(self) -> type[Any]: ...

    def plan(self, rollout: Any) -> RolloutPlan:
        """Its plan."""
        ...

    def wanted(self, rollout: Any) -> str:
        """What it is asked to move to: different for everything that would be another rollout."""
        ...

    def moving(self, status: Any) -> str:
        """What it moves to, or moved to last, by its status; empty if nothing yet."""
        ...

    def with_moving(self, rollout: Any, status: Any, target: str) -> Any:
        """The status of a rollout that moves to this from now on."""
        ...

    async def locate(self, rollout: Any, status: Any, target: str) -> LocateResult:
        """The workloads of a rollout to this target."""
        ...

    def annotations(self, target: WorkloadRef) -> Mapping[str, str]:
        """The annotations of a rollout that moves to this workload."""
        ...

    def sources(self, find: FindRollouts) -> Iterable[Source]:
        """What wakes rollouts beside their workloads: what they refer to."""
        ...

    async def applications(
        self, rollout: Any, status: Any, workloads: Workloads | None
    ) -> tuple[ControlledApplication, ...]:
        """The Applications that it takes over; with what moves, if that is known."""
        ...

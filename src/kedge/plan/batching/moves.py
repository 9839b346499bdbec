"""Moves: what a rollout asks of one kind of workload. Each kind has a module of its own that answers.

A move is asked for as often as it takes, on what is observed at the time, and answers with a `Step`: writes to make
now, or something to wait for, or a failure; or nothing of these, and then it is done. Moves write absolute numbers
into fields, never differences, so that a write that is made twice does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from kedge.api.meta import ObjectMeta
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan, RolloutStrategy
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.api.pods import Pod
from kedge.plan.fields import Object, at
from kedge.plan.moving.budget import Budget
from kedge.plan.moving.wait import Wait


class WorkloadRef(Struct, frozen=True, order=True):
    """Which workload."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Workload(Struct, frozen=True):
    """One workload, as it was observed."""

    ref: WorkloadRef
    obj: Object | None = None
    """None: there is none."""
    manifest: Object | None = None
    """The object as its revision wants it; None if whoever asks for the rollout wrote it already."""
    pods: tuple[Pod, ...] = ()
    """Of kinds whose status does not say which pods are of the new revision."""
    revision: str = ""
    """The name of that revision; empty if the object itself is the revision."""
    update_revision: str = ""
    """The label `controller-revision-hash` of pods of the present template, of kinds whose status does not say it."""


class Workloads(Struct, frozen=True):
    """What moves: from the sources, which are one pool, to the target; or the target alone, in place."""

    target: Workload
    sources: tuple[Workload, ...] = ()
    in_place: bool = False
    """Whether the target is changed in place: the source is what its pods ran before."""
    removes_sources: bool = False
    """Whether workloads of old revisions are deleted after success, and not only empty."""
    claim: str = ""
    """The rollout that asks, as it is written to workloads: `kind/name/uid`."""
    now: datetime | None = None
    """When this was observed: pods that have to be ready for some time count from then."""

    @property
    def is_scale(self) -> bool:
        """Whether there is nothing to move from: the target is deployed or scaled."""
        return not self.sources and not self.in_place


class Write(Struct, frozen=True):
    """One write: a merge patch of an object in the version that was observed, a creation, or the deletion of pods."""

    ref: WorkloadRef
    patch: Mapping[str, Any] | None = None
    create: Object | None = None
    delete_pods: tuple[ObjectMeta, ...] = ()
    patch_pods: tuple[tuple[ObjectMeta, Mapping[str, Any]], ...] = ()
    uid: str = ""
    resource_version: str = ""
    takes_away: bool = False
    """Whether available pods may go because of it: then it is decided again on what the server has now."""
    delete: bool = False
    """Whether the object itself is deleted."""

    @property
    def resizes(self) -> bool:
        """Whether the object asks for another number of pods then."""
        return at(self.patch, "spec", "replicas") is not None


class Step(Struct, frozen=True):
    """What to do now. Nothing of all: the move is done."""

    writes: tuple[Write, ...] = ()
    wait: Wait | None = None
    failure: str = ""
    makes_room: bool = False
    """Whether pods go that nobody needs, before the target is there: their traffic stays with the others."""

    @property
    def is_done(self) -> bool:
        return not self.writes and self.wait is None and not self.failure


DONE = Step()


class Batch(Struct, frozen=True):
    """One batch of a rollout, in pods."""

    index: int
    goal: int
    """How many pods of the target there are when it is done; of a scale operation, how many pods."""
    before: int
    """The goal of the batch before it; of the first one, where the rollout began."""
    total: int
    """How many pods there are to be in the end."""
    spec: RolloutBatch
    strategy: RolloutStrategy
    tolerated: int
    """How many pods of the target may be unavailable, and the batch still counts as done."""
    budget: Budget
    """The least number of pods that stay available and the most that there are, whatever happens."""
    pods: tuple[str, ...] = ()
    """The pods that are to be replaced, if the batch names them."""


class Verified(Struct, frozen=True):
    """What verification found: the size of the rollout, fixed from now on."""

    original: int
    total: int
    template_hash: str


class Moves(Protocol):
    """The moves of one kind."""

    def verify(self, seen: Workloads, plan: RolloutPlan, status: RolloutStatus) -> Verified | Step:
        """Whether the rollout can begin, and its size. `status` has the size of one that this one replaces."""
        ...

    def initialize(self, seen: Workloads, status: RolloutStatus, claim: str) -> Step:
        """Take the workloads over (`claim` is written to them) so that nothing moves but by `roll`."""
        ...

    def roll(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Move this batch, until as many pods as it asks for are of the target and available."""
        ...

    def check(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Whether the batch is done and still available."""
        ...

    def finalize(self, seen: Workloads, status: RolloutStatus, *, succeeded: bool) -> Step:
        """Let go of the workloads. After a failure they stay as they are, and stand still."""
        ...

    def revert(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Step:
        """Go back to what was before the rollout, never past the floor and the ceiling of the batch's budget."""
        ...

    def ready_pods(self, seen: Workloads) -> int:
        """How many pods of the target are ready."""
        ...

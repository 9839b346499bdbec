"""Zone: one StatefulSet of a rollout group and its pods, and what they say.

Pods are counted from pods. A StatefulSet's own status may lag behind them, so it can only make a zone look worse: it is
never what makes it ready. A zone is ready if every pod that is wanted is there, running and ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.api.zones import MAX_UNAVAILABLE, PAUSED
from kedge.plan.moving.budget import Budget
from kedge.plan.moving.unit import Proof, Unit
from kedge.plan.text import natural
from kedge.plan.workloads.handler import ON_DELETE
from kedge.plan.workloads.pods import is_finished
from kedge.plan.workloads.stateful_sets import ordinal_of
from kedge.plan.zoning.pods import is_running_and_ready, revision, stuck_reason

PARALLEL: Final = "Parallel"
_DIGITS: Final = 9
_UNLABELLED: Final = "unknown"
"""The revision of a pod that does not say which it runs: another one than any."""


class Limit(Struct, frozen=True):
    """How many pods of a zone may be unavailable. `problem` is set if the annotation cannot be read, and 1 is taken."""

    pods: int
    problem: str = ""


def max_unavailable(raw: str | None, replicas: int | None) -> Limit:
    """What the annotation comes to: a number, or a percentage of the replicas, rounded down, and at least 1."""
    if raw is None:
        return Limit(1)
    text = raw.strip()
    number, is_percent = text.removesuffix("%").removeprefix("+"), text.endswith("%")  # Go reads a plus, too
    value = int(number) if number.isascii() and number.isdecimal() and len(number) <= _DIGITS else 0
    if value < 1 or (is_percent and value > 100):  # percent
        return Limit(
            1, f"annotation {MAX_UNAVAILABLE} is {raw!r}: expected a positive integer or a percentage; 1 counts"
        )
    if not is_percent:
        return Limit(value)
    return Limit(max(1, value * (replicas or 0) // 100))


class Zone(Struct, frozen=True, dict=True):
    """One StatefulSet of a group, and the pods that it controls."""

    stateful_set: StatefulSet
    pods: tuple[Pod, ...]
    in_doubt: frozenset[str] = frozenset()
    """The uids of pods that an earlier request may still delete. They count as unavailable."""

    @property
    def name(self) -> str:
        return self.stateful_set.metadata.name

    @property
    def is_paused(self) -> bool:
        return self.stateful_set.metadata.annotations.get(PAUSED) == "true"

    @property
    def is_on_delete(self) -> bool:
        return self.stateful_set.spec.update_strategy.type == ON_DELETE

    @property
    def is_leaving(self) -> bool:
        """Whether the StatefulSet itself is being deleted."""
        return self.stateful_set.metadata.deletion_timestamp is not None

    @property
    def is_observed(self) -> bool:
        """Whether the status speaks of the spec as it is now, and names a revision to roll out."""
        status = self.stateful_set.status
        return status.observed_generation >= self.stateful_set.metadata.generation and bool(status.update_revision)

    @property
    def replicas(self) -> int:
        """How many pods the spec wants."""
        wanted = self.stateful_set.spec.replicas
        return 1 if wanted is None else wanted

    @property
    def expected(self) -> int:
        """How many pods count: while it is scaled, the larger number."""
        return max(self.replicas, self.stateful_set.status.replicas)

    @cached_property
    def limit(self) -> Limit:
        meta, spec = self.stateful_set.metadata, self.stateful_set.spec
        return max_unavailable(meta.annotations.get(MAX_UNAVAILABLE), spec.replicas)

    # Pods

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """Its pods in natural order; those too that are about to be created.

        What takes the place of a pod that is missing or terminating has the new revision: it counts as one that holds
        it and has not proven it.
        """
        wanted = self.stateful_set.status.update_revision
        found = [self._unit(pod) for pod in self.pods]
        found += [Unit(name, wanted, wanted, Proof.pending) for name in self._about_to_be_created]
        return tuple(sorted(found, key=lambda unit: natural(unit.key)))

    @cached_property
    def outdated(self) -> tuple[Unit, ...]:
        """The pods of another revision than the one to roll out."""
        return tuple(unit for unit in self.units if unit.held != unit.wanted)

    @property
    def names_in_doubt(self) -> frozenset[str]:
        """The pods that an earlier request may still delete."""
        return frozenset(pod.metadata.name for pod in self.pods if pod.metadata.uid in self.in_doubt)

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """The names of pods that are wanted and not there."""
        there = {pod.metadata.name for pod in self.pods}
        return tuple(name for name in self._names if name not in there)[: max(0, self.expected - len(self.pods))]

    @property
    def _names(self) -> Iterator[str]:
        return (f"{self.name}-{number}" for number in range(self._start, self._start + self.expected))

    @property
    def _start(self) -> int:
        """The number of its first pod."""
        ordinals = self.stateful_set.spec.ordinals
        return ordinals.start if ordinals is not None else 0

    def _unit(self, pod: Pod) -> Unit:
        """A pod. One that is terminating is as good as replaced; one that a scale-down removes is not to be updated.

        In order, a StatefulSet removes a pod that is not ready only if all pods below it are ready: of two broken pods
        the upper one stays until somebody deletes it. So the release deletes such pods too; they do not come back.
        """
        name, wanted = pod.metadata.name, self.stateful_set.status.update_revision
        if pod.metadata.deletion_timestamp is not None:
            return Unit(name, wanted, wanted, Proof.pending)
        held = revision(pod) or _UNLABELLED
        proof = proof_of(pod)
        if proof is not Proof.failed and pod.metadata.uid in self.in_doubt:
            proof = Proof.unknown
        return Unit(name, held, wanted if self._is_to_move(pod) else held, proof)

    def _is_to_move(self, pod: Pod) -> bool:
        number = ordinal_of(pod.metadata.name, self.name)
        if number is None:
            return False
        stays = self._start <= number < self._start + self.replicas
        return stays or not (self._is_parallel or is_running_and_ready(pod))

    @property
    def _is_parallel(self) -> bool:
        return self.stateful_set.spec.pod_management_policy == PARALLEL

    @property
    def _about_to_be_created(self) -> tuple[str, ...]:
        """The missing pods that the StatefulSet controller creates next. In order, one waits for those before it."""
        if self._is_parallel:
            return self.missing
        ready = {pod.metadata.name for pod in self.pods if is_running_and_ready(pod)}
        first = next((name for name in self._names if name not in ready), None)
        return (first,) if first in self.missing else ()

    @property
    def _counted_unavailable(self) -> int:
        return len(self.missing) + sum(not self._unit(pod).is_proven for pod in self.pods)

    @property
    def unavailable(self) -> int:
        """How many pods are missing or not ready: by the pods, or by the status if that says more."""
        status = self.stateful_set.status
        return max(self._counted_unavailable, status.replicas - status.ready_replicas)

    @property
    def is_ready(self) -> bool:
        return self.unavailable == 0

    @cached_property
    def not_ready(self) -> tuple[Unit, ...]:
        """Every pod that is not ready, the missing ones too. If only the status says so, the zone itself."""
        wanted = self.stateful_set.status.update_revision
        found = [unit for pod in self.pods if not (unit := self._unit(pod)).is_proven]
        found += [Unit(name, "", wanted, Proof.nothing) for name in self.missing]
        if not found and not self.is_ready:
            found = [Unit(self.name, wanted, wanted, Proof.unknown)]
        return tuple(sorted(found, key=lambda unit: natural(unit.key)))

    @property
    def waits_for_its_rollout(self) -> bool:
        """Whether it is ready but for outdated pods that cannot become ready: only the rollout can mend it.

        Pods that are created in order and wait for such a pod are missing for the same reason.
        """
        if self.in_doubt or self._about_to_be_created or self.unavailable > self._counted_unavailable:
            return False
        broken = [unit for unit in map(self._unit, self.pods) if not unit.is_proven]
        return all(unit.proof is Proof.failed and unit.held != unit.wanted for unit in broken)

    @property
    def budget(self) -> Budget:
        """What may be unavailable. Pods that only the status calls not ready are taken from it."""
        unseen = self.unavailable - self._counted_unavailable
        return Budget(max(self.expected, len(self.units)), max(0, self.limit.pods - unseen))

    @property
    def is_done(self) -> bool:
        """Whether every pod runs the revision to roll out, and is ready."""
        return self.is_observed and self.is_ready and not self.outdated

    @property
    def promotes(self) -> bool:
        """Whether its status still calls an older revision the current one. Nobody else changes that with OnDelete."""
        status = self.stateful_set.status
        has_old = bool(status.current_revision) and status.current_revision != status.update_revision
        return has_old and self.is_done and not self.is_leaving


def proof_of(pod: Pod) -> Proof:
    """What the status of a pod that is not terminating says of the revision it runs."""
    if is_running_and_ready(pod):
        return Proof.proven
    return Proof.failed if is_finished(pod) or stuck_reason(pod) else Proof.pending

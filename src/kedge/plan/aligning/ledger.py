"""Ledger: what every cluster was asked for and may be acting on, and what it reports.

A cluster acts on the last spec that reached it, and nobody knows which one that is until a report says so. So each spec
is kept from before it is written until a later one is acknowledged, and all of them count. A cluster is written to only
when it has acknowledged what was written before: its entry never holds more than two specs.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from msgspec import Struct

UNKNOWN: Final = "?"
"""The template of a spec that may be in effect with any template, the wanted one among them."""


class Spec(Struct, frozen=True, gc=False):
    """What one cluster is asked for."""

    seq: int
    """Specs of one binding are numbered; a larger number is a later one."""
    template: str
    """The hash of the pod template."""
    replicas: int
    unavailable: int = 0
    """The cluster's maxUnavailable, in pods."""
    surge: int = 0
    """The cluster's maxSurge, in pods."""
    partition: int = 0
    """How many pods stay at older templates."""

    @property
    def moved(self) -> int:
        """How many pods of the template there may be, beside those that are more than asked for."""
        return max(0, self.replicas - self.partition)


class Report(Struct, frozen=True, gc=False):
    """What a cluster reports of its workload."""

    seq: int
    """The last spec that the cluster's own controller has observed; 0 if that is not known."""
    pods: int = 0
    updated: int = 0
    """Pods of the template of that spec; nobody knows of which template if the spec is not known."""
    available: int = 0
    updated_available: int | None = None
    """Of those the available ones, if the kind counts them."""
    asked: int | None = None
    """How many pods its spec asks for, if the cluster decides on that."""
    is_back: bool = False
    """Whether the template of that spec is also the one of the pods that are kept back, if the kind says so."""

    @property
    def proven(self) -> int:
        """How many updated pods are available at least."""
        if self.updated_available is not None:
            return self.updated_available
        return max(0, self.available - (self.pods - self.updated))


NOTHING = Report(0)


class OwnStrategy(Struct, frozen=True, gc=False):
    """What an override policy says of one cluster's strategy."""

    unavailable: int = 0
    surge: int = 0
    partition: int | None = None
    """None: as for all others."""
    is_held: bool = False
    """Whether its pods stay as they are: it is paused by itself, or replaces none."""


class Member(Struct, frozen=True, dict=True):
    """One cluster. What follows from its fields is found out once."""

    name: str
    wanted: int
    """How many replicas are scheduled to it; 0 if the cluster is to leave."""
    template: str
    """The hash of the pod template it is to have, with what is overridden for it."""
    specs: tuple[Spec, ...] = ()
    """What may be in effect there, oldest first; empty if nothing was ever written."""
    report: Report = NOTHING
    is_reachable: bool = True
    is_suspended: bool = False
    """Whether somebody said that nothing is written to it for now."""
    stays: bool = False
    """Whether it keeps the workload also without replicas."""
    own: OwnStrategy | None = None
    """Its strategy, if somebody else decides on that: it is charged for all of it."""
    is_ordered: bool = False
    """Whether its pods have an order, by which they are replaced and taken away, as those of a StatefulSet."""
    has_sets: bool = False
    """Whether its pods belong to one ReplicaSet for each template, as those of a Deployment."""
    is_starting: bool = False
    """Whether its number of pods changed a moment ago: those that do not work may only be starting."""
    superseded: int = 0
    """How many of the last specs can never be written, since nobody has their template any more. They count all the
    same."""

    @cached_property
    def in_effect(self) -> tuple[Spec, ...]:
        """The specs that the cluster may act on, now or later."""
        return tuple(spec for spec in self.specs if spec.seq >= self.report.seq) or self.specs[-1:]

    @cached_property
    def lingering(self) -> tuple[Spec, ...]:
        """The specs before the one it reports about, while it has fewer pods than that asks for, or replaces some: by
        an earlier one pods may be on their way out that are still counted. A Deployment observes what is asked for
        before its ReplicaSets have deleted what was decided before."""
        reported = next((spec for spec in self.specs if spec.seq == self.report.seq), None)
        if reported is None or self._has_settled(reported):
            return ()
        return tuple(spec for spec in self.specs if spec.seq < reported.seq)

    def _has_settled(self, reported: Spec) -> bool:
        is_whole = self.report.pods >= reported.replicas
        return is_whole and (self.is_ordered or self.report.updated >= reported.moved)

    @cached_property
    def last(self) -> Spec | None:
        return self.specs[-1] if self.specs else None

    @property
    def replicas(self) -> int:
        """How many replicas it was asked for last; 0 if nothing was ever written."""
        return self.last.replicas if self.last is not None else 0

    @cached_property
    def is_acknowledged(self) -> bool:
        """Whether it acts on what was written last. One that nothing was written to has nothing to acknowledge."""
        written = self.last_written
        return written is None or self.report.seq >= written.seq

    @property
    def last_written(self) -> Spec | None:
        """The last of its specs that could be written."""
        written = self.specs[: len(self.specs) - self.superseded]
        return written[-1] if written else None

    @property
    def may_be_starting(self) -> bool:
        """Whether it has pods, or is to have, that do not work and were not there a moment ago."""
        return self.is_starting and self.report.available < max(self.report.pods, self.replicas)

    @property
    def is_unasked(self) -> bool:
        """Whether it was granted something, and none of that could be written."""
        return 0 < len(self.specs) == self.superseded

    @cached_property
    def reported_template(self) -> str:
        """The template that its counts of updated pods are about; empty if that is not known."""
        return next((spec.template for spec in self.specs if spec.seq == self.report.seq), "")

    @cached_property
    def updated(self) -> int:
        """How many pods it reports of the template that it is to have."""
        return self.report.updated if self.reported_template == self.template else 0

    @property
    def proven(self) -> int:
        """How many pods of the template that it is to have are available at least."""
        return self.report.proven if self.reported_template == self.template else 0

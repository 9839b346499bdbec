"""Scaling: what is known of a rollout group's replicas, and what may come of it: a step, or a wait.

The words of Grafana's rollout-operator. A StatefulSet follows a leader, which is another one of its group, or mirrors a
reference, which is any object with a scale. What it waits for, and what is wrong with its annotations, is a `Wait`
with a `ScaleCode`; `scaling_text` writes the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.plan.moving.wait import Blocker, Wait

MOST_REPLICAS: Final = 2**31 - 1
_NUMBER: Final = re.compile(r"\+?[0-9]{1,20}")


class ScaleCode(StrEnum):
    """What scaling waits for, or what is wrong."""

    leader_missing = "LeaderMissing"
    leader_itself = "LeaderIsItself"
    leader_circular = "LeaderCircular"
    leader_not_ready = "LeaderNotReady"
    min_time = "MinTimeBetweenZones"
    """Another zone was scaled down too short a time ago."""
    min_time_missing = "MinTimeMissing"
    min_time_invalid = "MinTimeInvalid"
    last_downscale_invalid = "LastDownscaleInvalid"
    force_invalid = "ForceReplicasInvalid"
    two_sources = "LeaderAndReference"
    """It follows a leader and mirrors a reference: they would take turns."""
    reference_incomplete = "ReferenceIncomplete"
    api_version_invalid = "ReferenceAPIVersionInvalid"
    reference_unavailable = "ReferenceUnavailable"
    delay_invalid = "DelayedDownscaleInvalid"
    pods_not_prepared = "PodsNotPrepared"
    delay_not_reached = "DownscaleDelay"
    refused = "ScalingRefused"
    """The API server, or an admission webhook, did not take the new replicas."""
    write_back_failed = "WriteBackFailed"
    group_unread = "GroupUnread"


PASSES_BY_ITSELF: Final = frozenset({ScaleCode.leader_not_ready, ScaleCode.min_time, ScaleCode.delay_not_reached})
"""Waits that are part of normal scaling; everything else needs somebody to look."""


class Reason(StrEnum):
    """Why a StatefulSet is to have so many replicas."""

    leader = "leader"
    reference = "reference"
    forced = "forced"


class ScaleStep(Struct, frozen=True):
    """One change of replicas: `source` is the leader or the reference that it comes from."""

    name: str
    current: int
    replicas: int
    reason: Reason
    source: str

    @property
    def is_down(self) -> bool:
        return self.replicas < self.current


class Reference(Struct, frozen=True, order=True):
    """The object that a StatefulSet mirrors. Any version of its group will do."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}{f'.{self.group}' if self.group else ''}/{self.name}"


class ReferenceScale(Struct, frozen=True):
    """The scale of a reference: how many it wants, and how many its status says there are."""

    wanted: int
    reported: int


class ReferenceProblem(Struct, frozen=True):
    """Why there is no scale."""

    text: str


ObservedScale: TypeAlias = ReferenceScale | ReferenceProblem


class PodAnswer(Struct, frozen=True):
    """What one pod said when it was told to prepare: when it was prepared, or what went wrong."""

    ordinal: int
    """Counted from 0, wherever the StatefulSet begins to count."""
    prepared_at: datetime | None = None
    problem: str = ""
    pod: str = ""


class Scaling(Struct, frozen=True):
    """All that is known of one group. What is missing in a mapping is not known."""

    sets: tuple[StatefulSet, ...]
    now: datetime
    ready_pods: Mapping[str, int] = {}
    """How many pods of a StatefulSet are running and ready, by its name; counted from pods."""
    scales: Mapping[Reference, ObservedScale] = {}
    answers: Mapping[str, tuple[PodAnswer, ...]] = {}
    """What the pods that would go have said, by the name of the StatefulSet; empty if there was nothing to ask."""
    postponed: Mapping[str, ScalingVerdict] = {}
    """What keeps a step from being tried again yet: pods said so lately, or it was refused. By StatefulSet."""

    @property
    def in_order(self) -> tuple[StatefulSet, ...]:
        return tuple(sorted(self.sets, key=lambda one: one.metadata.name.encode()))


class ScalingVerdict(Struct, frozen=True):
    """What is found for one StatefulSet: a step, what it waits for, or neither."""

    step: ScaleStep | None = None
    waits: tuple[Wait, ...] = ()
    until: datetime | None = None
    """When time alone will change something; None if it will not."""


def replicas_of(stateful_set: StatefulSet) -> int:
    """How many pods it is to have."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def annotation(stateful_set: StatefulSet, key: str) -> str:
    """The value of an annotation; empty if it is not there."""
    return stateful_set.metadata.annotations.get(key, "")


def min_time_between_zones(stateful_set: StatefulSet) -> str | None:
    """How long after another zone it may be scaled down, as it is written; None if it is not.

    An annotation counts before the label of the same name, which is the older of the two.
    """
    key = zones.MIN_TIME_BETWEEN_ZONES
    return annotation(stateful_set, key) or stateful_set.metadata.labels.get(key)


def wait_for(unit: str, code: ScaleCode, key: str = "", reported: str = "", until: datetime | None = None) -> Wait:
    """One wait for one thing: `key` is what it is about, `reported` what is known of it."""
    return Wait(unit, code, blockers=(Blocker(key, until=until, reported=reported),))


def force_replicas(stateful_set: StatefulSet) -> int | None:
    """The number that replaces what the leader or the reference says; None if there is none, or none that counts."""
    text = annotation(stateful_set, zones.FORCE_REPLICAS)
    number = int(text) if _NUMBER.fullmatch(text) else None
    return number if number is None or number <= MOST_REPLICAS else None


def force_problems(stateful_set: StatefulSet) -> tuple[Wait, ...]:
    """What to say of a forced number that does not count."""
    found = stateful_set.metadata.annotations.get(zones.FORCE_REPLICAS)
    if found is None or force_replicas(stateful_set) is not None:
        return ()
    return (wait_for(stateful_set.metadata.name, ScaleCode.force_invalid, zones.FORCE_REPLICAS, found),)

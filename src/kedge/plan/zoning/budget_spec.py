"""Budget specs: what a ZoneAwarePodDisruptionBudget asks for, read and checked.

    read_budget(object)       # a ZoneBudget, or an InvalidBudget with what is wrong

Takes an object as it came (a mapping) or as a typed one. The problems have the words and the order of Grafana's
rollout-operator, which reports the first of them. Only `matchLabels` of the selector is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.api.patterns import BadPattern, bounded
from kedge.api.selector import InvalidSelector, check_key, check_value
from kedge.api.times import format_duration, parse_duration
from kedge.api.zones import ZoneAwarePodDisruptionBudget

KIND: Final = ZoneAwarePodDisruptionBudget.resource.kind
MAX: Final = "maxUnavailable"
PERCENTAGE: Final = "maxUnavailablePercentage"
PATTERN: Final = "podNamePartitionRegex"
GROUP: Final = "podNameRegexGroup"
DELAY: Final = "crossZoneEvictionDelay"
NO_DELAY: Final = timedelta()
_ABSENT: Final = object()
_NO_FIELDS: Final[Mapping[str, Any]] = {}

T = TypeVar("T")
Fields: TypeAlias = Mapping[str, Any]


class PodPartitions(Struct, frozen=True):
    """Where the partition stands in the name of a pod."""

    pattern: str
    """The whole expression, from `^` to `$`."""
    group: int

    def of(self, pod_name: str) -> str:
        """The partition of this pod; empty if its name does not tell."""
        found = bounded(self.pattern).search(pod_name)
        return (found.groups()[self.group - 1] or "") if found is not None else ""


class ZoneBudget(Struct, frozen=True):
    """A valid budget."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    """The labels that the pods and the StatefulSets of this budget have."""
    generation: int = 0
    max_unavailable: int = 1
    """How many pods may be away; 0 if a percentage is set, or nothing may be evicted."""
    percentage: int = 0
    partitions: PodPartitions | None = None
    """If set, pods of one partition in several zones are replicas of each other."""
    delay: timedelta = NO_DELAY
    """How long a pod has to be ready before one of its partition in another zone may go."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def selects(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.labels.items())

    def allowance(self, owner: StatefulSet) -> int:
        """How many pods may be away. A percentage is of the smaller of both counts of replicas, and at least 1."""
        if self.max_unavailable > 0:
            return self.max_unavailable
        replicas = min(desired_replicas(owner), owner.status.replicas)
        return max(1, self.percentage * replicas // 100) if self.percentage > 0 and replicas > 0 else 0


class InvalidBudget(Struct, frozen=True):
    """A budget that is refused. The first problem is the one that is reported."""

    problems: tuple[str, ...]

    @property
    def message(self) -> str:
        return self.problems[0]


class _Problem(Exception):
    """Something is wrong with one field."""


def desired_replicas(stateful_set: StatefulSet) -> int:
    """How many pods it should have."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def read_budget(found: Mapping[str, Any] | ZoneAwarePodDisruptionBudget) -> ZoneBudget | InvalidBudget:
    """The budget that an object is, or what is wrong with it."""
    whole = found if isinstance(found, Mapping) else _as_mapping(found)
    spec = whole.get("spec")
    if not isinstance(spec, Mapping):
        return InvalidBudget(("no spec found in unstructured object",))
    if whole.get("kind") != KIND:
        return InvalidBudget((f"unexpected object kind - expecting {KIND}",))
    reader = _SpecReader(spec)
    budget = reader.read(_metadata(whole))
    return InvalidBudget(tuple(reader.problems)) if reader.problems else budget


def _as_mapping(found: ZoneAwarePodDisruptionBudget) -> Fields:
    read: dict[str, Any] = msgspec.to_builtins(found)
    return {**read, "kind": KIND}


def _metadata(whole: Fields) -> Fields:
    found = whole.get("metadata")
    return found if isinstance(found, Mapping) else {}


class _SpecReader:
    """Reads the fields of a spec one after another, and collects what is wrong."""

    def __init__(self, spec: Fields) -> None:
        self._spec = spec
        self.problems: list[str] = []

    def read(self, meta: Fields) -> ZoneBudget:
        number, percentage = self._attempt(self._maximum, (1, 0))
        partitions = self._attempt(self._partitions, None)
        labels: Fields = self._attempt(self._labels, _NO_FIELDS)
        delay = self._attempt(self._delay, NO_DELAY)
        if percentage > 0 and self._text(PATTERN):
            self.problems.append("invalid value: max unavailable percentage can not be used with partition awareness")
        return ZoneBudget(
            namespace=str(meta.get("namespace", "")),
            name=str(meta.get("name", "")),
            labels=labels,
            generation=_whole_number(meta.get("generation")) or 0,
            max_unavailable=number,
            percentage=percentage,
            partitions=partitions,
            delay=delay,
        )

    def _attempt(self, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except _Problem as problem:
            self.problems.append(str(problem))
            return otherwise

    def _maximum(self) -> tuple[int, int]:
        """The number and the percentage; one of them is 0."""
        if MAX in self._spec and PERCENTAGE in self._spec:
            raise _Problem(f"invalid value: only one of {MAX} or {PERCENTAGE} may be set")
        if MAX in self._spec:
            return self._number(MAX), 0
        return (0, self._percentage()) if PERCENTAGE in self._spec else (1, 0)

    def _number(self, name: str) -> int:
        found = self._integer(name)
        if found < 0:
            raise _Problem(f"invalid value: max unavailable must be 0 <= val, got {found}")
        return found

    def _percentage(self) -> int:
        found = self._integer(PERCENTAGE)
        if not 0 <= found <= 100:
            raise _Problem(f"invalid value: max unavailable percentage must be 0 <= val <= 100, got {found}")
        return found

    def _integer(self, name: str) -> int:
        found = _whole_number(self._spec.get(name))
        if found is None:
            raise _Problem(f"failed to extract value from config field {name}")
        return found

    def _partitions(self) -> PodPartitions | None:
        problems = list(_pattern_problems(self._spec))
        if problems:
            raise _Problem(f"invalid value: regex is not valid, got {problems[0]}")
        pattern = self._text(PATTERN)
        return PodPartitions(f"^{pattern}$", self._spec.get(GROUP, 1)) if pattern else None

    def _labels(self) -> Fields:
        selector = self._spec.get("selector")
        labels = selector.get("matchLabels", _ABSENT) if isinstance(selector, Mapping) else _ABSENT
        if labels is _ABSENT:
            raise _Problem("invalid value: selector is not found")
        if not isinstance(labels, Mapping):
            raise _Problem("invalid value: selector is not valid, got matchLabels that is not a map")
        for key, value in labels.items():
            _check_label(key, value)
        return dict(labels)

    def _delay(self) -> timedelta:
        written = self._spec.get(DELAY, "")
        if not isinstance(written, str):
            raise _Problem(f"failed to extract value from config field {DELAY}")
        found = _duration(written) if written else NO_DELAY
        if found < NO_DELAY:
            raise _Problem(f"invalid value: {DELAY} must be >= 0, got {format_duration(found)}")
        if found > NO_DELAY and not self._text(PATTERN):
            raise _Problem(f"invalid value: {DELAY} requires {PATTERN} to be set")
        return found

    def _text(self, name: str) -> str:
        found = self._spec.get(name)
        return found if isinstance(found, str) else ""


def _whole_number(found: object) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _pattern_problems(spec: Fields) -> Iterator[str]:
    """What is wrong with the expression and the number of its group."""
    pattern, group = spec.get(PATTERN, ""), spec.get(GROUP, _ABSENT)
    if not isinstance(pattern, str):
        yield f"failed to extract regex value from config field {PATTERN}"
        return
    if not pattern:
        return
    number = 1 if group is _ABSENT else _whole_number(group)
    if number is None:
        yield f"failed to extract group value from config field {GROUP}"
        return
    try:
        groups = bounded(f"^{pattern}$").groups
    except BadPattern as error:
        yield f"error parsing regexp: {error}"
        return
    if groups == 0:
        yield "regular expression requires at least one subexpression"
    elif groups > 1 and group is _ABSENT:
        yield f"regular expression has multiple subexpressions and requires {GROUP} to be set"
    elif not 1 <= number <= groups:
        yield "regular expression subexpression index out of range"


def _check_label(key: str, value: object) -> None:
    """A selector that the API server would refuse selects nothing, and protects nothing."""
    try:
        if not isinstance(value, str):
            raise InvalidSelector(f"a value of {key} that is not a string")  # noqa: TRY301
        check_key(key)
        check_value(value)
    except InvalidSelector as error:
        raise _Problem(f"invalid value: selector is not valid, got {error}") from None


def _duration(written: str) -> timedelta:
    try:
        return parse_duration(written)
    except ValueError:
        quoted = json.dumps(written, ensure_ascii=False)
        raise _Problem(f"invalid value: {DELAY} is not a valid duration, got time: invalid duration {quoted}") from None

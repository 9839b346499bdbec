"""Budget specs: what is read of a ZoneAwarePodDisruptionBudget, and in which words it is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.apps import StatefulSet, StatefulSetSpec, StatefulSetStatus
from kedge.api.zones import ZoneAwarePodDisruptionBudget
from kedge.plan.zoning.budget_spec import InvalidBudget, PodPartitions, ZoneBudget, read_budget

LABELS = {"rollout-group": "ingester"}
NUMBERED = r"[a-z\-]+-zone-[a-z]-([0-9]+)"


def an_object(**spec: Any) -> dict[str, Any]:
    meta = {"name": "ingester", "namespace": "mimir", "generation": 3}
    return {
        "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": meta,
        "spec": {"selector": {"matchLabels": LABELS}} | spec,
    }


def budget(**spec: Any) -> ZoneBudget:
    found = read_budget(an_object(**spec))
    assert isinstance(found, ZoneBudget)
    return found


def problems(**spec: Any) -> tuple[str, ...]:
    found = read_budget(an_object(**spec))
    assert isinstance(found, InvalidBudget)
    return found.problems


def test_an_object_that_was_never_stored_has_no_generation() -> None:
    found = read_budget({**an_object(), "metadata": {}})
    assert found == ZoneBudget(namespace="", name="", labels=LABELS, generation=0)


def test_without_a_number_one_pod_may_be_away() -> None:
    assert budget() == ZoneBudget(namespace="mimir", name="ingester", labels=LABELS, generation=3, max_unavailable=1)
    assert budget().key == "mimir/ingester"


@pytest.mark.parametrize(
    ("spec", "numbers"),
    [
        ({"maxUnavailable": 2}, (2, 0)),
        ({"maxUnavailable": 0}, (0, 0)),
        ({"maxUnavailablePercentage": 50}, (0, 50)),
        ({"maxUnavailablePercentage": 0}, (0, 0)),
        ({"maxUnavailablePercentage": 100}, (0, 100)),
    ],
)
def test_a_number_or_a_percentage_is_read(spec: dict[str, int], numbers: tuple[int, int]) -> None:
    found = budget(**spec)
    assert (found.max_unavailable, found.percentage) == numbers


@pytest.mark.parametrize(
    ("delay", "seconds"), [("20m", 1200), ("1h30m", 5400), ("0s", 0), ("0", 0), ("", 0), ("1.5s", 1.5)]
)
def test_a_delay_is_read(delay: str, seconds: float) -> None:
    assert budget(podNamePartitionRegex=NUMBERED, crossZoneEvictionDelay=delay).delay == timedelta(seconds=seconds)


def test_a_pattern_is_anchored_at_both_ends_and_its_first_group_is_the_partition() -> None:
    assert budget(podNamePartitionRegex=NUMBERED).partitions == PodPartitions(f"^{NUMBERED}$", 1)
    assert budget(podNamePartitionRegex="(a)(b)", podNameRegexGroup=2).partitions == PodPartitions("^(a)(b)$", 2)
    assert budget(podNamePartitionRegex="").partitions is None


@pytest.mark.parametrize(
    ("pattern", "group", "name", "partition"),
    [
        (r"[a-z\-]+-(zone-[a-z]-[0-9]+)", None, "ingester-zone-a-0", "zone-a-0"),
        (r"ingester(-foo)?-zone-[a-z]-([0-9]+)", 2, "ingester-zone-a-0", "0"),
        (r"ingester(-foo)?-zone-[a-z]-([0-9]+)", 2, "ingester-foo-zone-a-12", "12"),
        (r"(partition\-)?([0-9]+)", 2, "partition-5", "5"),
        (r"(partition\-)?([0-9]+)", 2, "5", "5"),
        (r"(partition\-)?([0-9]+)", 1, "5", ""),
        (NUMBERED, None, "compactor-0", ""),
        (NUMBERED, None, "ingester-zone-a-0x", ""),
        (NUMBERED, None, "ingester-zone-a-0\n", ""),
    ],
)
def test_the_partition_of_a_pod_is_in_its_name(pattern: str, group: int | None, name: str, partition: str) -> None:
    spec: dict[str, Any] = {"podNamePartitionRegex": pattern} | ({"podNameRegexGroup": group} if group else {})
    partitions = budget(**spec).partitions
    assert partitions is not None
    assert partitions.of(name) == partition


BAD_REGEX = "invalid value: regex is not valid, got "
BAD_SELECTOR = "invalid value: selector is not valid, got "
SEVERAL = "regular expression has multiple subexpressions and requires podNameRegexGroup to be set"
NOT_A_NUMBER = "failed to extract value from config field maxUnavailable"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"maxUnavailable": 1, "maxUnavailablePercentage": 1},
            "invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set",
        ),
        ({"maxUnavailable": "1"}, NOT_A_NUMBER),
        ({"maxUnavailable": 1.5}, NOT_A_NUMBER),
        ({"maxUnavailable": True}, NOT_A_NUMBER),
        ({"maxUnavailable": None}, NOT_A_NUMBER),
        ({"maxUnavailablePercentage": "50%"}, "failed to extract value from config field maxUnavailablePercentage"),
        ({"maxUnavailable": -1}, "invalid value: max unavailable must be 0 <= val, got -1"),
        (
            {"maxUnavailablePercentage": -1},
            "invalid value: max unavailable percentage must be 0 <= val <= 100, got -1",
        ),
        (
            {"maxUnavailablePercentage": 101},
            "invalid value: max unavailable percentage must be 0 <= val <= 100, got 101",
        ),
        ({"podNamePartitionRegex": "("}, f"{BAD_REGEX}error parsing regexp: missing ): ^($"),
        ({"podNamePartitionRegex": "(?=x)(y)"}, f"{BAD_REGEX}error parsing regexp: invalid perl operator: (?="),
        ({"podNamePartitionRegex": "a"}, f"{BAD_REGEX}regular expression requires at least one subexpression"),
        ({"podNamePartitionRegex": "(a)(b)"}, BAD_REGEX + SEVERAL),
        (
            {"podNamePartitionRegex": "(a)(b)", "podNameRegexGroup": 3},
            f"{BAD_REGEX}regular expression subexpression index out of range",
        ),
        (
            {"podNamePartitionRegex": "(a)", "podNameRegexGroup": 0},
            f"{BAD_REGEX}regular expression subexpression index out of range",
        ),
        (
            {"podNamePartitionRegex": 5, "maxUnavailablePercentage": 50},
            f"{BAD_REGEX}failed to extract regex value from config field podNamePartitionRegex",
        ),
        (
            {"podNamePartitionRegex": "(a)", "podNameRegexGroup": "1"},
            f"{BAD_REGEX}failed to extract group value from config field podNameRegexGroup",
        ),
        ({"selector": {}}, "invalid value: selector is not found"),
        ({"selector": None}, "invalid value: selector is not found"),
        ({"selector": {"matchExpressions": []}}, "invalid value: selector is not found"),
        ({"selector": {"matchLabels": "x"}}, f"{BAD_SELECTOR}matchLabels that is not a map"),
        ({"selector": {"matchLabels": {"a": 1}}}, f"{BAD_SELECTOR}a value of a that is not a string"),
        (
            {"podNamePartitionRegex": NUMBERED, "crossZoneEvictionDelay": "notaduration"},
            'invalid value: crossZoneEvictionDelay is not a valid duration, got time: invalid duration "notaduration"',
        ),
        (
            {"podNamePartitionRegex": NUMBERED, "crossZoneEvictionDelay": "5µ"},
            'invalid value: crossZoneEvictionDelay is not a valid duration, got time: invalid duration "5µ"',
        ),
        (
            {"podNamePartitionRegex": NUMBERED, "crossZoneEvictionDelay": "-5m"},
            "invalid value: crossZoneEvictionDelay must be >= 0, got -5m0s",
        ),
        (
            {"podNamePartitionRegex": NUMBERED, "crossZoneEvictionDelay": 5},
            "failed to extract value from config field crossZoneEvictionDelay",
        ),
        (
            {"crossZoneEvictionDelay": "5m"},
            "invalid value: crossZoneEvictionDelay requires podNamePartitionRegex to be set",
        ),
        (
            {"maxUnavailablePercentage": 1, "podNamePartitionRegex": NUMBERED},
            "invalid value: max unavailable percentage can not be used with partition awareness",
        ),
    ],
)
def test_a_bad_field_is_refused_in_these_words(spec: dict[str, Any], problem: str) -> None:
    assert problems(**spec) == (problem,)


def test_a_pattern_that_takes_too_much_memory_is_refused() -> None:
    found = problems(podNamePartitionRegex="((a{100}){100}){100}", podNameRegexGroup=1)
    assert found[0].startswith(f"{BAD_REGEX}error parsing regexp: ")


def test_labels_that_no_server_takes_are_refused() -> None:
    assert problems(selector={"matchLabels": {"a b": "c"}})[0].startswith(
        f"{BAD_SELECTOR}'a b' cannot be a label's key"
    )
    assert problems(selector={"matchLabels": {"a": "c d"}})[0].startswith(f"{BAD_SELECTOR}'c d' cannot be a label's")


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({"kind": "ZoneAwarePodDisruptionBudget"}, "no spec found in unstructured object"),
        ({"kind": "ZoneAwarePodDisruptionBudget", "spec": "x"}, "no spec found in unstructured object"),
        ({}, "no spec found in unstructured object"),
        ({"spec": {}}, "unexpected object kind - expecting ZoneAwarePodDisruptionBudget"),
        ({"kind": "Pod", "spec": {}}, "unexpected object kind - expecting ZoneAwarePodDisruptionBudget"),
    ],
)
def test_something_else_is_refused(found: dict[str, Any], problem: str) -> None:
    assert read_budget(found) == InvalidBudget((problem,))


def test_several_problems_come_in_the_order_in_which_the_peer_looks() -> None:
    found = problems(
        maxUnavailable=-1, podNamePartitionRegex="a", selector={}, crossZoneEvictionDelay="x", podNameRegexGroup=1
    )
    beginnings = ("invalid value: max", BAD_REGEX, "invalid value: selector", "invalid value: crossZoneEvictionDelay")
    assert len(found) == 4
    assert InvalidBudget(found).message == found[0]
    assert all(problem.startswith(begin) for problem, begin in zip(found, beginnings, strict=True))


def test_a_typed_object_says_the_same() -> None:
    whole = an_object(maxUnavailable=0, podNamePartitionRegex=NUMBERED, crossZoneEvictionDelay="10m")
    typed = msgspec.convert(whole, ZoneAwarePodDisruptionBudget)
    assert read_budget(typed) == read_budget(whole)


def statefulset(spec: int | None, status: int) -> StatefulSet:
    return StatefulSet(spec=StatefulSetSpec(replicas=spec), status=StatefulSetStatus(replicas=status))


@pytest.mark.parametrize(
    ("asked", "replicas", "allowed"),
    [
        ({"maxUnavailable": 1}, (3, 3), 1),
        ({"maxUnavailable": 0}, (3, 3), 0),
        ({"maxUnavailablePercentage": 100}, (3, 3), 3),
        ({"maxUnavailablePercentage": 1}, (3, 3), 1),
        ({"maxUnavailablePercentage": 75}, (3, 3), 2),
        ({"maxUnavailablePercentage": 50}, (10, 6), 3),
        ({"maxUnavailablePercentage": 50}, (10, 20), 5),
        ({"maxUnavailablePercentage": 50}, (10, 0), 0),
        ({"maxUnavailablePercentage": 50}, (0, 3), 0),
        ({"maxUnavailablePercentage": 0}, (3, 3), 0),
        ({"maxUnavailablePercentage": 100}, (100, 100), 100),
        ({"maxUnavailablePercentage": 50}, (1, 1), 1),
        ({"maxUnavailablePercentage": 100}, (None, 3), 1),
    ],
)
def test_how_many_pods_may_be_away(asked: dict[str, int], replicas: tuple[int | None, int], allowed: int) -> None:
    assert budget(**asked).allowance(statefulset(*replicas)) == allowed


def test_a_budget_selects_what_has_all_its_labels() -> None:
    assert budget().selects({"rollout-group": "ingester", "name": "x"})
    assert not budget().selects({"rollout-group": "store-gateway"})
    assert not budget().selects({})


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=5,
)
FIELDS = (
    "maxUnavailable",
    "maxUnavailablePercentage",
    "podNamePartitionRegex",
    "podNameRegexGroup",
    "crossZoneEvictionDelay",
    "selector",
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, anything)))
def test_whatever_is_written_is_read_or_refused(spec: dict[str, Any]) -> None:
    found = read_budget({"kind": "ZoneAwarePodDisruptionBudget", "metadata": None, "spec": spec})
    assert isinstance(found, ZoneBudget) or all(found.problems)

"""Disruption: the decision on a pod that is to go, row by row."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.meta import OwnerReference
from kedge.plan.zoning.disruption import (
    Allowed,
    Decision,
    Denied,
    SelectedZone,
    owner_missing,
    pods_of,
    rollout_override,
)
from plan.zoning.three_zones import LABELS, LETTERS, NOW, PARTITIONS, budget, evict, healthy, pod, stateful_set, zone

ALLOWED = Allowed("allowed", counts=True)
NOT_READY = Allowed("pod-not-ready", warning="pod is not ready")
MINUTES = timedelta(minutes=1)


def denied(message: str) -> Denied:
    return Denied(429, message, "denied")


# Before any zone is looked at


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Pending"])
def test_a_pod_that_does_not_run_may_go_with_a_warning(phase: str) -> None:
    assert evict("a-0", None, budget(max_unavailable=0), pod=pod("a-0", phase=phase)) == NOT_READY


def test_a_pod_that_is_on_its_way_out_may_go_with_a_warning() -> None:
    assert evict("a-0", None, budget(max_unavailable=0), pod=pod("a-0", deletion_timestamp=NOW)) == NOT_READY


def test_a_pod_of_two_budgets_may_not_go() -> None:
    expected = Denied(400, "multiple zoned pod disruption budgets found for pod", "cfg-not-found")
    assert evict("a-0", None, budget(), budget(name="other")) == expected


def test_a_pod_of_no_budget_may_go() -> None:
    assert evict("a-0") == Allowed("pod-not-in-scope")
    assert evict("a-0", None, budget(labels={"rollout-group": "other"})) == Allowed("pod-not-in-scope")


def test_a_budget_without_labels_is_about_every_pod() -> None:
    assert evict("a-0", None, budget(labels={}, max_unavailable=0)) != Allowed("pod-not-in-scope")


def test_a_pod_that_nobody_controls_may_not_go() -> None:
    expected = Denied(500, "unable to find a StatefulSet pod owner", "sts-no-found")
    assert evict("a-0", None, budget(), pod=pod("a-0", owner_references=())) == expected


def test_a_pod_of_something_else_may_not_go() -> None:
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-1", uid="u", controller=True)
    text = "pod owner is not a StatefulSet - ingester-zone-a-0 has owner web-1 (ReplicaSet)"
    found = evict("a-0", None, budget(), pod=pod("a-0", owner_references=(owner,)))
    assert found == Denied(500, text, "sts-no-found")


def test_a_pod_whose_owner_is_missing_may_not_go() -> None:
    expected = Denied(500, "unable to find StatefulSet ingester-zone-a by name", "sts-no-found")
    assert evict("a-0", None, budget(), owner=None) == expected


def test_why_its_owner_cannot_be_read_is_said() -> None:
    text = "unable to find StatefulSet ingester-zone-a by name: no answer"
    assert owner_missing("ingester-zone-a", "no answer") == Denied(500, text, "sts-no-found")


NOTHING_MAY_GO = Denied(403, "max unavailable = 0", "max-unavailable-0")


def test_with_a_maximum_of_0_no_pod_may_go() -> None:
    assert evict("a-0", None, budget(max_unavailable=0)) == NOTHING_MAY_GO
    empty = healthy(a=zone("a", status=0))
    assert evict("a-0", empty, budget(max_unavailable=0, percentage=50)) == NOTHING_MAY_GO


def test_a_rollout_goes_on_with_a_maximum_of_0() -> None:
    assert evict("a-0", None, budget(max_unavailable=0), override=1) == ALLOWED


def test_the_override_of_a_rollout_counts_only_for_a_maximum_of_0() -> None:
    one_away = healthy(a=zone("a", phases={2: "Failed"}))
    assert evict("a-0", one_away, budget(), override=5) == denied("1 pod not ready in ingester-zone-a")
    assert evict("a-0", one_away, budget(max_unavailable=0), override=2) == ALLOWED
    assert evict("a-0", None, budget(max_unavailable=0), override=0) == NOTHING_MAY_GO


def test_what_a_rollout_takes_instead_of_0() -> None:
    assert rollout_override(budget(), 7) == 7
    assert rollout_override(budget(partitions=PARTITIONS), 7) == 1


TOO_FEW = Denied(400, "minimum number of StatefulSets not found", "min-sts-not-found")


def test_one_zone_is_too_few() -> None:
    assert evict("a-0", (zone("a"),), budget()) == TOO_FEW
    assert evict("a-0", (zone("a"),), budget(partitions=PARTITIONS)) == TOO_FEW


def test_a_stateful_set_that_the_budget_does_not_select_is_no_zone() -> None:
    assert evict("a-0", (zone("a"), zone("b", labels={})), budget()) == TOO_FEW


# Zones


@pytest.mark.parametrize("most", [1, 2])
def test_a_pod_may_go_if_all_are_ready(most: int) -> None:
    assert evict("a-0", None, budget(max_unavailable=most)) == ALLOWED


ZONES: list[tuple[str, str, dict[str, SelectedZone], int, Decision]] = [
    ("own zone full", "a-0", {"a": zone("a", phases={2: "Failed"})}, 1, denied("1 pod not ready in ingester-zone-a")),
    ("own zone has room", "a-0", {"a": zone("a", phases={2: "Failed"})}, 2, ALLOWED),
    ("other zone", "a-0", {"c": zone("c", phases={2: "Failed"})}, 1, denied("1 pod not ready in ingester-zone-c")),
    (
        "other zone, room",
        "a-0",
        {"c": zone("c", phases={2: "Failed"})},
        2,
        denied("1 pod not ready in ingester-zone-c"),
    ),
    ("status has one more", "a-0", {"b": zone("b", status=4)}, 1, denied("1 pod unknown in ingester-zone-b")),
    ("spec has two more", "a-0", {"b": zone("b", spec=5, pods=3)}, 9, denied("2 pods unknown in ingester-zone-b")),
    (
        "not ready and unknown",
        "a-0",
        {"b": zone("b", spec=4, pods=3, phases={0: "Pending", 1: "Failed"})},
        9,
        denied("2 pods not ready, 1 pod unknown in ingester-zone-b"),
    ),
    ("own missing", "a-0", {"a": zone("a", spec=4, pods=3)}, 1, denied("1 pod unknown in ingester-zone-a")),
    ("own missing, room", "a-0", {"a": zone("a", spec=4, pods=3)}, 2, ALLOWED),
    (
        "another zone before its own",
        "a-0",
        {"a": zone("a", phases={1: "Failed"}), "b": zone("b", phases={1: "Failed"})},
        1,
        denied("1 pod not ready in ingester-zone-b"),
    ),
    (
        "the first of several",
        "b-0",
        {"a": zone("a", phases={1: "Failed"}), "c": zone("c", phases={1: "Failed"})},
        1,
        denied("1 pod not ready in ingester-zone-a"),
    ),
]


@pytest.mark.parametrize(("case", "name", "others", "most", "expected"), ZONES, ids=[row[0] for row in ZONES])
def test_in_zones(case: str, name: str, others: dict[str, SelectedZone], most: int, expected: Decision) -> None:
    assert evict(name, healthy(**others), budget(max_unavailable=most)) == expected


def test_the_pod_itself_does_not_count() -> None:
    unready = replace(pod("a-0"), status=replace(pod("a-0").status, container_statuses=()))
    assert evict("a-0", None, budget(), pod=unready) == ALLOWED


def test_a_pod_that_was_allowed_to_go_a_moment_ago_counts_as_away() -> None:
    assert evict("a-1", None, budget(), recent={"uid-a-0"}) == denied("1 pod not ready in ingester-zone-a")
    assert evict("b-0", None, budget(), recent={"uid-a-0"}) == denied("1 pod not ready in ingester-zone-a")
    assert evict("a-1", None, budget(max_unavailable=2), recent={"uid-a-0"}) == ALLOWED


def test_asking_again_for_the_same_pod_is_allowed() -> None:
    assert evict("a-0", None, budget(), recent={"uid-a-0"}) == ALLOWED


def test_a_budget_that_selects_the_pod_and_not_its_stateful_set_cannot_count() -> None:
    text = "unable to determine pod status in related StatefulSet"
    found = evict("a-0", healthy(a=zone("a", labels={})), budget())
    assert found == Denied(500, text, "err: sts-pod-status-not-determined")


def test_without_partitions_the_delay_does_not_matter() -> None:
    assert evict("a-0", None, budget()) == ALLOWED


# Partitions

PARTITION_ROWS: list[tuple[str, str, dict[str, SelectedZone], int, Decision]] = [
    ("another of its zone", "a-0", {"a": zone("a", phases={1: "Failed"})}, 1, ALLOWED),
    ("missing ones of its zone", "a-0", {"a": zone("a", spec=4, pods=3)}, 1, ALLOWED),
    ("another partition", "a-0", {"c": zone("c", phases={2: "Failed"})}, 1, ALLOWED),
    ("its partition", "a-0", {"b": zone("b", phases={0: "Failed"})}, 1, denied("1 pod not ready in partition 0")),
    ("its partition, room", "a-0", {"b": zone("b", phases={0: "Failed"})}, 2, ALLOWED),
    ("a pod is missing", "a-0", {"b": zone("b", spec=4, pods=3)}, 1, denied("1 pod unknown in partition 0")),
    (
        "a zone is being scaled down",
        "b-2",
        {"a": zone("a", spec=2), "b": zone("b", spec=2, status=3, pods=3)},
        1,
        denied("1 pod unknown in partition 2"),
    ),
    (
        "scaled away and failed",
        "c-2",
        {"a": zone("a", spec=1), "b": zone("b", phases={2: "Failed"})},
        2,
        denied("1 pod not ready, 1 pod unknown in partition 2"),
    ),
    (
        "two of its partition",
        "a-0",
        {"b": zone("b", phases={0: "Failed"}), "c": zone("c", phases={0: "Failed"})},
        2,
        denied("2 pods not ready in partition 0"),
    ),
]


@pytest.mark.parametrize(
    ("case", "name", "others", "most", "expected"), PARTITION_ROWS, ids=[row[0] for row in PARTITION_ROWS]
)
def test_in_partitions(case: str, name: str, others: dict[str, SelectedZone], most: int, expected: Decision) -> None:
    assert evict(name, healthy(**others), budget(max_unavailable=most, partitions=PARTITIONS)) == expected


def test_a_name_without_a_partition_may_not_go() -> None:
    odd = replace(pod("a-0"), metadata=replace(pod("a-0").metadata, name="ingester-0"))
    text = "failed to extract partition from pod Name regular expression"
    found = evict("a-0", None, budget(partitions=PARTITIONS), pod=odd)
    assert found == Denied(400, text, "partition-not-identified")


def test_a_recent_eviction_counts_in_its_partition_alone() -> None:
    by_partition = budget(partitions=PARTITIONS)
    assert evict("a-0", None, by_partition, recent={"uid-b-0"}) == denied("1 pod not ready in partition 0")
    assert evict("a-1", None, by_partition, recent={"uid-b-0"}) == ALLOWED


@pytest.mark.parametrize(
    ("ready_for", "expected"),
    [
        (11 * MINUTES, ALLOWED),
        (10 * MINUTES, denied("2 pods not ready in partition 0")),
        (MINUTES, denied("2 pods not ready in partition 0")),
        (-MINUTES, denied("2 pods not ready in partition 0")),
        (None, denied("2 pods not ready in partition 0")),
        ("", denied("2 pods not ready in partition 0")),
        ("yesterday", denied("2 pods not ready in partition 0")),
        ("2029-01-01T00:00:00", denied("2 pods not ready in partition 0")),
        ("2029-01-01T00:00:00Z", ALLOWED),
        ("9999-12-31T23:59:59Z", denied("2 pods not ready in partition 0")),
    ],
)
def test_with_a_delay_others_of_its_partition_must_be_ready_for_longer(
    ready_for: timedelta | str | None, expected: Decision
) -> None:
    slow = budget(partitions=PARTITIONS, delay=10 * MINUTES)
    zones = healthy(b=zone("b", ready_for=ready_for), c=zone("c", ready_for=ready_for))
    assert evict("a-0", zones, slow) == expected


@pytest.mark.parametrize(
    ("condition_for", "ready_for", "expected"),
    [
        pytest.param(11 * MINUTES, None, ALLOWED, id="the condition alone"),
        pytest.param(10 * MINUTES, None, denied("2 pods not ready in partition 0"), id="not long enough"),
        pytest.param(11 * MINUTES, MINUTES, ALLOWED, id="the annotation is later"),
        pytest.param(MINUTES, 11 * MINUTES, denied("2 pods not ready in partition 0"), id="the condition is later"),
    ],
)
def test_the_condition_ready_says_since_when_before_the_annotation_does(
    condition_for: timedelta, ready_for: timedelta | None, expected: Decision
) -> None:
    slow = budget(partitions=PARTITIONS, delay=10 * MINUTES)
    there = {letter: zone(letter, condition_for=condition_for, ready_for=ready_for) for letter in "bc"}
    assert evict("a-0", healthy(**there), slow) == expected


# Whose a pod is


def test_pods_belong_to_the_stateful_set_that_controls_them() -> None:
    ours, theirs = pod("a-0"), pod("b-0", labels={"name": "ingester-zone-a"})
    assert pods_of(stateful_set("a"), [ours, theirs]) == (ours,)


def test_without_an_owner_the_label_name_says_whose_a_pod_is() -> None:
    ours, other = pod("a-0", owner_references=()), pod("a-1", owner_references=(), labels={"name": "x"})
    assert pods_of(stateful_set("a"), [ours, other]) == (ours,)


def test_a_pod_of_another_with_the_same_label_is_not_mixed_in() -> None:
    theirs = pod("b-0", labels={"name": "ingester-zone-a"})
    assert pods_of(stateful_set("a"), [theirs]) == ()


def test_without_the_label_in_its_template_a_stateful_set_has_the_pods_it_controls() -> None:
    plain = replace(stateful_set("a"), spec=replace(stateful_set("a").spec, template={"metadata": None}))
    ours = pod("a-0", labels=LABELS)
    assert pods_of(plain, [ours, pod("b-0")]) == (ours,)
    assert pods_of(plain, [pod("b-0", owner_references=())]) == ()


# What always holds

pods_up = st.tuples(*[st.tuples(*[st.booleans()] * 3)] * 3)


def zones_with(up: tuple[tuple[bool, ...], ...]) -> tuple[SelectedZone, ...]:
    phases = [{number: "Unknown" for number in range(3) if not row[number]} for row in up]
    return tuple(zone(letter, phases=lacking) for letter, lacking in zip(LETTERS, phases, strict=True))


names = st.builds("{}-{}".format, st.sampled_from(LETTERS), st.integers(0, 2))


@given(pods_up, names, st.integers(1, 4))
def test_no_pod_goes_while_another_zone_is_disrupted(up: tuple[tuple[bool, ...], ...], name: str, most: int) -> None:
    letter = name[0]
    disrupted = any(not all(row) for other, row in zip(LETTERS, up, strict=True) if other != letter)
    away = sum(not ready for index, ready in enumerate(up[LETTERS.index(letter)]) if index != int(name[2]))
    found = evict(name, zones_with(up), budget(max_unavailable=most))
    assert (found == ALLOWED) == (not disrupted and away < most)


@given(pods_up, names, st.integers(1, 3))
def test_of_each_partition_fewer_than_the_maximum_are_away_elsewhere(
    up: tuple[tuple[bool, ...], ...], name: str, most: int
) -> None:
    others = [row for letter, row in zip(LETTERS, up, strict=True) if letter != name[0]]
    away = sum(not row[int(name[2])] for row in others)
    found = evict(name, zones_with(up), budget(max_unavailable=most, partitions=PARTITIONS))
    assert (found == ALLOWED) == (away < most)


@given(pods_up, st.integers(0, 2), st.integers(0, 2), names, st.integers(1, 3), st.booleans())
def test_a_pod_that_may_go_still_may_if_one_more_is_ready(
    up: tuple[tuple[bool, ...], ...], row: int, number: int, name: str, most: int, by_partition: bool
) -> None:
    mended = tuple(
        tuple(True if (row, number) == (index, column) else ready for column, ready in enumerate(ready_pods))
        for index, ready_pods in enumerate(up)
    )
    asked = budget(max_unavailable=most, partitions=PARTITIONS if by_partition else None)
    if evict(name, zones_with(up), asked) == ALLOWED:
        assert evict(name, zones_with(mended), asked) == ALLOWED


@given(pods_up, names, names, st.integers(1, 3), st.booleans())
def test_a_recent_eviction_never_opens_the_way_for_another(
    up: tuple[tuple[bool, ...], ...], gone: str, name: str, most: int, by_partition: bool
) -> None:
    asked = budget(max_unavailable=most, partitions=PARTITIONS if by_partition else None)
    if evict(name, zones_with(up), asked, recent={f"uid-{gone}"}) == ALLOWED:
        assert evict(name, zones_with(up), asked) == ALLOWED

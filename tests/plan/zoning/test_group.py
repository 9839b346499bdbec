"""Which pods of a rollout group are deleted, and what the rest waits for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.condition import TRUE
from kedge.api.pods import Pod, PodCondition
from kedge.api.zones import PAUSED
from kedge.plan.moving.unit import Proof
from kedge.plan.zoning.group import GroupPlan, ZoneCode, plan, without_denied
from kedge.plan.zoning.wait_text import Sentences
from kedge.plan.zoning.zone import PARALLEL, Zone, max_unavailable
from plan.zoning.making import NEW, NOW, OLD, full, pod, zone

ANY = st.text("onTtxXuUsSfp-", max_size=5)


def deleted(found: GroupPlan) -> str:
    return " ".join(name.removeprefix("ingester-zone-") for name in found.delete)


def promoted(found: GroupPlan) -> str:
    return " ".join(name.removeprefix("ingester-zone-") for name in found.promote)


# The tables of the reference


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        ([zone("a", "ooo", strategy="RollingUpdate"), zone("b", "ooo")], ""),
        ([zone("a", "ooo", ready=2), zone("b", "ooo", ready=1)], ""),
        ([zone("a", "too"), zone("b", "oot")], ""),
        ([zone("a", "ooo", ready=2), zone("b", "oot")], ""),
        ([zone("a", "nnn"), zone("b", "nnn")], ""),
        ([zone("a", "nnn"), zone("b", "ooo")], "b-0 b-1"),
        ([zone("a", "ooo"), zone("b", "ooo")], "a-0 a-1"),
        ([zone("a", "ooo", limit="xxx")], "a-0"),
        ([zone("a", "ooo"), zone("b", "ooo", ready=2)], "b-0"),
        ([zone("a", "ooo"), zone("b", "ooo", ready=1)], ""),
        ([zone("a", "too")], "a-1"),
        ([zone("a", "nnn", ready=2), zone("b", "ooo")], ""),
        ([zone("a", "nnT"), zone("b", "ooo")], ""),
        ([zone("a", "---", current=OLD), zone("b", "ooo")], ""),
        ([zone("a", "ooo", annotations={PAUSED: "true"})], ""),
        ([zone("a", "ooo", annotations={PAUSED: "true"}), zone("b", "ooo")], "b-0 b-1"),
        ([zone("a", "ooo", annotations={PAUSED: "false"}), zone("b", "ooo")], "a-0 a-1"),
    ],
)
def test_the_pods_to_delete(zones: list[Zone], expected: str) -> None:
    assert deleted(plan(zones)) == expected


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        ([zone("a", "nnn", current=OLD)], "a"),
        ([zone("a", "nnn", current=NEW)], ""),
        ([zone("a", "nnn", current=OLD, ready=1)], ""),
        ([zone("a", "nn-", current=OLD)], ""),
        ([zone("a", "nnn", current="")], ""),
        ([zone("a", "nnn", current=OLD, observed=0)], ""),
        ([zone("a", "nnn", current=OLD), zone("b", "ooo")], "a"),
    ],
)
def test_the_zones_whose_current_revision_is_set(zones: list[Zone], expected: str) -> None:
    assert promoted(plan(zones)) == expected


# What the peer gets wrong


def test_pods_are_counted_even_if_the_status_calls_all_of_them_ready() -> None:
    assert deleted(plan([zone("a", "TTooo", status=5, ready=5)])) == ""
    assert deleted(plan([zone("a", "Tnooo", status=5, ready=5)])) == "a-2"


def test_pods_that_were_never_created_count_as_unavailable() -> None:
    assert deleted(plan([zone("a", "oo--", replicas=4, status=2, ready=2)])) == ""
    assert deleted(plan([zone("a", "ooo-", replicas=4, status=3, ready=3)])) == "a-0"
    assert deleted(plan([zone("a", "ooo-", replicas=4, status=3, ready=3), zone("b", "ooo")])) == "a-0"


def test_a_paused_zone_that_is_not_ready_holds_up_the_others() -> None:
    zones = [zone("a", "uoo", annotations={PAUSED: "true"}), zone("b", "ooo")]
    assert deleted(plan(zones)) == ""


def test_a_zone_whose_status_is_older_than_its_spec_is_not_touched() -> None:
    found = plan([zone("a", "ooo", generation=2, observed=1)])
    assert deleted(found) == ""
    assert found.waits[full("a")].code == ZoneCode.not_observed


def test_pods_that_a_scale_down_removes_are_not_updated_first() -> None:
    assert deleted(plan([zone("a", "nnooo", replicas=3, status=5)])) == "a-2"


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param([zone("a", "ooxox", replicas=0, status=5)], "a-2 a-4", id="broken pods hold it up"),
        pytest.param([zone("a", "ooxox", replicas=0, status=5, limit="1")], "a-2", id="one after another"),
        pytest.param([zone("a", "ooXoX", replicas=0, status=5)], "", id="of the new revision nothing else is known"),
        pytest.param([zone("a", "nnouo", replicas=2, status=5)], "a-3", id="so does a pod that is not ready"),
        pytest.param([zone("a", "xoxox", replicas=1, status=5, limit="1")], "a-0", id="pods that stay come first"),
        pytest.param([zone("a", "noxox", replicas=1, status=5, limit="1")], "a-2 a-4", id="then all others"),
        pytest.param([zone("a", "oxox", replicas=0, status=4), zone("b", "ooxo")], "a-1 a-3", id="a zone at a time"),
    ],
)
def test_broken_pods_that_hold_up_a_scale_down_in_order_are_deleted(zones: list[Zone], expected: str) -> None:
    assert deleted(plan(zones)) == expected


def test_a_scale_down_of_all_pods_at_once_waits_for_none() -> None:
    one = zone("a", "ooxox", replicas=0, status=5)
    spec = replace(one.stateful_set.spec, pod_management_policy=PARALLEL)
    assert deleted(plan([replace(one, stateful_set=replace(one.stateful_set, spec=spec))])) == ""


def test_a_broken_pod_whose_name_has_no_number_is_left_alone() -> None:
    one = zone("a", "xnn")
    stranger = replace(one.pods[0], metadata=replace(one.pods[0].metadata, name=f"{full('a')}-x"))
    assert deleted(plan([replace(one, pods=(stranger, *one.pods[1:]))])) == ""


def test_a_pod_that_comes_back_counts_as_one_that_has_not_proven_the_new_revision() -> None:
    assert deleted(plan([zone("a", "txo", limit="1")])) == ""
    assert deleted(plan([zone("a", "-xo", limit="1")])) == ""
    assert deleted(plan([zone("a", "x-o", limit="1")])) == "a-0"


def test_a_pod_that_an_earlier_request_may_still_delete_comes_first_and_counts_as_unavailable() -> None:
    one = zone("a", "ooo", limit="1")
    doubtful = replace(one, in_doubt=frozenset({one.pods[1].metadata.uid}))
    assert deleted(plan([doubtful])) == "a-1"
    assert deleted(plan([replace(doubtful, pods=tuple(reversed(doubtful.pods)))])) == "a-1"
    assert deleted(plan([doubtful, zone("b", "ooo")])) == "a-1"
    assert deleted(plan([doubtful, zone("b", "xoo")])) == ""
    done = zone("b", "nnn")
    assert deleted(plan([one, replace(done, in_doubt=frozenset({done.pods[0].metadata.uid}))])) == ""


def test_a_pod_that_an_earlier_request_may_still_delete_comes_before_one_that_does_not_work() -> None:
    one = zone("a", "xoo", limit="3")
    assert deleted(plan([replace(one, in_doubt=frozenset({one.pods[1].metadata.uid}))])) == "a-1 a-0 a-2"


@pytest.mark.parametrize(
    ("pods", "number", "limit", "expected"),
    [
        ("xx", 0, "1", "a-0"),
        ("xx", 1, "1", "a-1"),
        ("xx", 0, "2", "a-0 a-1"),
        ("xo", 1, "1", ""),
        ("xo", 1, "2", "a-1 a-0"),
        ("xon", 1, "1", "a-0"),
    ],
)
def test_a_pod_that_an_earlier_request_may_still_delete_may_get_a_revision_that_none_has_proven(
    pods: str, number: int, limit: str, expected: str
) -> None:
    one = zone("a", pods, limit=limit)
    assert deleted(plan([replace(one, in_doubt=frozenset({one.pods[number].metadata.uid}))])) == expected


def test_no_other_zone_is_mended_while_an_earlier_request_may_still_delete_a_pod() -> None:
    one = zone("b", "oxo", limit="1")
    doubtful = replace(one, in_doubt=frozenset({one.pods[1].metadata.uid}))
    assert deleted(plan([zone("a", "xoo", limit="1"), doubtful])) == "b-1"
    assert deleted(plan([zone("a", "uxo", limit="1"), doubtful])) == ""


def test_a_zone_that_is_being_deleted_is_not_touched() -> None:
    one = zone("a", "ooo")
    leaving = replace(one.stateful_set, metadata=replace(one.stateful_set.metadata, deletion_timestamp=NOW))
    found = plan([Zone(leaving, one.pods)])
    assert deleted(found) == ""
    assert found.waits[full("a")].code == ZoneCode.leaving


def test_waits_have_numbers() -> None:
    found = plan([zone("a", "noo", annotations={PAUSED: "true"}), zone("b", "nUX")])
    assert found.waits[full("a")].numbers == {"outdated": 2}
    assert found.waits[full("b")].numbers == {"notReady": 2}


def test_pods_are_deleted_in_natural_order() -> None:
    assert deleted(plan([zone("a", "n" * 2 + "o" * 10, limit="4")])) == "a-2 a-3 a-4 a-5"
    assert deleted(plan([zone("a", "n" * 9 + "oooo", limit="3")])) == "a-9 a-10 a-11"


# Pods that cannot become ready


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param([zone("a", "xoo", limit="1")], "a-0", id="a crash loop needs no budget"),
        pytest.param([zone("a", "oxo", limit="1")], "a-1", id="and comes first"),
        pytest.param([zone("a", "oxo", limit="2")], "a-1 a-0", id="and takes none from the others"),
        pytest.param([zone("a", "ppo", limit="1")], "a-0", id="nor does a pod that no node takes"),
        pytest.param([zone("a", "fff", limit="1")], "a-0", id="one pod at a time gets what none has proven"),
        pytest.param([zone("a", "nff", limit="1")], "a-1 a-2", id="once it is proven all get it"),
        pytest.param([zone("a", "Xff", limit="1")], "", id="a new revision that fails stops"),
        pytest.param([zone("a", "Xoo", limit="1")], "", id="and takes nothing more down"),
        pytest.param([zone("a", "Xox", limit="1")], "", id="and does not creep to pods that break by themselves"),
        pytest.param([zone("a", "uoo", limit="1")], "a-0", id="a pod that is not ready costs nothing more"),
        pytest.param([zone("a", "uuo", limit="1")], "", id="but keeps to the budget"),
        pytest.param([zone("a", "xoo"), zone("b", "uoo")], "", id="another zone that is not ready is waited for"),
        pytest.param([zone("a", "xoo"), zone("b", "oxo")], "a-0", id="but not if only the rollout can mend it"),
        pytest.param(
            [zone("a", "xoo"), zone("b", "xuo")], "b-0", id="the zone that waits for nothing else is waited for by none"
        ),
        pytest.param([zone("a", "xoo"), zone("b", "ooo"), zone("c", "xoo")], "a-0", id="a third one may be ready"),
        pytest.param([zone("a", "xuo"), zone("b", "oxo")], "a-0", id="whatever else there is in its own zone"),
        pytest.param([zone("a", "oo-"), zone("b", "oxo")], "", id="nor if a pod is missing there"),
        pytest.param([zone("a", "x--"), zone("b", "x--")], "a-0", id="but what waits for a broken one is no reason"),
        pytest.param([zone("a", "Soo"), zone("b", "oxo")], "", id="one zone at a time"),
        pytest.param([zone("a", "nxo"), zone("b", "oxo")], "a-1", id="the first zone goes on"),
        pytest.param([zone("a", "nno"), zone("b", "oxo")], "b-1 b-0", id="then it is the next one's turn"),
        pytest.param([zone("a", "nnn"), zone("b", "nXn"), zone("c", "oxo")], "", id="a broken new pod is waited for"),
        pytest.param(
            [zone("a", "xoo", annotations={PAUSED: "true"}), zone("b", "oxo")], "b-1", id="a paused one is not touched"
        ),
    ],
)
def test_a_pod_that_cannot_become_ready_does_not_stop_its_own_fix(zones: list[Zone], expected: str) -> None:
    assert deleted(plan(zones)) == expected


# Pods that a disruption budget keeps


@pytest.mark.parametrize(
    ("zones", "kept", "expected"),
    [
        ([zone("a", "nnn"), zone("b", "ooo")], "b-1", "b-0"),
        ([zone("a", "nnn"), zone("b", "ooo")], "b-0", "b-1"),
        ([zone("a", "ooo"), zone("b", "ooo")], "a-0 a-1", ""),
        ([zone("a", "ooo"), zone("b", "ooo")], "a-0", "a-1"),
    ],
)
def test_a_pod_that_a_disruption_budget_keeps_is_not_deleted(zones: list[Zone], kept: str, expected: str) -> None:
    names = [f"ingester-zone-{name}" for name in kept.split()]
    found = without_denied(plan(zones), dict.fromkeys(names, "1 pod not ready in partition 0"))
    assert deleted(found) == expected
    assert list(found.denied) == names
    waits = found.waits.get(found.zone)
    assert (waits is not None) == (not expected)
    said = Sentences(zones).reason(found.pod_waits[names[0]])
    assert said == f"a ZoneAwarePodDisruptionBudget keeps {names[0]}: 1 pod not ready in partition 0"


def test_a_plan_that_no_budget_denies_stays_as_it_is() -> None:
    found = plan([zone("a", "ooo")])
    assert without_denied(found, {}) is found


# What is said


@pytest.mark.parametrize(
    ("zones", "name", "expected"),
    [
        (
            [zone("a", "ooo", strategy="RollingUpdate"), zone("b", "ooo")],
            "b",
            ("StatefulSet ingester-zone-a has RollingUpdate update strategy while OnDelete is expected, "
            "skipping reconcile"),
        ),
        (
            [zone("a", "Xnn"), zone("b", "ooo")],
            "b",
            "all pods of the other zones have to be ready, and ingester-zone-a-0 (CrashLoopBackOff) is not ready",
        ),
        ([zone("a", "Xnn")], "a", "all its pods are updated, and ingester-zone-a-0 (CrashLoopBackOff) is not ready"),
        (
            [zone("a", "nno"), zone("b", "ooo")],
            "b",
            "ingester-zone-a is rolled out first, with 2 of 3 pods updated",
        ),
        (
            [zone("a", "tSo", limit="1")],
            "a",
            (
                "at most 1 of 3 pods may be unavailable, and ingester-zone-a-0 (terminating) and "
                "ingester-zone-a-1 (Pending) are not ready"
            ),
        ),
        (
            [zone("a", "oo-", limit="1")],
            "a",
            "at most 1 of 3 pods may be unavailable, and ingester-zone-a-2 (missing) is not ready",
        ),
        (
            [zone("a", "ooo", ready=1)],
            "a",
            "at most 0 of 3 pods may be unavailable, and its status counts fewer ready",
        ),
        (
            [zone("a", "Xxo", limit="1")],
            "a",
            "no pod has become ready with the new revision yet: ingester-zone-a-0 (CrashLoopBackOff) is not ready",
        ),
        (
            [zone("a", "ooo", annotations={PAUSED: "true"})],
            "a",
            "it is paused; removing its annotation grafana.com/rollout-paused lets it go on",
        ),
        ([zone("a", "nn-"), zone("b", "ooo")], "b", ("all pods of the other zones have to be ready, and "
         "ingester-zone-a-2 (missing) is not ready")),
        ([zone("a", "oo--", limit="1")], "a", ("at most 1 of 4 pods may be unavailable, and "
         "ingester-zone-a-2 (missing) is not ready; 1 pod missing")),
        ([zone("a", "nnn", ready=2), zone("b", "ooo")], "b", ("all pods of the other zones have to be ready, and "
         "ingester-zone-a (by its status) is not ready")),
    ],
)  # fmt: skip
def test_a_zone_that_waits_says_what_for(zones: list[Zone], name: str, expected: str) -> None:
    wait = plan(zones).waits[full(name)]
    assert Sentences(zones).reason(wait) == expected


def says_ready(one: Pod, phase: str = "Running") -> Pod:
    """The pod, with a condition that calls it ready."""
    return replace(one, status=replace(one.status, phase=phase, conditions=(PodCondition(type="Ready", status=TRUE),)))


def test_a_pod_that_calls_itself_ready_and_is_to_go_is_being_deleted() -> None:
    one = zone("a", "nnn")
    doubtful = replace(one, pods=tuple(map(says_ready, one.pods)), in_doubt=frozenset({one.pods[0].metadata.uid}))
    zones = [doubtful, zone("b", "ooo")]
    said = Sentences(zones).reason(plan(zones).waits[full("b")])
    assert said == "all pods of the other zones have to be ready, and ingester-zone-a-0 (being deleted) is not ready"


@pytest.mark.parametrize(("phase", "expected"), [("Succeeded", "Succeeded"), ("", "unknown")])
def test_a_pod_that_calls_itself_ready_and_does_not_run_is_told_by_its_phase(phase: str, expected: str) -> None:
    assert Sentences([]).not_ready_because(says_ready(pod("a", 0), phase)) == f"is not ready ({expected})"


def test_only_three_pods_are_named() -> None:
    zones = [zone("a", "UUUUU")]
    wait = plan(zones).waits[full("a")]
    names = ", ".join(f"ingester-zone-a-{number} (NotReady)" for number in range(3))
    assert Sentences(zones).zone_waits(wait) == (
        f"ingester-zone-a waits: all its pods are updated, and {names} and 2 more are not ready"
    )


# The limit


@pytest.mark.parametrize(
    ("raw", "replicas", "pods", "is_good"),
    [
        (None, 3, 1, True),
        ("2", 3, 2, True),
        (" 2 ", None, 2, True),
        ("xxx", 3, 1, False),
        ("0", 3, 1, False),
        ("-1", 3, 1, False),
        ("", 3, 1, False),
        ("30%", 10, 3, True),
        ("+2", 10, 2, True),
        ("+30%", 10, 3, True),
        ("++2", 10, 1, False),
        ("-2", 10, 1, False),
        ("25%", 10, 2, True),
        ("50%", 3, 1, True),
        ("1%", 3, 1, True),
        ("100%", 3, 3, True),
        ("30%", None, 1, True),
        ("99%", 100, 99, True),
        ("101%", 3, 1, False),
        ("300%", 3, 1, False),
        ("0%", 3, 1, False),
        ("x%", 3, 1, False),
        ("%", 3, 1, False),
        ("1.5", 3, 1, False),
        ("9" * 9, 3, 999_999_999, True),
        ("9" * 10, 3, 1, False),
        ("9" * 100, 3, 1, False),
        ("٣", 3, 1, False),
    ],
)
def test_how_many_pods_may_be_unavailable(raw: str | None, replicas: int | None, pods: int, is_good: bool) -> None:
    found = max_unavailable(raw, replicas)
    assert found.pods == pods
    assert (found.problem == "") is is_good


# Promises


@given(st.lists(ANY, min_size=1, max_size=4), st.integers(1, 3))
def test_pods_of_one_zone_only_and_only_while_the_others_are_ready(letters: list[str], limit: int) -> None:
    zones = [zone(name, pods, limit=str(limit)) for name, pods in zip("abcd", letters, strict=False)]
    found = plan(zones)
    by_name = {one.name: one for one in zones}
    assert all(name.startswith(f"{found.zone}-") for name in found.delete)
    for name in found.delete:
        unit = next(unit for unit in by_name[found.zone].units if unit.key == name)
        assert unit.held != unit.wanted
        others = [one for other in zones if other.name != found.zone for one in other.not_ready]
        mends = unit.proof is Proof.failed and all(one.proof is Proof.failed and one.held == OLD for one in others)
        assert not others or mends


@given(ANY, st.integers(1, 3))
def test_never_more_pods_unavailable_than_allowed(pods: str, limit: int) -> None:
    one = zone("a", pods, limit=str(limit))
    found = plan([one])
    taken = [unit for unit in one.units if unit.key in found.delete and unit.is_proven]
    assert not taken or one.unavailable + len(taken) <= limit


@given(st.lists(ANY, min_size=1, max_size=4))
def test_every_zone_that_has_outdated_pods_moves_or_waits(letters: list[str]) -> None:
    zones = [zone(name, pods) for name, pods in zip("abcd", letters, strict=False)]
    found = plan(zones)
    sentences = Sentences(zones)
    for one in zones:
        if one.outdated and not (one.name == found.zone and found.delete):
            assert sentences.zone_waits(found.waits[one.name])


@given(st.lists(st.text("onxf", min_size=1, max_size=4), min_size=1, max_size=3), st.integers(1, 3))
def test_a_group_without_other_trouble_comes_to_its_end(letters: list[str], limit: int) -> None:
    """Every deleted pod comes back new and ready; then nothing is left to do after as many steps as there are pods."""
    pods = dict(zip("abc", letters, strict=False))
    for _ in range(sum(map(len, letters))):
        found = plan([zone(name, given, limit=str(limit)) for name, given in pods.items()])
        for name in found.delete:
            of, _, number = name.removeprefix("ingester-zone-").partition("-")
            pods[of] = pods[of][: int(number)] + "n" + pods[of][int(number) + 1 :]
    assert all(set(given) == {"n"} for given in pods.values())

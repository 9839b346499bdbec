"""What is said of clusters that do not move, and of what does not work on them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import TRUE, UNKNOWN
from kedge.api.dialect import Dialect
from kedge.api.fleet import PAUSED
from kedge.plan.moving.unit import Proof
from kedge.plan.moving.wait import Blocker, Code, Wait
from kedge.plan.rolling.readiness import FleetFacts, current, judge, one_binding_per_cluster
from kedge.plan.rolling.rollout_input import Wanted
from kedge.plan.rolling.wait_text import HoldCode, failure_of
from plan.rolling.making import (
    APPLIED,
    AVAILABLE,
    BAD,
    IN_PROGRESS,
    NEW,
    NOT_APPLIED,
    NOT_AVAILABLE,
    NOT_SENT,
    NOTHING,
    NOW,
    binding,
    pick_n,
    placement,
    planned,
    scheduled,
    unscheduled,
)

FLEET = FleetFacts(NOW, NOW - NOW, {}, frozenset(), frozenset())


def saying(message: str, *, name: str = "web", namespace: str | None = "test-ns") -> Any:
    """A binding whose only failed object says this."""
    found = binding("a", NOT_AVAILABLE, has=NEW)
    [failed] = found.status.failed_placements
    failed = replace(failed, name=name, namespace=namespace, condition=replace(failed.condition, message=message))
    return replace(found, status=replace(found.status, failed_placements=(failed,)))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (binding("a", NOT_AVAILABLE), BAD),
        (saying("it waits"), "Deployment test-ns/web: it waits"),
        (saying("it waits", namespace=None), "Deployment web: it waits"),
        (saying("web waits"), "web waits"),
        (saying(""), f"Deployment test-ns/web: {reasons.MANIFEST_NOT_AVAILABLE}"),
        (binding("a", NOT_APPLIED), reasons.WORK_NOT_APPLIED),
        (binding("a", NOT_SENT), reasons.SYNC_FAILED),
        (binding("a", IN_PROGRESS), "its status does not say why"),
        (binding("a", AVAILABLE), "its status does not say why"),
        (binding("a", NOT_APPLIED, spoken_at=2), "its status does not say why"),
        (binding("a", NOTHING), "its status does not say why"),
    ],
)
def test_what_does_not_work_is_the_first_object_that_failed_or_what_the_status_says(found: Any, told: str) -> None:
    assert failure_of(found) == told


@pytest.mark.parametrize("length", [399, 400, 401, 2000])
def test_a_cause_is_cut_where_it_gets_too_long(length: int) -> None:
    broken = saying("web" + "x" * (length - 3))
    others = [binding(name) for name in "bc"]
    found = planned(placement(pick_n(3), max_unavailable=1), broken, *others)
    told = " ".join(found.why.values())
    assert ("x" * min(length - 3, 396 if length > 400 else 397)) in told
    assert ("…" in told) is (length > 400)


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (NOTHING, False),
        (NOT_SENT, True),
        (APPLIED, True),
        ({reasons.WORK_SYNCHRONIZED: (UNKNOWN, "Reason")}, False),
        ({reasons.OVERRIDDEN: (TRUE, "Reason")}, False),
    ],
)
def test_resources_are_on_their_way_once_the_status_says_so_or_that_they_could_not_be(said: Any, sent: bool) -> None:
    assert judge(binding("a", said), FLEET).has_works is sent


def test_only_what_is_said_of_the_binding_as_it_is_counts_and_not_the_rollouts_own_word() -> None:
    own = {reasons.ROLLOUT_STARTED: (TRUE, "Reason")}
    assert [one.type for one in current(binding("a", {**own, **APPLIED}))] == list(APPLIED)
    assert current(binding("a", APPLIED, spoken_at=2)) == []


def test_of_two_bindings_of_one_age_the_first_by_name_speaks_for_its_cluster() -> None:
    pair = [judge(binding("a", suffix=suffix), FLEET) for suffix in ("1", "2")]
    ageless = [
        judge(replace(unit.binding, metadata=replace(unit.binding.metadata, creation_timestamp=None)), FLEET)
        for unit in pair
    ]
    for units in (pair, pair[::-1], ageless, ageless[::-1]):
        assert one_binding_per_cluster(units)["a"].name == "crp-a-1"
    assert one_binding_per_cluster([pair[1], ageless[0]])["a"].name == "crp-a-1"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("a", "a has to be sent the resources first"),
        ("ab", "a and b have to be sent the resources first"),
        ("abc", "a, b and c have to be sent the resources first"),
        ("abcd", "a, b, c and 1 more have to be sent the resources first"),
        ("abcde", "a, b, c and 2 more have to be sent the resources first"),
    ],
)
def test_clusters_that_are_waited_for_are_named(names: str, told: str) -> None:
    new = [binding(name, NOTHING, has=NEW) for name in names]
    found = planned(placement(pick_n(len(names)), max_surge=9), *new, unscheduled("z"))
    assert found.why["crp-z-1"] == f"z waits to be removed: {told}"


# As data


def test_a_wait_is_data_with_numbers_and_what_the_blockers_report() -> None:
    found = planned(
        placement(pick_n(3), max_unavailable=1), binding("a", NOT_AVAILABLE, has=NEW), binding("b"), binding("c")
    )
    numbers = {"desired": 3, "maxUnavailable": 1, "available": 2, "missing": 0}
    assert found.waits["crp-b-1"] == Wait("crp-b-1", Code.budget_spent, numbers, (Blocker("a", Proof.failed),))
    told = (Blocker("a", Proof.failed, reported=BAD),)
    assert found.detailed("crp-b-1") == Wait("b", Code.budget_spent, {**numbers, "blockers": 1}, told)
    assert found.detailed("crp-a-1") is None
    assert found.why["crp-b-1"] == f"b waits: {found.reason('crp-b-1')}"


def test_of_many_blockers_the_first_are_told_and_how_many_there_are() -> None:
    names = [f"c{number:02}" for number in range(12)]
    found = planned(
        placement(pick_n(13), max_unavailable=1), *(binding(name, IN_PROGRESS) for name in names), binding("z")
    )
    wait = found.detailed("crp-z-1")
    assert wait is not None
    assert [one.key for one in wait.blockers] == names[:10]
    assert wait.numbers["blockers"] == 12


@pytest.mark.parametrize(
    ("said", "blocker"),
    [
        ("not heard of since noon", Blocker("a", Proof.unknown, reported="not heard of since noon")),
        ("", Blocker("a", Proof.unknown)),
    ],
)
def test_what_is_known_of_a_cluster_that_is_not_heard_of_is_told(said: str, blocker: Blocker) -> None:
    bindings = [binding("a", has=NEW), binding("b"), binding("c")]
    found = planned(placement(pick_n(3), max_unavailable=1), *bindings, unreachable={"a": said})
    wait = found.detailed("crp-b-1")
    assert wait is not None
    assert wait.blockers == (blocker,)


def test_a_rollout_that_is_held_says_by_what() -> None:
    paused = planned(placement(pick_n(1), annotations={PAUSED: "true"}), binding("a"))
    assert paused.waits == {"crp-a-1": Wait("crp-a-1", HoldCode.paused, {}, (Blocker(PAUSED),))}
    strange = planned(placement(pick_n(1), max_unavailable="some"), binding("a"))
    [wait] = strange.waits.values()
    assert (wait.code, wait.blockers[0].key) == (HoldCode.bad_strategy, "spec.strategy")
    lost = planned(placement(pick_n(1)), binding("a"), wanted=Wanted(problem="there are none"))
    assert lost.waits["crp-a-1"].code == HoldCode.no_such_revision
    assert lost.why == {"crp-a-1": "a waits: there are none"}


def test_bindings_that_are_held_back_say_by_what() -> None:
    twice = [binding("a"), binding("a", suffix="2", age=1)]
    found = planned(placement(pick_n(1)), *twice)
    assert found.waits["crp-a-2"] == Wait("crp-a-2", HoldCode.other_binding, {}, (Blocker("crp-a-1"),))
    again = [unscheduled("a"), scheduled("a", suffix="2")]
    found = planned(placement(pick_n(1)), *again)
    assert found.waits["crp-a-2"] == Wait("crp-a-2", HoldCode.earlier_binding, {}, (Blocker("crp-a-1"),))
    found = planned(placement(pick_n(1)), binding("a"), parting={"a"})
    assert found.waits["crp-a-1"] == Wait("crp-a-1", HoldCode.leaving_fleet)
    found = planned(placement(pick_n(1), max_surge=1), scheduled("a"), unscheduled("b"))
    assert found.waits["crp-b-1"] == Wait("crp-b-1", HoldCode.unsent, {"unsent": 1}, (Blocker("a"),))


# In words


def budget_text(*bindings: Any, number: int, dialect: Dialect = Dialect.seed, **rolling: Any) -> str:
    """What the first binding waits for."""
    found = planned(placement(pick_n(number), **rolling), *bindings, dialect=dialect)
    return found.why[bindings[0].metadata.name]


@pytest.mark.parametrize(
    ("holders", "limit", "rest"),
    [
        ("a", "1 cluster", ""),
        ("abc", "3 clusters", ""),
        ("abcd", "4 clusters", "; 1 more have them, too"),
        ("abcde", "5 clusters", "; 2 more have them, too"),
    ],
)
def test_who_holds_what_works_nowhere_yet_is_told(holders: str, limit: str, rest: str) -> None:
    given = [binding(name, IN_PROGRESS, has=NEW) for name in holders]
    told = "; ".join(f"{name} is being given its resources" for name in holders[:3])
    text = budget_text(binding("z", NOT_AVAILABLE), *given, number=9, max_unavailable=len(holders))
    assert text == f"z waits: {NEW} works nowhere yet, at most {limit} may have it until then, and {told}{rest}"


@pytest.mark.parametrize(("names", "clusters"), [("a", "1 cluster"), ("ab", "2 clusters"), ("abc", "3 clusters")])
def test_of_how_many_clusters_none_may_be_unavailable_is_told(names: str, clusters: str) -> None:
    bindings = [binding(name, IN_PROGRESS) for name in names]
    told = "; ".join(f"{name} is being given its resources" for name in names)
    text = budget_text(*bindings, number=len(names), dialect=Dialect.kubefleet, max_unavailable=0)
    assert text == f"a waits: at most 0 of {clusters} may be unavailable, and {told}"


def test_clusters_that_are_removed_are_not_told_among_those_that_are_unavailable() -> None:
    bindings = [binding("b"), binding("a", NOT_AVAILABLE, has=NEW), unscheduled("z", IN_PROGRESS)]
    text = budget_text(*bindings, number=2, max_unavailable=1)
    assert text == f"b waits: at most 1 of 2 clusters may be unavailable, and a is not available: {BAD}"


def test_that_a_cluster_could_not_be_picked_is_told() -> None:
    bindings = [binding("b"), binding("a", NOT_AVAILABLE, has=NEW), binding("c")]
    missing = "(1 of the 4 wanted could not be picked, and count neither way)"
    assert missing in budget_text(*bindings, number=4, max_unavailable=1)


def test_nobody_has_to_be_removed_first_where_nobody_leaves() -> None:
    bindings = [scheduled("b"), binding("a", has=NEW)]
    text = budget_text(*bindings, number=1, dialect=Dialect.kubefleet, max_surge=0)
    assert text == "b waits: at most 1 clusters (1 wanted, 0 more) may hold resources, and 1 do"


def test_there_are_as_many_sentences_as_waits() -> None:
    found = planned(placement(pick_n(3), max_unavailable=1), *map(binding, "abc"))
    assert (len(found.why), sorted(found.why)) == (2, sorted(found.waits))


def test_what_is_wrong_with_a_strategy_is_data_too() -> None:
    found = planned(placement(pick_n(1), max_unavailable="some"), binding("a")).detailed("crp-a-1")
    assert found is not None
    assert found.blockers[0].reported.startswith("spec.strategy.rollingUpdate.maxUnavailable: 'some' is neither")

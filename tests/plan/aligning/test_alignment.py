"""Alignment, decision by decision: what is written first, who is charged, and what gives budget back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.alignment import align
from kedge.plan.aligning.ledger import NOTHING, Member, OwnStrategy, Report, Spec
from kedge.plan.moving.division import divide

STORY_1 = Aim(10, 2, 1)
STORY_2 = Aim(10, 2, 0, 4, is_partitioned=True)


def resting(name: str, replicas: int, template: str = "v1", *, wants: str = "v2", wanted: int | None = None) -> Member:
    """A cluster whose pods all have a template and are available."""
    report = Report(1, replicas, replicas, replicas, replicas)
    return Member(name, replicas if wanted is None else wanted, wants, (Spec(1, template, replicas, 1),), report)


def rolling(name: str, spec: Spec, *, updated: int, proven: int, pods: int | None = None, wants: str = "v2") -> Member:
    """A cluster that acts on a spec, and has got so far with it."""
    total = spec.replicas if pods is None else pods
    available = total - updated + proven
    return Member(name, spec.replicas, wants, (spec,), Report(spec.seq, total, updated, available, proven))


def given(spec: Spec) -> tuple[str, int, int, int, int]:
    return spec.template, spec.replicas, spec.unavailable, spec.surge, spec.partition


def test_the_first_story_begins_with_the_largest_cluster() -> None:
    found = align(STORY_1, [resting("cluster-1", 4), resting("cluster-2", 6)])
    assert {name: given(spec) for name, spec in found.specs.items()} == {"cluster-2": ("v2", 6, 2, 1, 0)}
    assert found.waiting["cluster-1"].code == AlignCode.budget_spent
    assert (found.held.fewest, found.held.most) == (8, 11)


def test_the_other_cluster_gets_what_the_first_has_proven_not_to_need() -> None:
    second = rolling("cluster-2", Spec(2, "v2", 6, 2, 1), updated=6, proven=5)
    found = align(STORY_1, [resting("cluster-1", 4), second])
    template, replicas, unavailable, surge, _ = given(found.specs["cluster-1"])
    assert (template, replicas, unavailable, surge) == ("v2", 4, 1, 1)


def test_the_second_story_begins_with_the_largest_cluster_and_ends_at_the_partition() -> None:
    found = align(STORY_2, [resting("cluster-1", 3), resting("cluster-2", 7)])
    assert {name: given(spec) for name, spec in found.specs.items()} == {"cluster-2": ("v2", 7, 2, 0, 5)}
    ended = [
        rolling("cluster-1", Spec(3, "v2", 3, 1, 0, 1), updated=2, proven=2),
        rolling("cluster-2", Spec(4, "v2", 7, 2, 0, 3), updated=4, proven=4),
    ]
    found = align(STORY_2, ended)
    assert found.specs == {}
    assert found.waiting == {}


def test_a_partition_that_is_lowered_to_nothing_lets_all_go() -> None:
    members = [
        rolling("cluster-1", Spec(3, "v2", 3, 1, 0, 1), updated=2, proven=2),
        rolling("cluster-2", Spec(4, "v2", 7, 2, 0, 3), updated=4, proven=4),
    ]
    found = align(Aim(10, 2, is_partitioned=True), members)
    assert (
        sum(spec.moved for spec in found.specs.values())
        + sum(one.updated for one in members if one.name not in found.specs)
        == 8
    )  # two more, as many as may be unavailable


@pytest.mark.parametrize(
    ("budget", "shares", "parts"),
    [
        (6, {"a": 10, "b": 5}, {"a": 4, "b": 2}),
        (5, {"a": 3, "b": 3, "c": 4}, {"a": 2, "b": 1, "c": 2}),
        *(
            (number, {"a": 3, "b": 7}, dict(zip("ab", parts, strict=True)))
            for number, parts in enumerate(
                [(0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (2, 4), (2, 5), (2, 6), (3, 6), (3, 7)], start=1
            )
        ),
    ],
)
def test_new_pods_are_divided_by_size(budget: int, shares: dict[str, int], parts: dict[str, int]) -> None:
    assert divide(budget, shares) == parts


def test_without_unavailability_the_largest_gets_the_surge() -> None:
    found = align(Aim(10, 0, 2), [resting("c1", 3), resting("c2", 3), resting("c3", 4)])
    assert {name: given(spec) for name, spec in found.specs.items()} == {"c3": ("v2", 4, 0, 2, 0)}


def test_a_cluster_that_is_not_heard_from_keeps_what_it_holds() -> None:
    lost = Member("a", 5, "v2", (Spec(1, "v1", 5, 1), Spec(2, "v2", 5, 1)), Report(1, 5, 5, 5), is_reachable=False)
    found = align(Aim(10, 2), [lost, resting("b", 5)])
    assert given(found.specs["b"]) == ("v2", 5, 1, 0, 0)
    assert found.waiting["a"].code == AlignCode.unreachable


def test_a_cluster_that_rolls_the_release_before_stays_charged() -> None:
    first = rolling("a", Spec(2, "v2", 5, 2), updated=2, proven=0, wants="v3")
    found = align(Aim(10, 2), [first, resting("b", 5, wants="v3")])
    assert "b" not in found.specs
    assert found.waiting["b"].code == AlignCode.budget_spent
    assert given(found.specs["a"])[:3] == ("v3", 5, 2)


def test_pods_that_do_not_work_are_replaced_first_and_cost_nothing() -> None:
    broken = Member("b", 5, "v2", (Spec(1, "v1", 5, 1),), Report(1, 5, 5, 2, 2))
    found = align(Aim(10, 2), [resting("a", 5), broken])
    assert given(found.specs["b"]) == ("v2", 5, 2, 0, 0)
    assert "a" not in found.specs


def test_a_report_of_an_older_write_gives_nothing_back() -> None:
    pending = Member("a", 5, "v2", (Spec(1, "v1", 5, 1), Spec(2, "v2", 5, 2)), Report(1, 5, 5, 5))
    for _ in range(2):
        found = align(Aim(10, 2), [pending, resting("b", 5)])
        assert found.specs == {}
        assert {name: wait.code for name, wait in found.waiting.items()} == {
            "a": AlignCode.unacknowledged,
            "b": AlignCode.budget_spent,
        }


def test_the_first_deployment_waits_for_nobody() -> None:
    new = [Member(f"c{number}", 3, "v1", (), NOTHING) for number in range(4)]
    found = align(Aim(12, 1), new)
    assert {spec.replicas for spec in found.specs.values()} == {3}
    assert len(found.specs) == 4
    assert all(spec.unavailable or spec.surge for spec in found.specs.values())


@pytest.mark.parametrize(
    ("aim", "strategy"),
    [
        (Aim(4, 2, 2), (0, 1)),
        (Aim(4, 2, 2, is_partitioned=True), (1, 0)),
        (Aim(4, 4, recreates=True), (4, 0)),
    ],
)
def test_a_cluster_that_has_nothing_to_replace_holds_nothing_of_the_budget(aim: Aim, strategy: tuple[int, int]) -> None:
    found = align(aim, [Member("a", 4, "v1")])
    assert given(found.specs["a"]) == ("v1", 4, *strategy, 0)
    assert (found.held.unavailable, found.held.surge) == (0, 0)


def test_a_paused_template_moves_nothing_but_replicas() -> None:
    members = [resting("a", 4, wanted=5), resting("b", 6)]
    found = align(Aim(11, 2, 1, is_paused=True), members)
    assert {name: given(spec)[:2] for name, spec in found.specs.items()} == {"a": ("v1", 5)}
    assert found.waiting["b"].code == AlignCode.paused


def test_replicas_are_taken_away_only_when_others_are_available() -> None:
    found = align(Aim(10, 0, 2), [resting("a", 6, "v2", wanted=2), resting("b", 4, "v2", wanted=8)])
    assert {name: spec.replicas for name, spec in found.specs.items()} == {"b": 6}
    assert found.waiting["a"].code == AlignCode.too_few


@pytest.mark.parametrize(
    ("own", "aim", "expected"),
    [
        (OwnStrategy(0, 1), STORY_1, ("v2", 5, 0, 1, 0)),
        (OwnStrategy(2, 1), STORY_1, ("v2", 5, 2, 1, 0)),
        (OwnStrategy(3), STORY_1, None),  # more than the whole workload may have
        (OwnStrategy(is_held=True), STORY_1, None),
        (OwnStrategy(1), Aim(10, 2, 1, is_paused=True), None),
        (OwnStrategy(1), Aim(10, 2, 0, 2, is_partitioned=True), ("v2", 5, 1, 0, 4)),
        (OwnStrategy(1, 0, 4), Aim(10, 2, 0, 4, is_partitioned=True), ("v2", 5, 1, 0, 4)),
    ],
)
def test_a_cluster_with_a_strategy_of_its_own_moves_by_that_alone(
    own: OwnStrategy, aim: Aim, expected: tuple[str, int, int, int, int] | None
) -> None:
    member = replace(resting("a", 5), own=own)
    found = align(aim, [member, resting("b", 5, wants="v1")])
    assert {name: given(spec) for name, spec in found.specs.items()} == ({"a": expected} if expected else {})
    assert expected or found.waiting["a"].code == (AlignCode.paused if aim.is_paused else AlignCode.overridden)


def test_what_a_cluster_with_a_strategy_of_its_own_holds_is_charged() -> None:
    own = rolling("a", Spec(2, "v2", 5, 2), updated=2, proven=0)
    found = align(Aim(10, 2), [replace(own, own=OwnStrategy(2)), resting("b", 5)])
    assert found.specs == {}
    assert {name: wait.code for name, wait in found.waiting.items()} == {
        "a": AlignCode.rolling,
        "b": AlignCode.budget_spent,
    }


def test_a_cluster_gets_a_strategy_of_its_own_also_without_a_release() -> None:
    at_rest = replace(resting("a", 5, "v2"), own=OwnStrategy(0, 1))
    (spec,) = align(STORY_1, [at_rest, resting("b", 5, "v2")]).specs.values()
    assert given(spec) == ("v2", 5, 0, 1, 0)
    told = replace(at_rest, specs=(replace(spec, seq=1),))
    assert align(STORY_1, [told, resting("b", 5, "v2")]).specs == {}
    by_partition = Aim(10, 2, 0, 5, is_partitioned=True)
    kept_back = replace(at_rest, own=OwnStrategy(1, 0, 2), specs=(Spec(1, "v2", 5, 1, 0, 0),))
    (spec,) = align(by_partition, [kept_back, resting("b", 5, "v2")]).specs.values()
    assert given(spec) == ("v2", 5, 1, 0, 2)
    kept_back = replace(kept_back, specs=(replace(spec, seq=1),))
    assert align(by_partition, [kept_back, resting("b", 5, "v2")]).specs == {}


@pytest.mark.parametrize(
    ("own", "aim"),
    [
        (OwnStrategy(1), STORY_1),
        (OwnStrategy(0, 1, is_held=True), STORY_1),
        (OwnStrategy(1), Aim(10, 2, is_partitioned=True)),
        (OwnStrategy(1, 0, 0), Aim(10, 2, is_partitioned=True)),
    ],
)
def test_a_cluster_that_has_a_strategy_of_its_own_and_the_release_waits_for_nothing(own: OwnStrategy, aim: Aim) -> None:
    found = align(aim, [replace(resting("a", 5, "v2"), own=own), resting("b", 5, "v2")])
    assert (found.specs, found.waiting) == ({}, {})


def test_a_cluster_that_is_scheduled_keeps_its_workload_without_replicas() -> None:
    found = align(Aim(4, 1), [Member("a", 0, "v1", stays=True), Member("b", 0, "v1"), Member("c", 4, "v1")])
    assert {name: spec.replicas for name, spec in found.specs.items()} == {"a": 0, "c": 4}
    empty = Member("a", 0, "v2", (Spec(1, "v1", 0, 1),), Report(1), stays=True)
    assert given(align(Aim(0, 1), [empty]).specs["a"]) == ("v2", 0, 0, 1, 0)


def test_a_fix_comes_before_fewer_replicas_if_those_would_take_pods_that_work() -> None:
    """Scaled down while it rolls, a Deployment takes pods away from all its ReplicaSets."""
    specs = (Spec(11, "bad", 4, 1, 1), Spec(12, "bad", 4, 1))
    stuck = Member("a", 3, "calm", specs, Report(12, 5, 2, 3), has_sets=True)
    other = Member("b", 1, "calm", (Spec(9, "v3", 1, 0, 1),), Report(9, 1, 1, 1), has_sets=True)
    found = align(Aim(4, 1), [stuck, other])
    assert {name: given(spec) for name, spec in found.specs.items()} == {"a": ("calm", 4, 1, 0, 0)}


@pytest.mark.parametrize(
    ("report", "asked"),
    [
        (Report(7, 2, 2, 2), {}),  # the third pod is yet to be created, and would be taken away as soon as it works
        (Report(7, 3, 3, 2), {}),
        (Report(7, 3, 3, 3), {"b": ("bad", 0, 2, 0, 0)}),  # enough work: the one that does not may go
    ],
)
def test_pods_that_are_yet_to_be_created_are_none_to_take_away_while_those_of_others_do_not_work(
    report: Report, asked: dict[str, tuple[str, int, int, int, int]]
) -> None:
    leaving = Member("b", 0, "calm", (Spec(6, "bad", 1, 2),), Report(6, 1, 1, 0), has_sets=True, is_starting=True)
    growing = Member("a", 4, "calm", (Spec(4, "v1", 2, 0, 1), Spec(7, "v1", 3, 0, 1)), report, has_sets=True)
    found = align(Aim(4, 1), [replace(growing, is_starting=report.available < 3), leaving])
    assert {name: given(spec) for name, spec in found.specs.items()} == asked


@pytest.mark.parametrize(
    ("specs", "report", "surge"),
    [
        ((Spec(6, "v2", 4, 1, 2), Spec(8, "v2", 4, 1, 1)), Report(8, 6, 3, 3), 2),
        ((Spec(8, "v2", 4, 1, 1),), Report(8, 5, 3, 3), None),  # it has as many as it may
        ((Spec(6, "v2", 4, 1, 2), Spec(8, "v2", 4, 1, 1)), Report(6, 6, 3, 3), None),  # not paused yet: see the binding
        ((Spec(6, "v2", 6, 1, 0), Spec(8, "v2", 4, 1, 1)), Report(8, 6, 3, 3), None),  # those are to go
    ],
)
def test_a_deployment_keeps_the_pods_it_has_when_it_is_paused(
    specs: tuple[Spec, ...], report: Report, surge: int | None
) -> None:
    member = Member("a", 4, "v2", specs, report, has_sets=True)
    found = align(Aim(8, 2, 1, is_paused=True), [member, resting("b", 4)]).specs
    assert {name: given(spec) for name, spec in found.items()} == ({"a": ("v2", 4, 1, surge, 0)} if surge else {})


def test_a_statefulset_with_a_pod_of_the_template_from_an_older_release_lets_no_other_through() -> None:
    """That pod is not the last one: a lower partition would replace another one."""
    specs = (Spec(17, "v2", 5, 1, 0, 4), Spec(18, "v2", 5, 1, 0, 3))
    strays = Member("b", 5, "v2", specs, Report(18, 5, 3, 5), is_ordered=True)
    other = Member("a", 1, "v2", (Spec(16, "v2", 1, 1),), Report(16, 1, 1, 1), is_ordered=True)
    found = align(Aim(6, 1, 0, 3, is_partitioned=True), [other, strays])
    assert (found.specs, found.waiting) == ({}, {})


def test_pods_that_are_being_created_are_nothing_of_a_partition() -> None:
    created = Member("a", 4, "v1", (Spec(1, "v1", 4, 0, 1),), Report(1, 2, 2, 0))
    assert align(Aim(4, 1), [created]).waiting["a"].code == AlignCode.creating


def test_a_kind_that_takes_all_its_pods_away_at_once_needs_the_budget_for_it() -> None:
    members = [resting("a", 2), resting("b", 3)]
    found = align(Aim(5, 2, recreates=True), members)
    assert {name: given(spec) for name, spec in found.specs.items()} == {"a": ("v2", 2, 2, 0, 0)}
    assert found.waiting["b"].code == AlignCode.recreates


def test_with_nothing_to_do_nothing_is_written() -> None:
    for aim in (STORY_1, STORY_2):
        found = align(aim, [resting("a", 4, "v2"), resting("b", 6, "v2")])
        assert (found.specs, found.waiting) == ({}, {})


# What seeds found


def test_without_a_partition_pods_of_a_cluster_that_leaves_do_not_count_against_those_that_come() -> None:
    leaving = Member("a", 0, "v2", (Spec(1, "v2", 1, 1),), Report(1, 1, 1, 1, 1))
    growing = rolling("b", Spec(2, "v2", 1, 0, 1), updated=1, proven=1)
    aim = Aim(2, 0, 2, is_partitioned=True)
    found = align(aim, [leaving, Member("b", 2, "v2", growing.specs, growing.report)])
    assert given(found.specs["b"])[:2] == ("v2", 2)


def test_a_cluster_that_is_to_leave_is_not_rolled_unless_it_has_begun() -> None:
    leaving = resting("a", 2, wanted=0)
    others = Member("b", 4, "v2", (Spec(2, "v2", 2, 1),), Report(2, 2, 2, 0, 0))
    found = align(Aim(4, 1, 1), [leaving, others])
    assert all(spec.template == "v1" for name, spec in found.specs.items() if name == "a")
    begun = Member("a", 0, "v3", (Spec(1, "bad", 2, 0, 1),), Report(1, 3, 1, 2, 0))
    found = align(Aim(4, 0, 1), [begun, Member("b", 4, "v3", (Spec(2, "v3", 2, 1),), Report(2, 2, 2, 2, 2))])
    assert given(found.specs["a"]) == ("v3", 2, 0, 1, 0)


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_a_budget_that_is_lowered_is_not_handed_on_with_the_next_release(is_partitioned: bool) -> None:
    member = rolling("a", Spec(2, "v2", 3, 0, 2), updated=1, proven=0, pods=4, wants="v3")
    found = align(Aim(3, 0, 1, is_partitioned=is_partitioned), [member])
    assert found.specs["a"].surge == 1


def test_a_cluster_whose_budget_was_taken_away_goes_on_with_one_pod() -> None:
    member = rolling("a", Spec(2, "bad", 1, 0, 1), updated=1, proven=0, pods=2, wants="v3")
    others = rolling("b", Spec(1, "v3", 3, 1), updated=3, proven=2)
    found = align(Aim(4, 1, 0, is_partitioned=True), [member, others])
    assert given(found.specs["a"]) == ("v3", 1, 0, 1, 0)


def test_broken_pods_of_a_cluster_that_leaves_make_room_for_those_that_wait() -> None:
    broken = Member("a", 0, "v2", (Spec(1, "bad", 1, 1),), Report(1, 1, 1, 0, 0))
    waiting = Member("b", 5, "v2", (Spec(2, "v2", 4, 1),), Report(2, 4, 4, 4, 4))
    found = align(Aim(5, 1), [broken, waiting])
    assert found.specs["a"].replicas == 0
    unheard = Member("b", 5, "v2", (Spec(2, "v2", 4, 1),), Report(2, 4, 4, 3, 3), is_reachable=False)
    assert "a" not in align(Aim(5, 1), [broken, unheard]).specs  # its pods may only be starting, and nobody waits


def test_broken_pods_of_a_cluster_that_leaves_go_if_enough_others_are_available() -> None:
    broken = Member("a", 0, "v2", (Spec(1, "bad", 1, 1),), Report(1, 1, 1, 0, 0))
    others = resting("b", 3, "v2")
    assert align(Aim(3, 0, 2), [broken, others]).specs["a"].replicas == 0


def test_a_cluster_that_was_never_asked_for_its_pods_gets_them_when_there_is_room() -> None:
    never = Member("a", 1, "v2", (Spec(4, "lost", 1, 0, 1),), superseded=1)
    full, others = resting("b", 4, "v2", wanted=3), resting("c", 3, "v2")
    found = align(Aim(7, 1), [never, full, others])
    assert "a" not in found.specs
    assert found.specs["b"].replicas == 3
    found = align(Aim(7, 1), [never, resting("b", 3, "v2"), others])
    assert given(found.specs["a"])[:2] == ("v2", 1)


def test_pods_of_a_template_that_was_taken_back_are_not_kept_back() -> None:
    """The cluster is back at the template before, and has one pod too many, of the one that was taken back."""
    spec = Spec(18, "v1", 3, 0, 1, 2)
    back = Member("a", 3, "v1", (Spec(17, "v2", 3, 0, 1, 2), spec), Report(18, 4, 3, 3, 3))
    found = align(Aim(3, 0, 1, is_partitioned=True), [back])
    assert given(found.specs["a"]) == ("v1", 3, 0, 1, 0)


@pytest.mark.parametrize(("is_partitioned", "partition"), [(True, 3), (False, 0)])
def test_a_broken_pod_is_replaced_by_one_more_if_others_would_have_to_make_up_for_it(
    is_partitioned: bool, partition: int
) -> None:
    """One pod of each cluster is broken, and one may be. With a maxUnavailable of its own the second would take a
    working one away as soon as the broken one is replaced."""
    first = Member("a", 2, "v2", (Spec(1, "v1", 2, 0, 1),), Report(1, 2, 2, 1, 1))
    second = Member("b", 4, "v2", (Spec(2, "v1", 4, 0, 1),), Report(2, 4, 4, 3, 3))
    found = align(Aim(6, 1, 1, is_partitioned=is_partitioned), [first, second])
    assert {name: given(spec) for name, spec in found.specs.items()} == {"b": ("v2", 4, 0, 1, partition)}


def test_if_nothing_else_helps_the_broken_pods_of_one_cluster_are_replaced_first() -> None:
    first = Member("a", 2, "v2", (Spec(1, "v1", 2, 1),), Report(1, 2, 2, 1, 1))
    second = Member("b", 4, "v2", (Spec(2, "v1", 4, 1),), Report(2, 4, 4, 3, 3))
    found = align(Aim(6, 1), [first, second])
    assert {name: given(spec) for name, spec in found.specs.items()} == {"b": ("v2", 4, 1, 0, 0)}


def test_a_cluster_that_leaves_is_emptied_by_what_can_be_written() -> None:
    specs = Spec(2, "v1", 1, 1), Spec(5, "lost", 1, 1), Spec(8, "lost", 0, 1)
    leaving = Member("a", 0, "v2", specs, Report(2, 1, 1, 1, 1), superseded=2)
    found = align(Aim(3, 1, is_partitioned=True), [leaving, resting("b", 3, "v2")])
    assert given(found.specs["a"])[:2] == ("v1", 0)


def test_a_cluster_is_told_what_it_has_to_end_a_grant_that_can_never_be_written() -> None:
    specs = Spec(2, "v1", 2, 1), Spec(7, "lost", 2, 1, 0, 1)
    granted = Member("a", 2, "v2", specs, Report(2, 2, 2, 2), is_ordered=True, superseded=1)
    other = Member("b", 3, "v2", (Spec(6, "v1", 3, 1),), Report(6, 3, 3, 3), is_ordered=True)
    found = align(Aim(5, 1, is_partitioned=True), [granted, other])
    assert {name: (spec.seq, *given(spec)) for name, spec in found.specs.items()} == {"a": (8, "v1", 2, 1, 0, 0)}


ONE_BY_ONE = Aim(7, 1, is_partitioned=True)


@pytest.mark.parametrize(
    ("aim", "lost", "other"),
    [
        (ONE_BY_ONE, Spec(3, "lost", 1, 1), Member("b", 0, "v2", (Spec(2, "v1", 3, 1),), Report(2, 3, 3, 3))),
        (ONE_BY_ONE, Spec(3, "lost", 4, 1, 0, 3), Member("b", 0, "v2", (Spec(2, "v1", 3, 1),), Report(2, 3, 3, 3))),
        (Aim(9, 1, is_partitioned=True), Spec(3, "lost", 4, 1), Member("b", 2, "v2")),
    ],
    ids=["fewer replicas", "one pod moved", "as many"],
)
def test_a_cluster_is_told_what_it_has_also_if_that_leaves_too_few_in_any_case(
    aim: Aim, lost: Spec, other: Member
) -> None:
    """It gets more replicas, and by what it was granted once fewer would be left than have to be: nobody can say that
    this is over until the cluster acknowledges something later."""
    granted = Member(
        "a", 7, "v2", (Spec(1, "v1", 4, 1), lost), Report(1, 4, 4, 4, is_back=True), is_ordered=True, superseded=1
    )
    found = align(aim, [granted, replace(other, is_ordered=True)])
    assert given(found.specs["a"]) == ("v1", 4, 1, 0, 0)


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        (5, ("v2", 7, 1, 0, 2)),  # both new pods may have the template
        (6, ("v2", 6, 1, 0, 2)),  # one of them
        (7, None),
    ],
)
def test_a_statefulset_that_has_pods_of_the_template_gets_no_others_on_top(
    partition: int, expected: tuple[str, int, int, int, int] | None
) -> None:
    """Its last three pods have the template, and keep it: what is added comes after them."""
    growing = Member("a", 7, "v2", (Spec(2, "v2", 5, 1, 0, 2),), Report(2, 5, 3, 5), is_ordered=True)
    other = Member("b", 5, "v2", (Spec(3, "v2", 5, 1, 0, 3),), Report(3, 5, 2, 5), is_ordered=True)
    found = align(Aim(12, 1, partition=partition, is_partitioned=True), [growing, other])
    assert {name: given(spec) for name, spec in found.specs.items()} == ({"a": expected} if expected else {})
    if expected is None:
        assert found.waiting["a"].code == AlignCode.kept_back


def test_a_statefulset_that_keeps_all_its_pods_back_is_scaled_so() -> None:
    kept = Member("a", 7, "v2", (Spec(2, "v2", 5, 1, 0, 5),), Report(2, 5, 0, 5), is_ordered=True)
    other = Member("b", 5, "v2", (Spec(3, "v2", 5, 1, 0, 0),), Report(3, 5, 5, 5, is_back=True), is_ordered=True)
    found = align(Aim(12, 1, partition=7, is_partitioned=True), [kept, other])
    assert given(found.specs["a"]) == ("v2", 7, 1, 0, 7)


def test_no_broken_pod_is_traded_while_there_are_too_many() -> None:
    starting = Member("a", 3, "v2", (Spec(1, "v1", 3, 1),), Report(1, 3, 3, 0))
    leaving = Member("b", 0, "v2", (Spec(2, "v1", 2, 1),), Report(2, 2, 2, 0))
    found = align(Aim(3, 0, 1, is_partitioned=True), [starting, leaving])
    assert "a" not in found.specs


def test_a_broken_pod_is_traded_for_one_of_the_next_release_if_nothing_else_helps() -> None:
    broken = Member("a", 7, "v2", (Spec(2, "bad", 3, 0, 1),), Report(2, 3, 3, 0, 0))
    leaving = Member("b", 0, "v2", (Spec(1, "v1", 5, 0, 1),), Report(1, 5, 5, 5, 5))
    for kind in (Aim(7, 0, 1), Aim(7, 0, 1, is_partitioned=True)):
        spec = align(kind, [broken, leaving]).specs["a"]
        assert (spec.template, spec.replicas, spec.unavailable, spec.surge) == ("v2", 2, 0, 1)


def test_a_statefulset_is_scaled_with_the_partition_it_has() -> None:
    member = Member("a", 1, "v2", (Spec(2, "v2", 2, 1, 0, 1),), Report(2, 2, 1, 2), is_ordered=True)
    others = Member("b", 4, "v2", (Spec(1, "v2", 4, 1),), Report(1, 4, 4, 4), is_ordered=True)
    found = align(Aim(5, 1, 0, 1, is_partitioned=True), [member, others])
    assert given(found.specs["a"]) == ("v2", 1, 1, 0, 1)


def test_the_release_before_is_stopped_in_a_statefulset_before_the_next_one_begins() -> None:
    member = Member("a", 3, "v2", (Spec(2, "bad", 3, 1),), Report(2, 3, 1, 2), is_ordered=True)
    aim = Aim(3, 1, is_partitioned=True)
    stopped = align(aim, [member]).specs["a"]
    assert given(stopped) == ("bad", 3, 1, 0, 2)
    member = Member("a", 3, "v2", (stopped,), Report(stopped.seq, 3, 1, 2), is_ordered=True)
    assert given(align(aim, [member]).specs["a"])[0] == "v2"


def test_what_is_given_is_enough_also_if_pods_that_were_reported_as_broken_work_by_now() -> None:
    starting = Member("a", 4, "v2", (Spec(1, "v1", 4, 0, 1),), Report(1, 4, 4, 0, 0))
    begun = rolling("b", Spec(2, "v2", 6, 2, 1), updated=0, proven=0)
    found = align(STORY_1, [starting, begun])
    assert found.held.steady >= STORY_1.fewest
    assert found.specs.get("a") is None


def test_broken_pods_make_room_only_as_far_as_all_would_still_be_enough_if_they_worked() -> None:
    """What was reported as broken may work by now: of three that are to go, one stays until others are there."""
    aim = Aim(4, unavailable=1, surge=1)
    leaving = Member("one", 0, "v1", (Spec(1, "v1", 3, 0, 1),), Report(1, pods=3, updated=3, available=0))
    growing = Member("two", 4, "v1", (Spec(2, "v1", 2, 0, 1),), Report(2, pods=2, updated=2, available=2))
    found = align(aim, [leaving, growing])
    assert found.specs["one"].replicas == 1


def test_if_the_broken_pods_cannot_all_go_as_many_go_as_others_make_up_for() -> None:
    bad = Spec(13, "bad", 3, 1, partition=2)
    leaving = Member("c", 1, "v2", (bad,), Report(13, pods=3, updated=1, available=2))
    growing = Member("a", 6, "v2", (Spec(21, "v2", 5, 1),), Report(21, 5, 5, 5, 5))
    found = align(Aim(7, 1, 1, is_partitioned=True), [growing, leaving])
    assert found.specs["c"].replicas == 2
    assert found.held.fewest == 6


def test_a_cluster_that_was_never_asked_for_the_pods_it_was_granted_gives_them_back_at_once() -> None:
    lost = Member("b", 0, "v2", (Spec(2, "v1", 3, 0, 1),), superseded=1)
    assert given(align(Aim(8, 1, 1), [resting("a", 4, wanted=8), lost]).specs["b"]) == ("v2", 0, 0, 1, 0)
    asked = Member("b", 0, "v2", (Spec(2, "v1", 3, 0, 1),))
    assert align(Aim(8, 1, 1), [resting("a", 4, wanted=8), asked]).waiting["b"].code == AlignCode.unacknowledged


# Whose turn it is


def test_a_budget_is_counted_in_pods_of_all_clusters() -> None:
    assert (Aim(3, 5).fewest, Aim(3, 1).fewest, Aim(3, 1, 2).most) == (0, 2, 5)
    assert (Aim(3, 1, 0, 9).moved, Aim(10, 1, 2, 4).moved) == (0, 6)
    assert (Aim(10, 1, 2, 4).most_updated, Aim(10, 1, 2).most_updated) == (6, 12)


def test_the_first_deployment_keeps_nothing_back() -> None:
    found = align(STORY_2, [Member("a", 4, "v1"), Member("b", 6, "v1")])
    assert {name: given(spec)[:2] for name, spec in found.specs.items()} == {"a": ("v1", 4), "b": ("v1", 6)}


def test_a_cluster_that_is_added_counts_for_what_the_partition_lets_through() -> None:
    found = align(STORY_2, [resting("a", 6), Member("new", 4, "v2")])
    assert sum(found.goals.values()) == 6
    few = Aim(10, 2, 1, 8, is_partitioned=True)
    assert align(few, [resting("a", 6), Member("new", 4, "v2")]).specs["new"].replicas == 2
    begun = rolling("a", Spec(2, "v2", 6, 1, 0, 5), updated=1, proven=1)
    assert align(few, [begun, Member("new", 4, "v2")]).specs["new"].replicas == 1


def test_old_pods_may_be_added_though_none_of_the_wanted_template_may() -> None:
    found = align(Aim(12, 2, 1, 12, is_partitioned=True), [resting("a", 10, wanted=12)])
    assert given(found.specs["a"])[:2] == ("v1", 12)


def test_what_is_written_has_a_number_that_nothing_before_had() -> None:
    seventh = rolling("a", Spec(7, "v1", 4, 1), updated=4, proven=4, wants="v1")
    found = align(STORY_1, [seventh, resting("b", 6)])
    assert found.specs["b"].seq == 8
    assert align(Aim(4, 1), [Member("a", 4, "v1")]).specs["a"].seq == 1


LEAVING = resting("leaving", 1, wanted=0)


@pytest.mark.parametrize(
    ("aim", "members", "first"),
    [
        (Aim(10, 0, 1), [resting("a", 2, wanted=3), resting("b", 8, wanted=7)], ("a", "v1", 3)),
        (Aim(10, 0, 1), [resting("a", 2, wanted=3), resting("b", 7), LEAVING], ("a", "v1", 3)),
        (Aim(10, 0, 1), [Member("a", 1, "v2"), resting("b", 9), LEAVING], ("a", "v2", 1)),
        (Aim(12, 2), [rolling("a", Spec(2, "v2", 4, 1), updated=2, proven=2), resting("b", 8)], ("a", "v2", 4)),
        (
            Aim(12, 2),
            [
                rolling("a", Spec(2, "v2", 4, 1), updated=2, proven=2, wants="v3"),
                resting("b", 8, wants="v3"),
            ],
            ("a", "v3", 4),
        ),
        (Aim(12, 2), [resting("a", 4), resting("b", 8)], ("b", "v2", 8)),
        (Aim(12, 2), [resting("b", 6), resting("a", 6)], ("a", "v2", 6)),
    ],
    ids=["who grows", "not who stays", "who is new", "who is on", "who has begun", "the larger", "the first by name"],
)
def test_whose_turn_it_is(aim: Aim, members: list[Member], first: tuple[str, str, int]) -> None:
    found = align(aim, members)
    assert [(name, *given(spec)[:2]) for name, spec in found.specs.items()] == [first]


@pytest.mark.parametrize(
    ("partition", "wanted", "kept_back"),
    [
        (4, 5, 3),
        (4, 8, 6),
        (4, 1, 0),  # fewer than were let through
        (0, 8, 0),
    ],
)
def test_as_many_pods_as_before_have_the_template_when_a_cluster_is_scaled(
    partition: int, wanted: int, kept_back: int
) -> None:
    updated = 6 - partition
    report = Report(2, 6, updated, 6, updated)
    member = Member("a", wanted, "v2", (Spec(2, "v2", 6, 1, 0, partition),), report)
    found = align(Aim(wanted, 6, 0, partition, is_partitioned=True, is_paused=True), [member])
    assert given(found.specs["a"]) == ("v2", wanted, 1, 0, kept_back)


def test_a_cluster_that_gets_nothing_and_has_nothing_waits_for_nothing() -> None:
    found = align(STORY_1, [Member("a", 0, "v2"), resting("b", 10, "v2")])
    assert (found.specs, found.waiting) == ({}, {})


def test_a_broken_pod_is_not_traded_while_something_is_not_acknowledged_or_nothing_may_be_extra() -> None:
    broken = Member("a", 7, "v2", (Spec(2, "bad", 3, 0, 1),), Report(2, 3, 3, 0, 0))
    leaving = Member("b", 0, "v2", (Spec(1, "v1", 5, 0, 1),), Report(1, 5, 5, 5, 5))
    unheard = Member("b", 0, "v2", (Spec(1, "v1", 5, 0, 1), Spec(3, "v1", 5, 0, 1)), Report(1, 5, 5, 5, 5))
    for partitioned in (False, True):
        assert "a" in align(Aim(7, 0, 1, is_partitioned=partitioned), [broken, leaving]).specs
        assert "a" not in align(Aim(7, 0, 1, is_partitioned=partitioned), [broken, unheard]).specs
        assert "a" not in align(Aim(8, 0, 0, is_partitioned=partitioned), [broken, leaving]).specs


def test_a_cluster_goes_on_with_what_it_has_begun_with() -> None:
    """What it has proven is handed on, but its own strategy stays: otherwise it would be written to each time."""
    begun = rolling("a", Spec(2, "v2", 4, 2, 1), updated=3, proven=3)
    found = align(Aim(4, 2, 1), [begun])
    assert found.specs == {}
    assert found.waiting["a"].code == AlignCode.rolling
    lowered = align(Aim(4, 1, 0), [begun])
    assert given(lowered.specs["a"])[2:4] == (1, 0)


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_a_cluster_that_has_what_it_is_to_have_again_is_told_so(is_partitioned: bool) -> None:
    specs = Spec(1, "v1", 4, 1), Spec(3, "v2", 4, 1)
    back = Member("a", 4, "v1", specs, Report(1, 4, 4, 4, 4), superseded=1)
    found = align(Aim(8, 1, 0, is_partitioned=is_partitioned), [back, resting("b", 4, wants="v1")])
    assert {name: given(spec) for name, spec in found.specs.items()} == {"a": ("v1", 4, 1, 0, 0)}


DIVIDED = [
    # the budget, the sizes of the clusters, and how many pods each may take away and add at first
    (Aim(100, 10), (10,) * 10, {f"c{number}": (1, 0) for number in range(10)}),
    (Aim(100, 10, 10), (10,) * 10, {f"c{number}": (1, 1) for number in range(10)}),
    (Aim(30, 6), (10, 20), {"c0": (2, 0), "c1": (4, 0)}),
    (Aim(30, 2, 2), (10, 20), {"c0": (1, 1), "c1": (1, 1)}),
    (Aim(30, 3), (10, 20), {"c1": (3, 0)}),
    (Aim(40, 4), (10,) * 4, {f"c{number}": (1, 0) for number in range(4)}),
    (Aim(50, 4), (10,) * 5, {"c0": (4, 0)}),
    (Aim(10, 10), (10,), {"c0": (10, 0)}),
]


@pytest.mark.parametrize(("aim", "sizes", "expected"), DIVIDED)
def test_a_budget_that_is_large_enough_is_divided_over_the_clusters(
    aim: Aim, sizes: tuple[int, ...], expected: dict[str, tuple[int, int]]
) -> None:
    found = align(aim, [resting(f"c{number}", size) for number, size in enumerate(sizes)])
    assert {name: (spec.unavailable, spec.surge) for name, spec in found.specs.items()} == expected


def test_what_a_cluster_that_is_not_heard_from_holds_is_not_divided() -> None:
    lost = Member("a", 10, "v2", (Spec(1, "v1", 10, 1), Spec(2, "v2", 10, 6)), Report(1, 10, 10, 10), False)
    found = align(Aim(30, 10), [lost, resting("b", 10), resting("c", 10)])
    assert {name: spec.unavailable for name, spec in found.specs.items()} == {"b": 2, "c": 2}


def test_a_cluster_gets_more_when_others_need_no_more() -> None:
    half = rolling("a", Spec(2, "v2", 10, 5), updated=5, proven=5)
    done = resting("b", 10, "v2")
    found = align(Aim(20, 10), [half, done])
    assert found.specs == {}  # it holds all that it has use for
    first = rolling("a", Spec(2, "v2", 10, 2), updated=5, proven=5)
    assert align(Aim(20, 10), [first, done]).specs["a"].unavailable == 5


def test_a_kind_that_takes_all_its_pods_away_gets_the_whole_budget() -> None:
    found = align(Aim(20, 10, recreates=True), [resting("a", 10), resting("b", 10)])
    assert {name: spec.unavailable for name, spec in found.specs.items()} == {"a": 10}


STATEFUL = Aim(5, 1, 0, 2, is_partitioned=True)


def test_a_pod_reported_as_broken_is_not_replaced_while_another_cluster_has_one_to_prove() -> None:
    """It may work by now: then two would be missing."""
    broken = Member("a", 1, "v2", (Spec(3, "v1", 1, 1),), Report(3, 1, 1, 0), is_ordered=True)
    others = Member("b", 2, "v2", (Spec(1, "v1", 2, 1),), Report(1, 2, 2, 2), is_ordered=True)
    specs = Spec(2, "v1", 2, 1), Spec(4, "v2", 2, 1, 0, 1)
    begun = Member("c", 2, "v2", specs, Report(4, 2, 1, 1), is_ordered=True)
    assert align(STATEFUL, [broken, others, begun]).specs == {}
    proven = Member("c", 2, "v2", specs, Report(4, 2, 1, 2), is_ordered=True)
    assert align(STATEFUL, [broken, others, proven]).specs.keys() == {"a"}


def test_pods_that_go_back_to_a_template_hold_the_budget_until_all_of_them_are_there() -> None:
    def back(updated: int) -> Member:
        specs = Spec(18, "v4", 3, 1, 0, 2), Spec(20, "v3", 3, 1, 0, 2)
        report = Report(20, 3, updated, 3, is_back=True)
        return Member("b", 3, "v5", specs, report, is_ordered=True)

    other = Member("a", 4, "v5", (Spec(19, "v3", 4, 1),), Report(19, 4, 4, 4), is_ordered=True)
    aim = Aim(7, 1, 0, 4, is_partitioned=True)
    assert "a" not in align(aim, [other, back(2)]).specs
    assert "a" in align(aim, [other, back(3)]).specs


def test_pods_of_a_bad_release_leave_a_cluster_that_is_to_have_none() -> None:
    """They were taken away once, and are missing already: others cannot come before they go."""
    bad = Member("a", 0, "v2", (Spec(2, "v1", 2, 1), Spec(3, "bad", 2, 1)), Report(3, 2, 2, 0), is_ordered=True)
    good = Member("b", 5, "v2", (Spec(4, "v2", 3, 1),), Report(4, 3, 3, 3), is_ordered=True)
    found = align(Aim(5, 1, is_partitioned=True), [bad, good])
    assert {name: given(spec) for name, spec in found.specs.items()} == {"a": ("bad", 1, 1, 0, 0)}


def test_pods_that_do_not_work_get_the_template_of_those_that_do_if_there_is_no_other_way() -> None:
    """A StatefulSet gets to its first pods only by way of the last ones, and those are needed."""
    half = Spec(6, "v1", 5, 1, 0, 2)
    other = Member("b", 4, "v2", (Spec(3, "v1", 4, 1),), Report(3, 4, 4, 4), is_ordered=True)

    def found(spec: Spec, report: Report, partition: int = 0) -> dict[str, tuple[str, int, int, int, int]]:
        member = Member("a", 5, "v2", (spec,), report, is_ordered=True)
        aim = Aim(9, 1, 0, partition, is_partitioned=True)
        return {name: given(one) for name, one in align(aim, [member, other]).specs.items()}

    assert found(half, Report(6, 5, 3, 3)) == {"a": ("v1", 5, 1, 0, 1)}
    assert found(replace(half, partition=1), Report(6, 5, 3, 3)) == {}  # it is about to
    assert found(half, Report(6, 5, 4, 4)) == {"a": ("v1", 5, 1, 0, 0)}
    assert found(half, Report(6, 5, 4, 3)) == {}  # one of the last ones does not work
    assert found(half, Report(6, 5, 3, 3), partition=4) == {}  # so many are not to leave their template
    assert found(half, Report(6, 5, 3, 5))["a"][0] == "v2"  # all of them work: nothing stands in the way


@pytest.mark.parametrize("is_ordered", [True, False])
def test_a_bad_release_that_has_stopped_gets_to_no_pod_that_breaks_elsewhere(*, is_ordered: bool) -> None:
    """All pods of one cluster were replaced and none works; the only pod of the other one broke, or was reported to."""
    aim = Aim(3, 2, is_partitioned=is_ordered)

    def found(template: str) -> dict[str, str]:
        stopped = Spec(1, "v1", 2, 1), Spec(3, "bad", 2, 2)
        bad = Member("a", 2, template, stopped, Report(3, 2, 2, 0), is_ordered=is_ordered)
        broken = Member("b", 1, template, (Spec(2, "v1", 1, 1),), Report(2, 1, 1, 0), is_ordered=is_ordered)
        return {name: spec.template for name, spec in align(aim, [bad, broken]).specs.items()}

    assert found("bad") == {}
    assert found("fix")["a"] == "fix"


def test_a_pod_that_was_replaced_and_is_not_available_yet_keeps_others_from_going() -> None:
    """That others were reported as broken makes no difference: they may work again."""
    kept_back = Spec(14, "v2", 2, 1, 0, 1), Spec(15, "v3", 2, 1, 0, 1)
    replaced = Member("a", 2, "v3", kept_back, Report(15, 2, 1, 1), is_ordered=True)
    again = Spec(10, "v1", 1, 1), Spec(12, "v2", 1, 1)
    broken = Member("b", 1, "v3", again, Report(12, 1, 1, 0, is_back=True), is_ordered=True)
    assert align(Aim(3, 1, 0, 1, is_partitioned=True), [replaced, broken]).specs == {}


def test_what_older_releases_hold_of_the_budget_is_not_spent_on_the_next_one_twice() -> None:
    """Another cluster may still be replacing a pod by the release before: it gets the next one when that is proven."""
    first = Member("a", 1, "v2", (Spec(1, "v1", 1, 1), Spec(4, "v2", 1, 1)), Report(4, 1, 1, 0), is_ordered=True)
    second = Member("b", 1, "v2", (Spec(2, "v1", 1, 1),), Report(2, 1, 0, 0), is_ordered=True)
    assert align(Aim(2, 1, is_partitioned=True), [first, second]).specs == {}
    proven = replace(first, report=replace(first.report, available=1))
    assert align(Aim(2, 1, is_partitioned=True), [proven, second]).specs["b"].template == "v2"


def test_by_their_order_pods_go_on_with_what_the_last_ones_hold() -> None:
    """One works, and nobody knows which: the new one, or an old one. The next is replaced only if it is the new one."""
    begun = Spec(1, "bad", 3, 1), Spec(2, "fix", 4, 1, 0, 3)
    member = Member("a", 4, "fix", begun, Report(2, 4, 1, 1), is_ordered=True)
    resting_ = Member("b", 1, "fix", (Spec(3, "fix", 1, 1),), Report(3, 1, 1, 1), is_ordered=True)
    found = align(Aim(5, 1, is_partitioned=True), [member, resting_]).specs
    assert {name: given(spec) for name, spec in found.items()} == {"a": ("fix", 4, 1, 0, 2)}


@pytest.mark.parametrize(("proven", "moved"), [(0, {}), (1, {"a": 3}), (2, {"a": 3, "b": 1})])
def test_a_kind_that_replaces_broken_pods_for_free_gets_no_more_unproven_ones_than_the_budget_allows(
    proven: int, moved: dict[str, int]
) -> None:
    """As many as may be extra were let through, and no pod of any template works but those."""
    begun = Spec(1, "v1", 3, 1), Spec(5, "v2", 3, 0, 2, 1)
    first = Member("a", 3, "v2", begun, Report(5, 3, 2, proven, proven))
    second = Member("b", 1, "v2", (Spec(2, "v1", 1, 1),), Report(2, 1, 1, 0, 0))
    found = align(Aim(4, 0, 2, is_partitioned=True), [first, second]).specs
    assert {name: spec.moved for name, spec in found.items()} == moved


def test_a_deployment_that_observes_more_replicas_may_still_delete_pods_by_the_strategy_before() -> None:
    """All that it reports is available; one of those is on its way out. None is taken away elsewhere for them."""
    first = Member("a", 8, "v2", (Spec(12, "v2", 5, 0, 1), Spec(14, "v2", 6, 0, 1)), Report(14, 6, 1, 6))
    second = Member("b", 0, "v3", (Spec(13, "v3", 3, 0, 1),), Report(13, 3, 3, 3))
    assert "b" not in align(Aim(8, 0, 2), [first, second]).specs
    done = replace(first, report=Report(14, 6, 6, 6))
    assert align(Aim(8, 0, 2), [done, second]).specs["b"].replicas == 2


def test_pods_that_may_be_on_their_way_out_are_no_reason_to_take_others_away() -> None:
    """The only pod of one cluster is replaced; in the other one is missing, which an earlier grant may have taken."""
    first = Member("a", 1, "v3", (Spec(15, "v2", 1, 0, 1), Spec(16, "v3", 1, 1, 1)), Report(16, 1, 1, 0))
    second = Member("b", 2, "v3", (Spec(14, "v2", 2, 2, 1), Spec(17, "v3", 2, 1)), Report(17, 1, 0, 1))
    found = align(Aim(3, 2, 1), [first, second])
    assert found.specs.get("b", second.specs[-1]).unavailable <= 1


def test_a_cloneset_that_has_its_template_in_all_pods_keeps_none_of_another_back() -> None:
    """It was asked for that before it had any pods. Its partition keeps no room for pods that it could not create."""
    growing = Member("a", 8, "v3", (Spec(3, "v2", 3, 0, 1, 2),), Report(3, 3, 3, 3, 3, is_back=True))
    leaving = Member("b", 0, "v3", (Spec(1, "v1", 5, 1),), Report(1, 5, 5, 5, 5, is_back=True))
    found = align(Aim(8, 0, 1, is_partitioned=True), [growing, leaving])
    assert {name: (spec.template, spec.replicas) for name, spec in found.specs.items()} == {"a": ("v2", 4)}
    assert found.held.most == 9

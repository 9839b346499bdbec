"""What a DaemonSet does next: a table of cases, and what holds of every plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.embedded.workloads.daemon_plan import Counts, Daemon, DaemonPlan, Place, counts, manage, roll

RUN, STAY, NEVER = (True, True), (False, True), (False, False)


def places(text: str) -> list[Place]:
    """Nodes in short: `a b* c-`; * takes no new pod, - none at all."""
    kinds = {"*": STAY, "-": NEVER}
    return [Place(word[0], *kinds.get(word[1:], RUN)) for word in text.split()]


def daemons(text: str) -> list[Daemon]:
    """Pods in short: `an! bo~`: node, revision; ! not ready, ~ terminating, X failed, S succeeded, ? unavailable."""
    return [_daemon(word, number) for number, word in enumerate(text.split())]


def _daemon(word: str, number: int) -> Daemon:
    mark = word[2:]
    return Daemon(
        name=f"{number}{word[:2]}",
        node=word[0],
        updated=word[1] == "n",
        ready=mark in ("", "~", "?"),
        available=mark in ("", "~"),
        terminating=mark == "~",
        failed=mark == "X",
        succeeded=mark == "S",
        scheduled=mark != "u",
    )


def in_short(found: DaemonPlan) -> str:
    return " ".join([*(f"+{node}" for node in found.create), *(f"-{one.name[1:]}" for one in found.delete)])


@pytest.mark.parametrize(
    ("nodes", "there", "surge", "does"),
    [
        ("a b c", "", False, "+a +b +c"),
        ("a b* c-", "", False, "+a"),
        ("a b* c-", "an bn cn", False, "-cn"),
        ("a", "an~", False, ""),  # a pod per node: the new one comes when the old one is gone
        ("a", "an~", True, "+a"),
        ("a", "anX", False, "-an"),
        ("a", "anS", False, "-an"),
        ("a", "an ao", False, "-ao"),
        ("a", "an! ao", True, ""),
        ("a", "an ao", True, "-ao"),
        ("a", "an! ao!", True, "-ao"),
        ("a", "an! an! ao", True, "-an"),
        ("a", "an bnu", False, "-bn"),
        ("a", "an bn", False, ""),  # on a node that is gone, but was scheduled: not ours to delete
    ],
)
def test_every_node_gets_the_pods_it_should_have(nodes: str, there: str, surge: bool, does: str) -> None:
    assert in_short(manage(places(nodes), daemons(there), surge=surge)) == does


@pytest.mark.parametrize(
    ("nodes", "there", "unavailable", "surge", "does"),
    [
        ("a b c", "ao bo co", 1, 0, "-ao"),
        ("a b c", "ao bo co", 2, 0, "-ao -bo"),
        ("a b c", "an! bo co", 1, 0, ""),
        ("a b c", "an bo co", 1, 0, "-bo"),
        ("a b c", "an? bo co", 1, 0, ""),
        ("a b c", "ao bo! co", 1, 0, "-bo"),  # a broken old one goes at once, and spends the budget
        ("a b c", "ao! bo! co!", 1, 0, "-ao -bo -co"),
        ("a b c", "bo co", 1, 0, ""),
        ("a b c", "an bn cn", 1, 0, ""),
        ("a b c", "ao bo co", 0, 1, "+a"),
        ("a b c", "ao an! bo co", 0, 1, ""),
        ("a b c", "ao an bo co", 0, 1, "+b -ao"),
        ("a b c", "ao! bo co", 0, 1, "+a +b"),
        ("a b*", "ao bo", 0, 1, "+a -bo"),
        ("a b*", "ao! bo!", 0, 1, "+a -bo"),
        ("a b*", "an! ao bo", 0, 1, "-bo"),
    ],
)
def test_an_update_goes_on_within_its_budget(nodes: str, there: str, unavailable: int, surge: int, does: str) -> None:
    found = roll(places(nodes), daemons(there), max_unavailable=unavailable, max_surge=surge)
    assert in_short(found) == does


def test_what_is_counted() -> None:
    found = counts(places("a b c* d e-"), daemons("an bo! cn en an~"))
    assert found == Counts(desired=3, current=2, misscheduled=2, ready=1, updated=1, available=1)
    assert found.unavailable == 2


NODES = st.lists(
    st.builds(Place, name=st.sampled_from("abcdef"), should_run=st.booleans(), may_stay=st.booleans()),
    unique_by=lambda place: place.name,
).map(lambda found: [replace(place, may_stay=place.may_stay or place.should_run) for place in found])


@st.composite
def populated(draw: st.DrawFn) -> tuple[list[Place], list[Daemon]]:
    nodes = draw(NODES)
    there = [
        Daemon(
            f"{place.name}{number}",
            place.name,
            updated=draw(st.booleans()),
            ready=ready,
            available=ready and draw(st.booleans()),
            terminating=draw(st.booleans()),
        )
        for place in nodes
        for number in range(draw(st.integers(0, 2)))
        for ready in [draw(st.booleans())]
    ]
    return nodes, there


@given(populated(), st.integers(1, 4))
def test_without_surge_no_more_nodes_lose_their_pod_than_allowed(
    world: tuple[list[Place], list[Daemon]], limit: int
) -> None:
    nodes, there = world
    found = roll(nodes, there, max_unavailable=limit, max_surge=0)
    assert not found.create
    lost = [one for one in found.delete if one.available]
    without = [node.name for node in nodes if node.should_run and not any(one.node == node.name for one in there)]
    assert len(lost) <= max(0, limit - len(without))
    assert not any(one.updated or one.terminating for one in found.delete)


@given(populated(), st.integers(1, 4))
def test_with_surge_no_available_pod_goes_before_there_is_another(
    world: tuple[list[Place], list[Daemon]], limit: int
) -> None:
    nodes, there = world
    found = roll(nodes, there, max_unavailable=0, max_surge=limit)
    runs = {node.name for node in nodes if node.should_run}
    for gone in found.delete:
        beside = [one for one in there if one.node == gone.node and one.updated and one.available]
        assert not gone.available or beside or gone.node not in runs
    beside_available = [
        node for node in found.create if any(one.available and not one.updated for one in there if one.node == node)
    ]
    assert len(beside_available) <= limit
    assert set(found.create) <= runs


@given(NODES, st.integers(0, 3), st.integers(0, 2))
def test_every_update_comes_to_its_end_if_pods_become_available(
    nodes: list[Place], unavailable: int, surge: int
) -> None:
    allowed = unavailable or (0 if surge else 1)
    there = {f"{place.name}-old": Daemon(f"{place.name}-old", place.name, updated=False) for place in nodes}
    for turn in range(60):
        now = [replace(one, ready=True, available=True) for one in there.values()]
        plan = manage(nodes, now, surge=surge > 0)
        if plan == DaemonPlan():
            plan = roll(nodes, now, max_unavailable=allowed, max_surge=surge)
        gone = {one.name for one in plan.delete}
        there = {one.name: one for one in now if one.name not in gone}
        there |= {f"{node}-{turn}": Daemon(f"{node}-{turn}", node, updated=True) for node in plan.create}
    running = [one for one in there.values() if one.node in {node.name for node in nodes if node.should_run}]
    assert sorted(one.node for one in running) == sorted(node.name for node in nodes if node.should_run)
    assert all(one.updated for one in running)

"""Phrases: stories in words, short and long."""

from datetime import timedelta
from typing import Any

import pytest

from kedge.plan.explaining.cluster_places import ClusterPlace
from kedge.plan.explaining.phrases import explained, explained_place, fold, of_place, state_text, summary
from kedge.plan.explaining.placed_objects import PlacedObject
from kedge.plan.explaining.story import Story
from kedge.plan.state import State
from kedge.plan.text import age, counted, listed, natural, of_all

WAIT = "at most 1 of 3 clusters may be unavailable, and cluster-1 is not available: Deployment shop/web is broken"
SPACE = PlacedObject("Namespace shop", State.available)
BROKEN = PlacedObject("Deployment shop/web", State.moving, "Deployment shop/web has 0 of 3 updated replicas")
WELL = PlacedObject("Deployment shop/web", State.available)


def available(number: int, index: str = "2") -> ClusterPlace:
    return ClusterPlace(f"cluster-{number}", State.available, index, is_up=True, things=(SPACE, WELL))


def waiting(number: int) -> ClusterPlace:
    return ClusterPlace(f"cluster-{number}", State.waiting, "1", is_up=True, why=WAIT, things=(SPACE, WELL))


MOVING = ClusterPlace("cluster-1", State.moving, "2", why=BROKEN.why, things=(SPACE, BROKEN))


def story(*places: ClusterPlace, state: State = State.available, why: str = "", **more: object) -> Story:
    return Story("ClusterResourcePlacement", None, "web", state, why, "2", places, **more)  # type: ignore[arg-type]  # fields of Story


STUCK = story(MOVING, waiting(2), waiting(3), state=State.waiting, why="2 of 3 clusters wait")


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (story(available(1), available(2)), "revision 2, available on 2 of 2 clusters"),
        (story(available(1)), "revision 2, available on 1 of 1 cluster"),
        (STUCK, "revision 2 on 1 of 3 clusters, 2 of 3 available"),
        (story(available(1), is_paused=True), "revision 2, available on 1 of 1 cluster, paused"),
        (story(available(1), pinned="2"), "revision 2, available on 1 of 1 cluster, rolled back"),
        (story(state=State.waiting, why="no such kind"), "on no cluster: no such kind"),
        (
            story(available(1), state=State.moving, why="1 cluster still has to be cleared"),
            "revision 2, available on 1 of 1 cluster: 1 cluster still has to be cleared",
        ),
        (
            story(available(1), unpicked=("cluster-2 was not picked",), state=State.waiting, why="1 of 2 found"),
            "revision 2 on 1 of 2 clusters, 1 of 2 available",
        ),
    ],
)
def test_a_placement_in_a_line(told: Story, line: str) -> None:
    assert summary(told) == line


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (available(1), "revision 2"),
        (MOVING, "revision 2, not available yet"),
        (ClusterPlace("a", State.moving, "2", why="no report"), "revision 2, not available yet: no report"),
        (waiting(1), f"revision 1, waits: {WAIT}"),
        (ClusterPlace("a", State.waiting, "1", is_down=True, why="soon"), "revision 1, not available, and waits: soon"),
        (ClusterPlace("a", State.waiting, "1", why="soon"), "revision 1, not known whether available, and waits: soon"),
        (ClusterPlace("a", State.next, "1", is_up=True), "revision 1, is next"),
        (ClusterPlace("a", State.next), "is next"),
        (ClusterPlace("a", State.waiting, why="there is no room"), "waits: there is no room"),
        (ClusterPlace("a", State.failed, "2", why="quota exceeded"), "revision 2, failed: quota exceeded"),
        (
            ClusterPlace("a", State.unknown, "2", why="no heartbeat"),
            "revision 2, not known whether available: no heartbeat",
        ),
        (ClusterPlace("a", State.leaving, "1", why="unpicked"), "revision 1, to be cleared: unpicked"),
    ],
)
def test_a_cluster_in_a_line(place: ClusterPlace, words: str) -> None:
    assert of_place(place) == words


def test_clusters_of_which_the_same_is_said_are_named_together_and_the_culprit_comes_first() -> None:
    assert explained(STUCK) == [
        "ClusterResourcePlacement web: revision 2 on 1 of 3 clusters, 2 of 3 available",
        "cluster-1: revision 2, not available yet",
        "  Deployment shop/web has 0 of 3 updated replicas",
        f"cluster-2 and cluster-3: revision 1, wait: {WAIT}",
        "1 cluster holds up the rest: a revision that works reaches it at once, and so does `kedge rollback web`.",
    ]


def test_what_is_held_says_what_lets_it_go() -> None:
    assert explained(story(available(1), is_paused=True))[-1] == "It is paused: `kedge resume web` lets it go on."
    unpin = "It is rolled back to revision 2: `kedge unpin web` lets it go on to the newest."
    assert explained(story(available(1), pinned="2"))[-1] == unpin
    assert explained(story(available(1), pinned="2", is_paused=True))[-2:] == [
        "It is paused: `kedge resume web` lets it go on.", unpin,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({}, "available"),
        ({"is_paused": True}, "available, paused"),
        ({"pinned": "2"}, "available, rolled back"),
        ({"pinned": "2", "is_paused": True}, "available, rolled back, paused"),
        ({"is_paused": True, "state": State.paused}, "paused"),
        ({"pinned": "2", "is_paused": True, "state": State.paused}, "paused, rolled back"),
    ],
)
def test_where_a_placement_stands_says_whether_it_is_held(how: dict[str, Any], told: str) -> None:
    assert state_text(story(available(1), **how)) == told


def test_one_cluster_is_explained_object_by_object() -> None:
    failed = PlacedObject("Job shop/seed", State.failed, "quota exceeded")
    place = ClusterPlace("cluster-1", State.failed, "2", why="quota exceeded", things=(SPACE, BROKEN, failed))
    assert explained_place(place) == [
        "cluster-1: revision 2, failed",
        "  Namespace shop: available",
        "  Deployment shop/web has 0 of 3 updated replicas",
        "  Job shop/seed: failed: quota exceeded",
    ]


def test_a_tree_that_fits_is_left_as_it_is() -> None:
    assert fold(STUCK, None).places == fold(STUCK, 10).places == STUCK.places


def test_objects_that_are_well_are_left_out_first() -> None:
    folded = fold(STUCK, 9)
    assert [place.cluster for place in folded.places] == ["cluster-1", "cluster-2", "cluster-3"]
    assert [thing for place in folded.places for thing in place.things] == [BROKEN]


def test_of_many_clusters_those_in_trouble_are_shown_and_the_rest_counted() -> None:
    many = story(*(available(number) for number in range(2, 1000)), MOVING, waiting(1000), state=State.waiting)
    folded = fold(many, 30)
    assert [place.cluster for place in folded.places][:2] == ["cluster-1", "cluster-1000"]
    assert 10 < len(folded.places) < 30
    assert folded.left_out == {State.available: 1000 - len(folded.places)}


def test_numbers_and_names_are_written_as_people_do() -> None:
    assert [counted(0, "cluster"), counted(1, "cluster"), counted(2, "cluster")] == [
        "0 clusters",
        "1 cluster",
        "2 clusters",
    ]
    assert of_all(0, 1, "cluster") == "0 of 1 cluster"
    assert [listed("a"), listed("ab"), listed("abc"), listed("abcd", most=2)] == [
        "a",
        "a and b",
        "a, b and c",
        "a, b and 2 more",
    ]
    assert listed([]) == ""
    assert sorted(["c-10", "c-9", "b"], key=natural) == ["b", "c-9", "c-10"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172_800, "2d")],
)
def test_ages_are_as_kubectl_shows_them(seconds: int, text: str) -> None:
    assert age(timedelta(seconds=seconds)) == text

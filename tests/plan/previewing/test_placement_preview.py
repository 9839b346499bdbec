"""Waves: moves are cut wherever one begins on the proof of another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.previewing.placement_preview import Move, MoveKind, PlacementPreview, Wave, waves_of


def move(cluster: str, at: float, done: float | None) -> Move:
    return Move(cluster, MoveKind.changed, at, "1", done)


def test_clusters_that_move_before_any_is_done_are_one_wave() -> None:
    assert waves_of([move("b", 0.1, 20.0), move("a", 0.0, 30.0)]) == (Wave(("a", "b"), 0.0, 30.0),)


def test_a_cluster_that_moves_once_another_is_done_is_in_the_next_wave() -> None:
    moves = [move("a", 0.0, 20.0), move("b", 0.0, 25.0), move("c", 20.0, 40.0), move("d", 25.0, 45.0)]
    assert [wave.clusters for wave in waves_of(moves)] == [("a", "b"), ("c", "d")]


def test_a_wave_with_a_cluster_that_is_never_done_does_not_end() -> None:
    assert waves_of([move("a", 0.0, 20.0), move("b", 0.0, None)]) == (Wave(("a", "b"), 0.0, None),)


def test_clusters_are_sorted_in_natural_order() -> None:
    assert waves_of([move("c-10", 0.0, 1.0), move("c-2", 0.0, 1.0)])[0].clusters == ("c-2", "c-10")


moves = st.builds(
    lambda name, at, takes: move(f"c-{name}", at, None if takes is None else at + takes),
    st.integers(0, 99),
    st.floats(0, 1000),
    st.none() | st.floats(1, 100),
)


@given(st.lists(moves, max_size=30))
def test_every_move_is_in_one_wave_and_waves_come_in_order(found: list[Move]) -> None:
    cut = waves_of(found)
    assert sorted(name for wave in cut for name in wave.clusters) == sorted(one.cluster for one in found)
    assert [wave.begins for wave in cut] == sorted(wave.begins for wave in cut)


def test_a_preview_has_a_title_waves_and_a_last_move() -> None:
    found = PlacementPreview("ResourcePlacement", "shop", "web", "1", is_done=False, ends=None)
    assert (found.path, found.title, found.last_move, found.waves) == (
        "shop/web",
        "ResourcePlacement shop/web",
        0.0,
        (),
    )
    other = PlacementPreview("ClusterResourcePlacement", None, "web", "1", is_done=False, ends=None)
    assert (other.path, other.title) == ("web", "ClusterResourcePlacement web")
    moving = PlacementPreview("X", None, "web", "1", True, 30.0, moves=(move("a", 0.0, 30.0), move("b", 35.0, None)))
    assert moving.last_move == 35.0
    assert [wave.clusters for wave in moving.waves] == [("a",), ("b",)]
    told = moving.as_json()
    assert [wave["clusters"] for wave in told["waves"]] == [["a"], ["b"]] or told["waves"][0]["clusters"] == ("a",)
    assert told["name"] == "web"
    late = PlacementPreview("X", None, "web", "1", True, 30.0, moves=(move("a", 0.0, 30.0), move("b", 5.0, None)))
    assert late.last_move == 30.0

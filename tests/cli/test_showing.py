"""Showing and following: on a terminal, off one, and on one too small."""

from __future__ import annotations

import io

from rich.console import Console

from kedge.cli.render import console, draw, placements_table, tree
from kedge.cli.watch import PlacementLines, PlacementTree, screen
from kedge.plan.explaining.cluster_places import ClusterPlace
from kedge.plan.explaining.placed_objects import PlacedObject
from kedge.plan.explaining.story import Story
from kedge.plan.state import State

WHY = "Deployment shop/web has 0 of 3 updated replicas"


def story(clusters: int = 3) -> Story:
    things = (PlacedObject("Namespace shop", State.available), PlacedObject("Deployment shop/web", State.moving, WHY))
    moving = ClusterPlace("cluster-1", State.moving, "1", why=WHY, things=things)
    rest = [ClusterPlace(f"cluster-{number}", State.available, "1", is_up=True) for number in range(2, clusters + 1)]
    return Story("ClusterResourcePlacement", None, "web", State.moving, "1 of 3 clusters has …", "1", (moving, *rest))


def drawn(width: int, told: Story) -> list[str]:
    out = io.StringIO()
    draw(tree(told), Console(file=out, width=width))
    return out.getvalue().splitlines()


def test_a_line_that_is_too_long_is_wrapped_under_where_it_began() -> None:
    lines = drawn(50, story())
    assert lines[0].startswith("… ClusterResourcePlacement web  revision 1")
    assert all(len(line) <= 50 for line in lines)
    assert "│       replicas" in lines


def test_off_a_terminal_nothing_is_wrapped_and_nothing_filled_up() -> None:
    out = io.StringIO()
    draw(placements_table([story()]), console(out))
    header, row = out.getvalue().splitlines()
    assert header.split() == ["NAME", "REVISION", "DONE", "STATE", "WHY"]
    assert row == "web    1          2/3    moving   1 of 3 clusters has …"


def test_a_tree_that_moves_is_no_higher_than_the_terminal() -> None:
    out = io.StringIO()
    small = Console(file=out, force_terminal=True, width=80, height=15)
    with PlacementTree(small) as moving:
        moving.show(story(1000), None)
    last = out.getvalue().rpartition("\x1b[1A")[2].splitlines()  # it is drawn over what was there
    assert len(last) <= 15
    assert any("cluster-1" in line for line in last)
    assert any("more: available" in line for line in last)


def test_off_a_terminal_only_what_changed_is_said_again() -> None:
    said: list[str] = []
    lines = PlacementLines(said.append)
    lines.show(story(2), None)
    lines.show(story(2), None)
    assert said == [
        "ClusterResourcePlacement web: revision 1 on 2 of 2 clusters, 1 of 2 available",
        f"  cluster-1: revision 1, not available yet: {WHY}",
        "  cluster-2: revision 1",
    ]
    lines.show(story(2), "no answer: refused")
    assert said[3:] == ["the hub does not answer: refused"]


def test_a_dumb_terminal_is_told_line_by_line() -> None:
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    with screen(dumb) as shown:
        assert isinstance(shown, PlacementLines)
    with screen(Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm"})) as shown:
        assert isinstance(shown, PlacementTree)

"""What a member says reaches a terminal as text: no escape sequence, no forged line, no end of the page."""

from __future__ import annotations

import io
import unicodedata

import msgspec
import pytest
import yaml
from rich.console import Console

from kedge.cli.render import draw, placements_table, print_data, print_lines, tree
from kedge.cli.safe_text import LONGEST, MOST_OBJECTS, bounded, bounded_place, printable, shortened
from kedge.cli.watch import PlacementLines, PlacementTree
from kedge.plan.explaining.cluster_places import ClusterPlace
from kedge.plan.explaining.phrases import explained, explained_place
from kedge.plan.explaining.placed_objects import PlacedObject
from kedge.plan.explaining.story import Story
from kedge.plan.state import State

HOSTILE = "no\x1b[2J\x1b]0;gone\x07\nproduction: done\r\x9b31m\u202e\x00\t end"


def story(why: str, *, objects: int = 1, what: str = "Deployment shop/web") -> Story:
    things = tuple(PlacedObject(what, State.failed, why) for _ in range(objects))
    place = ClusterPlace("cluster-1", State.moving, "1", why=why, things=things)
    return Story("ClusterResourcePlacement", None, "web", State.moving, why, "1", (place,), unpicked=(why,), doubt=why)


def controls(text: str) -> set[str]:
    """The characters that a terminal would not print, but obey."""
    return {char for char in text if unicodedata.category(char) == "Cc" and char != "\n"}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Deployment shop/web has 0 of 3 replicas …", "Deployment shop/web has 0 of 3 replicas …"),
        ("red \x1b[31malert", "red \\x1b[31malert"),
        ("a\nb\r\n  c\td", "a b c d"),
        ("  indented\n", "  indented "),
        ("\x07\x9b\x7f\u202e", "\\x07\\x9b\\x7f\\u202e"),
        ("naïve Ω 日本", "naïve Ω 日本"),
    ],
)
def test_text_is_printed_on_one_line_without_control_characters(given: str, shown: str) -> None:
    assert printable(given) == shown


def test_no_form_of_output_lets_a_member_speak_to_the_terminal() -> None:
    told = story(HOSTILE, what=f"Deployment {HOSTILE}")
    out = io.StringIO()
    plain = Console(file=out, width=4096, highlight=False, markup=False)
    draw(tree(told), plain)
    draw(placements_table([told]), plain)
    print_lines([*explained(told), *explained_place(told.places[0])], plain)
    PlacementLines(lambda line: print_lines([line], plain)).show(told, HOSTILE)
    assert controls(out.getvalue()) == set()
    assert not any(line.startswith("production: done") for line in out.getvalue().splitlines())
    assert "\\x1b[2J" in out.getvalue()
    assert "\u202e" not in out.getvalue()


def test_a_tree_that_is_redrawn_holds_no_escape_sequence_but_its_own() -> None:
    out = io.StringIO()
    with PlacementTree(Console(file=out, force_terminal=True, width=200, height=50)) as shown:
        shown.show(story(HOSTILE), HOSTILE)
    assert "\x1b[2J" not in out.getvalue()
    assert "\x1b]0;" not in out.getvalue()
    assert "\x9b" not in out.getvalue()


def test_explaining_cuts_each_message_and_says_so() -> None:
    lines = explained(bounded(story("x" * 100_000)))
    assert max(map(len, lines)) < 2 * LONGEST
    assert any(line.endswith(f"… ({100_000 - LONGEST} more characters: -o json shows all)") for line in lines)
    assert shortened("x" * LONGEST) == "x" * LONGEST


def test_explaining_a_cluster_names_no_more_objects_than_anyone_reads() -> None:
    place = story("no", objects=MOST_OBJECTS + 7).places[0]
    lines = explained_place(bounded_place(place))
    assert len(lines) == MOST_OBJECTS + 2
    assert lines[-1] == "  and 7 more objects: -o json shows all"
    assert bounded_place(story("no", objects=3).places[0]) == story("no", objects=3).places[0]


def test_an_object_with_a_name_without_end_is_named_once() -> None:
    what = "Deployment " + "x" * 100_000
    place = story(f"{what} is not ready", what=what).places[0]
    assert max(map(len, explained_place(bounded_place(place)))) < 2 * LONGEST


@pytest.mark.parametrize(("form", "read"), [("json", msgspec.json.decode), ("yaml", yaml.safe_load)])
def test_programs_get_every_character_and_terminals_none_of_them(
    form: str, read: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(read)
    why = HOSTILE + "x" * 10_000
    print_data(story(why), form)
    printed = capsys.readouterr().out
    assert read(printed)["places"][0]["things"][0]["why"] == why
    assert controls(printed) == set()

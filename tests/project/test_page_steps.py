"""How a page is read: its files, commands and output."""

import pytest

from project.page_output import missing
from project.page_steps import Command, Save, Shown, blocks, steps


def page(*parts: str) -> str:
    return "\n\n".join(["# A page", *parts, ""])


def fence(language: str, *lines: str) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def test_files_commands_and_output_come_in_the_order_of_the_page() -> None:
    text = page(fence("yaml", "# a.yaml", "a: 1"), "Then:", fence("sh", "cat a.yaml"), fence("text", "a: 1"))
    assert steps(text) == [Save("a.yaml", "# a.yaml\na: 1\n"), Command("cat a.yaml", 0), Shown(("a: 1",))]


def test_a_session_shows_the_output_below_each_command() -> None:
    found = steps(page(fence("console", "$ echo a", "a", "$ true", "$ echo b", "b")))
    assert found == [Command("echo a", 0), Shown(("a",)), Command("true", 0), Command("echo b", 0), Shown(("b",))]


def test_a_block_that_is_not_typed_says_why() -> None:
    text = page("<!-- not typed: takes minutes -->\n" + fence("sh", "make soak"), fence("text", "whatever"))
    assert steps(text) == []
    assert [block.reason for block in blocks(text)] == ["takes minutes", None]


def test_output_after_other_words_belongs_to_no_command() -> None:
    assert steps(page(fence("sh", "true"), "Something else prints:", fence("text", "b"))) == [Command("true", 0)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a \\", "  b"], [Command("a \\\n  b", 0)]),
        (["echo 'a", "b'", "c"], [Command("echo 'a\nb'", 0), Command("c", 0)]),
        (["# only a comment", "a  # exits with 3: not yet"], [Command("a  # exits with 3: not yet", 3)]),
    ],
)
def test_a_command_may_have_several_lines_and_say_what_it_exits_with(lines: list[str], expected: list[Command]) -> None:
    assert steps(page(fence("sh", *lines))) == expected


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("pod web-6d4cf56db6-x7k2p: ImagePullBackOff", "  pod web-7f-b2: ImagePullBackOff: more"),
        ("cluster-1   True   7s", "cluster-1      True  2m3s"),
        ("ends at 2026-11-17 22:12:55 UTC", "ends at 2030-01-01 00:00:00 UTC"),
        ("✔ move … 2 of 2", "✔ move  revision 0, 2 of 2 clusters"),
    ],
)
def test_what_differs_every_time_may_differ(shown: str, printed: str) -> None:
    assert missing((shown,), printed) is None


def test_lines_come_in_their_order_and_words_are_compared() -> None:
    assert missing(("a", "b"), "x\na\ny\nb\n") is None
    assert missing(("b", "a"), "a\nb\n") == "a"
    assert missing(("cluster-2 waits",), "cluster-3 waits\n") == "cluster-2 waits"

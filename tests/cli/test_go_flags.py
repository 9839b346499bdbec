"""Command lines as Go reads them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.cli.go_flags import (
    Boolean,
    Flag,
    FlagError,
    Float,
    GoDuration,
    HelpWanted,
    Integer,
    PrometheusDuration,
    String,
    parse,
    usage,
)

FLAGS = (
    Flag("name", String(), "", "The name."),
    Flag("on", Boolean(), True, "Whether."),
    Flag("off", Boolean(), False, "Whether not."),
    Flag("count", Integer(), 3, "How many."),
    Flag("rate", Float(), 5.0, "How often."),
    Flag("wait", GoDuration(), timedelta(seconds=5), "How long."),
    Flag("age", PrometheusDuration(), timedelta(days=365), "How old."),
    Flag("v", Boolean(), False, "Verbose."),
)
DEFAULTS = {flag.name: flag.default for flag in FLAGS}


@pytest.mark.parametrize(
    ("arguments", "changed", "rest"),
    [
        ([], {}, ()),
        (["-name=a"], {"name": "a"}, ()),
        (["--name=a"], {"name": "a"}, ()),
        (["-name", "a"], {"name": "a"}, ()),
        (["--name", "a"], {"name": "a"}, ()),
        (["-name="], {"name": ""}, ()),
        (["-name=a=b"], {"name": "a=b"}, ()),
        (["-name", "-off"], {"name": "-off"}, ()),
        (["-name", "a", "-name=b"], {"name": "b"}, ()),
        (["-off"], {"off": True}, ()),
        (["-off=T"], {"off": True}, ()),
        (["-on=false"], {"on": False}, ()),
        (["-on=0"], {"on": False}, ()),
        (["-on", "false", "-name=a"], {}, ("false", "-name=a")),
        (["-off", "--", "-name=a"], {"off": True}, ("-name=a",)),
        (["-", "-off"], {}, ("-", "-off")),
        (["word", "-off"], {}, ("word", "-off")),
        (["", "-off"], {}, ("", "-off")),
        (["-count=0x1F"], {"count": 31}, ()),
        (["-count=017"], {"count": 15}, ()),
        (["-count=0o17"], {"count": 15}, ()),
        (["-count=0b11"], {"count": 3}, ()),
        (["-count=1_000"], {"count": 1000}, ()),
        (["-count", "-9223372036854775808"], {"count": -(2**63)}, ()),
        (["-rate=.5"], {"rate": 0.5}, ()),
        (["-rate", "1e3"], {"rate": 1000.0}, ()),
        (["-wait=1h30m"], {"wait": timedelta(minutes=90)}, ()),
        (["-wait=0"], {"wait": timedelta()}, ()),
        (["-age=1w2d"], {"age": timedelta(days=9)}, ()),
        (["-age=1h30m"], {"age": timedelta(minutes=90)}, ()),
        (["-age=0"], {"age": timedelta()}, ()),
    ],
)
def test_a_command_line_is_read_as_go_reads_it(
    arguments: list[str], changed: dict[str, Any], rest: tuple[str, ...]
) -> None:
    found = parse(FLAGS, arguments)
    assert found.values == DEFAULTS | changed
    assert found.rest == rest
    assert found.given >= changed.keys()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-x"], "flag provided but not defined: -x"),
        (["--x=1"], "flag provided but not defined: -x"),
        (["---name"], "bad flag syntax: ---name"),
        (["-=a"], "bad flag syntax: -=a"),
        (["--=a"], "bad flag syntax: --=a"),
        (["-name"], "flag needs an argument: -name"),
        (["-on=maybe"], 'invalid boolean value "maybe" for -on: parse error'),
        (["-on="], 'invalid boolean value "" for -on: parse error'),
        (["-count=many"], 'invalid value "many" for flag -count: parse error'),
        (["-count="], 'invalid value "" for flag -count: parse error'),
        (["-count=1.5"], 'invalid value "1.5" for flag -count: parse error'),
        (["-count= 1"], 'invalid value " 1" for flag -count: parse error'),
        (["-count=08"], 'invalid value "08" for flag -count: parse error'),
        (["-count=9223372036854775808"], 'invalid value "9223372036854775808" for flag -count: value out of range'),
        (["-rate=fast"], 'invalid value "fast" for flag -rate: parse error'),
        (["-rate=1e999"], 'invalid value "1e999" for flag -rate: value out of range'),
        (["-wait=5"], 'invalid value "5" for flag -wait: parse error'),
        (["-wait=1d"], 'invalid value "1d" for flag -wait: parse error'),
        (["-age=1.5d"], 'invalid value "1.5d" for flag -age: not a valid duration string: "1.5d"'),
        (["-age=1d1w"], 'invalid value "1d1w" for flag -age: not a valid duration string: "1d1w"'),
        (["-age=-5m"], 'invalid value "-5m" for flag -age: not a valid duration string: "-5m"'),
        (["-age="], 'invalid value "" for flag -age: empty duration string'),
        (["-age=300y"], 'invalid value "300y" for flag -age: duration out of range'),
        (["-age=" + 30 * "9" + "d"], f'invalid value "{30 * "9"}d" for flag -age: duration out of range'),
        (['-count="'], 'invalid value "\\"" for flag -count: parse error'),
    ],
)
def test_what_go_refuses_is_refused_with_its_words(arguments: list[str], says: str) -> None:
    with pytest.raises(FlagError) as refused:
        parse(FLAGS, arguments)
    assert str(refused.value) == says


@pytest.mark.parametrize("argument", ["-h", "-help", "--help", "--h", "-h=1"])
def test_help_is_asked_for_with_one_dash_or_two(argument: str) -> None:
    with pytest.raises(HelpWanted):
        parse(FLAGS, ["-off", argument, "-x"])


def test_a_flag_that_is_called_help_is_a_flag() -> None:
    assert parse([Flag("h", String(), "")], ["-h=x"])["h"] == "x"


def test_usage_is_printed_as_go_prints_it() -> None:
    assert usage("program", FLAGS) == (
        "Usage of program:\n"
        "  -age value\n    \tHow old. (default 1y)\n"
        "  -count int\n    \tHow many. (default 3)\n"
        "  -name string\n    \tThe name.\n"
        "  -off\n    \tWhether not.\n"
        "  -on\n    \tWhether. (default true)\n"
        "  -rate float\n    \tHow often. (default 5)\n"
        "  -v\tVerbose.\n"
        "  -wait duration\n    \tHow long. (default 5s)\n"
    )


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (timedelta(days=730), "2y"),
        (timedelta(days=14), "2w"),
        (timedelta(days=15), "15d"),
        (timedelta(days=1, hours=12), "36h"),
        (timedelta(hours=1, milliseconds=5), "1h5ms"),
    ],
)
def test_a_duration_is_shown_as_prometheus_shows_it(length: timedelta, shown: str) -> None:
    assert PrometheusDuration().show(length) == shown
    assert PrometheusDuration().read(shown) == length


# A command line made from what is meant, in any of the notations, is read back as what was meant.

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
MEANT = st.one_of(
    st.tuples(st.just("name"), TEXTS.map(lambda text: (text, text))),
    st.tuples(st.just("count"), st.integers(-(2**63), 2**63 - 1).map(lambda number: (str(number), number))),
    st.tuples(
        st.just("rate"), st.floats(allow_nan=False, allow_infinity=False).map(lambda number: (repr(number), number))
    ),
    st.tuples(
        st.sampled_from(["on", "off", "v"]), st.sampled_from([("true", True), ("F", False), ("1", True), (None, True)])
    ),
)


@st.composite
def notation(draw: st.DrawFn, name: str, text: str | None) -> list[str]:
    dashes = draw(st.sampled_from(["-", "--"]))
    if text is None:
        return [f"{dashes}{name}"]
    if name in ("on", "off", "v") or draw(st.booleans()):
        return [f"{dashes}{name}={text}"]
    return [f"{dashes}{name}", text]


@given(st.data(), st.lists(MEANT, max_size=6), st.lists(TEXTS, max_size=3))
def test_whatever_is_meant_is_read_back(
    data: st.DataObject, meant: list[tuple[str, tuple[str | None, Any]]], rest: list[str]
) -> None:
    arguments = [word for name, (text, _) in meant for word in data.draw(notation(name, text))]
    found = parse(FLAGS, [*arguments, "--", *rest])
    assert found.values == DEFAULTS | {name: value for name, (_, value) in meant}
    assert found.given == {name for name, _ in meant}
    assert found.rest == tuple(rest)


@given(st.lists(st.one_of(st.sampled_from(["-", "--", "-on", "-count", "-h", "-x="]), TEXTS), max_size=5))
def test_any_command_line_is_read_or_refused(arguments: list[str]) -> None:
    try:
        found = parse(FLAGS, arguments)
    except (FlagError, HelpWanted):
        return
    assert found.values.keys() == DEFAULTS.keys()
    assert found.rest == tuple(arguments[len(arguments) - len(found.rest) :])

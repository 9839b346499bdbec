"""Go flags: command lines as Go's `flag` package reads them, for a command that takes the place of a Go program.

    flags = (Flag("kubernetes.namespace", String(), "", "The namespace."), Flag("v", Boolean(), False, "Verbose."))
    found = parse(flags, ["-kubernetes.namespace=prod", "--v"])
    found["v"]

A flag has one dash or two. Its value follows `=`, or is the next argument; a boolean takes a value only after `=`. The
first argument that is no flag ends the flags, and so does `--`; what is left is in `rest`. The last of several values
counts. Refuses (`FlagError`) with Go's own texts. Pure: who calls prints, and exits with 0 after `HelpWanted` and with
2 after `FlagError`, as Go does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Protocol

from msgspec import Struct

from kedge.api.times import (
    PROMETHEUS_UNITS,
    DurationTooLong,
    format_duration,
    parse_duration,
    parse_prometheus_duration,
)
from kedge.embedded.go_text import go_number, go_quoted

PARSE_ERROR: Final = "parse error"
OUT_OF_RANGE: Final = "value out of range"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_DIGITS: Final = {
    16: re.compile(r"0[xX](_?[0-9a-fA-F])+"),
    8: re.compile(r"0([oO](_?[0-7])+|(_?[0-7])+)"),
    2: re.compile(r"0[bB](_?[01])+"),
    10: re.compile(r"0|[1-9](_?[0-9])*"),
}
_FLOAT: Final = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)


class FlagError(Exception):
    """The command line is refused; the text is Go's."""


class HelpWanted(Exception):
    """`-h` or `-help` was given, and no flag has that name."""


class Kind(Protocol):
    """What values a flag takes."""

    @property
    def placeholder(self) -> str:
        """What usage shows in the place of the value."""
        ...

    def read(self, text: str) -> Any:
        """The value. ValueError with Go's reason if it is none."""
        ...

    def show(self, value: Any) -> str:
        """A default as usage shows it; empty if it is the zero value, which is not shown."""
        ...


class String(Struct, frozen=True):
    """Any text."""

    placeholder: str = "string"

    def read(self, text: str) -> str:
        return text

    def show(self, value: Any) -> str:
        return go_quoted(value) if value else ""


class Boolean(Struct, frozen=True):
    """True or false, by the words of Go's ParseBool."""

    placeholder: str = ""

    def read(self, text: str) -> bool:
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        raise ValueError(PARSE_ERROR)

    def show(self, value: Any) -> str:
        return "true" if value else ""


class Integer(Struct, frozen=True):
    """A number of 64 bits, in the notations of Go: `10`, `0x1f`, `0b1`, `017`, `1_000`."""

    placeholder: str = "int"

    def read(self, text: str) -> int:
        unsigned = text[1:] if text[:1] in ("+", "-") else text
        base = next((base for base, form in _DIGITS.items() if form.fullmatch(unsigned)), None)
        if base is None:
            raise ValueError(PARSE_ERROR)
        found = int(unsigned.replace("_", "").lstrip("0oO") or "0", 8) if base == 8 else int(unsigned, base)
        number = -found if text.startswith("-") else found
        if not -(2**63) <= number < 2**63:
            raise ValueError(OUT_OF_RANGE)
        return number

    def show(self, value: Any) -> str:
        return str(value) if value else ""


class Float(Struct, frozen=True):
    """A decimal number."""

    placeholder: str = "float"

    def read(self, text: str) -> float:
        if not _FLOAT.fullmatch(text):
            raise ValueError(PARSE_ERROR)
        found = float(text)
        if found in (float("inf"), float("-inf")) and "inf" not in text.lower():
            raise ValueError(OUT_OF_RANGE)
        return found

    def show(self, value: Any) -> str:
        return go_number(value) if value else ""


class GoDuration(Struct, frozen=True):
    """A duration of Go, such as `1h30m` or `300ms`."""

    placeholder: str = "duration"

    def read(self, text: str) -> timedelta:
        try:
            return parse_duration(text)
        except ValueError:
            raise ValueError(PARSE_ERROR) from None

    def show(self, value: Any) -> str:
        return format_duration(value) if value else ""


class PrometheusDuration(Struct, frozen=True):
    """A duration of Prometheus, such as `1y`, `2w` or `1d12h`: whole numbers, the larger units first."""

    placeholder: str = "value"

    def read(self, text: str) -> timedelta:
        if text == "":
            raise ValueError("empty duration string")
        try:
            return parse_prometheus_duration(text)
        except DurationTooLong:
            raise ValueError("duration out of range") from None
        except ValueError:
            raise ValueError(f"not a valid duration string: {go_quoted(text)}") from None

    def show(self, value: Any) -> str:
        """As Prometheus prints it: years, weeks and days only where nothing smaller is left."""
        rest, shown = value, ""
        for name, unit in PROMETHEUS_UNITS.items():
            if rest >= unit and (name not in ("y", "w", "d") or not rest % unit):
                shown, rest = f"{shown}{rest // unit}{name}", rest % unit
        return shown


class Flag(Struct, frozen=True):
    """One flag: its name without dashes, its values, its default, and what usage says of it."""

    name: str
    kind: Kind
    default: Any
    usage: str = ""

    @property
    def lines(self) -> str:
        """What usage shows of it."""
        shown = self.kind.show(self.default)
        head = f"  -{self.name} {self.kind.placeholder}".rstrip()
        # Go puts the text of a flag with a one-letter name and no value on the same line.
        gap = "\t" if len(head) <= 4 else "\n    \t"
        default = f" (default {shown})" if shown else ""
        return head + gap + self.usage.replace("\n", "\n    \t") + default


class Parsed(Struct, frozen=True):
    """What was given: a value for each flag, which flags were named, and the arguments after the flags."""

    values: Mapping[str, Any]
    given: frozenset[str] = frozenset()
    rest: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def usage(program: str, flags: Iterable[Flag]) -> str:
    """The text that `-h` prints, and that follows an error."""
    ordered = sorted(flags, key=lambda flag: flag.name)
    return "\n".join([f"Usage of {program}:", *(flag.lines for flag in ordered)]) + "\n"


def parse(flags: Iterable[Flag], arguments: Sequence[str]) -> Parsed:
    """The values of these flags by this command line (without the program's name)."""
    known = {flag.name: flag for flag in flags}
    values = {flag.name: flag.default for flag in known.values()}
    given: set[str] = set()
    at = 0
    while at < len(arguments) and is_flag(arguments[at]):
        if arguments[at] == "--":
            at += 1
            break
        name, text = _split(arguments[at])
        flag = _known(known, name)
        at += 1
        if text is None and not isinstance(flag.kind, Boolean):
            if at == len(arguments):
                raise FlagError(f"flag needs an argument: -{name}")
            text, at = arguments[at], at + 1
        values[name] = _read(flag, text)
        given.add(name)
    return Parsed(values, frozenset(given), tuple(arguments[at:]))


def is_flag(argument: str) -> bool:
    """Whether an argument is a flag, or `--`. A dash alone is none."""
    return len(argument) > 1 and argument.startswith("-")


def _split(argument: str) -> tuple[str, str | None]:
    """The name in an argument, and its value if it has one."""
    word = argument[2:] if argument.startswith("--") else argument[1:]
    if not word or word[0] in "-=":
        raise FlagError(f"bad flag syntax: {argument}")
    name, equals, text = word.partition("=")
    return name, text if equals else None


def _known(known: Mapping[str, Flag], name: str) -> Flag:
    if name in known:
        return known[name]
    if name in ("help", "h"):
        raise HelpWanted
    raise FlagError(f"flag provided but not defined: -{name}")


def _read(flag: Flag, text: str | None) -> Any:
    if text is None:
        return True  # a boolean that is only named
    try:
        return flag.kind.read(text)
    except ValueError as error:
        what = "invalid boolean value {} for -{}" if isinstance(flag.kind, Boolean) else "invalid value {} for flag -{}"
        raise FlagError(f"{what.format(go_quoted(text), flag.name)}: {error}") from None

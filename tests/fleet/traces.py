"""Traces: recorded fleets, as `tests/fleet/traces` keeps them: objects by where they were seen, and printed tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from msgspec import Struct

Untyped: TypeAlias = dict[str, Any]

FOLDER = Path(__file__).parent / "traces"
_SAYS_WHERE = re.compile(r"# (hub|cluster-\d+)\n")
_SAYS_COMMAND = re.compile(r"# \$ kubectl get (.+)\n")


class Table(Struct, frozen=True):
    """What `kubectl get` prints: the names of the columns, and a cell for each in every row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Found(Struct, frozen=True):
    """An object, and on which cluster it was found."""

    where: str
    obj: Untyped

    @property
    def kind(self) -> str:
        return str(self.obj["kind"])

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"].get("namespace", ""))

    @property
    def is_going(self) -> bool:
        return "deletionTimestamp" in self.obj["metadata"]


class Fleet(Struct, frozen=True):
    """A fleet at one moment: what was there, and what was printed, by the words after `kubectl get`."""

    title: str
    objects: tuple[Found, ...]
    tables: dict[str, Table]

    def of(self, kind: str, where: str = "hub") -> list[Untyped]:
        return [found.obj for found in self.objects if found.kind == kind and found.where == where]


def names() -> list[str]:
    """Of every trace there is, in order."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name: str) -> Fleet:
    """The trace of this name, or the only one that begins with it: `02`."""
    (path,) = FOLDER.glob(f"{name}*.yaml")
    return read(path.read_text())


def read(text: str) -> Fleet:
    title, *parts = text.split("\n---\n")
    objects = [Found(said[1], yaml.load(part, yaml.CSafeLoader)) for part in parts if (said := _SAYS_WHERE.match(part))]
    printed = {said[1]: table(part[said.end() :]) for part in parts if (said := _SAYS_COMMAND.match(part))}
    return Fleet(title.removeprefix("# ").strip(), tuple(objects), printed)


def table(text: str) -> Table:
    """A printed table; cells that are empty are found by where their column begins."""
    header, *lines = [line.removeprefix("#").removeprefix("   ") for line in text.splitlines() if line.strip()]
    starts = [match.start() for match in re.finditer(r"\S+(?: \S+)*", header)]
    return Table(_cells(header, starts), tuple(_cells(line, starts) for line in lines))


def _cells(line: str, starts: list[int]) -> tuple[str, ...]:
    ends = [*starts[1:], len(line) + 1]
    return tuple(line[start:end].strip() for start, end in zip(starts, ends, strict=True))

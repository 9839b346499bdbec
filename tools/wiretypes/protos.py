"""Protos: the messages of `generated.proto` files, by the names OpenAPI has for them.

Reads the few forms that the generator writes: a package, messages one after another, a field per line. Refuses a line
in a message that it does not know, so that a new form is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Many = Literal["", "list", "map"]

_PACKAGE = re.compile(r"^package (\S+);$", re.MULTILINE)
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"  (?:(optional|repeated) ([\w.]+)|map<string, ([\w.]+)>) (\w+) = (\d+);")
SCALARS = ("bool", "bytes", "double", "int32", "int64", "string")


@dataclass(frozen=True)
class Field:
    """One field of a message. `type` is a scalar, or the name of a message."""

    number: int
    name: str
    type: str
    many: Many = ""


Messages = Mapping[str, tuple[Field, ...]]


def read_all(folders: Mapping[str, Path]) -> Messages:
    """Every message of some modules."""
    files = [file for _, folder in sorted(folders.items()) for file in sorted(folder.rglob("generated.proto"))]
    return {name: fields for file in files for name, fields in read(file.read_text()).items()}


def read(text: str) -> Messages:
    """The messages of one file."""
    package = _PACKAGE.search(text)
    assert package, "a file of messages without a package"
    return {
        _named(f"{package[1]}.{found[1]}"): tuple(_fields(package[1], found[2])) for found in _MESSAGE.finditer(text)
    }


def _fields(package: str, body: str) -> Iterator[Field]:
    for line in body.splitlines():
        if not line.strip() or line.lstrip().startswith("//"):
            continue
        match = _FIELD.fullmatch(line)
        assert match, f"{line}: a field of a form not met before"
        label, plain, value, name, number = match.groups()
        many: Many = "map" if value else "list" if label == "repeated" else ""
        yield Field(int(number), name, _type(package, plain or value), many)


def _type(package: str, written: str) -> str:
    if written in SCALARS:
        return written
    return _named(written.lstrip(".") if "." in written else f"{package}.{written}")


def _named(message: str) -> str:
    """A message as OpenAPI names it: `k8s.io.api.apps.v1.Deployment` is `io.k8s.api.apps.v1.Deployment` there."""
    return "io.k8s" + message.removeprefix("k8s.io").replace("_", "-")

"""Writing: from messages to the file that is kept.

Keeps what a request can hold: the kinds the server keeps, those that are sent without being kept, and whatever they
are made of. One message per line, sorted: `"4":"containers []Container"` is field 4, a list; `{}T` is a map; a field
without a name (`"2":" VolumeSource"`) has its members among those of the message it is in. A type of the same package
has no package before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from kedge.api.openapi.builtin import schema_of
from openapi.writing import wanted
from wiretypes.protos import SCALARS, Field, Messages

PATH = Path(__file__).parents[2] / "src/kedge/embedded/builtin/messages.json"

_ALSO = ("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",)
_MANY = {"": "", "list": "[]", "map": "{}"}


class Names(Protocol):
    """What JSON calls the fields of a message, by number; nothing for what JSON knows in another form only."""

    def numbers(self, definition: str) -> Mapping[int, str]: ...


def text(messages: Messages, names: Names) -> str:
    """The file."""
    lines = [_line(name, messages[name], names.numbers(name)) for name in sorted(_reachable(messages))]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _reachable(messages: Messages) -> set[str]:
    todo = [schema_of(*identity).name for identity in wanted()] + list(_ALSO)
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [field.type for field in messages[name] if field.type not in SCALARS]
    return found


def _line(message: str, fields: tuple[Field, ...], names: Mapping[int, str]) -> str:
    """A message. One with a JSON form of its own (a time, a quantity) keeps the names protobuf has."""
    assert not names or set(names) == {field.number for field in fields}, f"{message}: Go has other fields"
    package = message.rpartition(".")[0] + "."
    written = {
        str(field.number): f"{names.get(field.number, field.name)} {_MANY[field.many]}{_short(field.type, package)}"
        for field in sorted(fields, key=lambda field: field.number)
    }
    return f"{json.dumps(message)}:{json.dumps(written, separators=(',', ':'))}"


def _short(type_: str, package: str) -> str:
    short = type_.removeprefix(package)
    return type_ if "." in short else short

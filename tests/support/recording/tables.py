"""Tables: the file in which the rows of a test module are recorded, and when that file can be believed.

A table is believed while the Kubernetes that tests use is the one it was recorded on, and while nothing has changed
that it is about since the rows were last asked of the real server: `tests/recorded.json` says what was so then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controlplane.versions import KUBERNETES
from support.recording.exchange import Body, Exchange

ROOT = Path(__file__).parents[3]
STAMP = ROOT / "tests" / "recorded.json"
ABOUT = {
    "tests/api": ("src/kedge/api", "tools/controlplane"),
    "tests": ("src/kedge/embedded", "tools/controlplane"),
}
"""What tables are about, by the folder they are in; the first that fits."""

_LONG = 8_000

Rows = Mapping[str, Sequence[Exchange]]


class Table(Struct, frozen=True):
    """What was recorded for a module."""

    kubernetes: str
    long: dict[str, Body]  # answers that several rows share
    rows: dict[str, list[Exchange]]


class Stamp(Struct, frozen=True):
    """What the tables were last asked of the real server with: a hash of each folder."""

    kubernetes: str
    folders: dict[str, str]


def file_of(module: Path) -> Path:
    return module.parent / "recorded" / f"{module.stem}.json"


def read(module: Path) -> Rows:
    """The rows of a module that were recorded on the Kubernetes of today."""
    file = file_of(module)
    if not file.exists():
        return {}
    table = msgspec.json.decode(file.read_bytes(), type=Table)
    if table.kubernetes != KUBERNETES:
        return {}
    return {name: [_whole(one, table.long) for one in row] for name, row in table.rows.items()}


def _whole(exchange: Exchange, long: Mapping[str, Body]) -> Exchange:
    match exchange.answer:
        case {"same": str(digest)}:
            return replace(exchange, answer=long[digest])
    return exchange


def write(module: Path, rows: Rows) -> None:
    """Write a table, an exchange per line."""
    long: dict[str, str] = {}
    shown = ",\n".join(f"{_json(name)}: [{_exchanges(rows[name], long)}]" for name in sorted(rows))
    kept = ",\n".join(f"{_json(digest)}: {text}" for digest, text in sorted(long.items()))
    file = file_of(module)
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'{{"kubernetes": {_json(KUBERNETES)},\n"long": {{{kept}}},\n"rows": {{\n{shown}\n}}}}\n')


def _exchanges(row: Sequence[Exchange], long: dict[str, str]) -> str:
    return ",".join(f"\n {_json(_short(one, long))}" for one in row)


def _short(exchange: Exchange, long: dict[str, str]) -> Exchange:
    """An exchange without a long answer, which is put with the others."""
    text = _json(exchange.answer)
    if len(text) < _LONG:
        return exchange
    digest = hashlib.sha256(text.encode()).hexdigest()[:20]
    long[digest] = text
    return replace(exchange, answer={"same": digest})


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def changed_since(module: Path) -> list[str]:
    """The folders that a module is about and that have changed since its rows were asked of the real server."""
    stamp = _stamp()
    return [folder for folder in _about(module) if stamp.folders.get(folder) != fingerprint(folder)]


def stamp() -> None:
    """Say that all tables have just been asked of the real server."""
    folders = sorted({folder for about in ABOUT.values() for folder in about})
    now = Stamp(KUBERNETES, {folder: fingerprint(folder) for folder in folders})
    STAMP.write_bytes(msgspec.json.format(msgspec.json.encode(now), indent=1) + b"\n")


def _about(module: Path) -> Sequence[str]:
    return next(about for folder, about in ABOUT.items() if module.is_relative_to(ROOT / folder))


@cache
def _stamp() -> Stamp:
    return msgspec.json.decode(STAMP.read_bytes(), type=Stamp) if STAMP.exists() else Stamp("", {})


@cache
def fingerprint(folder: str) -> str:
    """A hash of all that is in a folder."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / folder).rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(f"{file.relative_to(ROOT)}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:32]

"""The steps of a page: files to save, commands to type, and the output that it shows.

| in the page | is |
|---|---|
| a block of `sh` or `bash` | commands, one per line (a line that ends in `\\` goes on) |
| a block of `console` | lines after `$ ` are commands; the lines below one are its output |
| a block of `text` right after one of those | output of that block |
| a block of `yaml` or `python` whose first line is `# NAME` | a file to save |
| `<!-- not typed: REASON -->` on the line before a block | it is not typed, for one of `REASONS` |

A command is expected to exit with 0, unless its comment says "exits with N".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

REASONS = (
    "an example",  # it shows a form: nothing is to be done with it
    "installs packages",
    "needs clusters of yours",
    "needs the real control plane",
    "needs a terminal",
    "takes minutes",
)

_BLOCK = re.compile(
    r"^(?:<!-- not typed: (?P<reason>[^\n]*) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_SHELL = ("sh", "bash", "console")
_FILES = ("yaml", "python")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    language: str
    text: str
    reason: str | None
    """Why it is not typed."""
    follows: bool
    """Whether there is nothing but an empty line between the block before and this one."""


@dataclass(frozen=True)
class Save:
    """A file to save."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command to type."""

    text: str
    code: int
    """What it is to exit with."""


@dataclass(frozen=True)
class Shown:
    """Output of the commands since the last output that the page shows."""

    lines: tuple[str, ...]


Step = Save | Command | Shown


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in their order."""
    found: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(page):
        follows = bool(found) and not page[end : match.start()].strip()
        found.append(Block(match["language"], match["text"], match["reason"], follows))
        end = match.end()
    return found


def steps(page: str) -> list[Step]:
    """What to do, in order."""
    found: list[Step] = []
    is_typed = False
    for block in blocks(page):
        if block.language == "text":
            found.extend(_shown(block.text) if is_typed and block.follows else ())
            continue
        is_typed = block.language in _SHELL and block.reason is None
        if block.reason is None:
            found.extend(_steps(block))
    return found


def file_name(block: Block) -> str | None:
    """The name to save it by."""
    named = re.match(r"# ([\w.-]+\.\w+)\n", block.text)
    return None if named is None else named[1]


def _steps(block: Block) -> Iterator[Step]:
    if block.language in _FILES and (name := file_name(block)) is not None:
        yield Save(name, block.text)
    elif block.language == "console":
        yield from _session(block.text)
    elif block.language in _SHELL:
        yield from _commands(block.text.splitlines())


def _session(text: str) -> Iterator[Step]:
    for typed, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        yield from _commands([typed])
        yield from _shown(printed)


def _shown(text: str) -> Iterator[Shown]:
    if text.strip():
        yield Shown(tuple(line for line in text.splitlines() if line.strip()))


def _commands(lines: list[str]) -> Iterator[Command]:
    pending = ""
    for line in lines:
        pending = f"{pending}{line}\n"
        if not _is_open(pending):
            if shlex.split(pending, comments=True):
                yield Command(pending.rstrip("\n"), _code(pending))
            pending = ""


def _is_open(text: str) -> bool:
    """Whether the command goes on in the next line."""
    try:
        shlex.split(text, comments=True)
    except ValueError:  # a quote that is not closed
        return True
    return text.endswith("\\\n")


def _code(text: str) -> int:
    said = re.search(r"# .*\bexits with (\d+)", text)
    return 0 if said is None else int(said[1])

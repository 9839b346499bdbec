"""Which worker runs which tests: a file's tests stay together, what takes longest goes first, a fleet is used by one.

How long files took when somebody last wrote it down is in `tests/durations.json` (`make durations`); a file that is not
there is short. The tests on the real fleet, whatever file they are in, are one scope: there is one such fleet in a run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from xdist.scheduler.loadscope import LoadScopeScheduling

from support.durations import Spent

FILE = Path(__file__).parents[1] / "durations.json"
FLEET = "the real fleet"
_ON_THE_FLEET = re.compile(r"tests/fleet/(test_kills\.py|.*::test_it_is_so_on_real_clusters|.*[\[-]real[\]-])")


def scope_of(nodeid: str) -> str:
    """What a test stays together with."""
    return FLEET if _ON_THE_FLEET.match(nodeid) else nodeid.partition("::")[0]


class ByScope(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a whole scope to a worker, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def seconds_by_scope(file: Path = FILE) -> Mapping[str, float]:
    return msgspec.json.decode(file.read_bytes()) if file.exists() else {}


def longest_first(items: list[Any], seconds: Mapping[str, float]) -> None:
    """Sort tests by how long their scope takes; a scope stays together, and its tests keep their order."""
    first: dict[str, int] = {}
    for number, item in enumerate(items):
        first.setdefault(scope_of(item.nodeid), number)
    items.sort(key=lambda item: (-seconds.get(scope := scope_of(item.nodeid), 0.0), first[scope]))


def written(spent: Iterable[Spent]) -> bytes:
    """How long each scope took, if that is worth knowing."""
    seconds: dict[str, float] = defaultdict(float)
    for one in spent:
        seconds[scope_of(one.id)] += one.seconds
    long = {scope: round(took) for scope, took in sorted(seconds.items()) if took >= 2}
    return msgspec.json.format(msgspec.json.encode(long), indent=1) + b"\n"


if __name__ == "__main__":  # python -m support.scheduling: write down how long the last run took
    last = FILE.parents[1] / ".cache" / "durations.json"
    FILE.write_bytes(written(msgspec.json.decode(last.read_bytes(), type=list[Spent])))

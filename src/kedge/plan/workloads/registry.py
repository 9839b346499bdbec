"""Registry: the handler of each kind that runs pods, by group and kind.

A distribution adds a kind of its own by an entry point of the group `kedge.workloads`, named `Kind.group`, which is a
handler or a class that makes one:

    [project.entry-points."kedge.workloads"]
    "Game.example.com" = "example_games.kedge:GameHandler"

Entry points are loaded once, when the first is looked for; availability does that before an event loop runs, since it
reads files. One that cannot be used is a `BrokenHandler`, which names its distribution; the others work. A built-in
kind cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, TypeAlias

from msgspec import Struct

from kedge.plan.workloads.clone_sets import CloneSets
from kedge.plan.workloads.daemon_sets import DaemonSets
from kedge.plan.workloads.deployments import Deployments
from kedge.plan.workloads.handler import WorkloadHandler
from kedge.plan.workloads.jobs import Jobs
from kedge.plan.workloads.replica_sets import ReplicaSets
from kedge.plan.workloads.stateful_sets import StatefulSets

GROUP: Final = "kedge.workloads"
GroupKind: TypeAlias = tuple[str, str]
BUILT_IN: Final[Mapping[GroupKind, WorkloadHandler]] = {
    (one.group, one.kind): one
    for one in (Deployments(), StatefulSets(), DaemonSets(), ReplicaSets(), Jobs(), CloneSets())
}
_METHODS: Final = ("replicas", "template", "strategy", "limits", "with_strategy", "freeze", "with_partition", "scale")


class BrokenHandler(Struct, frozen=True):
    """A handler that a distribution promises and that cannot be used."""

    distribution: str
    name: str
    problem: str

    def __str__(self) -> str:
        return (
            f"the workload handler {self.name} of the distribution {self.distribution} cannot be used: {self.problem}"
        )


Found: TypeAlias = WorkloadHandler | BrokenHandler


def find_handler(group: str, kind: str) -> Found | None:
    """The handler of a kind; None if it has none."""
    return BUILT_IN.get((group, kind)) or installed_handlers().get((group, kind))


@cache
def installed_handlers() -> Mapping[GroupKind, Found]:
    """The handlers that other distributions bring."""
    return load(entry_points(group=GROUP))


def load(found: Iterable[EntryPoint]) -> dict[GroupKind, Found]:
    """A handler, or what is wrong with it, for each entry point. Of two for one kind, the first by name counts."""
    loaded: dict[GroupKind, Found] = {}
    for point in sorted(found, key=lambda one: (one.name, _distribution(one), one.value)):
        kind, _, group = point.name.partition(".")
        loaded.setdefault((group, kind), _loaded(point, group, kind))
    return loaded


def _loaded(point: EntryPoint, group: str, kind: str) -> Found:
    if (group, kind) in BUILT_IN:
        return _broken(point, "Kedge has one of its own for this kind")
    try:
        found = point.load()
        handler = found() if isinstance(found, type) else found
    except Exception as error:  # noqa: BLE001  # a stranger's module may raise anything
        return _broken(point, f"{type(error).__name__}: {error}")
    missing = [name for name in _METHODS if not callable(getattr(handler, name, None))]
    if missing:
        return _broken(point, f"it has no {', '.join(missing)}")
    named = (getattr(handler, "group", None), getattr(handler, "kind", None))
    if named != (group, kind):
        return _broken(point, f"it is for {named[1]}.{named[0]}: name the entry point so")
    return handler  # type: ignore[no-any-return]  # looked at above


def _broken(point: EntryPoint, problem: str) -> BrokenHandler:
    return BrokenHandler(_distribution(point), point.name, problem)


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown"

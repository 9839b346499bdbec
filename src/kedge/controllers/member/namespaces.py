"""Namespaces: those a member has, and which Work placed each; for ResourcePlacements, which go where theirs is.

The list goes into the status of one object, so it is not endless: of more than `MOST` the oldest are named.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import ClassVar, Final

from msgspec import field, to_builtins

from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.kube.cluster import Cluster
from kedge.kube.store import Change
from kedge.plan.applying.ownership import is_applied_work

MOST: Final = 200
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class Namespace(Value, frozen=True, gc=False):
    """A namespace, by the Work that placed it; empty if none did."""

    resource: ClassVar[Resource] = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    work: str = ""


class Namespaces:
    """Of one member."""

    def __init__(self, member: Cluster, changed: Callable[[], None]) -> None:
        """`changed` is called when the list is another."""
        self._cache = member.cache(Namespace, transform=namespace_in_short)
        self._cache.on_change(lambda change: changed() if _is_news(change) else None)

    @property
    def are_known(self) -> bool:
        return self._cache.is_synced

    @property
    def are_too_many(self) -> bool:
        return len(self._cache) > MOST

    def by_work(self) -> dict[str, str]:
        """The names, each with the Work that placed it."""
        oldest = sorted(self._cache.all(), key=_age)[:MOST]
        return {one.metadata.name: one.work for one in sorted(oldest, key=lambda one: one.metadata.name)}


def namespace_in_short(found: Namespace) -> Namespace:
    meta = found.metadata
    owners = (one.name for one in meta.owner_references if is_applied_work(to_builtins(one)))
    kept = ObjectMeta(
        name=meta.name, resource_version=meta.resource_version, creation_timestamp=meta.creation_timestamp
    )
    return Namespace(metadata=kept, work=next(owners, ""))


def _is_news(change: Change[Namespace]) -> bool:
    return change.old is None or change.new is None or change.old.work != change.new.work


def _age(found: Namespace) -> tuple[datetime, str]:
    return found.metadata.creation_timestamp or _LONG_AGO, found.metadata.name

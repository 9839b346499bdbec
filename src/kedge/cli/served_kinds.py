"""Served kinds: which of Kedge's kinds a cluster has beside placements, and what to type for them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.oam.rollouts import ROLLOUT_KINDS
from kedge.api.zones import ROLLOUT_GROUP, ZONE_KINDS
from kedge.controllers.kinds import Kinds
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.text import listed

_NOTHING: Final = "this cluster serves no placements: is it the hub? `kedge install hub` prints what a hub needs"
_WORDS: Final = {ResourceBinding.resource.kind: "binding", ClusterResourceBinding.resource.kind: "clusterbinding"}
"""What is typed for a kind, if that is not its own name."""


class _Family(Struct, frozen=True):
    """Kinds that the commands speak of as one."""

    what: str
    commands: str
    kinds: tuple[Any, ...]


class _Named(Struct, frozen=True):
    """One object, and what to type for it."""

    name: str
    typed: str


_BINDINGS: Final = _Family(
    "bindings", "`kedge get bindings`, `kedge status binding/NAME`", (ResourceBinding, ClusterResourceBinding)
)
_ROLLOUTS: Final = _Family("rollouts in batches", "`kedge get rollouts`, `kedge status KIND/NAME`", ROLLOUT_KINDS)
_GROUPS: Final = _Family("rollout groups", "`kedge get groups`, `kedge status group/NAME`", ZONE_KINDS)


async def without_placements(client: Client, name: str = "") -> str:
    """What to say on a cluster that serves no placements: what it has instead, and what of that `name` may mean."""
    kinds, groups = Kinds(client), await _groups(client)
    found = [family for family in (_BINDINGS, _ROLLOUTS) if await _served(kinds, family.kinds)]
    if groups or await _served(kinds, _GROUPS.kinds):
        found.append(_GROUPS)
    if not found:
        return _NOTHING
    named = [*groups, *[one for family in found if family is not _GROUPS for one in await _all(client, kinds, family)]]
    there = listed(f"{family.what} ({family.commands})" for family in found)
    missing = f"there is no {name}: " if name else ""
    return f"{missing}this cluster serves no placements, but {there}{_meant(name, named)}"


async def _served(kinds: Kinds, wanted: Sequence[Any]) -> list[Any]:
    return [one for one in wanted if await kinds.find(one.resource.api_version, one.resource.kind) is not None]


async def _all(client: Client, kinds: Kinds, family: _Family) -> list[_Named]:
    """The objects that the user may list."""
    found: list[_Named] = []
    for kind in await _served(kinds, family.kinds):
        with suppress(Forbidden, NotFound):
            word = _WORDS.get(kind.resource.kind, kind.resource.kind.lower())
            metas = [one.metadata for one in (await client.list(metadata_of(kind.resource))).items]
            found += [_named(word, meta.namespace, meta.name) for meta in metas]
    return found


async def _groups(client: Client) -> list[_Named]:
    with suppress(Forbidden, NotFound):
        page = await client.list(metadata_of(StatefulSet.resource), labels=ROLLOUT_GROUP)
        named = ((one.metadata.namespace, one.metadata.labels[ROLLOUT_GROUP]) for one in page.items)
        return [_named("group", namespace, name) for namespace, name in dict.fromkeys(named)]
    return []


def _named(word: str, namespace: str | None, name: str) -> _Named:
    return _Named(name, f"{word}/{name}{f' -n {namespace}' if namespace else ''}")


def _meant(name: str, named: Sequence[_Named]) -> str:
    """What may be meant: what is called so or nearly so, or a binding of what is called so."""
    bare = name.rpartition("/")[2]
    if not bare:
        return ""
    close = get_close_matches(bare, [one.name for one in named])
    meant = [one.typed for one in named if one.name in close or one.name.startswith(f"{bare}-")]
    return f": did you mean {listed(meant, most=3)}?" if meant else ""

"""Batch target: the rollout in batches that a command is about, of whichever kind.

`KIND/NAME` says which kind, as in `rollouttrait/web`. A name alone that several things have is an error, which says how
to name each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

import click
from msgspec import Struct

from kedge.api.oam.rollouts import ROLLOUT_KINDS, AnyRollout
from kedge.cli.group_target import CLUSTER, has_sets, placed_kind
from kedge.cli.targets import error_sentences
from kedge.controllers.gather import gather
from kedge.kube.client import Client
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.text import listed, path_of

Kind: TypeAlias = type[AnyRollout]
_OTHERS: Final = ("group", "pod", "placement", "run")
"""What else a name may begin with."""


def _words(kind: Kind) -> tuple[str, ...]:
    names = (kind.resource.kind.lower(), kind.resource.plural, *kind.definition.short_names)
    return tuple(dict.fromkeys(names))


KIND_WORDS: Final[Mapping[str, Kind]] = {word: kind for kind in ROLLOUT_KINDS for word in _words(kind)}
"""What a kind of rollout may be called by: `rollouttrait`, `approllouts`, `appdeployment`."""


class RolloutName(Struct, frozen=True):
    """One rollout."""

    kind: Kind
    namespace: str
    name: str

    @property
    def typed(self) -> str:
        """What to type to name it without doubt, in its namespace."""
        return f"{self.kind.resource.kind.lower()}/{self.name}"

    def __str__(self) -> str:
        return f"{self.kind.resource.kind} {path_of(self.namespace, self.name)}"


def split_kind(name: str) -> tuple[Kind | None, str]:
    """The kind that a name begins with, if it does, and the rest."""
    word, slash, rest = name.partition("/")
    kind = KIND_WORDS.get(word.lower()) if slash else None
    return (kind, rest) if kind is not None else (None, name)


async def find_rollout(client: Client, name: str, namespace: str | None, *, home: str) -> RolloutName | None:
    """The rollout of this name; None if there is none, and the name does not say that it is one.

    `home` is the namespace of the context, where it is looked for if none is named.
    """
    kind, rest = split_kind(name)
    if kind is None and rest.partition("/")[0] in _OTHERS and "/" in rest:
        return None
    with error_sentences(CLUSTER if kind is not None else "the hub"):
        where, bare = _place(rest, namespace, home)
        if not bare:
            return None
        if kind is not None:
            return await _named(client, RolloutName(kind, where, bare))
        found = await _of_any_kind(client, where, bare)
        return await _only(client, found, rest, namespace) if found else None


def _place(name: str, namespace: str | None, home: str) -> tuple[str, str]:
    """The namespace and the name; no name if it cannot be one of a rollout."""
    place, slash, rest = name.rpartition("/")
    if slash and namespace not in (None, place):
        raise click.UsageError(f"{name} is in namespace {place}, and --namespace says {namespace}: leave one out")
    return place or namespace or home, "" if "/" in place or not rest else rest


async def _named(client: Client, which: RolloutName) -> RolloutName:
    try:
        await client.get(which.kind, which.name, which.namespace)
    except NotFound as error:
        raise click.ClickException(await _what_there_is(client, which)) from error
    return which


async def _what_there_is(client: Client, which: RolloutName) -> str:
    missing = f"there is no {which}"
    try:
        known = (await client.list(which.kind, which.namespace)).items
    except NotFound:
        return f"{missing}: this cluster serves no such kind, and `kedge crds --batches` prints it"
    names = [one.metadata.name for one in known]
    return f"{missing}: there is {listed(names)}" if names else f"{missing}, nor any other there"


async def _of_any_kind(client: Client, namespace: str, name: str) -> list[RolloutName]:
    candidates = [RolloutName(kind, namespace, name) for kind in ROLLOUT_KINDS]
    there = await gather([partial(_is_there, client, one) for one in candidates])
    return [one for one, is_there in zip(candidates, there, strict=True) if is_there]


async def _is_there(client: Client, which: RolloutName) -> bool:
    with suppress(NotFound, Forbidden):
        await client.get(which.kind, which.name, which.namespace)
        return True
    return False


async def _only(client: Client, found: Sequence[RolloutName], name: str, namespace: str | None) -> RolloutName:
    """The one that is meant. Refuses a name that something else has as well."""
    first = found[0]
    others = {str(one): one.typed for one in found}
    if await has_sets(client, first.namespace, first.name):
        others[f"rollout group {path_of(first.namespace, first.name)}"] = f"group/{first.name}"
    if (placed := await placed_kind(client, name, namespace)) is not None:
        others[f"{placed.kind} {name}"] = f"{placed.word}/{name}"
    if len(others) == 1:
        return first
    raise click.ClickException(f"{name} is {listed(others)}: write {' or '.join(others.values())}")

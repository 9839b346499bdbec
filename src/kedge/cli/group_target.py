"""Group target: the rollout group that a command is about, and its story.

A placement or a run of the same name comes first; `group/NAME` and `pod/NAME` leave no doubt.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import click
from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.api.zones import ROLLOUT_GROUP
from kedge.cli.targets import Hub, PlacementName, error_sentences
from kedge.controllers.zone.group_reader import GroupReader
from kedge.kube.client import Client
from kedge.kube.connect.config import ConfigError, load
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.zoning.group_story import GroupStory, zones_of

_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""What the name of a group can be; a server refuses to look for anything else."""
_PREFIXES: Final = ("group/", "pod/")
CLUSTER: Final = "the cluster"
"""What errors call whoever is asked about a rollout group: it need not be a hub."""


class GroupName(Struct, frozen=True):
    """A group, and the pod or zone of it that is meant, if it is one."""

    namespace: str
    name: str
    part: str = ""


async def read_group(client: Client, which: GroupName) -> GroupStory:
    """Where a group stands, as the server has it now."""
    pods = (await client.list(Pod, which.namespace)).items
    sets = (await client.list(StatefulSet, which.namespace, labels={ROLLOUT_GROUP: which.name})).items
    if not sets:
        raise click.ClickException(no_group(which))
    return await group_reader(client).story(which.namespace, which.name, zones_of(sets, pods))


def group_reader(client: Client) -> GroupReader:
    """Tells where groups stand now."""
    return GroupReader(client, lambda: datetime.now(UTC))


# Which group is meant


async def find_group(
    client: Client, name: str, namespace: str | None, *, home: str, pods: bool = False
) -> GroupName | None:
    """The group of this name, or with `pods` that of the pod of this name. None if there is no such thing.

    `home` is the namespace of the context, where it is looked for if none is named.
    """
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
    with error_sentences(CLUSTER if prefix else "the hub"):
        return await _found(client, name, namespace or home, namespace, prefix=prefix, pods=pods)


async def _found(
    client: Client, name: str, home: str, namespace: str | None, *, prefix: str, pods: bool
) -> GroupName | None:
    place, slash, rest = name.removeprefix(prefix).rpartition("/")
    if slash and namespace not in (None, place):
        raise click.UsageError(f"{name} is in namespace {place}, and --namespace says {namespace}: leave one out")
    if not _LABEL_VALUE.fullmatch(rest) or "/" in place:
        return None
    where = place or home
    found = await _of_pod(client, where, rest) if pods and prefix != "group/" else None
    if prefix != "pod/" and await has_sets(client, where, rest):
        found = GroupName(where, rest)
    if found is None and prefix:
        of_pod = f"there is no pod {rest} of a rollout group in namespace {where}"
        raise click.ClickException(of_pod if prefix == "pod/" else no_group(GroupName(where, rest)))
    if found is None or prefix or await placed_kind(client, name, namespace) is None:
        return found
    return None


def home_of(hub: Hub) -> str:
    """The namespace of the context. Reads files, so it is asked before anything runs."""
    files = [hub.kubeconfig] if hub.kubeconfig else None
    try:
        return load(files, hub.context).namespace
    except ConfigError:
        return "default"  # whoever connects says what is wrong


async def has_sets(client: Client, namespace: str, group: str) -> bool:
    """Whether there is a rollout group of this name."""
    if not _LABEL_VALUE.fullmatch(group):
        return False
    try:
        page = await client.list(StatefulSet, namespace, labels={ROLLOUT_GROUP: group})
    except (Forbidden, NotFound):
        return False
    return bool(page.items)


async def _of_pod(client: Client, namespace: str, name: str) -> GroupName | None:
    """The group that a pod belongs to by its StatefulSet."""
    with suppress(NotFound, Forbidden):
        owner = controller_of((await client.get(Pod, name, namespace)).metadata)
        if owner is not None and owner.kind == StatefulSet.resource.kind:
            labels = (await client.get(StatefulSet, owner.name, namespace)).metadata.labels
            return GroupName(namespace, labels[ROLLOUT_GROUP], name) if ROLLOUT_GROUP in labels else None
    return None


class PlacedKind(Struct, frozen=True):
    """What a name is the name of on a hub, and the word that says so before it."""

    kind: str
    word: str


async def placed_kind(client: Client, name: str, namespace: str | None) -> PlacedKind | None:
    """The kind of the placement or run of this name; None if there is none."""
    which = PlacementName.of(name, namespace)
    for kind, word in ((which.kinds.placement, "placement"), (which.kinds.run, "run")):
        with suppress(NotFound, Forbidden):
            await client.get(kind, which.name, which.namespace)
            return PlacedKind(kind.resource.kind, word)
    return None


def no_group(which: GroupName) -> str:
    return f"there is no rollout group {which.name} in namespace {which.namespace}"

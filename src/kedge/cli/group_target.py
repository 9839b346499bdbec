"""Group target: the rollout group that a command is about, and its story.

A placement or a run of the same name comes first; `group/NAME` and `pod/NAME` leave no doubt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final

import click
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.apps import StatefulSet
from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.api.zones import ROLLOUT_GROUP, ZoneAwarePodDisruptionBudget
from kedge.cli.targets import Hub, PlacementName, error_sentences
from kedge.controllers.zone.reference import References
from kedge.kube.client import Client
from kedge.kube.connect.config import ConfigError, load
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.zoning import mirror, replicas
from kedge.plan.zoning.budget_spec import ZoneBudget, read_budget
from kedge.plan.zoning.group_story import GroupStory, kept_by_budgets, tell_group, zones_of
from kedge.plan.zoning.pods import is_running_and_ready
from kedge.plan.zoning.scaling import Scaling
from kedge.plan.zoning.zone import Zone

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
    return await GroupReader(client).story(which, zones_of(sets, pods))


class GroupReader:
    """Tells stories of groups, with the scales of what their StatefulSets mirror. A scale is read every few seconds."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._references = References(client)

    async def story(self, which: GroupName, zones: Sequence[Zone]) -> GroupStory:
        ready = {zone.name: sum(map(is_running_and_ready, zone.pods)) for zone in zones}
        known = Scaling(tuple(zone.stateful_set for zone in zones), datetime.now(UTC), ready_pods=ready)
        kept = partial(kept_by_budgets, await self._budgets(which.namespace), known.now)
        scales = {one: await self._references.read(which.namespace, one) for one in mirror.references(known)}
        return tell_group(which.namespace, which.name, zones, replicas.plan(replace(known, scales=scales)), kept)

    async def _budgets(self, namespace: str) -> tuple[ZoneBudget, ...]:
        """The disruption budgets that count there, as far as the user may read them."""
        try:
            page = await self._client.list(ZoneAwarePodDisruptionBudget, namespace)
        except (NotFound, Forbidden):
            return ()
        return tuple(budget for one in page.items if isinstance(budget := read_budget(one), ZoneBudget))


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
    if prefix != "pod/" and await _has_sets(client, where, rest):
        found = GroupName(where, rest)
    if found is None and prefix:
        raise click.ClickException(f"there is no {prefix.strip('/')} {rest} of a rollout group in namespace {where}")
    return None if found is not None and not prefix and await _is_placement(client, name, namespace) else found


def home_of(hub: Hub) -> str:
    """The namespace of the context. Reads files, so it is asked before anything runs."""
    files = [hub.kubeconfig] if hub.kubeconfig else None
    try:
        return load(files, hub.context).namespace
    except ConfigError:
        return "default"  # whoever connects says what is wrong


async def _has_sets(client: Client, namespace: str, group: str) -> bool:
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


async def _is_placement(client: Client, name: str, namespace: str | None) -> bool:
    which = PlacementName.of(name, namespace)
    for kind in (which.kinds.placement, which.kinds.run):
        with suppress(NotFound, Forbidden):
            await client.get(kind, which.name, which.namespace)
            return True
    return False


def no_group(which: GroupName) -> str:
    return f"there is no rollout group {which.name} in namespace {which.namespace}"

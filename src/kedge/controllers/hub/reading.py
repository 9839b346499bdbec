"""Reading: the selected objects themselves, as they are on the hub at this moment, ready for a snapshot.

What a cache remembers of them says only whether they changed. Where many objects of a kind and namespace are selected
they are listed together, otherwise each is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, TypeAlias

from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.crash import unwrap_crash
from kedge.kube.errors import NotFound
from kedge.plan.selecting.candidates import Manifest, candidate, without_hub_fields
from kedge.plan.selecting.selection import SelectedObject, Selection

FEW: Final = 4
"""Up to so many objects of a kind and namespace are asked for one by one."""
AT_ONCE: Final = 8
"""How many requests are under way together."""

Group: TypeAlias = tuple[Resource, str | None]


async def manifests(client: Client, selection: Selection) -> tuple[Manifest, ...] | None:
    """What goes to members, in the order of the selection; None if the hub is no longer as the selection saw it.

    What has changed since may no longer be selected: the cache will show it in a moment, and then it is known.
    """
    groups: dict[Group, list[SelectedObject]] = {}
    for chosen in selection.objects:
        groups.setdefault((chosen.resource, chosen.namespace), []).append(chosen)
    turns = asyncio.Semaphore(AT_ONCE)
    with unwrap_crash():
        async with asyncio.TaskGroup() as tasks:
            reads = [tasks.create_task(_read(client, turns, group, wanted)) for group, wanted in groups.items()]
    found = {chosen: manifest for read in reads for chosen, manifest in read.result()}
    if len(found) < len(selection.objects):
        return None
    return tuple(found[chosen] for chosen in selection.objects)


async def _read(
    client: Client, turns: asyncio.Semaphore, group: Group, wanted: list[SelectedObject]
) -> list[tuple[SelectedObject, Manifest]]:
    async with turns:
        objects = await (_each(client, wanted) if len(wanted) <= FEW else _together(client, group))
    by_uid = {(found.get("metadata") or {}).get("uid"): found for found in objects}
    return [
        (chosen, without_hub_fields(chosen.resource, found))
        for chosen in wanted
        if (found := by_uid.get(chosen.uid)) is not None and candidate(chosen.resource, found).digest == chosen.digest
    ]


async def _each(client: Client, wanted: Iterable[SelectedObject]) -> list[Untyped]:
    found = []
    for chosen in wanted:
        try:
            found.append(await client.get(untyped(chosen.resource), chosen.name, chosen.namespace))
        except NotFound:
            continue
    return found


async def _together(client: Client, group: Group) -> list[Untyped]:
    resource, namespace = group
    return list((await client.list(untyped(resource), namespace)).items)

"""Reading: the selected objects themselves, as they are on the hub at this moment, ready for a snapshot.

What a cache remembers of them says only whether they changed. Where many objects of a kind and namespace are selected
they are listed together, otherwise each is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, TypeAlias

from kedge.api.resource import Resource
from kedge.controllers.gather import gather
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.plan.selecting.candidates import candidate
from kedge.plan.selecting.choosing import Chosen, Selection
from kedge.plan.selecting.sanitising import Manifest, sanitised

FEW: Final = 4
"""Up to so many objects of a kind and namespace are asked for one by one."""
AT_MOST: Final = 8
"""How many requests are under way together."""

Group: TypeAlias = tuple[Resource, str | None]


async def manifests(client: Client, selection: Selection) -> tuple[Manifest, ...] | None:
    """What goes to members, in the order of the selection; None if the hub is no longer as the selection saw it.

    What has changed since may no longer be selected: the cache will show it in a moment, and then it is known.
    """
    groups: dict[Group, list[Chosen]] = {}
    for chosen in selection.chosen:
        groups.setdefault((chosen.resource, chosen.namespace), []).append(chosen)
    reads = await gather((partial(_read, client, group, wanted) for group, wanted in groups.items()), at_most=AT_MOST)
    found = {chosen: manifest for read in reads for chosen, manifest in read}
    if len(found) < len(selection.chosen):
        return None
    return tuple(found[chosen] for chosen in selection.chosen)


async def _read(client: Client, group: Group, wanted: list[Chosen]) -> list[tuple[Chosen, Manifest]]:
    objects = await (_each(client, wanted) if len(wanted) <= FEW else _listed(client, group))
    by_uid = {(found.get("metadata") or {}).get("uid"): found for found in objects}
    return [
        (chosen, sanitised(chosen.resource, found))
        for chosen in wanted
        if (found := by_uid.get(chosen.uid)) is not None and candidate(chosen.resource, found).digest == chosen.digest
    ]


async def _each(client: Client, wanted: Iterable[Chosen]) -> list[Untyped]:
    found = []
    for chosen in wanted:
        try:
            found.append(await client.get(untyped(chosen.resource), chosen.name, chosen.namespace))
        except NotFound:
            continue
    return found


async def _listed(client: Client, group: Group) -> list[Untyped]:
    resource, namespace = group
    return list((await client.list(untyped(resource), namespace)).items)

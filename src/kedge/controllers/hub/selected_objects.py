"""Selected objects: what one placement selects on the hub at this moment, asked of the server and not of caches.

    selection = await selected_now(client, placement)     # for who looks once: every object that matters is read
    found = await manifests(client, selection)            # the objects themselves, ready for a snapshot

What may not be read is a problem of the selection. Where many objects of a kind and namespace are selected they are
listed together, otherwise each is read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.placement_kinds import Placement
from kedge.api.resource import Resource
from kedge.controllers.gather import gather
from kedge.controllers.hub.resources import custom_names, served_kinds
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.discovery import discover
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.selecting.candidates import Candidate, Manifest, candidate, without_hub_fields
from kedge.plan.selecting.kinds import Catalogue
from kedge.plan.selecting.selection import SelectedObject, Selection, select_objects
from kedge.plan.selecting.selectors import ResolvedSelectors, resolve_selectors

AT_MOST: Final = 8
"""How many requests are under way together."""


async def selected_now(client: Client, placement: Placement, left_out: Collection[tuple[str, str]] = ()) -> Selection:
    """What this placement selects, on a hub that leaves out these kinds."""
    catalogue = await _catalogue(client, left_out)
    meant = resolve_selectors(placement, catalogue)
    return select_objects(meant, catalogue, await _look(client, meant, catalogue))


async def _catalogue(client: Client, left_out: Collection[tuple[str, str]]) -> Catalogue:
    crds: list[CustomResourceDefinition] = []
    with suppress(Forbidden):  # then what the server says of these kinds has to do
        crds = list((await client.list(CustomResourceDefinition)).items)
    return served_kinds(await discover(client), crds, custom_names(crds), left_out)


class _Seen:
    """A `View` of the objects that were read."""

    def __init__(self) -> None:
        self._objects: dict[Resource, dict[tuple[str | None, str], Candidate]] = {}
        self._problems: dict[Resource, str] = {}

    def add(self, resource: Resource, found: Candidate) -> None:
        key = (found.metadata.namespace, found.metadata.name)
        self._objects.setdefault(resource, {})[key] = found

    def refused(self, resource: Resource, problem: str) -> None:
        self._problems[resource] = problem

    def problem(self, resource: Resource) -> str:
        return self._problems.get(resource, "")

    def is_ready(self, resource: Resource) -> bool:
        return resource not in self._problems

    def all(self, resource: Resource, namespace: str | None = None) -> Iterable[Candidate]:
        found = self._objects.get(resource, {}).values()
        return [one for one in found if namespace is None or one.metadata.namespace == namespace]

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Candidate | None:
        return self._objects.get(resource, {}).get((namespace, name))


async def _look(client: Client, meant: ResolvedSelectors, catalogue: Catalogue) -> _Seen:
    seen = _Seen()

    async def read(resource: Resource, namespace: str | None, name: str | None) -> None:
        try:
            async for found in _objects(client, resource, namespace, name):
                seen.add(resource, candidate(resource, found))
        except Forbidden as error:
            seen.refused(resource, error.message or error.answer)

    kinds = meant.resources(catalogue)
    await gather((partial(read, kind, *where) for kind in kinds for where in _where(kind, meant)), at_most=AT_MOST)
    return seen


async def _objects(
    client: Client, resource: Resource, namespace: str | None, name: str | None
) -> AsyncIterator[Untyped]:
    with suppress(NotFound):
        if name is not None:
            yield await client.get(untyped(resource), name, namespace)
            return
        async for page in client.pages(untyped(resource), namespace):
            for found in page.items:
                yield found


def _where(resource: Resource, meant: ResolvedSelectors) -> list[tuple[str | None, str | None]]:
    """The namespaces and names under which objects of a kind matter; None stands for all of them."""
    if not resource.namespaced:
        named = [pick.selector.name for pick in meant.selectors if pick.resource == resource]
        return [(None, name) for name in dict.fromkeys(named)] if all(named) else [(None, None)]
    inside = [pick.namespace for pick in meant.selectors if pick.namespace is not None]
    inside += [pick.selector.name or "" for pick in meant.selectors if pick.includes_contents]
    return [(name, None) for name in dict.fromkeys(inside)] if all(inside) else [(None, None)]


FEW: Final = 4
"""Up to so many objects of a kind and namespace are asked for one by one."""
Group: TypeAlias = tuple[Resource, str | None]


async def manifests(client: Client, selection: Selection) -> tuple[Manifest, ...] | None:
    """What goes to members, in the order of the selection; None if the hub is no longer as the selection saw it.

    What has changed since may no longer be selected: the cache will show it in a moment, and then it is known.
    """
    groups: dict[Group, list[SelectedObject]] = {}
    for chosen in selection.objects:
        groups.setdefault((chosen.resource, chosen.namespace), []).append(chosen)
    reads = await gather((partial(_read, client, group, wanted) for group, wanted in groups.items()), at_most=AT_MOST)
    found = {chosen: manifest for read in reads for chosen, manifest in read}
    if len(found) < len(selection.objects):
        return None
    return tuple(found[chosen] for chosen in selection.objects)


async def _read(client: Client, group: Group, wanted: list[SelectedObject]) -> list[tuple[SelectedObject, Manifest]]:
    objects = await (_each(client, wanted) if len(wanted) <= FEW else _listed(client, group))
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


async def _listed(client: Client, group: Group) -> list[Untyped]:
    resource, namespace = group
    return list((await client.list(untyped(resource), namespace)).items)

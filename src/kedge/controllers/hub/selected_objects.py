"""Selecting: what one placement selects on the hub at this moment, asked of the server and not of caches.

    selection = await selected_now(client, placement)

For who looks once: every object that matters is read. What may not be read is a problem of the selection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.resource import Resource
from kedge.api.twins import Placement
from kedge.controllers.gather import gather
from kedge.controllers.hub.kinds import custom_names, served_kinds
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.discovery import discover
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.selecting.candidates import Candidate, candidate
from kedge.plan.selecting.choosing import Selection, choose
from kedge.plan.selecting.kinds import Catalogue
from kedge.plan.selecting.selectors import Meaning, meaning

AT_MOST: Final = 8
"""How many requests are under way together."""


async def selected_now(client: Client, placement: Placement, left_out: Collection[tuple[str, str]] = ()) -> Selection:
    """What this placement selects, on a hub that leaves out these kinds."""
    catalogue = await _catalogue(client, left_out)
    meant = meaning(placement, catalogue)
    return choose(meant, catalogue, await _look(client, meant, catalogue))


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


async def _look(client: Client, meant: Meaning, catalogue: Catalogue) -> _Seen:
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


def _where(resource: Resource, meant: Meaning) -> list[tuple[str | None, str | None]]:
    """The namespaces and names under which objects of a kind matter; None stands for all of them."""
    if not resource.namespaced:
        named = [pick.selector.name for pick in meant.picks if pick.resource == resource]
        return [(None, name) for name in dict.fromkeys(named)] if all(named) else [(None, None)]
    inside = [pick.inside for pick in meant.picks if pick.inside is not None]
    inside += [pick.selector.name or "" for pick in meant.picks if pick.with_contents]
    return [(name, None) for name in dict.fromkeys(inside)] if all(inside) else [(None, None)]

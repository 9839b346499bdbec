"""Selecting: what one placement selects on the hub at this moment, asked of the server and not of caches.

    selection = await selected_now(client, placement)

For who looks once: every object that matters is read. What may not be read is a problem of the selection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import suppress
from typing import Final

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.resource import Resource
from kedge.api.twins import Placement
from kedge.controllers.hub.kinds import custom_names, served_kinds
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.crash import unwrap_crash
from kedge.kube.discovery import discover
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.selecting.candidates import Candidate, candidate
from kedge.plan.selecting.kinds import Catalogue
from kedge.plan.selecting.selection import Selection, select_objects
from kedge.plan.selecting.selectors import ResolvedSelectors, resolve_selectors

AT_ONCE: Final = 8
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
    seen, turns = _Seen(), asyncio.Semaphore(AT_ONCE)

    async def read(resource: Resource, namespace: str | None, name: str | None) -> None:
        async with turns:
            try:
                async for found in _objects(client, resource, namespace, name):
                    seen.add(resource, candidate(resource, found))
            except Forbidden as error:
                seen.refused(resource, error.message or error.answer)

    with unwrap_crash():
        async with asyncio.TaskGroup() as tasks:
            for resource in meant.resources(catalogue):
                for namespace, name in _where(resource, meant):
                    tasks.create_task(read(resource, namespace, name))
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

"""Revisions: the history of a StatefulSet, DaemonSet or CloneSet, kept as ControllerRevisions.

A revision holds a template, as the patch that brings it back, and a number that says which is the newest. A template
that was there before gets its old revision back, under a new number. Names end in a hash of the content, so that making
the same revision twice makes one; the hash is ours, not Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from kedge.api.apps import ControllerRevision, DaemonSet, StatefulSet
from kedge.api.kruise import CloneSet
from kedge.api.meta import ObjectMeta
from kedge.api.pods import Template
from kedge.embedded.workloads.deployment_revisions import template_hash
from kedge.embedded.workloads.owned import reference_to, settle
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import AlreadyExists

AnySet: TypeAlias = StatefulSet | DaemonSet | CloneSet
_LONGEST_PREFIX = 223


class Choice(Struct, frozen=True):
    """Which revision the set is at: `found`, or one to be made; and the number it must have."""

    found: ControllerRevision | None
    number: int


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Oldest first."""
    return sorted(revisions, key=lambda one: (one.revision, _age(one.metadata), one.metadata.name))


def content(template: Template) -> Mapping[str, Any]:
    """What a revision of this template holds."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template_in(revision: ControllerRevision) -> Template:
    """The template a revision brings back."""
    held = ((revision.data or {}).get("spec") or {}).get("template") or {}
    return {name: value for name, value in held.items() if name != "$patch"}


def choose(history: Sequence[ControllerRevision], data: Mapping[str, Any]) -> Choice:
    """The revision that holds this content, if there is one, with the number it should have. `history` in order."""
    last = history[-1].revision if history else 0
    found = next((one for one in reversed(history) if one.data == data), None)
    if found is None:
        return Choice(None, last + 1)
    return Choice(found, found.revision if found.data == history[-1].data else last + 1)


class Histories:
    """The revisions of the sets of one kind in one cluster. `label` is the label that carries the hash."""

    def __init__(self, view: View, label: str) -> None:
        self._view = view
        self._label = label

    async def of(self, seen: AnySet) -> list[ControllerRevision] | None:
        """The set's revisions, oldest first; None if some were adopted or let go just now: look again then."""
        claims = self._view.claims(seen, ControllerRevision)
        if claims.adopt or claims.release:
            await settle(self._view.client, seen, claims, manager=MANAGER)
            return None
        return in_order(claims.own)

    async def current(self, seen: AnySet, history: Sequence[ControllerRevision]) -> ControllerRevision:
        """The revision the set asks for; made, or given its new number, if need be."""
        data = content(seen.spec.template)
        choice = choose(history, data)
        if choice.found is None:
            return await self._create(seen, data, choice.number)
        if choice.found.revision != choice.number:
            return await self._renumber(choice.found, choice.number)
        return choice.found

    async def drop(self, revisions: Iterable[ControllerRevision]) -> None:
        for one in revisions:
            meta = one.metadata
            await self._view.client.delete(ControllerRevision, meta.name, meta.namespace, uid=meta.uid)

    async def _create(self, seen: AnySet, data: Mapping[str, Any], number: int) -> ControllerRevision:
        collisions = 0
        while True:
            body = self._body(seen, data, number, collisions)
            try:
                return await self._view.client.create(ControllerRevision, body, manager=MANAGER)
            except AlreadyExists:
                name = body["metadata"]["name"]
                there = await self._view.client.get(ControllerRevision, name, seen.metadata.namespace)
                if there.data == data:
                    return there
            collisions += 1

    def _body(self, seen: AnySet, data: Mapping[str, Any], number: int, collisions: int) -> dict[str, Any]:
        meta, suffix = seen.metadata, template_hash({"data": data, "collisions": collisions})
        labels = (seen.spec.template.get("metadata") or {}).get("labels") or {}
        return {
            "metadata": {
                "name": f"{meta.name[:_LONGEST_PREFIX]}-{suffix}",
                "namespace": meta.namespace,
                "labels": {**labels, self._label: suffix},
                "annotations": dict(meta.annotations),
                "ownerReferences": [reference_to(seen)],
            },
            "data": data,
            "revision": number,
        }

    async def _renumber(self, found: ControllerRevision, number: int) -> ControllerRevision:
        meta = found.metadata
        return await self._view.client.amend(ControllerRevision, meta, {"revision": number}, manager=MANAGER)


def _age(meta: ObjectMeta) -> float:
    return meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0

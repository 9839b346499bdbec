"""Group state reader: reads from a cluster what a preview of a rollout group starts from.

It only lists and gets, with the rights of the user. Revisions and disruption budgets that may not be read are left out.
StatefulSets outside of the group are read if a disruption budget selects them together with some of the group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from kedge.api.apps import ControllerRevision, StatefulSet
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.api.zones import ROLLOUT_GROUP, ZONE_KINDS, ZoneAwarePodDisruptionBudget
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.zoning.budget_spec import ZoneBudget, read_budget
from kedge.plan.zoning.mirror import reference_of
from kedge.plan.zoning.scaling import Reference
from kedge.simulate.preview.group_state import GroupState, controlled, is_stateful_set

ATTEMPTS: Final = 5
"""How often StatefulSets are read until their statuses speak of their specs."""
BETWEEN: Final = 0.5
"""Seconds between two attempts."""


class NotObserved(Exception):
    """The status of a StatefulSet does not speak of its spec, so which pods are outdated is not known."""


async def read_group(
    client: Client, namespace: str, name: str, changed: Sequence[Untyped], now: datetime
) -> GroupState:
    """A group as it is now, with the StatefulSets that a change would bring into it. Raises `NotObserved`."""
    reader = _Reader(client, namespace)
    sets = await reader.observed_sets(name, [one["metadata"]["name"] for one in changed if is_stateful_set(one)])
    wanted = [*sets, *(one for one in changed if is_stateful_set(one))]
    budgets = await reader.readable(ZoneAwarePodDisruptionBudget.resource)
    neighbours = await reader.neighbours(wanted, [*budgets, *changed])
    uids = frozenset(one["metadata"]["uid"] for one in (*sets, *neighbours))
    return GroupState(
        taken=now.replace(microsecond=0),  # so that what is counted in seconds does not depend on the moment
        namespace=namespace,
        name=name,
        sets=sets,
        pods=controlled(await reader.all(Pod.resource), uids),
        revisions=controlled(await reader.readable(ControllerRevision.resource), uids),
        others=(*budgets, *await reader.references([*wanted, *neighbours])),
        neighbours=neighbours,
    )


class _Reader:
    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def observed_sets(self, name: str, others: Sequence[str]) -> tuple[Untyped, ...]:
        for attempt in range(1, ATTEMPTS + 1):
            sets = await self._sets(name, others)
            late = [one for one in sets if not _is_observed(one)]
            if not late:
                return sets
            if attempt < ATTEMPTS:
                await asyncio.sleep(BETWEEN)
        raise NotObserved(
            f"StatefulSet {late[0]['metadata']['name']}: its status does not speak of its spec yet: "
            "does the StatefulSet controller run?"
        )

    async def _sets(self, name: str, others: Sequence[str]) -> tuple[Untyped, ...]:
        found = await self.all(StatefulSet.resource, f"{ROLLOUT_GROUP}={name}")
        known = {one["metadata"]["name"] for one in found}
        more = [await self._one(StatefulSet.resource, other) for other in others if other not in known]
        return (*found, *(one for one in more if one is not None))

    async def neighbours(self, sets: Sequence[Untyped], budgets: Iterable[Untyped]) -> tuple[Untyped, ...]:
        """The other StatefulSets that a budget selects together with one of these."""
        valid = [budget for one in budgets if isinstance(budget := read_budget(one), ZoneBudget)]
        meant = [budget for budget in valid if any(budget.selects(_labels(one)) for one in sets)]
        known = {one["metadata"]["name"] for one in sets}
        return tuple(
            one
            for one in (await self.all(StatefulSet.resource) if meant else ())
            if one["metadata"]["name"] not in known and any(budget.selects(_labels(one)) for budget in meant)
        )

    async def references(self, sets: Iterable[Untyped]) -> list[Untyped]:
        """What StatefulSets mirror, of the kinds that every cluster serves, and of ours."""
        meant = [reference_of(msgspec.convert(_meta_only(one), StatefulSet)) for one in sets]
        wanted = dict.fromkeys(one for one in meant if isinstance(one, Reference))
        found = [await self._one(resource, one.name) for one in wanted if (resource := _resource_of(one)) is not None]
        return [one for one in found if one is not None]

    async def readable(self, resource: Resource) -> list[Untyped]:
        try:
            return await self.all(resource)
        except (Forbidden, NotFound):
            return []

    async def all(self, resource: Resource, labels: str | None = None) -> list[Untyped]:
        page = await self._client.list(untyped(resource), self._namespace, labels=labels)
        return [_named(resource, one) for one in page.items]

    async def _one(self, resource: Resource, name: str) -> Untyped | None:
        try:
            return _named(resource, await self._client.get(untyped(resource), name, self._namespace))
        except (Forbidden, NotFound):
            return None


def _named(resource: Resource, obj: Untyped) -> Untyped:
    """With what lists leave out of their items."""
    return {**obj, "apiVersion": resource.api_version, "kind": resource.kind}


def _labels(obj: Untyped) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _meta_only(obj: Untyped) -> Untyped:
    meta = obj["metadata"]
    return {"metadata": {"name": meta["name"], "annotations": meta.get("annotations") or {}}, "spec": {}}


def _resource_of(reference: Reference) -> Resource | None:
    known = [*(kind.resource for kind in ZONE_KINDS), *(kind.resource for kind in BUILT_IN)]
    return next((one for one in known if (one.group, one.kind) == (reference.group, reference.kind)), None)


def _is_observed(stateful_set: Untyped) -> bool:
    status, generation = stateful_set.get("status") or {}, stateful_set["metadata"].get("generation", 0)
    return status.get("observedGeneration", 0) >= generation and bool(status.get("updateRevision"))

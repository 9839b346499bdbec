"""Applied works: the AppliedWorks of a member, each the owner of what a Work placed, and the list of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from kedge.api.work import AppliedResource, AppliedWork, Work, WorkResourceIdentifier
from kedge.controllers.member.writing import MANAGER
from kedge.kube.cluster import Cluster
from kedge.kube.errors import AlreadyExists
from kedge.plan.applying.manifests import DesiredObject, ObjectKey, object_key
from kedge.plan.applying.ownership import WorkOwner
from kedge.plan.applying.work_status import ApplyResult


class AppliedWorks:
    """The AppliedWorks of one member."""

    def __init__(self, member: Cluster) -> None:
        self.cache = member.cache(AppliedWork)
        self._client = member.client

    async def of(self, work: Work) -> AppliedWork:
        """The AppliedWork of a Work; made if there is none."""
        name = work.metadata.name
        found = self.cache.get(name)
        if found is not None:
            return found
        spec = {"workName": name, "workNamespace": work.metadata.namespace}
        try:
            return await self._client.create(AppliedWork, {"metadata": {"name": name}, "spec": spec}, manager=MANAGER)
        except AlreadyExists:
            return await self._client.get(AppliedWork, name)

    async def delete(self, found: AppliedWork, propagation: str) -> None:
        """Delete one, if it still is the one that was looked at."""
        await self._client.remove(AppliedWork, found.metadata, propagation=propagation)

    async def list_in(self, found: AppliedWork, resources: Sequence[AppliedResource]) -> AppliedWork:
        """Have it list these; writes only if it does not."""
        if tuple(resources) == found.status.applied_resources:
            return found
        meta = found.metadata
        listed: list[Any] = to_builtins(resources)
        return await self._client.amend(
            AppliedWork, meta, {"status": {"appliedResources": listed or None}}, subresource="status", manager=MANAGER
        )


class AppliedList:
    """What one AppliedWork lists, while its Work is being applied."""

    def __init__(self, works: AppliedWorks, found: AppliedWork) -> None:
        self._works = works
        self._found = found
        self.opened = found.status.applied_resources
        """What it listed then."""

    @property
    def entries(self) -> dict[ObjectKey, AppliedResource]:
        return {object_key(one): one for one in self._found.status.applied_resources}

    @property
    def identity(self) -> ObjectKey:
        """Which object on the member it is."""
        return ObjectKey(AppliedWork.resource.group, AppliedWork.resource.kind, "", self._found.metadata.name)

    async def add(self, placed: Sequence[DesiredObject]) -> None:
        """Write down what is about to be made."""
        if placed:
            listed = self.entries | {one.identity: _entry(one.identifier) for one in placed}
            self._found = await self._works.list_in(self._found, list(listed.values()))

    def listing(
        self, results: Iterable[ApplyResult], left_over: Iterable[AppliedResource]
    ) -> tuple[AppliedResource, ...]:
        """What it is to list: what is there now, without what was never created."""
        before = self.entries
        listed: dict[ObjectKey, AppliedResource] = {}
        for one in results:
            uid = one.uid or _uid(before.get(one.identity))
            if uid or (one.unsure and one.identity in before):
                listed.setdefault(one.identity, _entry(one.identifier, uid))
        return (*listed.values(), *left_over)

    async def close(self, listing: Sequence[AppliedResource]) -> None:
        """Write down what there is to list."""
        self._found = await self._works.list_in(self._found, listing)


def owner_of(found: AppliedWork) -> WorkOwner:
    """It, as the owner of what was placed."""
    return WorkOwner(found.metadata.name, found.metadata.uid)


def _entry(identifier: WorkResourceIdentifier, uid: str = "") -> AppliedResource:
    return AppliedResource(**asdict(identifier), uid=uid)


def _uid(entry: AppliedResource | None) -> str:
    return entry.uid if entry else ""

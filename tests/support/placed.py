"""A placement, its snapshots, bindings and Works, made by hand: by whom a controller under test is surrounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from kedge.api.condition import FALSE, TRUE, Condition, find_condition, set_condition
from kedge.api.core import Namespace
from kedge.api.fleet import (
    BINDING_CLEANUP,
    IS_FLEET_RESOURCE,
    IS_LATEST,
    NUMBER_OF_ENVELOPED,
    NUMBER_OF_SNAPSHOTS,
    PARENT_PLACEMENT,
    PLACEMENT_GENERATION,
    POLICY_INDEX,
    RESOURCE_HASH,
    RESOURCE_INDEX,
    SUBINDEX,
    WORK_CLEANUP,
    member_namespace,
    policy_snapshot_name,
    resource_snapshot_name,
    resource_snapshot_part,
    work_name,
)
from kedge.api.placement_kinds import CLUSTER, Binding, Placement, PlacementKinds
from kedge.api.reasons import (
    ALL_APPLIED,
    ALL_AVAILABLE,
    APPLIED,
    AVAILABLE,
    MANIFEST_APPLY_FAILED,
    MANIFEST_NOT_AVAILABLE,
    POLICY_FULFILLED,
    ROLLOUT_STARTED,
    SCHEDULED,
    SOME_NOT_APPLIED,
    SOME_NOT_AVAILABLE,
    STARTED,
)
from kedge.api.work import Work
from kedge.kube.client import Client
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.stage import LoopClock
from support.waiting import until_so

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def config_map(name: str, value: str = "1") -> dict[str, Any]:
    meta = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}}


class Placed:
    """One placement on a hub, with everybody else's part in it."""

    def __init__(
        self, client: Client, kinds: PlacementKinds = CLUSTER, name: str = "crp", namespace: str | None = None
    ) -> None:
        self.client = client
        self.kinds = kinds
        self.name = name
        self.namespace = namespace
        self.clock = LoopClock()

    # The user

    async def place(self, **spec: Any) -> Placement:
        selector = {"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}
        body = {"metadata": self._meta(self.name), "spec": {"resourceSelectors": [selector], **spec}}
        return await self.client.create(self.kinds.placement, body, self.namespace)

    async def placement(self) -> Placement:
        return await self.client.get(self.kinds.placement, self.name, self.namespace)

    # Snapshots

    async def snapshot(self, index: int, *parts: Sequence[Mapping[str, Any]]) -> str:
        """The resources with this index, one snapshot for each part; the newest from now on."""
        parts = parts or ((NAMESPACE,),)
        for older in (await self.client.list(self.kinds.resource_snapshot, self.namespace)).items:
            if older.metadata.labels.get(IS_LATEST) == "true":
                off = MergePatch({"metadata": {"labels": {IS_LATEST: "false"}}})
                await self.client.patch(self.kinds.resource_snapshot, older.metadata.name, off, self.namespace)
        labels = {PARENT_PLACEMENT: self.name, RESOURCE_INDEX: str(index)}
        for number, objects in enumerate(parts[1:]):
            name = resource_snapshot_part(self.name, index, number)
            await self._make_snapshot(name, objects, labels, {SUBINDEX: str(number)})
        marks = {RESOURCE_HASH: "x", NUMBER_OF_SNAPSHOTS: str(len(parts)), NUMBER_OF_ENVELOPED: "0"}
        master = resource_snapshot_name(self.name, index)
        await self._make_snapshot(master, parts[0], labels | {IS_LATEST: "true"}, marks)
        return master

    async def _make_snapshot(
        self, name: str, objects: Sequence[Mapping[str, Any]], labels: dict[str, str], annotations: dict[str, str]
    ) -> None:
        meta = self._meta(name, labels=labels, annotations=annotations)
        body = {"metadata": meta, "spec": {"selectedResources": list(objects)}}
        await self.client.create(self.kinds.resource_snapshot, body, self.namespace)

    # The scheduler

    async def decide(self, *picked: str, left: Sequence[str] = (), status: str = TRUE, generation: int = 1) -> None:
        """The policy snapshot with these clusters picked, in this order; made if it is not there."""
        name = policy_snapshot_name(self.name, 0)
        try:
            await self.client.get(self.kinds.policy_snapshot, name, self.namespace)
        except NotFound:
            labels = {PARENT_PLACEMENT: self.name, IS_LATEST: "true", POLICY_INDEX: "0"}
            meta = self._meta(name, labels=labels, annotations={PLACEMENT_GENERATION: str(generation)})
            body = {"metadata": meta, "spec": {"policyHash": "eA=="}}
            await self.client.create(self.kinds.policy_snapshot, body, self.namespace)
        reason = POLICY_FULFILLED if status == TRUE else "SchedulingPolicyUnfulfilled"
        found = self._condition(SCHEDULED, status, reason, "found so many", 1)
        decisions = [self._decision(one, selected=True) for one in picked]
        decisions += [self._decision(one, selected=False) for one in left]
        said = {"observedCRPGeneration": generation, "conditions": [to_builtins(found)], "targetClusters": decisions}
        patch = MergePatch({"status": said})
        await self.client.patch(self.kinds.policy_snapshot, name, patch, self.namespace, subresource="status")

    def _decision(self, cluster: str, *, selected: bool) -> dict[str, Any]:
        return {"clusterName": cluster, "selected": selected, "reason": f"{cluster} was looked at"}

    async def bind(self, cluster: str, *, suffix: str = "0", **spec: Any) -> str:
        """A binding to a cluster, scheduled; gives its name."""
        name = f"{self.name}-{cluster}-{suffix}"
        wanted = {
            "state": "Scheduled",
            "resourceSnapshotName": "",
            "schedulingPolicySnapshotName": policy_snapshot_name(self.name, 0),
            "targetCluster": cluster,
            "clusterDecision": self._decision(cluster, selected=True),
            "applyStrategy": {"type": "ClientSideApply"},
            **spec,
        }
        meta = self._meta(name, labels={PARENT_PLACEMENT: self.name}, finalizers=[BINDING_CLEANUP])
        await self.client.create(self.kinds.binding, {"metadata": meta, "spec": wanted}, self.namespace)
        return name

    async def binding(self, name: str) -> Binding:
        return await self.client.get(self.kinds.binding, name, self.namespace)

    async def unbind(self, name: str) -> None:
        """Delete a binding, as the scheduler lets go of it."""
        await self.client.delete(self.kinds.binding, name, self.namespace)
        found = await self.binding(name)
        rest = [one for one in found.metadata.finalizers if one != BINDING_CLEANUP]
        await self.client.patch(
            self.kinds.binding, name, MergePatch({"metadata": {"finalizers": rest}}), self.namespace
        )

    # A rollout

    async def point(self, name: str, snapshot: str, *, started: bool = True, **spec: Any) -> None:
        """Give a binding these resources, and say so."""
        body = {"spec": {"state": "Bound", "resourceSnapshotName": snapshot, **spec}}
        await self.client.patch(self.kinds.binding, name, MergePatch(body), self.namespace)
        if started:
            await self.start(name)

    async def start(self, name: str, status: str = TRUE, reason: str = STARTED, message: str = "") -> None:
        """Say of a binding as it is now whether its rollout has started."""
        found = await self.binding(name)
        new = self._condition(ROLLOUT_STARTED, status, reason, message, found.metadata.generation)
        patch = MergePatch({"status": {"conditions": to_builtins(set_condition(found.status.conditions, new))}})
        await self.client.patch(
            self.kinds.binding,
            name,
            patch,
            self.namespace,
            resource_version=found.metadata.resource_version,
            subresource="status",
        )

    async def tell(self, name: str, *conditions: tuple[str, str, str, str], failed: Sequence[Any] = ()) -> None:
        """Say (type, status, reason, message) of a binding as it is now, in the place of all but RolloutStarted."""
        found = await self.binding(name)
        kept = [one for one in found.status.conditions if one.type == ROLLOUT_STARTED]
        said = [self._condition(*one, found.metadata.generation) for one in conditions]
        body = {"conditions": to_builtins([*kept, *said]), "failedPlacements": list(failed) or None}
        patch = MergePatch({"status": body})
        await self.client.patch(self.kinds.binding, name, patch, self.namespace, subresource="status")

    # A member's agent

    async def join(self, cluster: str) -> None:
        meta = {"name": member_namespace(cluster), "labels": {IS_FLEET_RESOURCE: "true"}}
        await self.client.create(Namespace, {"metadata": meta})

    async def work(self, cluster: str, part: int | None = None) -> Work:
        return await self.client.get(Work, work_name(self.name, self.namespace, part), member_namespace(cluster))

    async def take_up(self, cluster: str, part: int | None = None) -> None:
        """Put the agent's finalizer on a Work."""
        meta = (await self.work(cluster, part)).metadata
        patch = MergePatch({"metadata": {"finalizers": [WORK_CLEANUP]}})
        await self.client.patch(Work, meta.name, patch, meta.namespace)

    async def let_go(self, cluster: str, part: int | None = None) -> None:
        """Take the agent's finalizer off a Work: what it placed is gone."""
        meta = (await self.work(cluster, part)).metadata
        await self.client.patch(Work, meta.name, MergePatch({"metadata": {"finalizers": None}}), meta.namespace)

    async def report(
        self,
        cluster: str,
        part: int | None = None,
        *,
        applied: str = "",
        available: str = "",
        reason: str = ALL_AVAILABLE,
        generation: int | None = None,
    ) -> None:
        """Answer for a Work. `applied`, `available`: what is wrong with its first object; nothing if all is well."""
        found = await self.work(cluster, part)
        at = generation if generation is not None else found.metadata.generation
        said = SOME_NOT_AVAILABLE if available else reason
        conditions = [
            self._condition(APPLIED, TRUE, ALL_APPLIED, "", at),
            self._condition(AVAILABLE, FALSE if available else TRUE, said, available, at),
        ]
        if applied:
            conditions = [self._condition(APPLIED, FALSE, SOME_NOT_APPLIED, applied, at)]
        body = {"conditions": to_builtins(conditions), "manifestConditions": self._objects(found, applied, available)}
        meta = found.metadata
        await self.client.patch(Work, meta.name, MergePatch({"status": body}), meta.namespace, subresource="status")

    def _objects(self, work: Work, applied: str, available: str) -> list[dict[str, Any]]:
        told = []
        for ordinal, found in enumerate(work.spec.workload.manifests):
            wrong = ordinal == 0
            group, _, version = found["apiVersion"].rpartition("/")
            identifier = {"ordinal": ordinal, "group": group, "version": version, "kind": found["kind"]}
            names = {key: found["metadata"][key] for key in ("name", "namespace") if key in found["metadata"]}
            said = [
                self._condition(APPLIED, TRUE, "Applied", "", 1),
                self._condition(AVAILABLE, TRUE, "Available", "", 1),
            ]
            if wrong and applied:
                said = [self._condition(APPLIED, FALSE, MANIFEST_APPLY_FAILED, applied, 1)]
            elif wrong and available:
                said[1] = self._condition(AVAILABLE, FALSE, MANIFEST_NOT_AVAILABLE, available, 1)
            told.append({"identifier": identifier | names, "conditions": to_builtins(said)})
        return told

    # Looking

    async def until_binding(self, name: str, kind: str, reason: str | None, within: float = 20.0) -> Condition | None:
        """Wait until a binding says this of itself as it is now; None: until it says nothing."""
        seen: list[Condition | None] = [None]

        async def so() -> bool:
            found = await self.binding(name)
            seen[0] = find_condition(found.status.conditions, kind)
            if reason is None or seen[0] is None:
                return seen[0] is None and reason is None
            return seen[0].reason == reason and seen[0].observed_generation == found.metadata.generation

        await until_so(so, within)
        return seen[0]

    def _condition(self, kind: str, status: str, reason: str, message: str, generation: int) -> Condition:
        now = self.clock.now().replace(microsecond=0)
        return Condition(
            type=kind,
            status=status,
            reason=reason,
            message=message,
            last_transition_time=now,
            observed_generation=generation,
        )

    def _meta(self, name: str, **more: Any) -> dict[str, Any]:
        return {"name": name, **({"namespace": self.namespace} if self.namespace else {}), **more}

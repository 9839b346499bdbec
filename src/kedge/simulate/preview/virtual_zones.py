"""Virtual zones: an embedded server with the objects of a rollout group, and a change applied to them.

StatefulSets, pods and revisions keep their names, uids and statuses, so that the same pods are outdated as on the real
cluster. A change is applied as `kubectl apply --server-side` would: fields that the user's kubectl owned and the file
leaves out go, and what others own stays. Pods go to a node that takes all of them: where a real one finds its place is
not known here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any, Final

import msgspec

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import ControllerRevision, StatefulSet
from kedge.api.core import Namespace
from kedge.api.crd import Crd
from kedge.api.pods import Pod
from kedge.api.times import format_duration
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.kind import Kind
from kedge.embedded.store import AlreadyExists, key_of
from kedge.embedded.workloads.nodes import make_nodes
from kedge.embedded.workloads.revisions import content
from kedge.kube import errors
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.codec import Untyped, untyped
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from kedge.plan.previewing.durations import Durations
from kedge.plan.previewing.group_preview import ready_in
from kedge.plan.zoning.pods import REVISION, is_running_and_ready, revision
from kedge.simulate.preview.applied_owners import KUBECTL, as_applied
from kedge.simulate.preview.group_state import GroupState, controller_uid, is_stateful_set
from kedge.simulate.preview.zone_services import DownscaleWebhooks

NODE: Final = "node-1"
READY_AFTER, NEVER_READY = "kedge.dev/ready-after", "kedge.dev/never-ready"
_ELSEWHERE: Final = "not-simulated"
"""A node that is not there: what is on it stays as it is until it is deleted."""
_NOT_STORED: Final = ("managedFields", "selfLink")
_SETS: Final = untyped(StatefulSet.resource)


class VirtualZones:
    """The server to simulate on, and a client for it."""

    def __init__(
        self, cluster: EmbeddedCluster, clock: Clock, rng: Random, takes: Durations, webhooks: DownscaleWebhooks
    ) -> None:
        self.cluster = cluster
        self.client = Client(cluster.transport(), limiter=Limiter(rate=0))
        self._clock = clock
        self._rng = rng
        self._takes = takes
        self._webhooks = webhooks

    async def load(self, group: GroupState, definitions: Iterable[Crd], changed: Sequence[Untyped]) -> None:
        """Load the group and apply the change. Nothing happens to pods yet: no controller runs."""
        for definition in definitions:
            await self.client.create(untyped(CustomResourceDefinition.resource), definition)
        with suppress(errors.AlreadyExists):  # every server has some
            await self.client.create(Namespace, {"metadata": {"name": group.namespace}})
        await make_nodes(self.client, 1, self._clock)
        for one in [*group.all_sets, *group.others, *map(_at_rest, group.pods)]:
            self._put(one)
        for one in group.all_sets:
            await self._give_owners(one)
        await self._webhooks.install(self.client)
        for one in changed:
            await self.client.apply(untyped(self._kind(one).resource), one, manager=KUBECTL, force=True)
        wanted = [await self._timed(name) for name in _names(group.all_sets, changed)]
        for needed in _needed(wanted):
            self._put(needed)
        revisions = {one["metadata"]["uid"]: self._revisions(group, one) for one in wanted}
        for pod in group.pods:
            self._start(pod, group, revisions.get(controller_uid(pod), ""))

    async def _give_owners(self, one: Untyped) -> None:
        owners = one["metadata"].get("managedFields")
        if owners:
            patch = MergePatch({"metadata": {"managedFields": as_applied(owners)}})
            await self.client.patch(_SETS, one["metadata"]["name"], patch, one["metadata"]["namespace"])

    async def _timed(self, key: tuple[str, str]) -> Untyped:
        """Have the pods of a StatefulSet take the time that is expected of them. The StatefulSet after that."""
        place, name = key
        takes = format_duration(timedelta(seconds=self._takes.of(name).seconds))
        never = {NEVER_READY: "true"} if name in self._takes.failing else {}
        patch = MergePatch({"spec": {"template": {"metadata": {"annotations": {READY_AFTER: takes, **never}}}}})
        found: Untyped = await self.client.patch(_SETS, name, patch, place)
        return found

    # Revisions

    def _revisions(self, group: GroupState, wanted: Untyped) -> str:
        """Make the revisions of a StatefulSet. The name of the one that it asks for; empty if that is a new one."""
        before = next((one for one in group.all_sets if one["metadata"]["uid"] == wanted["metadata"]["uid"]), None)
        if before is None:
            return ""
        templates = _templates(group, before)
        goal = _bare(wanted["spec"]["template"])
        asked = next((name for name, template in reversed(templates.items()) if _bare(template) == goal), "")
        for number, (name, template) in enumerate(templates.items(), 1):
            held = wanted["spec"]["template"] if name == asked else template
            self._put(_revision(wanted, name, number, held))
        return asked

    # Pods

    def _start(self, pod: Untyped, group: GroupState, wanted: str) -> None:
        """Have a pod that is on its way and of the wanted revision become ready in its usual time."""
        typed, zone = msgspec.convert(pod, Pod), pod["metadata"]["ownerReferences"][0]["name"]
        if is_running_and_ready(typed) or revision(typed) != wanted:
            return
        left = ready_in(typed, self._takes.of(zone).seconds, group.taken)
        if left is not None:
            self._replace(_on_its_way(pod, left))

    # The store

    def _kind(self, obj: Untyped) -> Kind:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        wanted = (group, version, obj["kind"])
        kinds = self.cluster.server.registry.kinds()
        return next(one for one in kinds if (one.resource.group, one.resource.version, one.resource.kind) == wanted)

    def _put(self, obj: Untyped) -> None:
        """Store an object as it is, whatever a server would say of a new one."""
        meta = {name: value for name, value in obj["metadata"].items() if name not in _NOT_STORED}
        meta["uid"] = meta.get("uid") or str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        key = key_of(meta.get("namespace") or "", meta["name"])
        with suppress(AlreadyExists):
            self.cluster.server.store.create(self._kind(obj), key, {**obj, "metadata": meta})

    def _replace(self, obj: Untyped) -> None:
        kind, store = self._kind(obj), self.cluster.server.store
        current = store.all(kind).get(key_of(obj["metadata"]["namespace"], obj["metadata"]["name"]))
        meta = {name: value for name, value in obj["metadata"].items() if name not in _NOT_STORED}
        if current is not None:
            store.replace(kind, current, {**obj, "metadata": meta})


def _at_rest(pod: Untyped) -> Untyped:
    """A pod that stays as it is until it is deleted."""
    meta = {name: value for name, value in pod["metadata"].items() if name != "finalizers"}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": _ELSEWHERE}}


def _on_its_way(pod: Untyped, left: float) -> Untyped:
    """A pod that becomes ready in so many seconds."""
    annotations = pod["metadata"].get("annotations") or {}
    timed = {**annotations, READY_AFTER: format_duration(timedelta(seconds=left))}
    return {**pod, "metadata": {**pod["metadata"], "annotations": timed}, "spec": {**pod["spec"], "nodeName": NODE}}


def _names(sets: Iterable[Untyped], changed: Iterable[Untyped]) -> list[tuple[str, str]]:
    metas = [one["metadata"] for one in (*sets, *changed) if is_stateful_set(one)]
    return list(dict.fromkeys((meta["namespace"], meta["name"]) for meta in metas))


def _needed(sets: Iterable[Untyped]) -> Iterator[Untyped]:
    """What a server wants to see before it admits a pod: taken to be there, as it is on the real cluster."""
    for one in sets:
        spec, place = one["spec"]["template"]["spec"], {"namespace": one["metadata"]["namespace"]}
        account = {"name": spec.get("serviceAccountName") or "default", **place}
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}
        if name := spec.get("priorityClassName"):
            group = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            yield {**group, "metadata": {"name": name}, "value": spec.get("priority") or 0}
        if name := spec.get("runtimeClassName"):
            overhead = {"overhead": {"podFixed": spec["overhead"]}} if spec.get("overhead") else {}
            group = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
            yield {**group, "metadata": {"name": name}, "handler": name, **overhead}


def _templates(group: GroupState, one: Untyped) -> dict[str, Mapping[str, Any]]:
    """The templates of a StatefulSet's revisions, oldest first. One that may not be read is like no other."""
    uid, update = one["metadata"]["uid"], one["status"]["updateRevision"]
    known = [one for one in group.revisions if controller_uid(one) == uid]
    found = {each["metadata"]["name"]: _template_of(each) for each in sorted(known, key=lambda each: each["revision"])}
    running = [(pod["metadata"].get("labels") or {}).get(REVISION) for pod in group.pods if controller_uid(pod) == uid]
    for name in (*running, one["status"].get("currentRevision")):
        if name and name not in found:
            found = {name: {"metadata": {"annotations": {"kedge.dev/revision": name}}}, **found}
    found.pop(update, None)
    return {**found, update: one["spec"]["template"]}


def _template_of(held: Untyped) -> Mapping[str, Any]:
    template: Mapping[str, Any] = ((held.get("data") or {}).get("spec") or {}).get("template") or {}
    return template


def _revision(owner: Untyped, name: str, number: int, template: Mapping[str, Any]) -> Untyped:
    meta, resource = owner["metadata"], ControllerRevision.resource
    reference = {
        "apiVersion": StatefulSet.resource.api_version,
        "kind": StatefulSet.resource.kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    labels = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
    own = {"name": name, "namespace": meta["namespace"], "labels": labels, "ownerReferences": [reference]}
    data = content({key: value for key, value in template.items() if key != "$patch"})
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": own,
        "revision": number,
        "data": data,
    }


def _bare(template: Mapping[str, Any]) -> Any:
    """A template without what says nothing: empty values, how it is to be patched, and what we put into it."""
    return _without_empty({key: value for key, value in template.items() if key != "$patch"})


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {key: _without_empty(one) for key, one in value.items() if key not in (READY_AFTER, NEVER_READY)}
        return {key: one for key, one in kept.items() if one not in (None, {}, [], "")}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value

"""Endpoints: keeps the EndpointSlices and the Endpoints of every service with a selector true to its pods.

Decides in `endpoint_plan`; this is what is seen, and what is done about it. Services without a selector, and those that
are only a name for something outside, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from kedge.api.core import Endpoints, Service
from kedge.api.pods import Node, Pod
from kedge.api.policy import EndpointSlice
from kedge.embedded.workloads import endpoint_plan
from kedge.embedded.workloads.endpoint_plan import CHANGED, SERVICE_NAME, Slice
from kedge.embedded.workloads.owned import NAMESPACE, OWNER, reference_to
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import AlreadyExists, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.kube.store import Change


class EndpointKeeper:
    """The endpoints of the services of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._services = view.of(Service)
        self._slices = view.of(EndpointSlice)
        self._endpoints = view.of(Endpoints)

    def sources(self) -> Iterable[Source]:
        view, watch = self._view, self._view.cluster.watch
        return [
            view.itself(Service),
            watch(view.pods, to=self._in_front_of, when=_shows),
            watch(self._slices, to=_named_by_label),
            watch(self._endpoints),
            watch(view.nodes, to=self._everyone, when=_moves),
        ]

    async def reconcile(self, key: Key) -> Outcome:
        service = self._services.get(key.name, key.namespace)
        if service is None:
            await self._forget(key)
            return Outcome.done
        if service.spec.type == "ExternalName" or service.spec.selector is None:
            return Outcome.done
        if service.metadata.deletion_timestamp is None:
            chosen = self._chosen(service)
            await self._keep_slices(service, chosen)
            await self._keep_endpoints(service, chosen)
        return Outcome.done

    # What is seen

    def _chosen(self, service: Service) -> list[Pod]:
        around = self._view.pods.by(NAMESPACE, service.metadata.namespace or "")
        return [pod for pod in around if _selects(service, pod.metadata.labels)]

    def _in_front_of(self, seen: WatchedObject[Pod]) -> Iterable[Key]:
        around = self._services.by(NAMESPACE, seen.meta.namespace or "")
        return [_key(seen, one.metadata.name) for one in around if _selects(one, seen.meta.labels)]

    def _everyone(self, seen: WatchedObject[Node]) -> Iterable[Key]:
        return [Key(seen.cluster, one.metadata.namespace, one.metadata.name) for one in self._services.all()]

    # What is done

    async def _keep_slices(self, service: Service, chosen: list[Pod]) -> None:
        names = dict.fromkeys(pod.spec.node_name for pod in chosen)
        nodes = {name: node for name in names if (node := self._view.nodes.get(name)) is not None}
        wanted = endpoint_plan.slices(service, endpoint_plan.behind(service, chosen, nodes))
        for want, found in endpoint_plan.match(wanted, self._slices.by(OWNER, service.metadata.uid)):
            if want is None and found is not None:
                await self._delete_slice(found)
            elif want is not None and found is None:
                await self._create_slice(service, want)
            elif want is not None and found is not None:
                await self._change_slice(service, want, found, chosen)

    async def _create_slice(self, service: Service, want: Slice) -> None:
        meta = service.metadata
        body = {
            "metadata": {
                "generateName": f"{meta.name}-",
                "namespace": meta.namespace,
                "labels": endpoint_plan.slice_labels(service),
                "annotations": _since_birth(service),
                "ownerReferences": [reference_to(service)],
            },
            "addressType": want.family,
            "endpoints": want.endpoints,
            "ports": want.ports,
        }
        await self._view.client.create(EndpointSlice, body, manager=MANAGER)

    async def _change_slice(self, service: Service, want: Slice, found: EndpointSlice, chosen: list[Pod]) -> None:
        old = {
            "metadata": {"labels": dict(found.metadata.labels)},
            "endpoints": [_comparable(one) for one in found.endpoints or ()],
            "ports": [dict(port) for port in found.ports or ()],
        }
        new = {
            "metadata": {"labels": endpoint_plan.slice_labels(service)},
            "endpoints": [_comparable(one) for one in want.endpoints],
            "ports": list(want.ports),
        }
        when = endpoint_plan.trigger(chosen, endpoint_plan.shown_in(found))
        await self._patch(EndpointSlice, found, difference(old, new), when)

    async def _delete_slice(self, found: EndpointSlice) -> None:
        meta = found.metadata
        with suppress(NotFound):
            await self._view.client.delete(EndpointSlice, meta.name, meta.namespace, uid=meta.uid)

    async def _keep_endpoints(self, service: Service, chosen: list[Pod]) -> None:
        meta = service.metadata
        found = self._endpoints.get(meta.name, meta.namespace)
        labels, subsets = endpoint_plan.endpoints_labels(service), endpoint_plan.subsets(service, chosen)
        if found is not None:
            old = {"metadata": {"labels": dict(found.metadata.labels)}, "subsets": list(found.subsets or ())}
            new = {"metadata": {"labels": labels}, "subsets": subsets}
            when = endpoint_plan.trigger(chosen, endpoint_plan.shown_by(found))
            await self._patch(Endpoints, found, difference(old, new), when)
            return
        named = {"name": meta.name, "namespace": meta.namespace, "labels": labels}
        body = {"metadata": {**named, "annotations": _since_birth(service)}, "subsets": subsets}
        with suppress(AlreadyExists):  # the cache will show it, and wake this key
            await self._view.client.create(Endpoints, body, manager=MANAGER)

    async def _patch(
        self,
        kind: type[EndpointSlice] | type[Endpoints],
        found: EndpointSlice | Endpoints,
        change: dict[str, Any],
        when: str,
    ) -> None:
        """Write what changed, if anything did, and when, if a pod did it by becoming ready or ceasing to be."""
        if not change:
            return
        meta = found.metadata
        body = {**change, "metadata": {**change.get("metadata", {}), "annotations": {CHANGED: when or None}}}
        await self._view.client.amend(kind, meta, body, manager=MANAGER)

    async def _forget(self, key: Key) -> None:
        """Slices go with the service that owns them; the older form has no owner."""
        found = self._endpoints.get(key.name, key.namespace)
        ours = found is not None and endpoint_plan.ENDPOINTS_MANAGED_BY in found.metadata.labels
        if found is not None and ours:
            with suppress(NotFound):
                await self._view.client.delete(Endpoints, key.name, key.namespace, uid=found.metadata.uid)


def _since_birth(service: Service) -> dict[str, str]:
    born = service.metadata.creation_timestamp
    return {CHANGED: endpoint_plan.stamp(born)} if born else {}


def _selects(service: Service, labels: Mapping[str, str]) -> bool:
    selector = service.spec.selector
    return selector is not None and all(labels.get(key) == value for key, value in selector.items())


def _comparable(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    return {**endpoint, "addresses": list(endpoint["addresses"])}


def _named_by_label(seen: WatchedObject[EndpointSlice]) -> Iterable[Key]:
    name = seen.meta.labels.get(SERVICE_NAME)
    return [_key(seen, name)] if name else ()


def _key(seen: WatchedObject[Any], name: str) -> Key:
    return Key(seen.cluster, seen.meta.namespace, name)


def _shows(change: Change[Pod]) -> bool:
    """Whether a change of a pod can show behind a service."""
    return change.old is None or change.new is None or _face(change.old) != _face(change.new)


def _face(pod: Pod) -> tuple[Any, ...]:
    meta, status = pod.metadata, pod.status
    said = [(one.type, one.status) for one in status.conditions if one.type == "Ready"]
    return meta.labels, meta.deletion_timestamp is None, status.phase, status.pod_ip, status.pod_ips, said, pod.spec


def _moves(change: Change[Node]) -> bool:
    """Whether a node comes, goes, or is in another zone."""
    if change.old is None or change.new is None:
        return True
    return change.old.metadata.labels.get(endpoint_plan.ZONE) != change.new.metadata.labels.get(endpoint_plan.ZONE)

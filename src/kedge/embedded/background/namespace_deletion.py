"""Namespace deletion: deletes all objects of a terminating namespace, then the namespace itself.

Objects with finalizers are waited for; meanwhile the conditions of the namespace say which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from kedge.embedded.background.delayed_set import DelayedSet
from kedge.embedded.background.requests import BackgroundRequests
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.embedded.store import Change
from kedge.kube.codec import DELETED, Untyped
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request

_CALLER = Caller("system:serviceaccount:kube-system:namespace-controller", agent="kube-controller-manager")
_KIND = Kind(NAMESPACES)


class _Remaining(Struct, frozen=True):
    """What is still in a namespace: how many of each resource, and their finalizers."""

    resources: Mapping[str, int]
    finalizers: Mapping[str, int]


class NamespaceDeletion:
    """Deletes the content of terminating namespaces of one server, from `start` to `stop`."""

    def __init__(self, server: Server, delay: Callable[[], float]) -> None:
        self._server = server
        self._requests = BackgroundRequests(server)
        self._terminating: set[str] = set()  # never iterated
        self._pending = DelayedSet(self._delete_content, running=lambda: server.running, delay=delay)
        for version in server.store.all(_KIND).at(server.store.number).within(""):
            self._observe(version.decode())
        server.store.subscribe(self._on_change)

    def start(self) -> None:
        self._pending.start()

    def stop(self) -> None:
        self._pending.stop()
        self._requests.stop()

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind.resource == NAMESPACES and change.type == DELETED:
            self._terminating.discard(change.version.name)  # another of that name may be created and deleted
        elif kind.resource == NAMESPACES:
            self._observe(change.version.decode())
        elif change.type == DELETED and change.version.namespace in self._terminating:
            self._pending.add(change.version.namespace)

    def _observe(self, namespace: Untyped) -> None:
        name = namespace["metadata"]["name"]
        if namespace["metadata"].get("deletionTimestamp") and name not in self._terminating:
            self._terminating.add(name)
            self._pending.add(name)

    def _delete_content(self, name: str) -> None:
        found = self._server.store.all(_KIND).get(name)
        namespace = found.decode() if found is not None else None
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return
        for kind in self._kinds():
            self._send(name, "DELETE", kind.resource.path(name), {"propagationPolicy": "Background"})
        remaining = self._remaining(name)
        if remaining.resources:
            self._report(namespace, remaining)
        else:
            spared = [one for one in namespace["spec"]["finalizers"] if one != "kubernetes"]
            body = {**namespace, "spec": {"finalizers": spared}}
            self._send(name, "PUT", NAMESPACES.path(None, name, "finalize"), body)

    def _kinds(self) -> Iterable[Kind]:
        seen: dict[tuple[str, str], Kind] = {}
        for kind in self._server.registry.kinds():
            if kind.resource.namespaced:
                seen.setdefault((kind.resource.group, kind.resource.plural), kind)
        return seen.values()

    def _remaining(self, name: str) -> _Remaining:
        resources: dict[str, int] = {}
        finalizers: Counter[str] = Counter()
        for kind in self._kinds():
            snapshot = self._server.store.all(kind).at(self._server.store.number)
            if there := snapshot.count(f"{name}/"):
                resources[f"{kind.resource.plural}.{kind.resource.group}"] = there
                for version in snapshot.within(f"{name}/"):
                    finalizers.update(version.decode()["metadata"].get("finalizers", ()))
        return _Remaining(resources, dict(sorted(finalizers.items())))

    def _report(self, namespace: Untyped, remaining: _Remaining) -> None:
        before = {one["type"]: one for one in namespace["status"].get("conditions", [])}
        now = self._server.generator.now()
        conditions = [
            {**one, "lastTransitionTime": _since(before.get(one["type"]), one, now)} for one in _conditions(remaining)
        ]
        name = namespace["metadata"]["name"]
        path = NAMESPACES.path(None, name, "status")
        self._send(name, "PATCH", path, {"status": {"conditions": conditions}}, MergePatch.content_type)

    def _send(self, name: str, method: str, path: str, body: Untyped, content_type: str = "application/json") -> None:
        request = Request(method, path, body=msgspec.json.encode(body), content_type=content_type)
        self._requests.send(request, _CALLER, lambda: self._pending.add(name))


def _since(before: Untyped | None, condition: Mapping[str, str], now: str) -> str:
    same = before is not None and before["status"] == condition["status"]
    return str(before["lastTransitionTime"]) if before and same else now


def _conditions(remaining: _Remaining) -> list[dict[str, str]]:
    """The conditions of a namespace that waits for its content to be deleted."""
    resources = ", ".join(f"{name} has {count} resource instances" for name, count in remaining.resources.items())
    finalizers = ", ".join(f"{name} in {count} resource instances" for name, count in remaining.finalizers.items())
    held = f"Some content in the namespace has finalizers remaining: {finalizers}"
    rows = [
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", f"Some resources are remaining: {resources}"),
        ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", held)
        if remaining.finalizers
        else (
            "NamespaceFinalizersRemaining",
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]
    return [dict(zip(("type", "status", "reason", "message"), row, strict=True)) for row in rows]

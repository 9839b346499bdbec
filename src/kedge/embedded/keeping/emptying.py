"""Emptying: a namespace that is deleted loses all that is in it, and goes when nothing is left.

What is held by finalizers is waited for; meanwhile the namespace says what, in its conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from kedge.embedded.callers import Caller
from kedge.embedded.keeping.errands import Errands
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.server import Server
from kedge.embedded.store import Change, Untyped
from kedge.kube.codec import DELETED
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request

_CALLER = Caller("system:serviceaccount:kube-system:namespace-controller", agent="kube-controller-manager")
_KIND = Kind(NAMESPACES)


class _Left(Struct, frozen=True):
    """What is still in a namespace: how many of each resource, and held by which finalizers."""

    resources: Mapping[str, int]
    finalizers: Mapping[str, int]


class Emptying:
    """Empties the namespaces of one server, from `start` to `stop`."""

    def __init__(self, server: Server, delay: Callable[[], float]) -> None:
        self._server = server
        self._ending: set[str] = set()  # only asked whether a name is in it
        self._errands = Errands(self._empty, running=lambda: server.running, delay=delay)
        for version in server.store.all(_KIND).at(server.store.number).within(""):
            self._notice(version.decode())
        server.store.follow(self._follow)

    def start(self) -> None:
        self._errands.start()

    def stop(self) -> None:
        self._errands.stop()

    def _follow(self, kind: Kind, change: Change) -> None:
        if kind.resource == NAMESPACES and change.type == DELETED:
            self._ending.discard(change.version.name)  # another may come under its name, and go as well
        elif kind.resource == NAMESPACES:
            self._notice(change.version.decode())
        elif change.type == DELETED and change.version.namespace in self._ending:
            self._errands.add(change.version.namespace)

    def _notice(self, namespace: Untyped) -> None:
        name = namespace["metadata"]["name"]
        if namespace["metadata"].get("deletionTimestamp") and name not in self._ending:
            self._ending.add(name)
            self._errands.add(name)

    def _empty(self, name: str) -> None:
        found = self._server.store.all(_KIND).get(name)
        namespace = found.decode() if found is not None else None
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return
        for kind in self._kinds():
            self._send("DELETE", kind.resource.path(name), {"propagationPolicy": "Background"})
        left = self._left(name)
        if left.resources:
            self._tell(namespace, left)
        else:
            spared = [one for one in namespace["spec"]["finalizers"] if one != "kubernetes"]
            body = {**namespace, "spec": {"finalizers": spared}}
            self._send("PUT", NAMESPACES.path(None, name, "finalize"), body)

    def _kinds(self) -> Iterable[Kind]:
        seen: dict[tuple[str, str], Kind] = {}
        for kind in self._server.registry.kinds():
            if kind.resource.namespaced:
                seen.setdefault((kind.resource.group, kind.resource.plural), kind)
        return seen.values()

    def _left(self, name: str) -> _Left:
        resources: dict[str, int] = {}
        finalizers: Counter[str] = Counter()
        for kind in self._kinds():
            snapshot = self._server.store.all(kind).at(self._server.store.number)
            if there := snapshot.count(f"{name}/"):
                resources[f"{kind.resource.plural}.{kind.resource.group}"] = there
                for version in snapshot.within(f"{name}/"):
                    finalizers.update(version.decode()["metadata"].get("finalizers", ()))
        return _Left(resources, dict(sorted(finalizers.items())))

    def _tell(self, namespace: Untyped, left: _Left) -> None:
        before = {one["type"]: one for one in namespace["status"].get("conditions", [])}
        now = self._server.stamps.now()
        conditions = [
            {**one, "lastTransitionTime": _since(before.get(one["type"]), one, now)} for one in _conditions(left)
        ]
        path = NAMESPACES.path(None, namespace["metadata"]["name"], "status")
        self._send("PATCH", path, {"status": {"conditions": conditions}}, MergePatch.content_type)

    def _send(self, method: str, path: str, body: Untyped, content_type: str = "application/json") -> None:
        request = Request(method, path, body=msgspec.json.encode(body), content_type=content_type)
        self._server.handle(request, _CALLER)


def _since(before: Untyped | None, condition: Mapping[str, str], now: str) -> str:
    same = before is not None and before["status"] == condition["status"]
    return str(before["lastTransitionTime"]) if before and same else now


def _conditions(left: _Left) -> list[dict[str, str]]:
    """What Kubernetes says of a namespace that waits for its content to go."""
    resources = ", ".join(f"{name} has {count} resource instances" for name, count in left.resources.items())
    finalizers = ", ".join(f"{name} in {count} resource instances" for name, count in left.finalizers.items())
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
        if left.finalizers
        else (
            "NamespaceFinalizersRemaining",
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]
    return [dict(zip(("type", "status", "reason", "message"), row, strict=True)) for row in rows]

"""Weight: the bytes of memory an object takes in the store of an embedded server.

`stored` is right after it was made; `changed` after each was changed once: the store then remembers the last thousand
changes of the kind, and with them the versions before. Both as resident memory, and with the sizes of the Python
objects of the store added up, each counted once.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from kedge.embedded.kind import Kind
from kedge.embedded.server import Server
from kedge.kube.clock import SystemClock
from kedge.kube.transport import Request
from kedgebench.embedded import operations
from kedgebench.memory import deep_size, resident

MERGE = "application/merge-patch+json"
KINDS = {"configmaps": "/api/v1", "deployments": "/apis/apps/v1", "pods": "/api/v1"}
TITLES = {"configmaps": "ConfigMap", "deployments": "Deployment", "pods": "Pod"}


def measure(plural: str, count: int) -> dict[str, Any]:
    """Task: so many objects of this kind in an empty server."""
    server = Server(clock=SystemClock(), rng=Random(1))
    _ask(server, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})  # of pods
    _ask(server, "POST", f"{KINDS[plural]}/namespaces/default/{plural}", _body(plural, "warm-up"))
    empty, own = resident(), _held(server, plural)
    for number in range(count):
        _ask(server, "POST", f"{KINDS[plural]}/namespaces/default/{plural}", _body(plural, f"one-{number:05}"))
    stored, added_up = resident(), _held(server, plural)
    for number in range(count):
        path = f"{KINDS[plural]}/namespaces/default/{plural}/one-{number:05}"
        _ask(server, "PATCH", path, {"metadata": {"annotations": {"turn": str(number)}}}, MERGE)
    return {
        "stored": (stored - empty) / count,
        "stored_added_up": (added_up - own) / count,
        "changed": (resident() - empty) / count,
        "changed_added_up": (_held(server, plural) - own) / count,
        "wire": len(server.handle(Request("GET", path)).body),
    }


def _body(plural: str, name: str) -> dict[str, Any]:
    match plural:
        case "configmaps":
            return operations.config_map(name, "default")
        case "deployments":
            return operations.deployment(0, "default", name)
    return operations.pod(name, "default")


def _ask(server: Server, method: str, path: str, body: dict[str, Any], content_type: str = "application/json") -> None:
    answer = server.handle(Request(method, path, body=msgspec.json.encode(body), content_type=content_type))
    if answer.status >= 400:
        raise RuntimeError(answer.body.decode())


def _held(server: Server, plural: str) -> int:
    """Bytes of the versions and of the history of this kind."""
    collection = server.store.all(_kind(server, plural))
    versions = collection.at(server.store.number).within("")
    return deep_size([*versions], collection.since(_oldest(server, plural)))


def _oldest(server: Server, plural: str) -> int:
    return server.store.all(_kind(server, plural))._forgotten  # what is still remembered, and no more


def _kind(server: Server, plural: str) -> Kind:
    return next(kind for kind in server.registry.kinds() if kind.resource.plural == plural)

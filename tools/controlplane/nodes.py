"""Nodes: simulated ones, as objects of the API; KWOK makes them ready and runs their pods."""

from __future__ import annotations

from typing import Any

from controlplane.binaries import go_platform
from controlplane.rest import Server

_NODES = "/api/v1/nodes"


def create(server: Server, count: int) -> None:
    """Create `node-1`, `node-2`, … as a kubelet would register itself."""
    for number in range(1, count + 1):
        answer = server.ask("POST", _NODES, _node(f"node-{number}"))
        if answer.status not in (201, 409):
            raise OSError(f"node-{number} was refused: {answer.status} {answer.text}")


def are_ready(server: Server) -> bool:
    return all(_is_ready(node) for node in _list(server))


def take_pods(server: Server) -> bool:
    """Ready, and no taint left: a new node is tainted until the node-lifecycle controller has seen it ready."""
    return all(_is_ready(node) and not node["spec"].get("taints") for node in _list(server))


def _list(server: Server) -> list[dict[str, Any]]:
    answer = server.ask("GET", _NODES)
    if answer.status != 200:
        raise OSError(f"nodes cannot be listed: {answer.status} {answer.text}")
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _node(name: str) -> dict[str, Any]:
    _, goarch = go_platform()
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": goarch,
        "type": "kwok",
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}

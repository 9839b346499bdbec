"""A hub whose process is stopped, with SIGSTOP, and what `kedge status` says of it; on any two clusters."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import ConfigMap, Namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import AlreadyExists, NotFound
from kedge.kube.patches import MergePatch
from support.waiting import until_so

Where: TypeAlias = tuple[Path, str]
"""A kubeconfig, and a context of it."""
KEDGE = [sys.executable, "-m", "kedge"]
KINDS = {
    one.resource.kind: one.resource
    for one in (CustomResourceDefinition, Namespace, ConfigMap, ClusterResourcePlacement)
}
LEASE_SECONDS = 6
SECONDS = 120
SHOP: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "prices", "namespace": "shop"},
        "data": {"tea": "2"},
    },
    {
        "apiVersion": ClusterResourcePlacement.resource.api_version,
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": "shop"},
        "spec": {
            "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}],
            "policy": {"placementType": "PickAll"},
        },
    },
]


def a_frozen_hub_is_no_success(hub: Where, member: Where, folder: Path) -> None:
    """Place something, stop the hub's process, change what is placed and back again, and see what is said."""
    _install(hub, "hub")
    _install(member, "member", "cluster-1")
    told = ["hub", *_at(hub), "--lease-duration", str(LEASE_SECONDS)]
    agents = ["--hub-kubeconfig", str(hub[0]), "--hub-context", hub[1], "--kubeconfig", str(member[0])]
    with (
        _running(folder / "hub.log", *told) as process,
        _running(folder / "member.log", "member", *agents, "--member", f"cluster-1={member[1]}"),
    ):
        _kedge("join", "cluster-1", *_at(hub))
        _apply(hub, *SHOP)
        done = _status(hub, timeout=60)
        assert done.returncode == 0, done
        process.send_signal(signal.SIGSTOP)
        _apply(hub, {**SHOP[1], "data": {"tea": "3"}})
        behind = _status(hub, timeout=3 * LEASE_SECONDS)
        assert behind.returncode == 3, behind
        assert "what it selects has changed since revision" in behind.stdout
        assert "the hub was not heard from since 2" in behind.stdout
        _apply(hub, SHOP[1])
        silent = _status(hub, timeout=LEASE_SECONDS)
        assert silent.returncode == 1, silent
        assert silent.stderr.startswith("Error: the hub was not heard from since 2")


def _status(hub: Where, *, timeout: float) -> subprocess.CompletedProcess[str]:
    command = [*KEDGE, "status", "shop", *_at(hub), "--watch", "--timeout", str(timeout)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def _install(where: Where, *what: str) -> None:
    printed = _kedge("install", *what)
    kept = [
        one for one in yaml.safe_load_all(printed) if one and one["kind"] in ("CustomResourceDefinition", "Namespace")
    ]
    _apply(where, *kept)


def _apply(where: Where, *objects: dict[str, Any]) -> None:
    """Make these, or make them so; a kind that was just defined is not served at once."""

    async def apply() -> None:
        client = Client(HttpsTransport(await asyncio.to_thread(load, [where[0]], where[1])))
        try:
            for one in objects:
                await until_so(partial(_is_applied, client, one), 30)
        finally:
            await client.close()

    asyncio.run(apply())


async def _is_applied(client: Client, body: dict[str, Any]) -> bool:
    kind, meta = untyped(KINDS[body["kind"]]), body["metadata"]
    try:
        await client.create(kind, body, meta.get("namespace"))
    except AlreadyExists:
        await client.patch(kind, meta["name"], MergePatch(body), meta.get("namespace"))
    except NotFound:
        return False
    return True


def _at(where: Where) -> list[str]:
    return ["--kubeconfig", str(where[0]), "--context", where[1]]


def _kedge(*arguments: str) -> str:
    done = subprocess.run([*KEDGE, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def _running(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A role, until the context is left; one that is stopped cannot end in good order."""
    with log.open("wb") as errors, subprocess.Popen([*KEDGE, *arguments], stderr=errors) as process:
        try:
            yield process
        finally:
            process.kill()

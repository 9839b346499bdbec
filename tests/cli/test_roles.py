"""`kedge hub`, `kedge member` and `kedge join` as a user has them, on clusters that `kedge up --bare` keeps up."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.role_process import KEDGE, is_logged, running
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.cluster import MemberCluster
from kedge.api.condition import is_true
from kedge.api.coordination import Lease
from kedge.api.core import Namespace
from kedge.api.dialect import Dialect
from kedge.cli import manifests
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from support.waiting import until_so

CRDS = untyped(CustomResourceDefinition.resource)
HUB = manifests.hub(Dialect.seed, "kedge", 1)
MEMBER = manifests.member("any", "kedge")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a hub and two clusters."""
    path = tmp_path / "kubeconfig"
    up = ["up", "--bare", "--members", "2", "--kubeconfig", str(path), "--detach"]
    subprocess.run([*KEDGE, *up], check=True, timeout=60, stdout=subprocess.DEVNULL)
    yield path
    subprocess.run([*KEDGE, "down", "--kubeconfig", str(path)], check=True, timeout=60, stdout=subprocess.DEVNULL)


@asynccontextmanager
async def client(file: Path, context: str) -> AsyncIterator[Client]:
    made = Client(HttpsTransport(await asyncio.to_thread(load, [file], context)))
    try:
        yield made
    finally:
        await made.close()


async def install(file: Path, context: str, documents: list[dict[str, Any]]) -> None:
    async with client(file, context) as made:
        for document in documents:
            if document["kind"] == "CustomResourceDefinition":
                await made.create(CRDS, document)
            elif document["kind"] == "Namespace":
                await made.create(Namespace, document)


async def kedge(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *KEDGE, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


def served(log: Path) -> str:
    """Where a process says its health is."""
    found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
    assert found is not None
    return found[0]


async def asked(url: str) -> str:
    def ask() -> str:
        with urllib.request.urlopen(url, timeout=5) as answer:  # our own
            return str(answer.read().decode())

    return await asyncio.to_thread(ask)


@pytest.mark.timeout(400)
async def test_a_hub_and_one_process_for_two_members(file: Path, tmp_path: Path) -> None:
    await install(file, "hub", HUB)
    for name in ("cluster-1", "cluster-2"):
        await install(file, name, MEMBER)
    hub = ["hub", "--kubeconfig", str(file), "--context", "hub", "--health", "127.0.0.1:0", "--lease-duration", "20"]
    members = ["--member", "cluster-1=cluster-1", "--member", "east=cluster-2"]
    member = ["member", "--hub-kubeconfig", str(file), "--hub-context", "hub", "--kubeconfig", str(file), *members]
    hub_log, member_log = tmp_path / "hub.log", tmp_path / "member.log"
    async with client(file, "hub") as user, running(hub_log, *hub), running(member_log, *member):
        for name in ("cluster-1", "east"):
            join = ["join", name, "--kubeconfig", str(file), "--context", "hub", "--label", f"is={name}"]
            code, told = await kedge(*join)
            assert code == 0, told
            assert f"kedge install member {name} | kubectl apply -f -" in told
        code, told = await kedge(*join)
        assert (code, told.splitlines()[0].partition(":")[0]) == (0, "membercluster/east exists already")

        async def joined() -> bool:
            found = (await user.list(MemberCluster)).items
            return len(found) == 2 and all(is_true(one.status.conditions, "Joined") for one in found)

        await until_so(joined, 60)
        assert (await user.get(MemberCluster, "east")).metadata.labels["is"] == "east"
        lease = await user.get(Lease, "kedge-hub", "fleet-system")
        assert lease.spec.holder_identity
        assert lease.spec.lease_duration_seconds == 20
        url = await asyncio.to_thread(served, hub_log)
        assert await asked(f"{url}/healthz") == "ok\n"
        assert (await asked(f"{url}/readyz")).endswith("ready\n")
        assert 'leader_election_master_status{name="kedge-hub"} 1.0' in await asked(f"{url}/metrics")


@pytest.mark.timeout(200)
async def test_what_a_hub_lacks_is_said_once_with_what_to_do_and_it_goes_on_when_it_is_there(
    file: Path, tmp_path: Path
) -> None:
    hub = ["--kubeconfig", str(file), "--context", "hub"]
    log = tmp_path / "hub.log"
    async with client(file, "hub") as user, running(log, "hub", "--no-lease", *hub):
        code, told = await kedge("join", "cluster-1", *hub)
        assert code == 1
        assert "this cluster serves no MemberClusters: is it the hub? `kedge install hub |" in told
        await until_so(lambda: is_logged(log, "`kedge crds`"), 60)
        await install(file, "hub", [one for one in HUB if one["kind"] == "CustomResourceDefinition"])
        await until_so(lambda: is_logged(log, "hub serves all kinds that are needed now"), 60)
        code, told = await kedge("join", "cluster-1", *hub)
        assert code == 1
        assert "this cluster has no namespace fleet-system" in told
        assert (await user.list(MemberCluster)).items == ()
        await install(file, "hub", [one for one in HUB if one["kind"] == "Namespace"])
        code, told = await kedge("join", "cluster-1", *hub)
        assert code == 0, told
    lines = (await asyncio.to_thread(log.read_text)).splitlines()
    messages = [json.loads(line)["msg"] for line in lines if line.startswith("{")]
    assert len([message for message in messages if "404" in message or "does not serve" in message]) == 1


async def test_an_address_that_is_taken_is_named(file: Path) -> None:
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    told = ["hub", "--no-lease", "--kubeconfig", str(file), "--context", "hub", "--health", f"127.0.0.1:{port}"]
    async with asyncio.timeout(30):
        code, said = await kedge(*told)
    taken.close()
    await taken.wait_closed()
    assert code == 1
    assert "cannot listen there" in said


def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "clusters": [], "contexts": [], "users": []}))
    done = subprocess.run(
        [*KEDGE, "hub", "--kubeconfig", str(file), "--context", "nowhere"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")

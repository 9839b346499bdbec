"""`kedge plan` of a rollout group, against a cluster over HTTPS; and what it asks of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from kedge.api.core import Namespace
from kedge.api.zones import PAUSED
from kedge.cli import kubeconfig, main
from kedge.embedded.certificates import ServingCertificate
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.https_server import HttpsServer
from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.kube.clock import SystemClock
from kedge.kube.codec import Untyped
from kedge.kube.transport import Request, Response
from kedge.simulate.preview.group_state import GroupState
from simulate.preview.zone_cluster import NAMESPACE, ZONES, group_state, release, stateful_set, stored
from support.fleets import client_of

pytestmark = pytest.mark.timeout(400)
A, B, _ = ZONES


@pytest.fixture(scope="module")
def group() -> GroupState:
    """Three zones of three pods that took 20 s."""
    return group_state()


def saved(file: Path, *objects: Untyped) -> Path:
    file.write_text(yaml.safe_dump_all(objects))
    return file


class Served:
    """A cluster behind HTTPS, its kubeconfig, and what it is asked."""

    def __init__(self, cluster: EmbeddedCluster, file: Path) -> None:
        self.cluster = cluster
        self.requests: list[Request] = []
        self._file = file
        self._respond = cluster.server.respond
        cluster.server.respond = self._responded  # type: ignore[method-assign]  # nobody else listens here

    async def _responded(self, request: Request, caller: Caller = IN_PROCESS) -> Response:
        self.requests.append(request)
        return await self._respond(request, caller)

    async def plan(self, *args: object) -> Result:
        words = ["plan", *map(str, args)]
        runner = CliRunner(env={"KUBECONFIG": str(self._file)})
        return await asyncio.to_thread(runner.invoke, main, words, catch_exceptions=False)

    async def told(self, *args: object) -> Mapping[str, Any]:
        result = await self.plan(*args, "-o", "json")
        assert result.exit_code in (0, 3), result.output
        found: Mapping[str, Any] = msgspec.json.decode(result.stdout)
        return found


@asynccontextmanager
async def served(group: GroupState, file: Path) -> AsyncIterator[Served]:
    serving = await asyncio.to_thread(ServingCertificate, datetime.now(UTC))
    cluster = EmbeddedCluster("cluster", clock=SystemClock(), rng=Random("served"))
    async with client_of(cluster) as client:
        await client.create(Namespace, {"metadata": {"name": NAMESPACE}})
    stored(group, cluster)
    door = HttpsServer(cluster.server, tokens={"secret": Caller()}, tls=serving.context)
    await door.open()
    await asyncio.to_thread(kubeconfig.write, file, {"cluster": door.url}, authority=serving.authority, token="secret")
    try:
        yield Served(cluster, file)
    finally:
        await door.close()
        cluster.stop()


def lines_of(result: Result) -> list[str]:
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


async def test_a_release_is_told_wave_by_wave_and_nothing_is_written(group: GroupState, tmp_path: Path) -> None:
    file = saved(tmp_path / "release.yaml", *release("app:2"))
    async with served(group, tmp_path / "kubeconfig") as cluster:
        before = cluster.cluster.server.store.number
        result = await cluster.plan("-f", file)
        assert cluster.cluster.server.store.number == before
        assert {request.method for request in cluster.requests} == {"GET"}
    assert result.exit_code == 0, result.output
    lines = lines_of(result)
    assert lines[:8] == [
        "rollout group mimir/ingester: 9 of 9 pods would be replaced",
        "WAVE FROM TO ZONE PODS",
        "1 +0s +20s ingester-zone-a ingester-zone-a-0 and ingester-zone-a-1",
        "2 +20s +40s ingester-zone-a ingester-zone-a-2",
        "3 +40s +1m ingester-zone-b ingester-zone-b-0 and ingester-zone-b-1",
        "4 +1m +1m 20s ingester-zone-b ingester-zone-b-2",
        "5 +1m 20s +1m 40s ingester-zone-c ingester-zone-c-0 and ingester-zone-c-1",
        "6 +1m 40s +2m ingester-zone-c ingester-zone-c-2",
    ]
    assert lines[8].startswith("ends after 2m, at ")
    assert lines[9] == "pods are taken to be ready 20s after they are created, the median of 9 measured"
    assert lines[-1] == "This is a preview: nothing was written to any cluster."


async def test_a_group_is_named_and_told_as_data(group: GroupState, tmp_path: Path) -> None:
    async with served(group, tmp_path / "kubeconfig") as cluster:
        for name in (("group/ingester", "-n", NAMESPACE), (f"{NAMESPACE}/ingester",)):
            result = await cluster.plan(*name)
            assert result.exit_code == 0, result.output
            assert lines_of(result)[:2] == [
                "rollout group mimir/ingester: no pod would move",
                "every pod is updated and ready",
            ]
        paused = stateful_set(A, "app:2", annotations={PAUSED: "true"})
        file = saved(tmp_path / "paused.yaml", paused, stateful_set(B, "app:2"))
        found = await cluster.told("-f", file, "--ready-after", "5s")
    (told,) = found["groups"]
    assert (found["done"], told["is_done"], told["ends"]) == (False, False, None)
    assert [move["pod"] for move in told["moves"]] == [f"{B}-0", f"{B}-1", f"{B}-2"]
    assert told["stays"] == [
        {
            "zone": A,
            "why": f"it is paused; removing its annotation {PAUSED} lets it go on",
            "outdated": 3,
            "pods": 3,
        }
    ]
    assert told["takes"] == {B: {"seconds": 5.0, "source": "told", "first": False}}


async def test_what_is_wrong_is_said_in_a_sentence(group: GroupState, tmp_path: Path) -> None:
    typo = saved(tmp_path / "typo.yaml", stateful_set(A, replica=3))
    good = saved(tmp_path / "good.yaml", stateful_set(A, "app:2"))
    table = {
        ("-f", typo): "the cluster would refuse it: ",
        (
            "-f",
            good,
            "-n",
            "other",
        ): 'the namespace from the provided object "mimir" does not match the namespace "other"',
        ("-f", good, "--fail", "ingester-zone-x"): "--fail ingester-zone-x: the group has no such zone, but ",
        ("group/compactor", "-n", NAMESPACE): "there is no rollout group compactor in namespace mimir",
        ("-f", good, "--save", tmp_path / "fleet.yaml"): "--save saves a fleet: leave it out for a rollout group",
    }
    async with served(group, tmp_path / "kubeconfig") as cluster:
        for args, sentence in table.items():
            result = await cluster.plan(*args)
            assert result.exit_code in (1, 2), (args, result.output)
            assert sentence in result.stderr, (args, result.stderr)

"""The process of an operator, on a cluster that `kedge up --bare` keeps up."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry

from cli.role_process import KEDGE, is_logged, serving
from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.cli.operator_http import OperatorHttp
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.health import Address, Check
from kedge.kube.patches import MergePatch
from support.waiting import until_so

SETS, PODS = untyped(StatefulSet.resource), untyped(Pod.resource)
UNHEARD = "secret-path"


@pytest.fixture
async def session() -> AsyncIterator[ClientSession]:
    async with ClientSession() as session:
        yield session


async def test_ready_is_500_until_the_checks_pass_and_has_no_body(session: ClientSession) -> None:
    http = OperatorHttp(CollectorRegistry())
    problem = "waits for the caches"
    async with http.serve(Address(port=0)) as url:

        async def ready() -> tuple[int, bytes]:
            async with session.get(f"{url}/ready") as answer:
                return answer.status, await answer.read()

        assert await ready() == (500, b""), "nothing has been started"
        http.watch(lambda: [Check("controller", problem)])
        assert await ready() == (500, b"")
        problem = ""
        assert await ready() == (200, b"")
        async with session.get(f"{url}/readyz") as answer:
            assert await answer.text() == "[+] controller ok\nready\n"


@pytest.mark.parametrize("path", ["/debug/pprof", "/debug/pprof/", "/debug/pprof/heap"])
async def test_there_is_no_pprof_and_it_says_so(session: ClientSession, path: str) -> None:
    http = OperatorHttp(CollectorRegistry())
    async with http.serve(Address(port=0)) as url, session.get(url + path) as answer:
        assert answer.status == 404
        assert "py-spy" in await answer.text()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of one cluster, of the name hub."""
    path = tmp_path / "kubeconfig"
    up = ["up", "--bare", "--members", "0", "--kubeconfig", str(path), "--detach"]
    subprocess.run([*KEDGE, *up], check=True, timeout=60, stdout=subprocess.DEVNULL)
    yield path
    subprocess.run([*KEDGE, "down", "--kubeconfig", str(path)], check=True, timeout=60, stdout=subprocess.DEVNULL)


@pytest.mark.timeout(200)
async def test_the_peers_command_line_runs_with_its_logs_and_endpoints(
    file: Path, tmp_path: Path, session: ClientSession
) -> None:
    server = (await asyncio.to_thread(load, [file], "hub")).server
    arguments = ["-kubernetes.namespace=default", f"-kubernetes.api-url={server}", "-server.port=0",
                 f"-kubernetes.config-file={file}", "-log.level", "info", "stray"]  # fmt: skip
    log = tmp_path / "log"
    traces = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://nowhere:4318", "OTEL_TRACES_SAMPLER": "always_on",
              "JAEGER_AGENT_HOST": "nowhere"}  # fmt: skip
    async with serving(log, "rollout-operator", *arguments, **traces) as url:

        async def ready() -> bool:
            async with session.get(f"{url}/ready") as answer:
                return answer.status == 200

        await until_so(ready, 60)
        async with session.get(f"{url}/metrics") as answer:
            text = await answer.text()
        assert "rollout_operator_kubernetes_api_client_request_duration_seconds_bucket{" in text
    lines = (await asyncio.to_thread(log.read_text)).splitlines()
    assert all(re.match(r"ts=\S+Z level=(info|warn) logger=kedge\S* msg=", line) for line in lines), lines
    assert any("traces are not exported" in line for line in lines)
    assert any("ignored" in line and "stray" in line for line in lines)


@pytest.mark.timeout(200)
async def test_an_operator_with_a_lease_is_ready_and_says_so_in_json(
    file: Path, tmp_path: Path, session: ClientSession
) -> None:
    arguments = ["--kubeconfig", str(file), "--context", "hub", "-A", "-n", "default", "--lease",
                 "--health", "127.0.0.1:0", "--log-format", "json"]  # fmt: skip
    async with serving(tmp_path / "log", "operator", *arguments) as url:

        async def leads() -> bool:
            async with session.get(f"{url}/metrics") as answer:
                return 'leader_election_master_status{name="kedge-operator"} 1.0' in await answer.text()

        await until_so(leads, 60)


@pytest.mark.timeout(300)
async def test_of_two_replicas_one_leads_and_both_are_ready_for_webhooks(
    file: Path, tmp_path: Path, session: ClientSession
) -> None:
    arguments = ["operator", "--kubeconfig", str(file), "--context", "hub", "-n", "default", "--lease", "--webhooks",
                 "--webhooks-port", "0", "--health", "127.0.0.1:0"]  # fmt: skip

    async def is_ready(url: str) -> bool:
        async with session.get(f"{url}/ready") as answer:
            return answer.status == 200

    async with serving(tmp_path / "first", *arguments) as first:
        await until_so(lambda: is_logged(tmp_path / "first", "leading: lease"), 60)
        async with serving(tmp_path / "second", *arguments) as second:
            for url in (first, second):
                await until_so(partial(is_ready, url), 60)
            assert not await is_logged(tmp_path / "second", "leading: lease")


@pytest.mark.timeout(300)
async def test_a_rollout_group_is_rolled_out_and_counted(tmp_path: Path, session: ClientSession) -> None:
    file = tmp_path / "kubeconfig"
    up = ["up", "--bare", "--members", "1", "--kubeconfig", str(file), "--detach"]
    await asyncio.to_thread(subprocess.run, [*KEDGE, *up], check=True, timeout=60, stdout=subprocess.DEVNULL)
    connection = await asyncio.to_thread(load, [file], "cluster-1")
    user = Client(HttpsTransport(connection))
    mine = await asyncio.to_thread(cluster_1, file)
    arguments = ["-kubernetes.namespace=default", f"-kubernetes.api-url={connection.server}", "-server.port=0",
                 f"-kubernetes.config-file={mine}", "-kubernetes.client-qps=0",
                 f"-notifications={await asyncio.to_thread(unheard, tmp_path)}"]  # fmt: skip
    try:
        async with serving(tmp_path / "log", "rollout-operator", *arguments) as url:
            await make_group(user, "app:1")
            await until_so(lambda: all_run(user, "app:1"), 60)
            await change_group(user, "app:2")
            await until_so(lambda: all_run(user, "app:2"), 60)
            async with session.get(f"{url}/metrics") as answer:
                text = await answer.text()
            assert re.search(r'rollout_operator_group_reconciles_total{rollout_group="ingester"} [1-9]', text)
            assert 'kedge_notifications_sent_total{receiver="nobody"} 0.0' in text
            assert UNHEARD not in text
            # A pod or a status that changed meanwhile is a conflict, which counts as a failure: there may be some.
            assert 'rollout_operator_group_reconciles_failed_total{rollout_group="ingester"}' in text
            async with session.get(f"{url}/debug/pprof/heap") as answer:
                assert answer.status == 404
            async with session.get(f"{url}/metrics") as answer:
                text = await answer.text()
            for route in ("metrics", "debug_pprof"):
                assert f'rollout_operator_request_message_bytes_count{{method="GET",route="{route}"}}' in text
        assert await is_logged(tmp_path / "log", "a notification was not received, and is tried again")
        assert not await is_logged(tmp_path / "log", UNHEARD)
    finally:
        await user.close()
        down = ["down", "--kubeconfig", str(file)]
        await asyncio.to_thread(subprocess.run, [*KEDGE, *down], check=True, timeout=60, stdout=subprocess.DEVNULL)


def unheard(folder: Path) -> Path:
    """Notifications for somebody who is not there."""
    file = folder / "notifications.yaml"
    file.write_text(f"receivers: [{{name: nobody, webhook: {{url: 'http://127.0.0.1:9/{UNHEARD}'}}}}]")
    return file


def cluster_1(file: Path) -> Path:
    """The same kubeconfig, for its member: the peer has no flag for a context."""
    own = yaml.safe_load(file.read_text())
    own["current-context"] = "cluster-1"
    mine = file.with_name("cluster-1")
    mine.write_text(yaml.safe_dump(own))
    return mine


async def make_group(user: Client, image: str) -> None:
    for name in ("ingester-zone-a", "ingester-zone-b"):
        spec = {
            "replicas": 2,
            "serviceName": name,
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"name": name}},
            "template": {"metadata": {"labels": {"name": name}}, "spec": pod_spec(image)},
        }
        meta = {"name": name, "labels": {"rollout-group": "ingester"}}
        await user.create(SETS, {"metadata": meta, "spec": spec}, "default")


async def change_group(user: Client, image: str) -> None:
    for name in ("ingester-zone-a", "ingester-zone-b"):
        await user.patch(SETS, name, MergePatch({"spec": {"template": {"spec": pod_spec(image)}}}), "default")


def pod_spec(image: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": image}]}


async def all_run(user: Client, image: str) -> bool:
    pods = (await user.list(PODS, "default")).items
    images = [pod["spec"]["containers"][0]["image"] for pod in pods]
    return images == [image] * 4 and all(pod["status"].get("phase") == "Running" for pod in pods)


async def test_a_port_that_is_taken_is_named(file: Path) -> None:
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    arguments = ["operator", "-n", "default", "--kubeconfig", str(file), "--context", "hub",
                 "--health", f"127.0.0.1:{port}"]  # fmt: skip
    process = await asyncio.create_subprocess_exec(*KEDGE, *arguments, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        _, said = await process.communicate()
    taken.close()
    await taken.wait_closed()
    assert process.returncode == 1
    assert b"cannot listen there" in said

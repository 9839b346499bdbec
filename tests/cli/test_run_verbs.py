"""The verbs of staged update runs, against a fleet that `kedge up` keeps up, over HTTPS, as a user has them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.test_verbs import SECONDS, kedge, on, shown, up
from kedge.api.cluster import MemberCluster
from kedge.api.core import ConfigMap, Namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.staged import ClusterStagedUpdateRun, ClusterStagedUpdateStrategy
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch

pytestmark = pytest.mark.timeout(400)
SELECTOR = {"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a fleet with two members, in a stage each, and a placement that runs move."""
    file = tmp_path_factory.mktemp("fleet") / "kubeconfig"
    up(file, "--members", "2")
    on(file, _prepare)
    yield file
    subprocess.run([sys.executable, "-m", "kedge", "down", "--kubeconfig", str(file)], check=True, timeout=SECONDS)


async def _prepare(client: Client) -> None:
    for name in ("cluster-1", "cluster-2"):
        await client.patch(MemberCluster, name, MergePatch({"metadata": {"labels": {"stage": name[-1]}}}))
    await client.create(Namespace, {"metadata": {"name": "shop"}})
    await client.create(ConfigMap, {"metadata": {"name": "c", "namespace": "shop"}, "data": {"a": "0"}}, "shop")
    spec = {"resourceSelectors": [SELECTOR], "strategy": {"type": "External"}}
    await client.create(ClusterResourcePlacement, {"metadata": {"name": "web"}, "spec": spec})
    stages = [
        {"name": "first", "labelSelector": {"matchLabels": {"stage": "1"}}, "afterStageTasks": [{"type": "Approval"}]},
        {"name": "second", "labelSelector": {"matchLabels": {"stage": "2"}}},
    ]
    await client.create(ClusterStagedUpdateStrategy, {"metadata": {"name": "careful"}, "spec": {"stages": stages}})


def start(file: Path, name: str, **spec: Any) -> None:
    async def make(client: Client) -> None:
        given = {"placementName": "web", "stagedRolloutStrategyName": "careful", **spec}
        await client.create(ClusterStagedUpdateRun, {"metadata": {"name": name}, "spec": given})

    on(file, make)


def story(file: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(kedge(file, "status", name, "-o", "json").stdout)
    return found


def until(file: Path, name: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds(found := story(file, name)):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def test_a_run_is_stopped_resumed_approved_and_followed(fleet: Path) -> None:
    start(fleet, "one")
    until(fleet, "one", lambda run: "waits for approval" in run["why"])
    asked = kedge(fleet, "status", "one")
    assert asked.exit_code == 3
    assert "1/1" in asked.stdout
    assert "0/1" in asked.stdout
    assert "kedge approve one first" in asked.stdout
    assert "one stops: what is on its way arrives" in shown(fleet, "stop", "one")
    until(fleet, "one", lambda run: run["state"] == "paused")
    assert shown(fleet, "resume", "one") == "one goes on\n"
    until(fleet, "one", lambda run: "waits for approval" in run["why"])
    refused = kedge(fleet, "approve", "one", "second")
    assert refused.stderr == "Error: one does not ask about second: it asks about first\n"
    assert shown(fleet, "approve", "one", "-m", "looks good") == "stage first of one is approved\n"
    followed = shown(fleet, "status", "one", "--watch", "--timeout", "60")
    assert followed.splitlines()[-1] == "run one: succeeded: first 1/1, second 1/1"
    assert shown(fleet, "status", "one", "-w").endswith("first 1/1, second 1/1\n")

    async def told(client: Client) -> None:
        run = await client.get(ClusterStagedUpdateRun, "one")
        said = run.status.stages_status[0].after_stage_task_status[0].conditions[1].message
        assert said.endswith(": looks good")

    on(fleet, told)
    for verb in ("stop", "approve", "retry", "rollback"):
        assert kedge(fleet, verb, "one").exit_code == 1


def test_a_run_that_is_not_there_is_answered_with_those_that_are(fleet: Path) -> None:
    refused = kedge(fleet, "approve", "nope")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: there is no ClusterStagedUpdateRun nope")

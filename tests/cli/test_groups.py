"""`kedge get groups`, `kedge status GROUP` and `kedge explain GROUP|POD`, on a cluster that `kedge up` keeps up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import StatefulSet
from kedge.api.core import Namespace
from kedge.api.crd import crd
from kedge.api.pods import Pod
from kedge.api.zones import ZoneAwarePodDisruptionBudget
from kedge.cli import main
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.waiting import until_so

SECONDS = 120
SETS, BUDGETS = untyped(StatefulSet.resource), untyped(ZoneAwarePodDisruptionBudget.resource)
KEDGE = [sys.executable, "-m", "kedge"]
pytestmark = pytest.mark.timeout(400)  # a process of its own


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a cluster whose current context is in the namespace prod. A rollout group runs there."""
    file = tmp_path_factory.mktemp("cluster") / "kubeconfig"
    up = ["up", "--bare", "--members", "1", "--kubeconfig", str(file), "--detach"]
    subprocess.run([*KEDGE, *up], check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)
    own = yaml.safe_load(file.read_text())
    own["current-context"] = "cluster-1"
    for context in own["contexts"]:
        context["context"]["namespace"] = "prod"
    mine = file.with_name("mine")
    mine.write_text(yaml.safe_dump(own))
    on(mine, make)
    until(mine, lambda result: result.exit_code == 0, "status", "ingester")
    yield mine
    subprocess.run([*KEDGE, "down", "--kubeconfig", str(file)], check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)


async def make(client: Client) -> None:
    await client.create(Namespace, {"metadata": {"name": "prod"}})
    for zone in ("a", "b"):
        name = f"ingester-zone-{zone}"
        labels = {"name": name}
        spec = {
            "replicas": 2,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "app:1"}]}},
        }
        meta = {"name": name, "labels": {"rollout-group": "ingester"}}
        await client.create(SETS, {"metadata": meta, "spec": spec}, "prod")


def on(file: Path, do: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def doing() -> None:
        client = Client(HttpsTransport(await asyncio.to_thread(load, [file])))
        try:
            await do(client)
        finally:
            await client.close()

    asyncio.run(doing())


def kedge(file: Path, *arguments: str) -> Result:
    return CliRunner(env={"KUBECONFIG": str(file)}).invoke(main, arguments, catch_exceptions=False)


def until(file: Path, holds: Callable[[Result], bool], *arguments: str) -> Result:
    deadline = time.monotonic() + SECONDS
    while not holds(found := kedge(file, *arguments)):
        assert time.monotonic() < deadline, found.output
        time.sleep(0.1)
    return found


@pytest.fixture
def outdated(cluster: Path) -> Iterator[Path]:
    """The cluster, with a change in both zones that nobody has rolled out."""

    async def change(client: Client) -> None:
        for zone in ("a", "b"):
            pod = {"spec": {"containers": [{"name": "c", "image": f"app:{time.monotonic_ns()}"}]}}
            await client.patch(SETS, f"ingester-zone-{zone}", MergePatch({"spec": {"template": pod}}), "prod")

    on(cluster, change)
    until(cluster, lambda result: "0 of 4 pods updated" in result.output, "status", "ingester")
    yield cluster
    on(cluster, delete_pods)
    until(cluster, lambda result: result.exit_code == 0, "status", "ingester")


async def delete_pods(client: Client) -> None:
    for pod in (await client.list(Pod, "prod")).items:
        await client.delete(Pod, pod.metadata.name, "prod")


def test_groups_are_listed(cluster: Path) -> None:
    for arguments in (
        ("get", "groups"),
        ("get", "group", "ingester"),
        ("get", "groups", "prod/ingester", "-n", "prod"),
    ):
        result = kedge(cluster, *arguments)
        assert result.exit_code == 0, result.output
        head, line = result.output.splitlines()
        assert head.split() == ["GROUP", "ZONES", "UPDATED", "READY", "STATE", "WHY"]
        assert line.split() == ["prod/ingester", "2", "4/4", "4/4", "available"]
    assert "there are no rollout groups in namespace default" in kedge(cluster, "get", "groups", "-n", "default").output
    missing = kedge(cluster, "get", "groups", "store")
    assert missing.exit_code == 1
    assert "there is no rollout group store: there is prod/ingester" in missing.output


def test_a_group_that_is_done_is_shown_and_exits_with_0(cluster: Path) -> None:
    for name in ("ingester", "prod/ingester", "group/ingester"):
        result = kedge(cluster, "status", name)
        assert result.exit_code == 0, result.output
        lines = [line[2:] for line in result.output.splitlines()]
        assert lines[0] == "rollout group prod/ingester  4 of 4 pods updated, 4 ready; 2 zones"


def test_a_group_that_is_not_done_exits_with_3_and_names_what_is_next(outdated: Path) -> None:
    result = kedge(outdated, "status", "ingester")
    assert result.exit_code == 3
    assert "1 pod to be deleted now: ingester-zone-a-0" in result.output
    assert "ingester-zone-b  0 of 2 pods updated, 2 ready, waits: ingester-zone-a is rolled out first" in result.output


def test_waits_are_data(outdated: Path) -> None:
    result = kedge(outdated, "status", "ingester", "-o", "json")
    assert result.exit_code == 3
    found = msgspec.json.decode(result.stdout)
    assert (found["state"], found["updated"], found["ready"], found["done"]) == ("moving", 0, 4, False)
    assert found["deletes"] == ["ingester-zone-a-0"]
    wait = found["zones"][1]["wait"]
    assert (wait["code"], wait["numbers"]) == ("OtherZone", {"updated": 0, "pods": 2})
    assert yaml.safe_load(kedge(outdated, "explain", "ingester", "-o", "yaml").stdout)["zones"][1]["wait"] == wait


def test_a_group_a_zone_and_a_pod_are_explained(outdated: Path) -> None:
    group = kedge(outdated, "explain", "ingester").output.splitlines()
    assert group[0] == "rollout group prod/ingester is moving: 0 of 4 pods updated, 4 ready; 2 zones"
    zone = kedge(outdated, "explain", "ingester", "ingester-zone-b").output
    assert zone.startswith("ingester-zone-b: 0 of 2 pods updated, 2 ready, waits: ingester-zone-a is rolled out first")
    for arguments in (["ingester-zone-b-1"], ["pod/ingester-zone-b-1"], ["ingester", "ingester-zone-b-1"],
                      ["prod/ingester-zone-b-1"]):  # fmt: skip
        pod = kedge(outdated, "explain", *arguments).output
        assert pod.startswith(
            "pod ingester-zone-b-1 of rollout group prod/ingester, zone ingester-zone-b: ready, revision "
        ), pod
        assert "outdated, waits: ingester-zone-a is rolled out first" in pod
    found = msgspec.json.decode(kedge(outdated, "explain", "pod/ingester-zone-a-0", "-o", "json").stdout)
    assert (found["group"], found["zone"], found["state"]) == ("prod/ingester", "ingester-zone-a", "next")
    wrong = kedge(outdated, "explain", "ingester", "nothing")
    assert wrong.exit_code == 1
    assert "its zones are ingester-zone-a and ingester-zone-b" in wrong.output


def test_a_group_is_watched_until_it_is_done(outdated: Path) -> None:
    late = kedge(outdated, "status", "ingester", "--watch", "--timeout", "1")
    assert late.exit_code == 3
    assert "rollout group prod/ingester: 0 of 4 pods updated, 4 ready; 2 zones" in late.output
    on(outdated, delete_pods)
    done = kedge(outdated, "status", "ingester", "--watch", "--timeout", str(SECONDS))
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].startswith("  ingester-zone-"), "the last line is the last change"


def test_a_disruption_budget_that_keeps_a_pod_is_explained(outdated: Path) -> None:
    definition = crd(ZoneAwarePodDisruptionBudget)  # here: it reads files

    async def guard(client: Client) -> None:
        await client.create(untyped(CustomResourceDefinition.resource), definition)
        await until_so(lambda: is_served(client), 30)
        spec = {"selector": {"matchLabels": {"name": "ingester-zone-a"}}, "maxUnavailable": 1}
        await client.create(BUDGETS, {"metadata": {"name": "pods"}, "spec": spec}, "prod")

    async def unguard(client: Client) -> None:
        await client.delete(BUDGETS, "pods", "prod")

    on(outdated, guard)
    told = kedge(outdated, "explain", "ingester-zone-a-0")
    on(outdated, unguard)
    assert "minimum number of StatefulSets not found" in told.output
    assert "is deleted next" not in told.output


async def is_served(client: Client) -> bool:
    with suppress(NotFound):
        await client.list(BUDGETS, "prod")
        return True
    return False


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"rollout-downscale-leader": "nobody"}, "LeaderMissing", "could not find leader for ingester-zone-b"),
        ({"rollout-downscale-leader": "ingester-zone-b"}, "LeaderIsItself", "makes ingester-zone-b its own leader"),
        ({"rollout-mirror-replicas-from-resource-name": "web", "rollout-mirror-replicas-from-resource-kind": "Nothing"},
         "ReferenceUnavailable", "the scale of Nothing/web is not known"),
        ({"rollout-force-replicas": "many", "rollout-downscale-leader": "ingester-zone-a"},
         "ForceReplicasInvalid", "is no number of at least 0"),
    ],
)  # fmt: skip
def test_what_keeps_a_zone_from_being_scaled_is_explained(
    cluster: Path, given: dict[str, str], code: str, says: str
) -> None:
    def annotate(values: dict[str, Any]) -> None:
        named = {f"grafana.com/{key}": value for key, value in values.items()}
        patch = MergePatch({"metadata": {"annotations": named}})

        async def write(client: Client) -> None:
            await client.patch(SETS, "ingester-zone-b", patch, "prod")

        on(cluster, write)

    annotate(given)
    try:
        assert says in kedge(cluster, "explain", "ingester").output
        found = msgspec.json.decode(kedge(cluster, "explain", "ingester", "-o", "json").stdout)
        assert [wait["code"] for wait in found["zones"][1]["scaling_waits"]] == [code]
    finally:
        annotate(dict.fromkeys(given))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("status", "group/nothing"), "there is no rollout group nothing in namespace prod"),
        (("explain", "pod/nothing"), "there is no pod nothing of a rollout group in namespace prod"),
        (("status", "nothing"), "there is no nothing: this cluster serves no placements, but rollout groups"),
        (("status", "ingestr"), "did you mean group/ingester -n prod?"),
        (("history", "ingester", "-n", "other"), "did you mean group/ingester -n prod?"),
        (("get",), "this cluster serves no placements, but rollout groups (`kedge get groups`"),
        (("stop", "nothing"), "this cluster serves no placements, but rollout groups"),
        (
            ("pause", "group/ingester", "-n", "prod"),
            "`kubectl annotate statefulset NAME grafana.com/rollout-paused=true",
        ),
        (("history", "group/ingester"), "`kedge status group/ingester` says where it stands"),
    ],
)
def test_what_is_not_there_is_said(cluster: Path, arguments: tuple[str, ...], says: str) -> None:
    result = kedge(cluster, *arguments)
    assert result.exit_code == 1
    assert says in result.output


@pytest.mark.parametrize("arguments", [("get", "groups"), ("status", "group/ingester"), ("explain", "pod/ingester-0")])
def test_a_cluster_that_cannot_be_asked_is_called_a_cluster(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    file = tmp_path / "kubeconfig"
    config = {
        "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "current-context": "one",
    }
    file.write_text(yaml.safe_dump(config))
    refused = kedge(file, *arguments)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: the cluster cannot be reached: https://127.0.0.1:1: cannot connect")

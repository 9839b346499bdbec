"""The daily verbs, against a fleet that `kedge up` keeps up, over HTTPS, as a user has them."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from kedge.api.core import Namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PlacementKinds
from kedge.api.snapshot import ClusterResourceSnapshot
from kedge.cli import main
from kedge.cli.demo_fleet import DEPLOYMENTS
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.waiting import until_so

SECONDS = 180
pytestmark = pytest.mark.timeout(400)  # a process of its own, and rollouts in real time
NOT_PULLED = r"has 1 of 2 updated replicas: pod web-\w+-\w+: ImagePullBackOff: Back-off pulling image app:bad"
ROLLING = {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a fleet with two members."""
    file = tmp_path_factory.mktemp("fleet") / "kubeconfig"
    up(file, "--members", "2")
    yield file
    subprocess.run([sys.executable, "-m", "kedge", "down", "--kubeconfig", str(file)], check=True, timeout=SECONDS)


def up(file: Path, *args: str) -> None:
    command = [sys.executable, "-m", "kedge", "up", "--detach", "--kubeconfig", str(file), *args]
    subprocess.run(command, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)


def on(file: Path, do: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    """Do something on the hub, as another client."""
    connection = load([file])

    async def doing() -> None:
        client = Client(HttpsTransport(connection))
        try:
            await do(client)
        finally:
            await client.close()

    asyncio.run(doing())


def kedge(file: Path, *args: str, **environment: str) -> Result:
    return CliRunner(env={"KUBECONFIG": str(file), **environment}).invoke(main, args, catch_exceptions=False)


def shown(file: Path, *args: str) -> str:
    """What a command prints that must not fail."""
    result = kedge(file, *args)
    assert result.exit_code == 0, result.output
    return result.stdout


def story(file: Path, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(kedge(file, "status", *args, "-o", "json").stdout)
    return found


def until(file: Path, holds: Callable[[Mapping[str, Any]], bool], *args: str) -> None:
    """Look until it holds."""
    deadline = time.monotonic() + SECONDS
    while not holds(found := story(file, *args)):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def is_stuck(told: Mapping[str, Any]) -> bool:
    return bool(told["state"] == "waiting" and told["updated"] == 1 and told["places"][0]["state"] == "moving")


def place(file: Path, name: str, *, namespaced: bool = False, spec: Mapping[str, Any] = {}) -> None:
    """A Deployment in a namespace of its own, and a placement that takes it to both clusters."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    deployment = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    chosen = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "web"}
    space = {"group": "", "version": "v1", "kind": "Namespace", "name": name}
    selectors = [chosen] if namespaced else [space]
    meta = {"name": "web" if namespaced else name}

    async def make(client: Client) -> None:
        await client.create(Namespace, {"metadata": {"name": name}})
        await client.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": deployment}, name)
        kinds, where = (NAMESPACED, name) if namespaced else (CLUSTER, None)
        body = {"metadata": meta, "spec": {"resourceSelectors": selectors, "strategy": ROLLING, **spec}}
        await client.create(kinds.placement, body, where)
        while not await is_first_revision_whole(client, kinds, meta["name"], where):
            await client.delete(kinds.placement, meta["name"], where)
            await until_so(lambda: is_gone(client, kinds, meta["name"], where))
            await client.create(kinds.placement, body, where)

    on(file, make)


async def is_first_revision_whole(client: Client, kinds: PlacementKinds, name: str, namespace: str | None) -> bool:
    """Whether the first revision has the Deployment. The hub may hear of it after it heard of the placement."""
    first: list[ClusterResourceSnapshot] = []

    async def is_made() -> bool:
        with suppress(NotFound):
            first.append(await client.get(kinds.resource_snapshot, f"{name}-0-snapshot", namespace))
        return bool(first)

    await until_so(is_made, within=SECONDS)
    return any(one["kind"] == "Deployment" for one in first[0].spec.selected_resources)


async def is_gone(client: Client, kinds: PlacementKinds, name: str, namespace: str | None) -> bool:
    with suppress(NotFound):
        await client.get(kinds.placement, name, namespace)
        return False
    return True


def set_image(file: Path, namespace: str, image: str, *, ready_after: str = "0.2s") -> None:
    async def change(client: Client) -> None:
        meta = {"annotations": {"kedge.dev/ready-after": ready_after}}
        template = {"metadata": meta, "spec": {"containers": [{"name": "app", "image": image}]}}
        await client.patch(DEPLOYMENTS, "web", MergePatch({"spec": {"template": template}}), namespace)

    on(file, change)


@pytest.fixture(scope="module")
def stuck(fleet: Path) -> Path:
    """With a placement whose second release is bad."""
    place(fleet, "stuck")
    shown(fleet, "status", "stuck", "--watch", "--timeout", "60")
    set_image(fleet, "stuck", "app:bad")
    until(fleet, lambda told: is_stuck(told) and "ImagePullBackOff" in told["why"], "stuck")
    return fleet


# Looking


def test_a_release_is_followed_until_it_is_available_and_said_line_by_line_off_a_terminal(fleet: Path) -> None:
    place(fleet, "good")
    lines = shown(fleet, "status", "good", "--watch", "--timeout", "60").splitlines()
    assert lines[-1].startswith("  cluster-") or lines[-1].endswith("available on 2 of 2 clusters")
    assert "ClusterResourcePlacement good: revision 0, available on 2 of 2 clusters" in lines
    set_image(fleet, "good", "app:2", ready_after="3s")  # or nobody waits long enough to say what for
    lines = shown(fleet, "status", "good", "--watch", "--timeout", "60").splitlines()
    assert "ClusterResourcePlacement good: revision 1, available on 2 of 2 clusters" in lines
    assert any(line.startswith("  cluster-2: revision 0, waits: at most 1 of 2 clusters") for line in lines)


def test_status_is_a_tree_of_clusters_and_objects(stuck: Path) -> None:
    result = kedge(stuck, "status", "stuck")
    assert result.exit_code == 3
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "◌ ClusterResourcePlacement stuck  revision 1 on 1 of 2 clusters, 1 of 2 available",
        "├── … cluster-1  revision 1, not available yet",
        "│   ├── ✔ Namespace stuck",
    ]
    assert re.fullmatch(rf"│   └── … Deployment stuck/web  {NOT_PULLED}", lines[3])
    assert "└── ◌ cluster-2  revision 0, waits: at most 1 of 2 clusters may be unavailable" in result.stdout


def test_status_on_a_typewriter_has_letters_only(stuck: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kedge", "status", "stuck"],
        env={**os.environ, "KUBECONFIG": str(stuck), "PYTHONIOENCODING": "ascii", "TERM": "dumb"},
        capture_output=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stdout.isascii()
    assert b"+-- ~ cluster-1  revision 1, not available yet" in done.stdout


def test_explain_names_the_object_the_clusters_that_wait_and_what_to_do(stuck: Path) -> None:
    lines = shown(stuck, "explain", "stuck").splitlines()
    assert lines[1] == "cluster-1: revision 1, not available yet"
    assert re.fullmatch(rf"  Deployment stuck/web {NOT_PULLED}", lines[2])
    assert lines[3].startswith(
        "cluster-2: revision 0, waits: at most 1 of 2 clusters may be unavailable, and cluster-1"
    )
    assert "`kedge rollback stuck`" in lines[4]


def test_explain_of_one_cluster_names_all_its_objects(stuck: Path) -> None:
    lines = shown(stuck, "explain", "stuck", "cluster-2").splitlines()
    assert lines[1:] == ["  Namespace stuck: available", "  Deployment stuck/web: available"]
    refused = kedge(stuck, "explain", "stuck", "cluster-9")
    assert refused.exit_code == 1
    assert refused.stderr == "Error: stuck is not on cluster-9: it is on cluster-1 and cluster-2\n"


def test_history_says_which_cluster_has_which_revision(stuck: Path) -> None:
    header, newest, first = [line.split() for line in shown(stuck, "history", "stuck").splitlines()]
    assert header == ["REVISION", "AGE", "DIGEST", "IS", "CLUSTERS"]
    assert (newest[0], newest[3:], first[0], first[3:]) == ("1", ["newest", "cluster-1"], "0", ["cluster-2"])


def test_get_lists_placements_with_what_they_wait_for(stuck: Path) -> None:
    header, *rows = shown(stuck, "get", "stuck").splitlines()
    assert header.split() == ["NAME", "REVISION", "DONE", "STATE", "WHY"]
    assert rows[0].split()[:4] == ["stuck", "1", "0/2", "waiting"]
    assert "1 of 2 clusters waits: cluster-2: at most 1 of 2 clusters may be unavailable" in rows[0]
    assert len(rows) == 1


@pytest.mark.parametrize(("form", "read"), [("json", msgspec.json.decode), ("yaml", yaml.safe_load)])
def test_programs_get_the_same_as_people(stuck: Path, form: str, read: Callable[[str], Any]) -> None:
    told = read(kedge(stuck, "status", "stuck", "-o", form).stdout)
    assert (told["state"], told["updated"], told["up"], told["done"], told["wanted"]) == ("waiting", 1, 1, 0, 2)
    assert [one["cluster"] for one in told["places"]] == ["cluster-1", "cluster-2"]
    assert read(kedge(stuck, "explain", "stuck", "cluster-1", "-o", form).stdout)["cluster"] == "cluster-1"
    wait = read(kedge(stuck, "explain", "stuck", "cluster-2", "-o", form).stdout)["wait"]
    assert (wait["unit"], wait["code"], wait["numbers"]["maxUnavailable"]) == ("cluster-2", "BudgetSpent", 1)
    assert [(one["key"], one["proof"]) for one in wait["blockers"]] == [("cluster-1", "failed")]
    assert "ImagePullBackOff" in wait["blockers"][0]["reported"]
    assert [one["index"] for one in read(kedge(stuck, "history", "stuck", "-o", form).stdout)] == [1, 0]
    assert "stuck" in [one["name"] for one in read(kedge(stuck, "get", "-o", form).stdout)]


def test_watching_ends_when_time_is_up_and_says_why(stuck: Path) -> None:
    result = kedge(stuck, "status", "stuck", "--watch", "--timeout", "1")
    assert result.exit_code == 3
    assert "1 cluster holds up the rest" in result.stdout
    told = kedge(stuck, "status", "stuck", "--watch", "--timeout", "1", "-o", "json")
    assert msgspec.json.decode(told.stdout)["state"] == "waiting"
    assert "holds up the rest" in told.stderr


def test_a_placement_on_no_cluster_is_not_green_and_says_of_each_cluster_why(fleet: Path) -> None:
    terms = {"clusterSelectorTerms": [{"labelSelector": {"matchLabels": {"env": "nowhere"}}}]}
    affinity = {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    place(fleet, "nowhere", spec={"policy": {"placementType": "PickAll", "affinity": affinity}})
    until(fleet, lambda told: told["state"] == "waiting" and len(told["passed_over"]) == 2, "nowhere")
    result = kedge(fleet, "status", "nowhere")
    assert result.exit_code == 3
    assert result.stdout.startswith("◌ ClusterResourcePlacement nowhere  on no cluster: none of 2 members was picked\n")
    assert "no cluster  cluster-1 was not picked: " in result.stdout
    lines = shown(fleet, "explain", "nowhere").splitlines()
    assert [line.partition(" was not picked: ")[0] for line in lines[1:]] == [
        "no cluster: cluster-1",
        "no cluster: cluster-2",
    ]
    row = shown(fleet, "get", "nowhere").splitlines()[1]
    assert " ".join(row.split()) == "nowhere 0 0/0 waiting no cluster was picked"
    assert kedge(fleet, "status", "nowhere", "--watch", "--timeout", "1").exit_code == 3
    planned = kedge(fleet, "plan", "nowhere", "--no-worst")
    assert (planned.exit_code, "where it should be\n" in planned.stdout) == (3, False)
    assert "no cluster: cluster-2 was not picked: " in planned.stdout


# Holding, going on, going back


def test_a_rollback_goes_to_the_revision_before_and_unpinning_to_the_newest(fleet: Path) -> None:
    place(fleet, "back")
    shown(fleet, "status", "back", "--watch", "--timeout", "60")
    set_image(fleet, "back", "app:bad")
    until(fleet, is_stuck, "back")
    assert shown(fleet, "rollback", "back") == (
        "back goes back to revision 0, and stays there until `kedge unpin back`\n"
    )
    lines = shown(fleet, "status", "back", "--watch", "--timeout", "60").splitlines()
    assert "ClusterResourcePlacement back: revision 0, available on 2 of 2 clusters, rolled back" in lines
    assert shown(fleet, "history", "back").splitlines()[-1].split()[3:] == ["pinned", "cluster-1,", "cluster-2"]
    assert "`kedge unpin back` lets it go on to the newest" in shown(fleet, "explain", "back")
    assert "available, rolled back" in shown(fleet, "get", "back")
    for args, why in (
        ((), "back has no revision before 0 to go back to"),
        (("--to", "7"), "back has no revision 7: kept are 0 and 1"),
    ):
        refused = kedge(fleet, "rollback", "back", *args)
        assert (refused.exit_code, refused.stderr) == (1, f"Error: {why}\n")
    set_image(fleet, "back", "app:2")
    until(fleet, lambda _: "\n2 " in f"\n{shown(fleet, 'history', 'back')}", "back")
    assert story(fleet, "back")["index"] == "0"
    stays = "rolled back to revision 0: `kedge unpin back` lets it go on to the newest\n"
    refused = kedge(fleet, "resume", "back")
    assert (refused.exit_code, refused.stderr) == (1, f"Error: back is not paused, it is {stays}")
    shown(fleet, "pause", "back")
    assert "rolled back, paused" in shown(fleet, "get", "back")
    assert shown(fleet, "resume", "back") == f"back goes on; it is still {stays}"
    assert story(fleet, "back")["index"] == "0"
    assert shown(fleet, "unpin", "back") == "back is no longer rolled back, and goes to the newest, to revision 2\n"
    assert "revision 2, available on 2 of 2 clusters" in shown(fleet, "status", "back", "--watch", "--timeout", "60")


def test_a_paused_placement_stands_still_says_so_and_goes_on(fleet: Path) -> None:
    place(fleet, "held")
    shown(fleet, "status", "held", "--watch", "--timeout", "60")
    assert shown(fleet, "pause", "held") == ("held is paused: the next change waits until `kedge resume held`\n")
    assert shown(fleet, "pause", "held") == "held is paused already\n"
    assert story(fleet, "held")["state"] == "available"
    assert "available, paused" in shown(fleet, "get", "held")
    set_image(fleet, "held", "app:2")
    until(fleet, lambda told: all(one["state"] == "waiting" for one in told["places"]), "held")
    told = story(fleet, "held")
    assert (told["state"], told["is_paused"], told["up"]) == ("paused", True, 2)
    assert "wait: the placement is paused" in shown(fleet, "explain", "held")
    assert shown(fleet, "resume", "held") == "held goes on\n"
    assert "revision 1, available on 2 of 2" in shown(fleet, "status", "held", "--watch", "--timeout", "60")
    assert shown(fleet, "resume", "held") == "held is not paused\n"
    assert shown(fleet, "unpin", "held") == "held is not rolled back\n"


def test_a_placement_that_staged_runs_move_is_not_held_here(fleet: Path) -> None:
    place(fleet, "staged", spec={"strategy": {"type": "External"}})
    for verb in ("pause", "resume", "rollback", "unpin"):
        refused = kedge(fleet, verb, "staged")
        assert (refused.exit_code, refused.stderr) == (
            1, "Error: staged has strategy External: staged update runs move it, and hold it\n",
        )  # fmt: skip


# Which placement, and which hub


def test_a_placement_in_a_namespace_goes_by_both_names(fleet: Path) -> None:
    async def space(client: Client) -> None:  # the members need it, and a ResourcePlacement does not bring it
        body = {"resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "shop",
                                       "selectionScope": "NamespaceOnly"}]}  # fmt: skip
        await client.create(ClusterResourcePlacement, {"metadata": {"name": "space"}, "spec": body})

    place(fleet, "shop", namespaced=True)
    on(fleet, space)
    lines = shown(fleet, "status", "shop/web", "--watch", "--timeout", "60").splitlines()
    assert "ResourcePlacement shop/web: revision 0, available on 2 of 2 clusters" in lines
    assert story(fleet, "web", "-n", "shop") == story(fleet, "shop/web")
    assert [line.split()[0] for line in shown(fleet, "get", "-n", "shop").splitlines()] == ["NAME", "shop/web"]
    assert shown(fleet, "pause", "shop/web").endswith("`kedge resume shop/web`\n")
    assert shown(fleet, "resume", "web", "-n", "shop") == "shop/web goes on\n"
    missing = kedge(fleet, "status", "web")
    assert missing.stderr == "Error: there is no ClusterResourcePlacement web: did you mean shop/web?\n"
    both = kedge(fleet, "status", "shop/web", "-n", "other")
    assert (both.exit_code, "leave one out" in both.stderr) == (2, True)


def test_a_name_that_is_not_known_is_answered_with_those_that_are(stuck: Path) -> None:
    for verb in ("status", "explain", "history", "pause", "resume", "rollback", "unpin", "get"):
        refused = kedge(stuck, verb, "stcuk")
        assert (refused.exit_code, refused.stderr) == (
            1, "Error: there is no ClusterResourcePlacement stcuk: did you mean stuck?\n",
        )  # fmt: skip


def test_nothing_to_list_is_no_error(fleet: Path) -> None:
    result = kedge(fleet, "get", "-n", "kube-public")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "there are no placements in namespace kube-public\n"


def test_a_cluster_that_is_no_hub_says_so(fleet: Path) -> None:
    for args in (("get",), ("status", "web"), ("history", "web")):
        refused = kedge(fleet, *args, "--context", "cluster-1")
        assert refused.exit_code == 1
        assert refused.stderr.startswith("Error: this cluster serves no placements: is it the hub?")


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("server", "https://127.0.0.1:1", "the hub cannot be reached: https://127.0.0.1:1: cannot connect"),
        ("token", "wrong", "the hub does not know who you are (401 Unauthorized)"),
    ],
)
def test_a_hub_that_cannot_be_asked_is_one_sentence(
    fleet: Path, tmp_path: Path, field: str, value: str, why: str
) -> None:
    config = yaml.safe_load(fleet.read_text())
    where = config["clusters"][0]["cluster"] if field == "server" else config["users"][0]["user"]
    where[field] = value
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    for args in (("get",), ("status", "web", "-w")):
        refused = kedge(file, *args)
        assert refused.exit_code == 1
        assert refused.stderr.startswith(f"Error: {why}")
        assert refused.stderr.count("\n") == 1


def test_a_context_that_is_not_there_is_answered_with_those_that_are(fleet: Path) -> None:
    refused = kedge(fleet, "get", "--context", "nope")
    assert refused.exit_code == 1
    assert "contexts here: hub, cluster-1, cluster-2" in refused.stderr


def test_a_placement_that_is_deleted_while_it_is_watched_ends_the_watch(fleet: Path) -> None:
    place(fleet, "brief", spec={"policy": {"placementType": "PickFixed", "clusterNames": ["cluster-9"]}})
    watching = subprocess.Popen(
        [sys.executable, "-m", "kedge", "status", "brief", "--watch"],
        env={**os.environ, "KUBECONFIG": str(fleet)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert watching.stdout is not None
    assert watching.stdout.readline().startswith("ClusterResourcePlacement brief: ")

    async def delete(client: Client) -> None:
        await client.delete(ClusterResourcePlacement, "brief")

    on(fleet, delete)
    _, errors = watching.communicate(timeout=SECONDS)
    assert (watching.returncode, errors) == (1, "Error: ClusterResourcePlacement brief has been deleted\n")


def test_a_hub_that_goes_away_while_it_is_asked_is_said_and_not_taken_for_an_answer(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    up(file, "--members", "0")
    copy = tmp_path / "copy"
    copy.write_text(file.read_text())
    place(copy, "alone")
    watching = subprocess.Popen(
        [sys.executable, "-m", "kedge", "status", "alone", "--watch", "--timeout", "15"],
        env={**os.environ, "KUBECONFIG": str(copy)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert watching.stdout is not None
    assert watching.stdout.readline().startswith("ClusterResourcePlacement alone: ")
    subprocess.run([sys.executable, "-m", "kedge", "down", "--kubeconfig", str(file)], check=True, timeout=SECONDS)
    output, errors = watching.communicate(timeout=SECONDS)
    assert "the hub does not answer: " in output
    assert (watching.returncode, errors.startswith("Error: the hub does not answer: https://127.0.0.1:")) == (1, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    assert "_KEDGE_COMPLETE" in kedge(Path("none"), "completion", shell).stdout

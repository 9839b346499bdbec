"""`kedge up` and `kedge down`, as a user has them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kedge.api.cluster import MemberCluster
from kedge.api.condition import find_condition
from kedge.api.reasons import JOINED
from kedge.kube.client import Client
from kedge.kube.connect.config import Connection, load
from kedge.kube.connect.https import HttpsTransport

KEDGE = [sys.executable, "-m", "kedge"]
SECONDS = 180


def kedge(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KEDGE, *args], capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig; whatever fleet wrote it is ended."""
    path = tmp_path / "kubeconfig"
    yield path
    if path.exists():
        kedge("down", "--kubeconfig", str(path))


def up(file: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return kedge("up", "--kubeconfig", str(file), "--detach", *args)


def test_a_fleet_comes_up_says_how_to_use_it_and_goes_down(file: Path) -> None:
    done = up(file, "--members", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("ready: a hub and 2 members in ")
    assert f"export KUBECONFIG={file}" in done.stdout
    config = yaml.safe_load(file.read_text())
    assert [context["name"] for context in config["contexts"]] == ["hub", "cluster-1", "cluster-2"]
    assert config["current-context"] == "hub"
    assert all(one["cluster"]["server"].startswith("https://127.0.0.1:") for one in config["clusters"])
    down = kedge("down", "--kubeconfig", str(file))
    assert (down.returncode, down.stdout) == (0, "the fleet is down\n")
    assert [path.name for path in file.parent.iterdir()] == ["kubeconfig.log"]


def test_its_members_have_joined_when_it_is_ready(file: Path) -> None:
    assert up(file, "--members", "1").stdout.splitlines()[-1].startswith("ready: a hub and 1 member in ")
    assert asyncio.run(conditions(load([file]))) == {"cluster-1": "True"}


async def conditions(hub: Connection) -> dict[str, str]:
    """Who has joined."""
    client = Client(HttpsTransport(hub))
    try:
        found = [(one.metadata.name, find_condition(one.status.conditions, JOINED))
                 for one in (await client.list(MemberCluster)).items]  # fmt: skip
    finally:
        await client.close()
    return {name: condition.status for name, condition in found if condition is not None}


def test_a_bare_fleet_has_no_members_to_show(file: Path) -> None:
    assert "memberclusters" not in up(file, "--members", "1", "--bare").stdout


def test_the_kubeconfig_is_for_its_owner_alone(file: Path) -> None:
    up(file, "--members", "0")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_second_fleet_is_refused_and_the_first_stays(file: Path) -> None:
    up(file, "--members", "0")
    before = file.read_text()
    again = up(file, "--members", "0")
    assert again.returncode == 1
    assert "a fleet is running already (process " in again.stderr
    assert file.read_text() == before


def test_a_file_that_is_not_a_fleets_is_left_alone(file: Path) -> None:
    file.write_text("mine")
    refused = up(file)
    assert refused.returncode == 1
    assert "exists, and no fleet wrote it: choose another file with --kubeconfig" in refused.stderr
    assert file.read_text() == "mine"
    file.unlink()


def test_there_is_nothing_to_end_where_nothing_is_up(file: Path) -> None:
    done = kedge("down", "--kubeconfig", str(file))
    assert done.returncode == 1
    assert "no fleet is running" in done.stderr


def test_a_port_that_is_taken_is_named(file: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = up(file, "--members", "0", "--port", str(port))
    assert done.returncode == 1
    assert f"port {port} for hub is not available" in done.stderr
    assert not file.exists()


def test_a_fleet_whose_process_was_killed_does_not_stand_in_the_way(file: Path) -> None:
    up(file, "--members", "0")
    os.kill(int(file.with_name("kubeconfig.pid").read_text()), signal.SIGKILL)
    done = up(file, "--members", "0")
    assert done.returncode == 0, done.stderr


def test_what_a_killed_fleet_left_is_removed(file: Path) -> None:
    up(file, "--members", "0")
    os.kill(int(file.with_name("kubeconfig.pid").read_text()), signal.SIGKILL)
    done = kedge("down", "--kubeconfig", str(file))
    assert (done.returncode, done.stdout) == (0, f"the fleet is not running any more: removed {file}, which it left\n")
    assert not file.exists()
    assert not file.with_name("kubeconfig.pid").exists()


@pytest.mark.parametrize(("bare", "joined"), [((), ["True", "True"]), (("--bare",), None)])
def test_when_a_fleet_is_up_its_members_have_joined_unless_it_is_bare(
    file: Path, bare: tuple[str, ...], joined: list[str] | None
) -> None:
    up(file, "--members", "2", *bare)
    assert joined_members(yaml.safe_load(file.read_text())) == joined


def joined_members(config: dict[str, Any]) -> list[str] | None:
    """What the members of the hub say of having joined; None where there is no such thing as a member."""
    hub = config["clusters"][0]["cluster"]
    trust = ssl.create_default_context(cadata=base64.b64decode(hub["certificate-authority-data"]).decode())
    asked = urllib.request.Request(
        f"{hub['server']}/apis/cluster.kubernetes-fleet.io/v1/memberclusters",
        headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
    )
    try:
        with urllib.request.urlopen(asked, timeout=10, context=trust) as answer:
            found = json.load(answer)["items"]
    except urllib.error.HTTPError as error:
        error.close()
        return None
    conditions = [condition for member in found for condition in member["status"]["conditions"]]
    return [condition["status"] for condition in conditions if condition["type"] == "Joined"]

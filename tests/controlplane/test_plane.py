"""Control planes of a test's own: several clusters, broken connections, forgotten history, nothing left behind."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane import Binaries, Cluster, ControlPlane, Identity, StartError
from controlplane.alive import is_alive, wait_until_gone

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def create(cluster: Cluster, name: str) -> str:
    """A ConfigMap; returns its resourceVersion."""
    answer = await cluster.request("POST", CONFIG_MAPS, {"metadata": {"name": name}})
    assert answer.status == 201, answer.text
    return str(answer.json()["metadata"]["resourceVersion"])


async def names(cluster: Cluster) -> list[str]:
    items = (await cluster.request("GET", CONFIG_MAPS)).json()["items"]
    return [item["metadata"]["name"] for item in items if item["metadata"]["name"] != "kube-root-ca.crt"]


async def watch(cluster: Cluster, resource_version: str) -> str:
    """What a watch from there says before it ends."""
    path = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={resource_version}"
    return (await cluster.request("GET", path)).text


async def page_token(cluster: Cluster) -> str:
    return str((await cluster.request("GET", f"{CONFIG_MAPS}?limit=1")).json()["metadata"]["continue"])


async def test_two_clusters_on_one_etcd_know_nothing_of_each_other(own_plane: ControlPlane) -> None:
    one, two = await own_plane.start_many(["one", "two"], controllers=True, nodes=1)
    await create(one, "here")
    assert (await names(one), await names(two)) == (["here"], [])
    for cluster in (one, two):
        assert await cluster.kubectl("get", "nodes", "-o", "name") == "node/node-1\n"
    assert (await two.request("GET", CONFIG_MAPS, token=one.admin_token)).status == 401


async def test_tokens_of_ones_own_are_known(own_plane: ControlPlane) -> None:
    tokens = {"t0ken": Identity("jane", ("dev", "ops"))}
    cluster = await own_plane.start("one", tokens=tokens)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = await cluster.request("POST", path, review, token="t0ken")
    info = answer.json()["status"]["userInfo"]
    assert (info["username"], info["groups"]) == ("jane", ["dev", "ops", "system:authenticated"])


async def test_a_killed_API_server_comes_back_with_its_data(own_plane: ControlPlane) -> None:
    cluster = await own_plane.start("one")
    await create(cluster, "before")
    url = cluster.url
    await cluster.kill_apiserver()
    with pytest.raises(ConnectionRefusedError):
        await names(cluster)
    await cluster.restart_apiserver()
    assert cluster.url == url
    assert await names(cluster) == ["before"]


async def test_controllers_survive_a_restart_of_the_API_server(own_plane: ControlPlane) -> None:
    cluster = await own_plane.start("one", controllers=True, nodes=1)
    before = cluster.pids
    await cluster.kill_apiserver()
    await cluster.restart_apiserver()
    await cluster.kubectl("create", "deployment", "web", "--image=web:1")
    await cluster.kubectl("rollout", "status", "deployment/web", "--timeout=300s")
    assert {name for name, pid in before.items() if cluster.pids[name] == pid} == set(before) - {"kube-apiserver"}


async def test_a_running_API_server_remembers_what_etcd_has_forgotten(own_plane: ControlPlane) -> None:
    cluster = await own_plane.start("one")
    old = await create(cluster, "a")
    await create(cluster, "b")
    await cluster.compact_etcd()
    assert '"type":"ADDED"' in await watch(cluster, old)


async def test_after_compaction_and_restart_the_past_is_gone(own_plane: ControlPlane) -> None:
    cluster = await own_plane.start("one")
    old = await create(cluster, "a")
    await create(cluster, "b")
    token = await page_token(cluster)
    await create(cluster, "c")
    await cluster.kill_apiserver()
    await cluster.compact_etcd()
    await cluster.restart_apiserver()
    await assert_gone(cluster, old, token)


async def test_without_a_watch_cache_compaction_is_enough(own_plane: ControlPlane) -> None:
    cluster = await own_plane.start("one", apiserver_flags=["--watch-cache=false"])
    old = await create(cluster, "a")
    await create(cluster, "b")
    token = await page_token(cluster)
    await create(cluster, "c")
    await cluster.compact_etcd()
    await assert_gone(cluster, old, token)


async def assert_gone(cluster: Cluster, resource_version: str, token: str) -> None:
    """Watches, exact lists and the next page are all refused with 410."""
    assert '"reason":"Expired","code":410' in await watch(cluster, resource_version)
    exact = f"{CONFIG_MAPS}?resourceVersion={resource_version}&resourceVersionMatch=Exact"
    assert (await cluster.request("GET", exact)).status == 410
    assert (await cluster.request("GET", f"{CONFIG_MAPS}?limit=1&continue={token}")).status == 410
    assert "b" in await names(cluster)


async def test_a_cluster_that_cannot_start_shows_why(own_plane: ControlPlane) -> None:
    with pytest.raises(StartError, match=r"one/kube-apiserver ended with code 1(.|\n)*unknown flag: --no-such-flag"):
        await own_plane.start("one", apiserver_flags=["--no-such-flag"])


@pytest.mark.parametrize("name", ["", "Hub", "a/b", "-a"])
async def test_a_name_that_cannot_be_one_is_refused(own_plane: ControlPlane, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a cluster"):
        await own_plane.start(name)


async def test_a_plane_that_is_closed_leaves_nothing(binaries: Binaries) -> None:
    async with ControlPlane(binaries) as plane:
        cluster = await plane.start("one", controllers=True, nodes=1)
        folder = cluster.folder.parent
        pids = [*cluster.pids.values(), plane.etcd.process.pid]
        with pytest.raises(ValueError, match="there is a cluster 'one' already"):
            await plane.start("one")
    assert not folder.exists()
    assert not any(is_alive(pid) for pid in pids)
    with pytest.raises(RuntimeError, match="is not running"):
        await plane.start("two")


async def test_a_start_that_is_cancelled_leaves_nothing(binaries: Binaries) -> None:
    async with ControlPlane(binaries) as plane:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await plane.start_many(["one", "two"], controllers=True, nodes=1)
        pids = [pid for cluster in plane.clusters.values() for pid in cluster.pids.values()]
        assert pids
    assert not any(is_alive(pid) for pid in pids)


def test_killing_python_leaves_no_process_behind(binaries: Binaries, tmp_path: Path) -> None:
    script = """
import asyncio
from controlplane import ControlPlane, find

async def main():
    async with ControlPlane(find()) as plane:
        cluster = await plane.start("one", controllers=True, nodes=1)
        print(plane.etcd.process.pid, *cluster.pids.values(), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len([pid for pid in pids if is_alive(pid)]) == 5
        parent.kill()
    for pid in pids:
        wait_until_gone(pid)


async def test_with_only_some_controllers_the_others_do_nothing(own_plane: ControlPlane) -> None:
    cluster = await own_plane.start("hub", only=("serviceaccount-controller", "namespace-controller"))
    namespace = await cluster.fresh_namespace()
    await cluster.kubectl("create", "deployment", "web", "--image=web:1", "-n", namespace)
    await cluster.kubectl("wait", "--for=create", "serviceaccount/default", "-n", namespace, "--timeout=300s")
    assert await cluster.kubectl("get", "replicasets", "-n", namespace, "-o", "name") == ""
    await cluster.kubectl("delete", "namespace", namespace, "--timeout=300s")
    assert "kube-scheduler" not in cluster.pids

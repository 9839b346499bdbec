"""Whatever breaks a watch, the cache ends up equal to a fresh list, and every deletion was told.

On a real API server, over real sockets and TLS; where something in between breaks, that is a proxy of ours.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.certs import KeyPair
from controlplane.cluster import Cluster
from controlplane.plane import ControlPlane
from kedge.api.core import ConfigMap
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.connect.config import Connection, load
from kedge.kube.connect.credentials import FixedCredentials, Identity
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.store import Change
from support.faulty import FaultyProxy
from support.tokens import token
from support.waiting import until

pytestmark = pytest.mark.core

State = dict[str, str]


class Scene:
    """A cluster, a cache of one namespace of it, and what the cache told of."""

    def __init__(self, cluster: Cluster, namespace: str, connection: Connection, silence: float = 75.0) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.gone: list[str] = []
        self.problems: list[str] = []
        self.client = Client(HttpsTransport(connection))
        self.cache = Cache(self.client, ConfigMap, namespace, rng=random.Random(1), silence=silence)
        self.cache.on_change(self._note)
        self.cache.on_problem(lambda problem: self.problems.append(problem) if problem else None)

    def _note(self, change: Change[ConfigMap]) -> None:
        if change.new is None:
            self.gone.append(change.object.metadata.name)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Scene"]:
        for name in ("kept", "changed", "deleted", "deleted-too", "replaced"):
            await self.write("POST", name)
        task = asyncio.create_task(self.cache.run())
        try:
            async with asyncio.timeout(30):
                await self.cache.synced()
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.client.close()

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    async def write(self, method: str, name: str, value: str = "first") -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}
        path = self.path if method == "POST" else f"{self.path}/{name}"
        answer = await self.cluster.request(method, path, None if method == "DELETE" else body)
        assert answer.status < 300, answer

    async def churn(self) -> None:
        """Change, delete, make and replace objects, behind the cache's back."""
        await self.write("PUT", "changed", "second")
        await self.write("DELETE", "deleted")
        await self.write("DELETE", "deleted-too")
        await self.write("POST", "made")
        await self.write("DELETE", "replaced")
        await self.write("POST", "replaced", "reborn")

    async def fresh(self) -> State:
        """What an independent list says."""
        found = (await self.cluster.request("GET", self.path)).json()
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found["items"]}

    def cached(self) -> State:
        return {item.metadata.name: item.metadata.resource_version for item in self.cache.all()}

    async def ends_equal(self) -> None:
        fresh = await self.fresh()
        await until(lambda: self.cached() == fresh and self.cache.problem is None, within=60)
        assert {"deleted", "deleted-too"} <= set(self.gone)
        assert "kept" not in self.gone


@asynccontextmanager
async def scene_behind(proxy: FaultyProxy, cluster: Cluster, silence: float = 75.0) -> AsyncIterator[Scene]:
    namespace = await cluster.fresh_namespace()
    admin = FixedCredentials(Identity(authorization=f"Bearer {cluster.admin_token}"))
    connection = Connection(server=proxy.url, ca=proxy.ca, credentials=admin)
    async with Scene(cluster, namespace, connection, silence).running() as scene:
        yield scene


async def reset(scene: Scene, proxy: FaultyProxy) -> None:
    proxy.cut()
    await scene.churn()


async def reset_again_and_again(scene: Scene, proxy: FaultyProxy) -> None:
    await scene.churn()
    for _ in range(3):
        await until(lambda: proxy.passing == 1)
        proxy.cut()
        await until(lambda: proxy.passing == 0)


async def half_a_line(scene: Scene, proxy: FaultyProxy) -> None:
    proxy.cut_in_a_line()
    await scene.churn()


async def silent_hang(scene: Scene, proxy: FaultyProxy) -> None:
    proxy.hush()
    await scene.churn()
    await until(lambda: scene.problems)


async def answers_429(scene: Scene, proxy: FaultyProxy) -> None:
    await refusing(429, scene, proxy)


async def answers_500(scene: Scene, proxy: FaultyProxy) -> None:
    await refusing(500, scene, proxy)


async def refusing(code: int, scene: Scene, proxy: FaultyProxy) -> None:
    proxy.refuse = code
    proxy.cut()
    await scene.churn()
    await until(lambda: proxy.refused >= 3)
    proxy.refuse = None


Fault = Callable[[Scene, FaultyProxy], Awaitable[None]]


@pytest.mark.parametrize(
    "fault",
    [reset, reset_again_and_again, half_a_line, silent_hang, answers_429, answers_500],
    ids=lambda f: f.__name__,
)
async def test_the_cache_ends_equal_after(fault: Fault, bare_cluster: Cluster, tmp_path: Path) -> None:
    async with (
        FaultyProxy(bare_cluster, tmp_path).serve() as proxy,
        scene_behind(proxy, bare_cluster, silence=2.0 if fault is silent_hang else 75.0) as scene,
    ):
        await fault(scene, proxy)
        await scene.ends_equal()


async def test_the_cache_ends_equal_after_410_by_real_compaction(own_plane: ControlPlane, tmp_path: Path) -> None:
    cluster = await own_plane.start("compacted")
    async with FaultyProxy(cluster, tmp_path).serve() as proxy, scene_behind(proxy, cluster) as scene:
        proxy.refuse = 500
        proxy.cut()
        await scene.churn()
        await cluster.compact_etcd()
        await cluster.restart_apiserver()
        proxy.refuse = None
        await scene.ends_equal()
        assert proxy.gone >= 1


async def test_the_cache_ends_equal_after_its_token_expired(bare_cluster: Cluster, tmp_path: Path) -> None:
    namespace = await bare_cluster.fresh_namespace()
    await allow(bare_cluster, namespace)
    held = tmp_path / "token"
    # The API server takes a token for one minute longer than it says.
    held.write_text(await token(bare_cluster, namespace, "watcher", timedelta(seconds=-50)))
    async with FaultyProxy(bare_cluster, tmp_path).serve() as proxy:
        (tmp_path / "proxy.crt").write_bytes(proxy.ca)
        path = kubeconfig(tmp_path, proxy.url, tmp_path / "proxy.crt", {"tokenFile": str(held)})
        connection = await asyncio.to_thread(load, [path])
        async with Scene(bare_cluster, namespace, connection).running() as scene:
            first = held.read_text()
            await until_refused(bare_cluster, first)
            proxy.cut()
            await scene.churn()
            await until(lambda: any("401" in problem for problem in scene.problems))
            held.write_text(await token(bare_cluster, namespace, "watcher", timedelta(hours=1)))
            await scene.ends_equal()


async def test_the_cache_ends_equal_after_its_client_certificate_expired(
    own_plane: ControlPlane, tmp_path: Path
) -> None:
    cluster = await own_plane.start("expiring")
    namespace = await cluster.fresh_namespace()
    short = cluster.user("watcher", ["system:masters"], lifetime=timedelta(seconds=6))
    keys = KeyPair(tmp_path / "client.crt", tmp_path / "client.key")
    copy(short.keys, keys)
    user = {"client-certificate": str(keys.certificate), "client-key": str(keys.key)}
    connection = await asyncio.to_thread(load, [kubeconfig(tmp_path, cluster.url, cluster.ca_file, user)])
    async with Scene(cluster, namespace, connection).running() as scene:
        await until_refused(cluster, None, short.keys)
        await cluster.kill_apiserver()
        await cluster.restart_apiserver()
        await scene.churn()
        await until(lambda: any("401" in problem for problem in scene.problems))
        copy(cluster.user("watcher", ["system:masters"]).keys, keys)
        await scene.ends_equal()


async def allow(cluster: Cluster, namespace: str) -> None:
    """A service account that may read ConfigMaps here."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    meta = {"metadata": {"name": "watcher"}}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "watcher"}
    account = {"kind": "ServiceAccount", "name": "watcher", "namespace": namespace}
    await cluster.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", meta)
    await cluster.request("POST", f"{rbac}/roles", {**meta, "rules": [rule]})
    await cluster.request("POST", f"{rbac}/rolebindings", {**meta, "roleRef": role, "subjects": [account]})


async def until_refused(cluster: Cluster, bearer: str | None, keys: KeyPair | None = None) -> None:
    """Wait until the API server itself no longer takes this identity."""
    from controlplane.rest import Server

    server = Server(cluster.url, cluster.ca_file, keys, bearer)
    async with asyncio.timeout(60):
        while (await asyncio.to_thread(server.ask, "GET", "/api")).status != 401:
            await asyncio.sleep(0.2)


def copy(source: KeyPair, target: KeyPair) -> None:
    target.key.write_bytes(source.key.read_bytes())
    target.certificate.write_bytes(source.certificate.read_bytes())


def kubeconfig(folder: Path, server: str, ca: Path, user: dict[str, str]) -> Path:
    import yaml

    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path

"""The control plane: one etcd, and the clusters that store their objects in it.

    async with ControlPlane(binaries) as plane:
        hub, *members = await plane.start_many(["hub", "cluster-1"], controllers=True, nodes=1)
        print(await hub.kubectl("get", "nodes"))

Promises that nothing of it is left behind: no process, no file. Belongs to no event loop.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from controlplane import processes
from controlplane.binaries import Binaries
from controlplane.cluster import Cluster, Identity, Options
from controlplane.etcd import Etcd
from controlplane.folders import Folder
from controlplane.ports import Ports
from controlplane.together import together

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_STOP_DEADLINE = 5.0


@dataclass(frozen=True)
class _Store:
    folder: Folder
    etcd: Etcd


class ControlPlane:
    """Clusters on one etcd; use it as an asynchronous context manager, or call `open` and `close`."""

    def __init__(self, binaries: Binaries) -> None:
        self._binaries = binaries
        self._ports = Ports()
        self._opened: _Store | None = None
        self._clusters: dict[str, Cluster] = {}
        self._stopped: set[str] = set()

    @property
    def etcd(self) -> Etcd:
        return self._store.etcd

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """The running clusters, by name."""
        return self._clusters

    async def open(self) -> None:
        """Start etcd."""
        client_port, peer_port = self._ports.free(), self._ports.free()
        folder = Folder()
        etcd = Etcd(self._binaries["etcd"], folder.path, client_port=client_port, peer_port=peer_port)
        self._opened = _Store(folder, etcd)
        try:
            await etcd.until_ready()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop everything, etcd last: without it a kube-apiserver does not end when asked."""
        if self._clusters:
            with ThreadPoolExecutor(len(self._clusters)) as pool:
                list(pool.map(Cluster.stop, self._clusters.values()))
            self._clusters.clear()
        if self._opened is not None:
            processes.stop([self._opened.etcd.process], deadline=_STOP_DEADLINE)
            self._opened.folder.close()
            self._opened = None
        self._ports.close()

    async def start(
        self,
        name: str,
        *,
        controllers: bool = False,
        only: Sequence[str] = (),
        nodes: int = 0,
        tokens: Mapping[str, Identity] | None = None,
        apiserver_flags: Sequence[str] = (),
    ) -> Cluster:
        """Start a cluster: a bare API server, unless controllers (with the scheduler) and nodes are asked for.

        `only` names the controllers there are to be, instead of all of them and the scheduler.
        """
        options = Options(controllers or bool(only), tuple(only), nodes, dict(tokens or {}), tuple(apiserver_flags))
        return await self.start_with(name, options)

    async def start_with(self, name: str, options: Options) -> Cluster:
        """Start a cluster that is like that."""
        self._check_name(name)
        cluster = Cluster(
            name,
            options,
            binaries=self._binaries,
            etcd=self._store.etcd,
            ports=self._ports,
            folder=self._store.folder.path / name,
        )
        self._clusters[name] = cluster  # before it starts: whatever happens then, closing stops it
        await cluster.start()
        return cluster

    def stop(self, name: str) -> None:
        """Stop a cluster for good."""
        self._clusters.pop(name).stop()
        self._stopped.add(name)

    async def start_many(
        self,
        names: Sequence[str],
        *,
        controllers: bool = False,
        nodes: int = 0,
        tokens: Mapping[str, Identity] | None = None,
        apiserver_flags: Sequence[str] = (),
    ) -> list[Cluster]:
        """Start several clusters of the same kind at once."""
        return await together(
            self.start(name, controllers=controllers, nodes=nodes, tokens=tokens, apiserver_flags=apiserver_flags)
            for name in names
        )

    async def __aenter__(self) -> ControlPlane:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    @property
    def _store(self) -> _Store:
        if self._opened is None:
            raise RuntimeError("this control plane is not running: use 'async with', or await open()")
        return self._opened

    def _check_name(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a cluster: use lower-case letters, digits and '-'")
        if name in self._clusters or name in self._stopped:
            raise ValueError(f"there is a cluster {name!r} already, or was one: choose another name")

"""Sharing: one control plane for all processes of a test run.

The process that reports the run keeps it (`Keeper`); the others ask it for clusters by name (`ask`). Promises that each
cluster is started once, when it is first asked for, and that all are stopped when the keeper is closed.
A cluster that was asked for can be used, not stopped, killed or restarted.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from controlplane.binaries import Missing, find
from controlplane.cluster import Cluster, Options
from controlplane.plane import ControlPlane

_AT_ONCE = 8


@dataclass(frozen=True)
class Address:
    """Where a keeper is, and the word that lets one in."""

    path: str
    key: str


class Keeper:
    """Starts clusters for whoever asks, each of them once."""

    def __init__(self) -> None:
        self._plane: ControlPlane | None = None
        self._started: dict[str, Future[Cluster]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="clusters")
        self._folder = tempfile.TemporaryDirectory(prefix="kedge-clusters-")
        self._address = Address(str(Path(self._folder.name) / "socket"), secrets.token_hex())
        self._listener: Listener | None = None

    def cluster(self, name: str, options: Options) -> Cluster:
        """The cluster of this name; the options count when it is asked for first."""
        with self._lock:
            if name not in self._started:
                self._started[name] = self._pool.submit(asyncio.run, self._opened().start_with(name, options))
        return self._started[name].result()

    def stop(self, name: str) -> None:
        """Stop a cluster that nobody needs any more, if it was ever asked for."""
        with self._lock:
            started = self._started.pop(name, None)
        if started is not None and self._plane is not None and started.exception() is None:
            self._plane.stop(name)

    def _opened(self) -> ControlPlane:
        if self._plane is None:
            binaries = find()
            if isinstance(binaries, Missing):
                raise FileNotFoundError(binaries.reason)
            plane = ControlPlane(binaries)
            self._pool.submit(asyncio.run, plane.open()).result()
            self._plane = plane
        return self._plane

    def listen(self) -> Address:
        """Answer other processes, from threads of its own; where."""
        if self._listener is None:
            self._listener = Listener(self._address.path, authkey=bytes.fromhex(self._address.key))
            threading.Thread(target=self._accept, args=[self._listener], name="clusters", daemon=True).start()
        return self._address

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:  # closed
                return
            # Not in the pool: who answers waits for what the pool does.
            threading.Thread(target=self._answer, args=[connection], name="cluster", daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        with connection:
            name, options = connection.recv()
            try:
                connection.send(self._done(name, options))
            except Exception as error:  # noqa: BLE001  # it is raised where the cluster was asked for
                connection.send(error)

    def _done(self, name: str, options: Options | None) -> Cluster | None:
        if options is not None:
            return self.cluster(name, options)
        self.stop(name)
        return None

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self._pool.shutdown()
        if self._plane is not None:
            self._plane.close()
        with contextlib.suppress(OSError):
            self._folder.cleanup()


def ask(address: Address, name: str, options: Options) -> Cluster:
    """A cluster that another process keeps."""
    found = _said(address, name, options)
    assert isinstance(found, Cluster)
    return found


def give_back(address: Address, name: str) -> None:
    """Nobody needs this cluster any more."""
    _said(address, name, None)


def _said(address: Address, name: str, options: Options | None) -> object:
    with Client(address.path, authkey=bytes.fromhex(address.key)) as connection:
        connection.send((name, options))
        found = connection.recv()
    if isinstance(found, Exception):
        raise found
    return found

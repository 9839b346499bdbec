"""A cluster: one kube-apiserver and, where wanted, the controllers, the scheduler and simulated nodes behind it.

Promises that a started cluster is usable: the API server answers, and with controllers the default service account
exists, and nodes are ready and take pods. Belongs to no event loop.
Assumes that its control plane stops it. Made by `ControlPlane.start`, not by hand.
"""

from __future__ import annotations

import asyncio
import csv
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from controlplane import audit, components, kubeconfig, nodes, processes
from controlplane.binaries import Binaries
from controlplane.certs import A_DAY, Authority, KeyPair, service_account_keys
from controlplane.etcd import Etcd
from controlplane.ports import Ports
from controlplane.processes import Process, wait_until
from controlplane.rest import Response, Server
from controlplane.together import together

_ADMINS = "system:masters"
_STOP_DEADLINE = 5.0


class KubectlError(Exception):
    """kubectl ended with an error; says which command, and what it said."""


@dataclass(frozen=True)
class Identity:
    """Who the bearer of a token is."""

    user: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class User:
    """Somebody known to a cluster by a client certificate."""

    name: str
    keys: KeyPair
    kubeconfig: Path


@dataclass(frozen=True)
class Options:
    """What a cluster consists of besides its API server."""

    controllers: bool = False
    only: tuple[str, ...] = ()
    nodes: int = 0
    tokens: Mapping[str, Identity] = field(default_factory=dict)
    apiserver_flags: tuple[str, ...] = ()


class Cluster:
    """A running cluster."""

    def __init__(
        self, name: str, options: Options, *, binaries: Binaries, etcd: Etcd, ports: Ports, folder: Path
    ) -> None:
        folder.mkdir()
        self.name = name
        self.folder = folder
        self.admin_token = secrets.token_urlsafe(24)
        self._options = options
        self._binaries = binaries
        self._etcd = etcd
        self._ports = ports
        self._port = ports.free()
        self.url = f"https://127.0.0.1:{self._port}"
        self._authority = Authority(folder, f"{name}-ca")
        self.ca_file = self._authority.file
        self.audit_log = folder / "audit.log"
        self._files = self._write_files()
        self._users = 0
        self._pids: Mapping[str, int] = {}
        self.admin = self.user("admin", [_ADMINS])
        self.kubeconfig = self.admin.kubeconfig
        self._server = Server(self.url, self.ca_file, self.admin.keys)
        self._apiserver: Process | None = None
        self._others: list[Process] = []

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which can use the cluster, but not stop, kill or restart it."""
        kept: dict[str, Any] = {
            "_etcd": None,
            "_ports": None,
            "_apiserver": None,
            "_others": [],
            "_pids": dict(self.pids),
        }
        return {**self.__dict__, **kept}

    @property
    def pids(self) -> Mapping[str, int]:
        """The process ids of what runs, by program."""
        running = [*self._others, *([self._apiserver] if self._apiserver else [])]
        if not running:
            return self._pids
        return {process.name.split("/")[-1]: process.pid for process in running if process.exit_code is None}

    async def start(self) -> None:
        """Start everything, and come back when it is usable."""
        await self._start_apiserver()
        parts = []
        if self._options.controllers:
            parts.append(self._start_controllers())
        if self._options.nodes:
            parts.append(self._start_nodes())
        await together(parts)

    def stop(self) -> None:
        """Stop everything; the API server last, so that the others can say goodbye."""
        processes.stop(self._others, deadline=_STOP_DEADLINE)
        if self._apiserver is not None:
            processes.stop([self._apiserver], deadline=_STOP_DEADLINE)

    def user(self, name: str, groups: Iterable[str] = (), *, lifetime: timedelta = A_DAY * 30) -> User:
        """A fresh client certificate for a user in some groups, and a kubeconfig with it."""
        self._users += 1
        file_name = f"user-{os.getpid()}-{self._users}"
        keys = self._authority.client(file_name, name, groups, lifetime=lifetime)
        path = self.folder / f"{file_name}.kubeconfig"
        kubeconfig.write(path, self.name, url=self.url, ca_file=self.ca_file, client=keys)
        return User(name, keys, path)

    def audit_events(self) -> list[dict[str, Any]]:
        """What was asked of the API server so far, and by whom."""
        return audit.read(self.audit_log)

    async def kill_apiserver(self) -> None:
        """SIGKILL: no goodbye, and watches break off."""
        if self._apiserver is not None:
            await asyncio.to_thread(processes.kill, [self._apiserver])

    async def restart_apiserver(self) -> None:
        """Start the API server again on the same port, with the same data; stops it first if it runs."""
        if self._apiserver is not None:
            await asyncio.to_thread(processes.stop, [self._apiserver], deadline=_STOP_DEADLINE)
        await self._start_apiserver()

    async def compact_etcd(self) -> int:
        """Make etcd forget everything before now, in all clusters of the plane; returns the revision.

        A running API server still knows what its watch cache holds. To have older resourceVersions and continue tokens
        answered with 410 Gone, restart it, or start the cluster with `apiserver_flags=["--watch-cache=false"]`.
        """
        return await asyncio.to_thread(self._etcd.compact)

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        user: User | None = None,
        token: str | None = None,
        content_type: str = "application/json",
    ) -> Response:
        """One raw request, as the admin unless a user or a token is given."""
        client = None if token else (user or self.admin).keys
        server = Server(self.url, self.ca_file, client, token)
        return await asyncio.to_thread(server.ask, method, path, body, content_type=content_type)

    async def fresh_namespace(self, prefix: str = "test") -> str:
        """A new namespace with a name of its own, for tests that share a cluster."""
        answer = await self.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": f"{prefix}-"}})
        if answer.status != 201:
            raise OSError(f"a namespace on {self.name} was refused: {answer.status} {answer.text}")
        return str(answer.json()["metadata"]["name"])

    async def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as in subprocess.run
        user: User | None = None,
    ) -> str:
        """Run kubectl, as the admin unless a user is given; returns what it printed."""
        # Its discovery cache goes by host and port, which other clusters had before and will have again.
        settings = [f"--kubeconfig={(user or self.admin).kubeconfig}", f"--cache-dir={self.folder / 'kubectl'}"]
        process = await asyncio.create_subprocess_exec(
            self._binaries["kubectl"],
            *settings,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await process.communicate((input or "").encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)} on {self.name}: {err.decode().strip()}")
        return out.decode()

    async def _start_apiserver(self) -> None:
        command = components.kube_apiserver(
            self._binaries,
            self._files,
            etcd=self._etcd.url,
            prefix=f"/{self.name}",
            port=self._port,
            flags=self._options.apiserver_flags,
        )
        self._apiserver = self._run("kube-apiserver", command)
        await wait_until(lambda: self._server.answers("/readyz"), by=self._apiserver, what="/readyz")

    async def _start_controllers(self) -> None:
        manager = self.user("system:kube-controller-manager").kubeconfig
        scheduler = self.user("system:kube-scheduler").kubeconfig
        controllers = self._run_beside(
            "kube-controller-manager",
            components.kube_controller_manager(self._binaries, self._files, manager, self._options.only),
        )
        if not self._options.only:
            self._run_beside("kube-scheduler", components.kube_scheduler(self._binaries, scheduler))
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        await wait_until(lambda: self._server.answers(account), by=controllers, what="the default service account")

    async def _start_nodes(self) -> None:
        simulator = self.user("kwok", [_ADMINS]).kubeconfig
        kwok = self._run_beside("kwok", components.kwok(self._binaries, simulator, port=self._ports.free()))
        await asyncio.to_thread(nodes.create, self._server, self._options.nodes)
        take_pods = nodes.take_pods if self._options.controllers else nodes.are_ready
        await wait_until(lambda: take_pods(self._server), by=kwok, what="ready nodes")

    def _run(self, program: str, command: components.Command) -> Process:
        return Process(f"{self.name}/{program}", command, self.folder / f"{program}.log")

    def _run_beside(self, program: str, command: components.Command) -> Process:
        process = self._run(program, command)
        self._others.append(process)
        return process

    def _write_files(self) -> components.Files:
        return components.Files(
            ca=self.ca_file,
            serving=self._authority.serving("apiserver"),
            service_accounts=service_account_keys(self.folder),
            tokens=self._write_tokens(self.folder / "tokens.csv"),
            audit_policy=audit.write_policy(self.folder / "audit-policy.yaml"),
            audit_log=self.audit_log,
        )

    def _write_tokens(self, path: Path) -> Path:
        admin = {self.admin_token: Identity("admin", (_ADMINS,))}
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", newline="") as file:
            writer = csv.writer(file)
            for token, identity in {**admin, **self._options.tokens}.items():
                writer.writerow([token, identity.user, identity.user, ",".join(identity.groups)])
        return path

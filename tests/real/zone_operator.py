"""An operator as a process on a real cluster, whose API server reaches its webhooks by the address of their Service.

Services of these clusters have addresses on loopback, so whoever listens there is what kube-proxy would lead to. Pods
are simulated, and no name of theirs resolves: the operator asks a proxy for them, which answers for all pods.
"""

from __future__ import annotations

import asyncio
import os
import re
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from aiohttp import ClientSession

from controlplane.cluster import Cluster, KubectlError, Options
from kedge.api.zones import ROLLOUT_GROUP
from real.loopback import PodServers, ServiceAddress
from real.role_fleet import as_account, asked_by, kedge, refused, running
from support.waiting import until_so

ACCOUNT = "rollout-operator"
SECRET = "rollout-operator-self-signed-certificate"
PREPARED = "ingester/prepare-shutdown"
WEBHOOKS = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
DOCUMENTED = Path(__file__).parent / "rollout_operator.yaml"
Manifest = dict[str, Any]


def zone_cluster(**more: Any) -> Options:
    """A cluster with simulated pods, whose Services have addresses on loopback that nobody else here uses."""
    high, low = divmod(os.getpid() % (100 * 256), 256)
    addresses = f"--service-cluster-ip-range=127.{100 + high}.{low}.0/24"
    return Options(controllers=True, nodes=2, apiserver_flags=(addresses,), **more)


def documented() -> list[Manifest]:
    """The manifests in the documentation of Grafana's rollout-operator, verbatim; for the namespace default."""
    return list(yaml.safe_load_all(DOCUMENTED.read_text()))


def documented_rights() -> Iterator[Manifest]:
    """Those of them that are about rights; the one Role without a name gets one, and is bound."""
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
    for one in documented():
        if "rbac" in one["apiVersion"]:
            yield {"metadata": {"name": f"{ACCOUNT}-role"}, **one}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"{ACCOUNT}-role"}
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{ACCOUNT}-rolebinding"},
        "roleRef": reference,
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default"}],
    }


async def installed(namespace: str, *options: str) -> list[Manifest]:
    """What `kedge install operator` prints, without the Deployment: tests start the process themselves."""
    printed = await kedge("install", "operator", "--namespace", namespace, *options)
    return [one for one in yaml.safe_load_all(printed) if one["kind"] != "Deployment"]


def stateful_set(name: str, replicas: int = 3, labels: Mapping[str, str] = {}) -> Manifest:
    """A zone of the rollout group ingester, whose pods are to be told before they go if it has the label for that."""
    template = {
        "metadata": {"labels": {"name": name, ROLLOUT_GROUP: "ingester"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}], "terminationGracePeriodSeconds": 0},
    }
    annotations = {"prepare-downscale-http-path": PREPARED, "prepare-downscale-http-port": "80"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": name,
            "labels": {ROLLOUT_GROUP: "ingester", **labels},
            "annotations": {f"grafana.com/{key}": value for key, value in annotations.items()},
        },
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"name": name}},
            "template": template,
        },
    }


class RunningOperator:
    """One process of an operator, and where its two servers listen."""

    def __init__(self, process: Process, log: Path) -> None:
        self.process = process
        self.log = log
        self.http = ""
        self.port = 0

    async def started(self) -> None:
        """Wait until it is ready, as a kubelet would see it."""
        await until_so(partial(self._logged, "webhooks are at"), 120)
        text = await asyncio.to_thread(self.log.read_text)
        self.http = f"http://127.0.0.1:{_port(text, 'health and metrics are at')}"
        self.port = _port(text, "webhooks are at")
        async with ClientSession() as session:

            async def is_ready() -> bool:
                async with session.get(f"{self.http}/ready") as answer:
                    return answer.status == 200

            await until_so(is_ready, 60)

    async def _logged(self, words: str) -> bool:
        assert self.process.returncode is None, f"see {self.log}"
        return words in await asyncio.to_thread(self.log.read_text)

    async def metrics(self) -> str:
        async with ClientSession() as session, session.get(f"{self.http}/metrics") as answer:
            return await answer.text()

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


def _port(log: str, words: str) -> int:
    found = re.search(rf"{words} \S+?:(\d+)\W", log)
    assert found is not None, log
    return int(found[1])


class OperatorBed:
    """A namespace with rollout groups, and an operator that has the rights of its service account there."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.folder = folder
        self.pods = PodServers()
        self.service = ServiceAddress()
        self._started = 0
        self._asked_before = len(asked_by(cluster, ACCOUNT, namespace))

    @asynccontextmanager
    async def prepared(self, *manifests: Manifest) -> AsyncIterator[None]:
        """With these manifests, and servers that answer for pods; in the end no webhook is left."""
        if manifests:
            await self.apply(*manifests)
        async with self.pods.serve():
            try:
                yield
            finally:
                await self.remove_webhooks()

    async def remove_webhooks(self) -> None:
        label = f"grafana.com/namespace={self.namespace}"
        await self.cluster.kubectl("delete", WEBHOOKS, "--selector", label)

    @asynccontextmanager
    async def service_address(self) -> AsyncIterator[None]:
        """Have the Service's address lead to the operators."""
        address = await self.get("service", ACCOUNT, "{.spec.clusterIP}")
        async with self.service.listen(address):
            yield

    @asynccontextmanager
    async def operator(self, *arguments: str) -> AsyncIterator[RunningOperator]:
        """An operator that is ready, behind the Service; with the documented command line, and more flags."""
        self._started += 1
        log = self.folder / f"operator-{self._started}.log"
        file = await as_account(self.cluster, ACCOUNT, self.folder, self.namespace)
        flags = [
            f"-kubernetes.namespace={self.namespace}",
            f"-kubernetes.api-url={self.cluster.url}",
            f"-kubernetes.config-file={file}",
            "-server.port=0",
            "-server-tls.enabled=true",
            "-server-tls.port=0",
        ]
        async with running(log, "rollout-operator", *flags, *arguments, HTTP_PROXY=self.pods.url) as process:
            operator = RunningOperator(process, log)
            await operator.started()
            self.service.ports.append(operator.port)
            yield operator
            await self.remove_webhooks()  # nobody answers from now on
            if operator.port in self.service.ports:
                self.service.ports.remove(operator.port)

    # What a user does

    async def apply(self, *manifests: Manifest) -> None:
        text = yaml.safe_dump_all(manifests)
        await self.cluster.kubectl("apply", "--namespace", self.namespace, "-f", "-", input=text)

    async def kubectl(self, *arguments: str) -> str:
        return await self.cluster.kubectl(*arguments, "--namespace", self.namespace)

    async def refused(self, *arguments: str) -> str:
        """What kubectl says of a command that must fail."""
        try:
            said = await self.kubectl(*arguments)
        except KubectlError as error:
            return str(error)
        raise AssertionError(f"kubectl {' '.join(arguments)} was not refused: {said}")

    async def get(self, kind: str, name: str, path: str) -> str:
        return await self.kubectl("get", kind, name, "--output", f"jsonpath={path}")

    async def scale(self, name: str, replicas: int, *more: str) -> str:
        return await self.kubectl("scale", "statefulset", name, f"--replicas={replicas}", *more)

    async def ready(self, *names: str) -> None:
        """Wait until these StatefulSets have all their pods, and all of them are ready."""
        for name in names:
            await until_so(partial(self._is_ready, name), 60)

    async def _is_ready(self, name: str) -> bool:
        found = await self.get("statefulset", name, "{.spec.replicas} {.status.readyReplicas} {.status.replicas}")
        wanted, *others = found.split(" ")
        return others == [wanted, wanted]

    async def has_bundle(self, kind: str, name: str) -> bool:
        return bool(await self.get(kind, name, "{.webhooks[0].clientConfig.caBundle}"))

    async def trusted(self, kind: str, *names: str) -> None:
        """Wait until these webhook configurations have their CA bundle."""
        for name in names:
            await until_so(partial(self.has_bundle, kind, name), 60)

    def asked(self) -> list[dict[str, Any]]:
        """What the operator has asked the API server for."""
        return asked_by(self.cluster, ACCOUNT, self.namespace)[self._asked_before :]

    def refusals(self) -> list[str]:
        """What was refused to the operator for want of a right."""
        return refused(self.asked())


def only(manifests: Sequence[Manifest], *kinds: str) -> list[Manifest]:
    return [one for one in manifests if one["kind"] in kinds]

"""What a real kubectl sends in protobuf is what it prints as JSON; and the server takes it."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from controlplane.binaries import Binaries
from embedded.protobuf.sending import PROTOBUF, decode_object
from embedded.world import deployment
from kedge.api.openapi.builtin import schema_of
from kedge.cli import kubeconfig
from kedge.embedded.certificates import ServingCertificate
from kedge.embedded.https_server import HttpsServer
from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.embedded.schema.builtin_decoding import decode_struct
from kedge.embedded.server import Server
from kedge.embedded.watch import Watch
from kedge.kube.clock import SystemClock
from kedge.kube.transport import Request, Response

pytestmark = pytest.mark.core

TOKEN = "only-here"  # of a server that lives as long as a test
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}


class Recording(Server):
    """A server that remembers what was sent to it."""

    def __init__(self) -> None:
        self.sent: list[Request] = []
        super().__init__(clock=SystemClock(), rng=Random(1))

    def watch(self, request: Request, caller: Caller = IN_PROCESS) -> Watch | Response:
        self.sent.append(request)
        return super().watch(request, caller)

    async def respond(self, request: Request, caller: Caller = IN_PROCESS) -> Response:
        self.sent.append(request)
        return await super().respond(request, caller)

    def make(self, path: str, obj: dict[str, Any]) -> None:
        assert self.handle(Request("POST", path, body=msgspec.json.encode(obj))).status == 201, path

    def posted(self) -> dict[str, Any]:
        """The one object that was sent in protobuf."""
        (body,) = (request.body for request in self.sent if request.content_type == PROTOBUF)
        return as_read(decode_object(body))


class Kubectl:
    """A kubectl that speaks to a recording server."""

    def __init__(self, server: Recording, binary: Path, file: Path) -> None:
        self.server = server
        self._command = [str(binary), f"--kubeconfig={file}", f"--cache-dir={file.parent}"]

    async def __call__(self, words: str) -> str:
        """What a command prints, which must not fail."""
        code, out, err = await self.run(words)
        assert code == 0, err
        return out

    async def run(self, words: str) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            *self._command, *shlex.split(words), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()


def as_read(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as a server reads it."""
    group, _, version = obj["apiVersion"].rpartition("/")
    return decode_struct(schema_of(group, version, obj["kind"]), obj).obj


@pytest.fixture
def serving() -> ServingCertificate:
    return ServingCertificate(SystemClock().now())


@pytest.fixture
async def kubectl(binaries: Binaries, serving: ServingCertificate, tmp_path: Path) -> AsyncIterator[Kubectl]:
    server, file = Recording(), tmp_path / "kubeconfig"
    server.make("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    server.make("/api/v1/namespaces/default/pods", POD)
    server.make("/apis/apps/v1/namespaces/default/deployments", deployment("web"))
    https = HttpsServer(server, tokens={TOKEN: Caller()}, tls=serving.context)
    await https.open()
    await asyncio.to_thread(kubeconfig.write, file, {"it": https.url}, authority=serving.authority, token=TOKEN)
    yield Kubectl(server, binaries["kubectl"], file)
    await https.close()


CREATED = [
    "create deployment a --image=a:1 --image=b:2 --port=80 --replicas=3",
    "create deployment b --image=a:1 -- sleep 60",
    "create job a --image=a:1 -- sh -c 'echo ä'",
    "create cronjob a --image=a:1 --schedule='*/5 * * * *' --restart=Never",
    "create namespace a",
    "create configmap a --from-literal=k=v --from-literal=empty=",
    "create secret generic a --from-literal=k=ÿv --type=mine",
    "create secret docker-registry a --docker-server=r.io --docker-username=u --docker-password=p",
    "create service clusterip a --tcp=80:8080 --tcp=443",
    "create service clusterip b --clusterip=None",
    "create service nodeport a --tcp=80 --node-port=31234",
    "create service loadbalancer a --tcp=80:http",
    "create service externalname a --external-name=a.example.com",
    "create ingress a --class=n --rule='a.io/x*=web:80' --rule='b.io/=web:http,tls=t' --annotation=k=v",
    "create ingress b --default-backend=web:1",
    "create role a --verb=get,list --resource=pods,deployments.apps/status --resource-name=x",
    "create rolebinding a --role=a --user=u --group=g --serviceaccount=default:s",
    "create clusterrole a --verb=get --non-resource-url=/healthz",
    "create clusterrole b --aggregation-rule=k=v",
    "create clusterrolebinding a --clusterrole=a --user=u",
    "create serviceaccount a",
    "create quota a --hard=cpu=1,memory=1.5Gi,pods=3",
    "create quota b --hard=pods=3 --scopes=BestEffort",
    "create priorityclass a --value=-5 --description=d --preemption-policy=Never",
    "create poddisruptionbudget a --selector=app=web --min-available=50%",
    "create poddisruptionbudget b --selector=app=web --max-unavailable=1",
    "autoscale deployment web --min=2 --max=5 --cpu=50%",
]


@pytest.mark.parametrize("words", CREATED)
async def test_what_kubectl_sends_is_what_it_prints(kubectl: Kubectl, words: str) -> None:
    before_command, dashes, command = words.partition(" -- ")
    shown = await kubectl(f"{before_command} --dry-run=client -o json{dashes}{command}")
    kubectl.server.sent.clear()
    made = msgspec.json.decode(await kubectl(f"{before_command} -o json{dashes}{command}"))
    expected = as_read(msgspec.json.decode(shown))
    assert _placed(kubectl.server.posted()) == _placed(expected)
    assert made["metadata"]["uid"]


def _placed(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without the namespace, which kubectl fills in late for some kinds."""
    return {**obj, "metadata": {key: item for key, item in obj["metadata"].items() if key != "namespace"}}


ASKED: list[tuple[str, str, dict[str, Any]]] = [
    (
        "auth can-i create pods --subresource=log",
        "yes\n",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "namespace": "default",
                    "verb": "create",
                    "resource": "pods",
                    "subresource": "log",
                }
            },
        },
    ),
    (
        "auth can-i get /healthz",
        "yes\n",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
        },
    ),
    (
        "auth whoami -o jsonpath={.status.userInfo.username}",
        "system:admin",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    ),
]


@pytest.mark.parametrize(("words", "answer", "question"), ASKED)
async def test_questions_are_answered(kubectl: Kubectl, words: str, answer: str, question: dict[str, Any]) -> None:
    assert await kubectl(words) == answer
    asked = kubectl.server.posted()
    assert {key: value for key, value in asked.items() if value and key not in ("metadata", "status")} == question


async def test_a_token_is_asked_for(kubectl: Kubectl) -> None:
    await kubectl.run("create token default --duration=1h --audience=a --bound-object-kind=Pod --bound-object-name=p")
    asked = kubectl.server.posted()
    assert (asked["apiVersion"], asked["kind"]) == ("authentication.k8s.io/v1", "TokenRequest")
    assert asked["spec"] == {
        "audiences": ["a"],
        "expirationSeconds": 3600,
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"},
    }


async def test_a_list_can_be_applied(kubectl: Kubectl, tmp_path: Path) -> None:
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")]
    file = tmp_path / "list.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": maps}))
    assert await kubectl(f"apply -f {file}") == "configmap/a created\nconfigmap/b created\n"

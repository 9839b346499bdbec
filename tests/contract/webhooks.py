"""Webhooks under contract: a small HTTPS server on loopback, and its configurations.

A webhook answers by the path that it is asked at (`ANSWERS`), and remembers what it was asked. Configurations are
created beside the recording: they have the port and the certificate of one run. They concern the namespace of one test
only. A server may take a moment to notice a configuration; so each has a webhook beside, which refuses every ConfigMap
with the label `probe`, and a test goes on when that is so. Which of several refusals a server shows is chance, so this
is not recorded either.
"""

from __future__ import annotations

import asyncio
import base64
import re
import socket
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

from contract.backend import Api, config_map
from kedge.api.resource import Resource
from kedge.embedded.certificates import ServingCertificate
from kedge.kube.codec import Untyped
from kedge.kube.transport import JSON, Request
from support.recording.api import RealApi
from support.waiting import until_so

VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
NAME = "hook.contract.kedge.dev"
PORT = re.compile(r"127\.0\.0\.1:\d+")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SLOW = 3.0  # seconds; webhooks here have one


def rule(*resources: str, operations: tuple[str, ...] = ("CREATE", "UPDATE"), **more: Any) -> Untyped:
    """A rule for resources of any group."""
    return {"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources, **more}


CONFIG_MAPS = rule("configmaps")


def patch(*operations: Untyped) -> Untyped:
    """An answer that changes the object."""
    raw = base64.b64encode(msgspec.json.encode(operations)).decode()
    return {"allowed": True, "patch": raw, "patchType": "JSONPatch"}


def add(path: str, value: object) -> Untyped:
    return {"op": "add", "path": path, "value": value}


def _count(request: Untyped) -> Untyped:
    """Counts in the object how often it was asked."""
    data = request["object"].get("data") or {}
    return patch(add("/data", {**data, "count": str(int(data.get("count", "0")) + 1)}))


ANSWERS: Mapping[str, Untyped | Callable[[Untyped], Untyped]] = {
    "allow": {"allowed": True},
    "warn": {"allowed": True, "warnings": ["mind the gap", "and the step"]},
    "deny": {"allowed": False, "status": {"message": "not today"}},
    "deny-silently": {"allowed": False},
    "deny-with-reason": {"allowed": False, "status": {"reason": "BecauseISaySo"}},
    "deny-with-code": {"allowed": False, "status": {"message": "not now", "reason": "Conflict", "code": 409}},
    "deny-with-success": {"allowed": False, "status": {"status": "Success", "message": "no", "code": 200}},
    "deny-with-warning": {"allowed": False, "status": {"message": "no"}, "warnings": ["you were told"]},
    "annotate": patch(add("/metadata/annotations", {"by": "webhook"})),
    "data": patch(add("/data/more", "by-webhook")),
    "count": _count,
    "invalid": patch(add("/metadata/labels", {"by": "not a label!"})),
    "unknown-field": patch(add("/nothing", "x")),
    "wrong-type": patch(add("/data", "text")),
    "impossible": patch({"op": "remove", "path": "/data/missing"}),
    "patch-without-type": {"allowed": True, "patch": base64.b64encode(b"[]").decode()},
    "other-uid": {"allowed": True, "uid": "other"},
}
BODIES: Mapping[str, tuple[int, str, str]] = {
    "error": (500, "text/plain", "out of order"),
    "missing": (404, "text/plain", "nothing here"),
    "no-response": (200, JSON, '{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}'),
}


class Webhook:
    """A webhook server on loopback, and what it was asked."""

    def __init__(self, certificate: ServingCertificate) -> None:
        self.asked: list[Untyped] = []
        self._certificate = certificate
        self._runner: web.ServerRunner | None = None
        self._port = 0

    async def open(self) -> None:
        self._server = web.Server(self._answer, access_log=None)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._certificate.context).start()
        self._port = self._runner.addresses[0][1]
        self._unused = socket.socket()  # bound, so that nobody else gets the port; nobody listens
        self._unused.bind(("127.0.0.1", 0))

    async def close(self) -> None:
        assert self._runner is not None
        self._unused.close()
        for connection in self._server.connections:  # whoever keeps one is not waited for
            if connection.transport is not None:
                connection.transport.abort()
        await self._runner.cleanup()

    def client_config(self, path: str) -> Untyped:
        """How to reach an answer; nobody listens at `unreachable`."""
        port = self._unused.getsockname()[1] if path == "unreachable" else self._port
        bundle = base64.b64encode(self._certificate.authority).decode()
        return {"url": f"https://127.0.0.1:{port}/{path}", "caBundle": bundle}

    async def _answer(self, asked: web.BaseRequest) -> web.StreamResponse:
        path = asked.path.strip("/")
        review = msgspec.json.decode(await asked.read())
        if path == "probe":
            return _review(review, {"allowed": False, "status": {"message": "ready"}})
        self.asked.append({"path": path, **review["request"]})
        if path == "slow":
            await asyncio.sleep(_SLOW)
            return _review(review, {"allowed": True})
        if path in BODIES:
            code, kind, text = BODIES[path]
            return web.Response(status=code, content_type=kind, text=text)
        said = ANSWERS[path]
        return _review(review, said(review["request"]) if callable(said) else said)


def _review(asked: Untyped, response: Untyped) -> web.Response:
    whole = {**asked, "response": {"uid": asked["request"]["uid"], **response}}
    del whole["request"]
    return web.Response(body=msgspec.json.encode(whole), content_type=JSON)


class Hooked:
    """An API with a webhook beside it."""

    def __init__(self, api: Api, real: RealApi | None, webhook: Webhook) -> None:
        self.api = api
        self._real = real
        self._webhook = webhook
        self._made: list[str] = []

    async def validating(self, path: str = "deny", **fields: Any) -> None:
        """Ask a validating webhook from now on, by default about ConfigMaps."""
        await self._configure(VALIDATING, [self.hook(path, **fields)])

    async def mutating(self, *paths: str, **fields: Any) -> None:
        """Ask mutating webhooks from now on, one after the other."""
        hooks = [self.hook(path, name=f"{path}.{NAME}", **fields) for path in paths]
        await self._configure(MUTATING, hooks)

    async def mutate_by(self, *hooks: Untyped) -> None:
        """Ask these mutating webhooks from now on."""
        await self._configure(MUTATING, list(hooks))

    def hook(self, path: str, *, name: str = NAME, **fields: Any) -> Untyped:
        here = {"matchLabels": {"kubernetes.io/metadata.name": self.api.namespace}}
        return {
            "name": name,
            "clientConfig": self._webhook.client_config(path),
            "rules": [CONFIG_MAPS],
            "namespaceSelector": here,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }

    def asked(self, *fields: str) -> list[Untyped]:
        """What the webhook was asked, of each question these fields."""

        def live() -> list[Untyped]:
            return [{field: one.get(field) for field in fields} for one in self._webhook.asked]

        if self._real is None:
            return live()
        found: list[Untyped] = self._real.told(f"what webhooks were asked: {' '.join(fields)}", live)
        return found

    async def send(self, method: str, path: str, body: object = b"", kind: str = JSON) -> tuple[int, str]:
        """The status and the warnings of an answer."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        response = await self.api.client.transport.send(Request(method, path, (), raw, kind, JSON), timeout=60.0)
        return response.status, response.headers.get("warning", "")

    async def close(self) -> None:
        for path in self._made:
            await self._beside("DELETE", path)

    async def _configure(self, resource: Resource, hooks: list[Untyped]) -> None:
        probe = self.hook(
            "probe",
            name="probe.contract.kedge.dev",
            objectSelector={"matchLabels": self._probe()},
            rules=[CONFIG_MAPS],
        )
        name = f"{self.api.namespace}-{len(self._made)}"
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name},
            "webhooks": [*hooks, {**probe, "failurePolicy": "Fail"}],
        }
        assert await self._beside("POST", resource.path(), body) == 201
        await until_so(self._is_noticed)
        self._made.append(resource.path(None, name))
        self._webhook.asked.clear()

    async def _is_noticed(self) -> bool:
        probe = config_map("probe", labels=self._probe())
        return await self._beside("POST", f"{self.api.maps}?dryRun=All", probe) != 201 or not self._is_asked

    def _probe(self) -> dict[str, str]:
        """The label that only the configuration that is being made refuses."""
        return {"probe": str(len(self._made))}

    @property
    def _is_asked(self) -> bool:
        """Whether a server asks webhooks: not while its answers are replayed."""
        return self._real is None or self._real.is_live

    async def _beside(self, method: str, path: str, body: Untyped | None = None) -> int:
        """The status of a request that is not recorded."""
        if self._real is None:
            where, _, query = path.partition("?")
            return (await self.api.ask(method, where, body or b"", **dict(parse_qsl(query)))).code
        return (await self._real.cluster.request(method, path, body)).status if self._real.is_live else 201


def calm(refusal: tuple[int, str, str]) -> tuple[int, str, str]:
    """A refusal without what is different in every run."""
    code, reason, message = refusal
    return code, reason, UID.sub("UID", PORT.sub("127.0.0.1:PORT", message))

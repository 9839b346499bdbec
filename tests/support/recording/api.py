"""A real API server as tests see it: the one that runs, or what it said when it was recorded."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from controlplane.cluster import Cluster, KubectlError
from controlplane.rest import Response as Reply
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.transport import JSON, Request, Response, Transport
from support.recording.exchange import answered
from support.recording.rows import Rows
from support.recording.transports import Listening, Replaying


class RealApi:
    """Asks a running cluster, and takes down what it says; without one, says what was taken down.

    Where others act beside the test, as the controllers of a cluster do, the rest of an answer may be chance.
    """

    def __init__(self, cluster: Cluster | None, rows: Rows, *, others_act: bool = False) -> None:
        self._cluster = cluster
        self._rows = rows
        self._others_act = others_act

    @property
    def is_live(self) -> bool:
        return self._cluster is not None

    @property
    def cluster(self) -> Cluster:
        """The running cluster, for what is not recorded."""
        assert self._cluster is not None
        return self._cluster

    def ask(self, request: Request, live: Callable[[], Response]) -> Response:
        """The answer to a request: what `live` brings from a running cluster, or what was taken down."""
        if self._cluster is None:
            return self._rows.replay.answer(request)
        response = live()
        self._rows.recording.add(answered(request, response))
        return response

    def told(self, question: str, live: Callable[[], Any]) -> Any:
        """What `live` comes to on a running cluster, or came to: something that JSON can hold.

        For what is not one request: what many come to, or what the cluster is.
        """
        answer = self.ask(Request("", question), lambda: Response(0, msgspec.json.encode(live())))
        return msgspec.json.decode(answer.body)

    async def request(self, method: str, path: str, content: object = None, *, content_type: str = JSON) -> Reply:
        """One raw request, as the admin."""
        sent = b"" if content is None else msgspec.json.encode(content)
        request = Request(method, path, body=sent, content_type=content_type)

        async def live() -> Response:
            reply = await self.cluster.request(method, path, content, content_type=content_type)
            return Response(reply.status, reply.text.encode())

        found = await self._ask(request, live)
        return Reply(found.status, found.body.decode())

    async def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002 - as in subprocess.run
        """What kubectl printed, as the admin."""

        async def live() -> Response:
            try:
                return Response(0, (await self.cluster.kubectl(*arguments, input=input)).encode())
            except KubectlError as error:
                return Response(1, str(error).encode())

        found = await self._ask(Request("kubectl", " ".join(arguments), body=(input or "").encode()), live)
        if found.status:
            raise KubectlError(found.body.decode())
        return found.body.decode()

    async def fresh_namespace(self, prefix: str = "test") -> str:
        """A new namespace, named after what asks for it: the same in every run, so nothing of it is recorded."""
        whose = f"{self._rows.module.stem} {self._rows.current}"
        name = f"{prefix}-{hashlib.sha256(whose.encode()).hexdigest()[:10]}"
        if self._cluster is not None:
            answer = await self._cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            assert answer.status == 201, answer.text
        return name

    async def transport(self) -> Transport:
        """A connection to it. Close it."""
        if self._cluster is None:
            return Replaying(self._rows)
        live = HttpsTransport(await asyncio.to_thread(load, [self._cluster.kubeconfig]))
        return Listening(live, self._rows, others_act=self._others_act)

    async def _ask(self, request: Request, live: Callable[[], Awaitable[Response]]) -> Response:
        if self._cluster is None:
            return self._rows.replay.answer(request)
        response = await live()
        self._rows.recording.add(answered(request, response, others_act=self._others_act))
        return response

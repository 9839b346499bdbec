"""A plain client of a real API server, live or as recorded: one connection, kept open for as long as the server does.

Synchronous.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from controlplane.cluster import Cluster
from kedge.kube.transport import Request, Response
from support.recording.api import RealApi

Object = dict[str, Any]


class Answer(NamedTuple):
    """What the server said."""

    status: int
    body: Object
    warnings: list[str]

    @property
    def accepted(self) -> bool:
        return self.status < 300

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Where and why an object was refused. The server's note that it stopped looking is none."""
        causes = self.body.get("details", {}).get("causes", [])
        found = [(cause.get("field", ""), cause["message"]) for cause in causes]
        return [cause for cause in found if "some validation rules were not checked" not in cause[1]]

    @property
    def said(self) -> object:
        """What to tell whoever reads a failed test."""
        return self.causes or self.body.get("message", self.status)


class ApiServer:
    """Speaks to one API server as its admin."""

    def __init__(self, api: RealApi, *, with_owners: bool = True) -> None:
        self._api = api
        self._with_owners = with_owners
        self._connection = Connection(api.cluster) if api.is_live else None

    @property
    def is_live(self) -> bool:
        return self._api.is_live

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        content = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, (), content, content_type, accept)
        found = self._api.ask(request, lambda: self._answer(request))
        return Answer(found.status, json.loads(found.body), list(found.warnings))

    def _answer(self, request: Request) -> Response:
        found = self.live.ask(request)
        return found if self._with_owners else replace(found, body=without_managed_fields(found.body))

    def told(self, question: str, live: Callable[[Connection], Any]) -> Any:
        """What `live` comes to on a running server, or came to: for answers too long to be kept whole."""
        return self._api.told(question, lambda: live(self.live))

    @property
    def live(self) -> Connection:
        """The running server, for what is not recorded."""
        assert self._connection is not None
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def without_managed_fields(body: bytes) -> bytes:
    """An object without the part of it that nobody here looks at, and that is longer than the rest."""
    found = json.loads(body)
    found.get("metadata", {}).pop("managedFields", None)
    return json.dumps(found).encode()


class Connection:
    """Speaks to one running API server as its admin."""

    def __init__(self, cluster: Cluster) -> None:
        self._address = urlsplit(cluster.url)
        self._tls = ssl.create_default_context(cafile=cluster.ca_file)
        self._token = cluster.admin_token
        self._socket = self._connect()

    def _connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection((self._address.hostname, self._address.port), timeout=120)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._tls.wrap_socket(plain, server_hostname=self._address.hostname)

    def ask(self, request: Request) -> Response:
        lines = [
            f"{request.method} {request.path} HTTP/1.1",
            f"Host: {self._address.netloc}",
            f"Authorization: Bearer {self._token}",
            f"Content-Type: {request.content_type}",
            f"Accept: {request.accept}",
            f"Content-Length: {len(request.body)}",
        ]
        # One write for head and body: thousands of requests take half the time they take with two.
        sent = "\r\n".join([*lines, "", ""]).encode() + request.body
        try:
            return self._send(request.method, sent)
        except (http.client.RemoteDisconnected, OSError):  # idle for so long that the server has hung up
            self._socket.close()
            self._socket = self._connect()
            return self._send(request.method, sent)

    def get(self, path: str) -> Any:
        return json.loads(self.ask(Request("GET", path)).body)

    def _send(self, method: str, sent: bytes) -> Response:
        self._socket.sendall(sent)
        answer = http.client.HTTPResponse(self._socket, method=method)
        answer.begin()
        warnings = answer.headers.get_all("Warning")
        return Response(answer.status, answer.read(), {"warning": ", ".join(warnings)} if warnings else {})

    def close(self) -> None:
        self._socket.close()

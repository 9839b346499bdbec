"""A plain client of a real API server: one connection, kept open for as long as the server does; synchronous."""

import http.client
import json
import socket
import ssl
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from controlplane.cluster import Cluster

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

    def __init__(self, cluster: Cluster) -> None:
        self._address = urlsplit(cluster.url)
        self._tls = ssl.create_default_context(cafile=cluster.ca_file)
        self._token = cluster.admin_token
        self._socket = self._connect()

    def _connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection((self._address.hostname, self._address.port), timeout=120)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._tls.wrap_socket(plain, server_hostname=self._address.hostname)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        content = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self._address.netloc}",
            f"Authorization: Bearer {self._token}",
            f"Content-Type: {content_type}",
            f"Accept: {accept}",
            f"Content-Length: {len(content)}",
        ]
        # One write for head and body: thousands of requests take half the time they take with two.
        request = "\r\n".join([*lines, "", ""]).encode() + content
        try:
            return self._send(method, request)
        except (http.client.RemoteDisconnected, OSError):  # idle for so long that the server has hung up
            self._socket.close()
            self._socket = self._connect()
            return self._send(method, request)

    def _send(self, method: str, request: bytes) -> Answer:
        self._socket.sendall(request)
        answer = http.client.HTTPResponse(self._socket, method=method)
        answer.begin()
        return Answer(answer.status, json.loads(answer.read()), answer.headers.get_all("Warning") or [])

    def close(self) -> None:
        self._socket.close()

"""REST: plain HTTP requests with JSON, from the standard library, for the harness itself.

Promises one connection per request and no retries: what the server said is what you get. Synchronous, so that it
belongs to no event loop; call it through `asyncio.to_thread`.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from controlplane.certs import KeyPair


@dataclass(frozen=True)
class Response:
    """What a server answered."""

    status: int
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Server:
    """An HTTP server, and how we prove who we are to it."""

    url: str
    ca_file: Path | None = None
    client: KeyPair | None = None
    token: str | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        seconds: float = 30.0,
    ) -> Response:
        """Send one request and read the whole answer; raises OSError when there is none."""
        connection = self._connect(seconds)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, self._headers(content_type))
            answer = connection.getresponse()
            return Response(answer.status, answer.read().decode())
        except http.client.HTTPException as error:
            raise ConnectionError(f"{method} {self.url}{path}: {error!r}") from error
        finally:
            connection.close()

    def answers(self, path: str) -> bool:
        """Whether a GET is answered with 200; raises OSError when it is not answered at all."""
        return self.ask("GET", path, seconds=5.0).status == 200

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=seconds)
        return http.client.HTTPSConnection(host, port, timeout=seconds, context=self._tls())

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.client is not None:
            context.load_cert_chain(self.client.certificate, self.client.key)
        return context

    def _headers(self, content_type: str) -> Mapping[str, str]:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        return headers | {"Authorization": f"Bearer {self.token}"} if self.token else headers

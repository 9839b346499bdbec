"""An API server as small as it can be, behind a transport: objects, versions, watches that lag, and outages.

It keeps what it is given, so use it for what happens around objects, not in them.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from kedge.kube.transport import ConnectionFailed, Request, Response
from support.scripted import answer, bookmark, line, refused, status

Objects = dict[str, dict[str, Any]]


class Tiny:
    """Objects by path; `asked` is every request so far.

    `lag` is how long events take, `latency` how long answers do; while `down` it answers nothing.
    """

    def __init__(self, lag: float = 0.01) -> None:
        self.objects: Objects = {}
        self.asked: list[Request] = []
        self.lag = lag
        self.latency = 0.0
        self.down = False
        self.lose_answers = False
        self.closed = False
        self.fault: Callable[[Request], Response | None] = lambda _: None
        self._versions = itertools.count(1)
        self._version = 0
        self._uids = itertools.count(1)
        self._watches: dict[asyncio.Queue[bytes | None], str] = {}

    def writes(self) -> list[str]:
        return [f"{r.method} {r.path}" for r in self.asked if r.method != "GET"]

    def put(self, path: str, **fields: Any) -> dict[str, Any]:
        """Make or change an object behind everybody's back."""
        *_, place, _, name = path.split("/")
        meta = {"name": name, "namespace": place, **fields.pop("metadata", {})}
        return self._keep(path, {"metadata": meta, **fields})

    def remove(self, path: str) -> None:
        self._version = next(self._versions)
        gone = self.objects.pop(path)
        gone["metadata"]["resourceVersion"] = str(self._version)
        self._tell(path, "DELETED", gone)

    def break_watches(self) -> None:
        """End every watch that is open."""
        for watch in self._watches:
            watch.put_nowait(None)

    def expire_watches(self) -> None:
        """End every watch that is open because the server has forgotten what came since (410): they list again."""
        for watch in self._watches:
            watch.put_nowait(line("ERROR", status(410, "Expired", "too old resource version")))

    async def send(self, request: Request, *, timeout: float) -> Response:
        if self.down or self.closed:
            raise ConnectionFailed("connection refused", sent=False)
        await asyncio.sleep(self.latency)
        self.asked.append(request)
        response = self.fault(request) or self._answer(request)
        if self.lose_answers and request.method != "GET":
            raise ConnectionFailed("connection reset", sent=True)
        return response

    def _answer(self, request: Request) -> Response:
        path = request.path
        if path == "/version":
            return answer(200, {"major": "1"})
        if request.method == "POST":
            body = msgspec.json.decode(request.body)
            path += "/" + body["metadata"]["name"]
            return answer(201, self._keep(path, body))
        found = self.objects.get(path)
        if request.method == "PATCH" and (found is not None or "apply" in request.content_type):
            return answer(200, self._keep(path, _merge(found or {}, msgspec.json.decode(request.body))))
        if found is None:
            return refused(404, "NotFound")
        if request.method == "DELETE":
            self.remove(path)
            return answer(200, {"kind": "Status", "status": "Success"})
        return answer(200, found)

    def _keep(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        old = self.objects.get(path)
        self._version = next(self._versions)
        uid = old["metadata"]["uid"] if old else f"uid-{next(self._uids)}"
        meta = {**body["metadata"], "uid": uid, "resourceVersion": str(self._version)}
        self.objects[path] = {**body, "metadata": meta}
        self._tell(path, "MODIFIED" if old else "ADDED", self.objects[path])
        return self.objects[path]

    def _tell(self, path: str, kind: str, found: dict[str, Any]) -> None:
        event = line(kind, found)
        for watch, plural in self._watches.items():
            if plural in path.split("/"):
                asyncio.get_running_loop().call_later(self.lag, watch.put_nowait, event)

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator["TinyStream"]:
        if self.down or self.closed:
            raise ConnectionFailed("connection refused", sent=False)
        plural = request.path.rpartition("/")[2]
        watch: asyncio.Queue[bytes | None] = asyncio.Queue()
        if dict(request.query).get("sendInitialEvents"):
            for path, found in self.objects.items():
                if plural in path.split("/"):
                    watch.put_nowait(line("ADDED", found))
            watch.put_nowait(bookmark(self._version, end=True))
        self._watches[watch] = plural
        try:
            yield TinyStream(watch)
        finally:
            del self._watches[watch]

    async def close(self) -> None:
        self.closed = True


class TinyStream:
    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, events: asyncio.Queue[bytes | None]) -> None:
        self._events = events

    async def read(self) -> bytes:
        return b""

    async def lines(self) -> AsyncIterator[bytes]:
        while (event := await self._events.get()) is not None:
            yield event


def _merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**old, **new}
    for key in old.keys() & new.keys():
        if isinstance(old[key], dict) and isinstance(new[key], dict):
            merged[key] = _merge(old[key], new[key])
    return merged


def map_path(name: str, namespace: str = "shop") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"

"""A transport that answers from a script: the only kind of double there is."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from kedge.kube.transport import ConnectionFailed, Request, Response

Answer = Response | Exception


class ScriptedStream:
    """Lines, one after the other; an exception among them breaks the stream there, None keeps it open for ever.

    A number is so many seconds in which nothing comes.
    """

    def __init__(self, status: int, lines: Sequence[bytes | float | Exception | None], body: bytes = b"") -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}
        self._lines = lines
        self._body = body

    async def read(self) -> bytes:
        return self._body

    async def lines(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            if line is None:
                await asyncio.Event().wait()
            elif isinstance(line, Exception):
                raise line
            elif isinstance(line, float):
                await asyncio.sleep(line)
            else:
                yield line


class Scripted:
    """Gives each request the next answer of its kind; the last one stands for all that follow."""

    def __init__(self, answers: Sequence[Answer] = (), streams: Sequence[ScriptedStream | Exception] = ()) -> None:
        self.asked: list[Request] = []
        self.streamed: list[Request] = []
        self._answers = list(answers)
        self._streams = list(streams)
        self.on_send: Callable[[Request], None] | None = None

    async def send(self, request: Request, *, timeout: float) -> Response:
        self.asked.append(request)
        if self.on_send:
            self.on_send(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[ScriptedStream]:
        self.streamed.append(request)
        answer = self._streams.pop(0) if self._streams else ScriptedStream(200, [None])
        if isinstance(answer, Exception):
            raise answer
        yield answer

    async def close(self) -> None:
        pass


def answer(status: int, body: object = None, **headers: str) -> Response:
    return Response(status, msgspec.json.encode(body), {key.replace("_", "-"): value for key, value in headers.items()})


def status(code: int, reason: str, message: str = "no", **more: object) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        **more,
    }


def refused(code: int, reason: str, message: str = "no", **headers: str) -> Response:
    return answer(code, status(code, reason, message), **headers)


def config_map(name: str, version: int, namespace: str = "shop", **data: str) -> dict[str, object]:
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def line(kind: str, found: object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": found})


def bookmark(version: int, *, end: bool = False) -> bytes:
    notes = {"k8s.io/initial-events-end": "true"} if end else {}
    return line("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": str(version), "annotations": notes}})


RESET = ConnectionFailed("connection reset", sent=True)
DOWN = ConnectionFailed("connection refused", sent=False)

"""Exchanges: one request to a server and what it answered, in a form that reads well in a diff.

What a test sends it knows itself: of a long body only a digest is kept. Of an answer that gives back what was sent,
only what the server has changed of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.kube.transport import JSON, Request, Response

LONG = 300
"""Characters of a body that are still kept as they are."""

_HEADERS = ("allow", "location", "retry-after", "warning")
"""Those that a test may look at."""

Body = Mapping[str, Any]
"""Nothing, or the content under what it is: `json`, `text`, `base64`.

`digest` of what was sent; `changes` to what was sent; `same` as what has this digest among the table's long answers.
"""


class Exchange(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A request and its answer.

    Of a stream: its lines instead of a body, and whether the server has ended it; most are left by who reads them.
    """

    ask: str
    sent: Body = {}
    content_type: str = ""  # JSON
    accept: str = ""  # JSON
    code: int = 0
    answer: Body = {}
    headers: Mapping[str, str] = {}
    lines: tuple[Line, ...] | None = None
    ended: bool = False
    others_act: bool = False  # so that what else there is in an answer may be chance

    @property
    def changes_nothing(self) -> bool:
        return self.ask.startswith("GET ")

    @property
    def request(self) -> str:
        """What was asked, as text that is the same for the same request."""
        sent = msgspec.json.encode(self.sent, order="deterministic").decode()
        return f"{self.ask} {self.content_type} {self.accept} {sent}"

    def response(self, sent: bytes) -> Response:
        """The answer to this request, whose whole body this is."""
        return Response(self.code, raw(self.answer, sent), self.headers)


class Line(Struct, frozen=True, array_like=True):
    """A line of a stream, and how many changes the test had made before it."""

    after: int
    content: Body


def asked(request: Request) -> Exchange:
    """A request that has no answer yet."""
    return Exchange(
        ask=str(request),
        sent=_sent(request.body),
        content_type=_media(request.content_type),
        accept=_media(request.accept),
    )


def answered(request: Request, response: Response, *, others_act: bool = False) -> Exchange:
    headers = {name: value for name, value in response.headers.items() if name in _HEADERS}
    answer = _changes(request.body, response.body) or body(response.body)
    if request.path.startswith("/openapi/"):
        answer = _without_prose(answer)
    return replace(asked(request), code=response.status, answer=answer, headers=headers, others_act=others_act)


def _media(kind: str) -> str:
    return "" if kind == JSON else kind


def _sent(content: bytes) -> Body:
    kept = body(content)
    text = msgspec.json.encode(kept, order="deterministic")
    return kept if len(text) <= LONG else {"digest": hashlib.sha256(text).hexdigest()[:20]}


def _changes(sent: bytes, answer: bytes) -> Body | None:
    """What the server made of what was sent, if that says it all in fewer words."""
    match body(sent), body(answer):
        case {"json": dict(before)}, {"json": dict(after)} if after.get("kind") != "Status":
            kept = {"changes": difference(before, after)}
            return kept if raw(kept, sent) == msgspec.json.encode(after, order="deterministic") else None
    return None


def _without_prose(node: Any) -> Any:
    """A schema without its descriptions: three quarters of its length, and Kubernetes' own."""
    if isinstance(node, dict):
        return {key: _without_prose(part) for key, part in node.items() if not _is_prose(key, part)}
    return [_without_prose(part) for part in node] if isinstance(node, list) else node


def _is_prose(key: str, part: Any) -> bool:
    return key == "description" and isinstance(part, str)


def body(content: bytes) -> Body:
    """Content as it is kept."""
    if not content:
        return {}
    try:
        return {"json": msgspec.json.decode(content)}
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def raw(kept: Body, sent: bytes = b"") -> bytes:
    """What was kept, as it came; spaces and the order of keys aside."""
    match kept:
        case {"json": content}:
            return msgspec.json.encode(content)
        case {"changes": changes}:
            return msgspec.json.encode(changed(msgspec.json.decode(sent), changes), order="deterministic")
        case {"text": str(text)}:
            return text.encode()
        case {"base64": str(text)}:
            return binascii.a2b_base64(text)
    return b""


def difference(before: Any, after: Any) -> Any:
    """What turns one into the other (RFC 7396)."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone = dict.fromkeys(before.keys() - after.keys())
    return gone | {
        key: difference(before.get(key), value)
        for key, value in after.items()
        if key not in before or before[key] != value
    }


def changed(before: Any, changes: Any) -> Any:
    """The one turned into the other."""
    if not isinstance(changes, dict):
        return changes
    known = before if isinstance(before, dict) else {}
    kept = {key: value for key, value in known.items() if key not in changes}
    return kept | {key: changed(known.get(key), value) for key, value in changes.items() if value is not None}

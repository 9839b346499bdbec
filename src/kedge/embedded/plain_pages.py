"""Plain pages: what a server answers beside its API: its version, and that it is healthy."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kedge.embedded import statuses
from kedge.kube.transport import JSON, Request, Response

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+kedge",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "embedded",
}
_TEXT: Mapping[str, str] = {"content-type": "text/plain; charset=utf-8"}
_OK = Response(200, b"ok", _TEXT)
_PAGES: Mapping[str, Response] = {
    "/version": Response(200, msgspec.json.encode(VERSION), {"content-type": JSON}),
    "/healthz": _OK,
    "/livez": _OK,
    "/readyz": _OK,
}
NOT_FOUND = Response(404, b"404 page not found\n", _TEXT)


def page(request: Request) -> Response | None:
    """The page at a path; None if there is none."""
    found = _PAGES.get(request.path.rstrip("/"))
    if found is not None and request.method != "GET":
        raise statuses.not_allowed()
    return found

"""Discovery where a server behind the server does not answer."""

from __future__ import annotations

from typing import Any

import msgspec

from kedge.kube.client import Client
from kedge.kube.discovery import Discovery, discover
from kedge.kube.limits import Limiter, Retry
from kedge.kube.transport import Request, Response
from support.scripted import Scripted
from support.virtual import run

WIDGETS: dict[str, Any] = {
    "resource": "widgets",
    "responseKind": {"kind": "Widget"},
    "scope": "Namespaced",
    "verbs": ["get", "list", "watch"],
}


class Documents(Scripted):
    """Answers with the document at each path."""

    def __init__(self, **documents: Any) -> None:
        super().__init__()
        self._documents = {f"/{path.replace('__', '/')}": value for path, value in documents.items()}

    async def send(self, request: Request, *, timeout: float) -> Response:  # the seam's own name
        found = self._documents.get(request.path)
        return Response(503, b"") if found is None else Response(200, msgspec.json.encode(found))


def seen(**documents: Any) -> Discovery:
    client = Client(Documents(**documents), limiter=Limiter(rate=0), retry=Retry(attempts=1))
    return run(discover(client))


def whole(*groups: Any) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "items": list(groups)}


def test_a_group_that_was_never_heard_of_is_silent() -> None:
    stale = {"metadata": {"name": "far.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
    found = seen(api=whole(), apis=whole(stale))
    assert found == Discovery((), ("far.example.com/v1",))


def test_what_was_last_heard_of_a_group_still_counts() -> None:
    versions = [{"version": "v1", "freshness": "Stale", "resources": [WIDGETS]}]
    found = seen(api=whole(), apis=whole({"metadata": {"name": "far.example.com"}, "versions": versions}))
    assert [str(kind.resource) for kind in found.kinds] == ["widgets.far.example.com"]
    assert found.unavailable == ()


def test_a_group_that_does_not_answer_is_silent_where_each_is_asked() -> None:
    groups = {"kind": "APIGroupList", "groups": [{"name": "far.example.com", "versions": [{"version": "v1"}]}]}
    core = {"kind": "APIVersions", "versions": ["v1"]}
    maps = {"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["list"]}
    part = {"name": "configmaps/status", "kind": "ConfigMap", "namespaced": True, "verbs": ["get"]}
    found = seen(api=core, apis=groups, api__v1={"resources": [maps, part]})
    assert [str(kind.resource) for kind in found.kinds] == ["configmaps"]
    assert found.unavailable == ("far.example.com/v1",)

"""What our own reading of discovery makes of either server, in both of the forms they speak."""

from __future__ import annotations

from msgspec.structs import replace

from contract.backend import Api
from kedge.api.apps import Deployment
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.discovery import Discovery, ServedKind, discover
from kedge.kube.limits import Limiter
from kedge.kube.transport import JSON, Request, Response, Transport


class Plain:
    """A server that knows no aggregated form."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.stream = inner.stream
        self.close = inner.close

    async def send(self, request: Request, *, timeout: float) -> Response:
        return await self._inner.send(replace(request, accept=JSON), timeout=timeout)


def found(discovery: Discovery, resource: Resource) -> ServedKind:
    [only] = [kind for kind in discovery.kinds if kind.resource == resource]
    return only


async def test_built_in_kinds_are_found_with_what_can_be_done_with_them(api: Api) -> None:
    seen = await discover(api.client)
    deployments = found(seen, Deployment.resource)
    assert deployments.preferred
    assert deployments.can("get", "list", "watch", "create")
    namespaces = found(seen, Resource("", "v1", "Namespace", "namespaces", namespaced=False))
    assert namespaces.can("list", "watch")
    assert not any("/" in kind.resource.plural for kind in seen.kinds)
    assert seen.unavailable == ()


async def test_the_newest_version_of_a_kind_is_preferred(api: Api) -> None:
    seen = await discover(api.client)
    scalers = [kind for kind in seen.kinds if kind.resource.kind == "HorizontalPodAutoscaler"]
    assert [kind.resource.version for kind in scalers if kind.preferred] == ["v2"]


async def test_both_forms_say_the_same(api: Api) -> None:
    plain = await discover(Client(Plain(api.client.transport), limiter=Limiter(rate=0)))
    whole = await discover(api.client)
    assert set(plain.kinds) == set(whole.kinds)

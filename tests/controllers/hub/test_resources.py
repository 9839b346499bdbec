"""Resources: what placements select, known as the hub changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import ConfigMap, Namespace
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PlacementKinds
from kedge.api.resource import Resource
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from kedge.kube.transport import BufferedStream, Request, Response, Stream, Transport
from support.fleets import client_of, fleet_cluster, managed
from support.snapping import MAPS, QUIET, SHOP, Bench, play, start
from support.virtual import run
from support.waiting import until, until_so

WIDGETS = Resource("example.com", "v1", "Widget", "widgets")
WIDGET = {"group": "example.com", "version": "v1", "kind": "Widget"}
BIG_WIDGET = {"group": "example.com", "version": "v1", "kind": "BigWidget"}


def definition(kind: str = "Widget", scope: str = "Namespaced") -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


CRDS = untyped(CustomResourceDefinition.resource)


async def held(hub: Bench, name: str = "crp") -> list[str]:
    """The kinds and names in the newest revision."""
    found = (await hub.newest(name))["spec"]["selectedResources"]
    return [f"{each['kind']} {each['metadata']['name']}" for each in found]


ROWS: list[tuple[str, PlacementKinds, list[dict[str, Any]], str]] = [
    (
        "a kind nobody serves",
        CLUSTER,
        [WIDGET],
        (
            "spec.resourceSelectors[0] selects Widget of example.com/v1, which the hub does not serve: "
            "install its CustomResourceDefinition, or correct group, version or kind"
        ),
    ),
    (
        "a version nobody serves",
        CLUSTER,
        [SHOP, {"group": "rbac.authorization.k8s.io", "version": "v1beta1", "kind": "ClusterRole"}],
        (
            "spec.resourceSelectors[1] selects ClusterRole of rbac.authorization.k8s.io/v1beta1, which the "
            "hub serves as v1: correct version"
        ),
    ),
    (
        "a namespaced kind in a ClusterResourcePlacement",
        CLUSTER,
        [MAPS],
        (
            "spec.resourceSelectors[0] selects ConfigMap, which is in namespaces, but a "
            "ClusterResourcePlacement places cluster-wide objects: select its Namespace (with selectionScope "
            "NamespaceWithResourceSelectors to place only some of what is in it), or use a ResourcePlacement"
        ),
    ),
    (
        "a cluster-wide kind in a ResourcePlacement",
        NAMESPACED,
        [SHOP],
        (
            "spec.resourceSelectors[0] selects Namespace, which is cluster-wide, but a ResourcePlacement "
            "places objects of its own namespace shop: use a ClusterResourcePlacement"
        ),
    ),
    (
        "a reserved namespace",
        CLUSTER,
        [{**SHOP, "name": "kube-system"}],
        (
            "spec.resourceSelectors[0] selects namespace kube-system, which is reserved and never placed, "
            "like default and all that begin with kube- or fleet-: choose another"
        ),
    ),
    (
        "the fleet's own kinds",
        CLUSTER,
        [{"group": "cluster.kubernetes-fleet.io", "version": "v1beta1", "kind": "MemberCluster"}],
        (
            "spec.resourceSelectors[0] selects MemberCluster, a kind that belongs to the hub and is never "
            "placed: remove it"
        ),
    ),
    (
        "pods",
        NAMESPACED,
        [{"group": "", "version": "v1", "kind": "Pod"}],
        "spec.resourceSelectors[0] selects Pod, a kind that belongs to the hub and is never placed: remove it",
    ),
    (
        "the same object twice",
        CLUSTER,
        [SHOP, {"group": "", "version": "v1", "kind": "Namespace", "labelSelector": {"matchLabels": {"app": "shop"}}}],
        (
            "spec.resourceSelectors[0] and spec.resourceSelectors[1] both select Namespace shop: an object "
            "may be selected once; change one of them"
        ),
    ),
    (
        "labels that mean nothing",
        NAMESPACED,
        [{**MAPS, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}}],
        (
            "spec.resourceSelectors[0] has a labelSelector that means nothing: operator 'Like' is none of In,"
            " NotIn, Exists, DoesNotExist"
        ),
    ),
]


@pytest.mark.parametrize(("kinds", "selectors", "problem"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_bad_selector_is_reported_with_the_field_and_the_fix(
    kinds: PlacementKinds, selectors: list[dict[str, Any]], problem: str
) -> None:
    async def act(hub: Bench) -> None:
        await hub.client.patch(Namespace, "shop", MergePatch({"metadata": {"labels": {"app": "shop"}}}))
        await hub.place(*selectors, name="bad")
        await hub.place(name="good")
        await hub.until_indexes([0], "good")

        async def so() -> bool:
            return await hub.problem("bad") == problem

        await until_so(so, QUIET)
        assert await hub.indexes("bad") == []
        assert await hub.problem("good") == ""

    play(act, kinds)


def test_a_bad_selector_keeps_the_last_good_revision() -> None:
    async def act(hub: Bench) -> None:
        await hub.place()
        await hub.until_indexes([0])
        await hub.change({"resourceSelectors": [SHOP, WIDGET]})
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0]
        await hub.change({"resourceSelectors": [SHOP]})
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == [0]
        assert await hub.problem() == ""

    play(act)


def test_a_long_name_is_refused_with_the_reason() -> None:
    async def act(hub: Bench) -> None:
        name = "a" * 64
        await hub.place(name=name)
        await asyncio.sleep(QUIET)
        assert "metadata.name has 64 characters" in await hub.problem(name)
        assert (await hub.client.list(CLUSTER.policy_snapshot)).items == ()

    play(act)


def test_a_new_crd_can_be_selected_as_soon_as_it_is_there() -> None:
    async def act(hub: Bench) -> None:
        await hub.place(BIG_WIDGET)
        await asyncio.sleep(QUIET)
        assert await hub.indexes() == []
        await hub.client.create(CRDS, definition("BigWidget", "Cluster"))
        await hub.until_indexes([0], within=2.0)
        big = untyped(Resource("example.com", "v1", "BigWidget", "bigwidgets", namespaced=False))
        await hub.client.create(big, {"metadata": {"name": "w"}, "spec": {"size": 1}})
        await hub.until_indexes([0, 1], within=2.0)
        assert await held(hub) == ["BigWidget w"]

    play(act)


def test_objects_of_a_new_kind_in_a_selected_namespace_come_along() -> None:
    async def act(hub: Bench) -> None:
        await hub.place()
        await hub.until_indexes([0])
        await hub.client.create(CRDS, definition())
        await asyncio.sleep(1.0)
        await hub.client.create(untyped(WIDGETS), {"metadata": {"name": "w", "namespace": "shop"}, "spec": {}})
        await hub.until_indexes([0, 1])
        assert await held(hub) == ["Namespace shop", "Widget w"]

    play(act)


def test_a_kind_that_goes_takes_its_objects_along_and_is_followed_again_when_it_comes_back() -> None:
    async def act(hub: Bench) -> None:
        await hub.client.create(CRDS, definition())
        await asyncio.sleep(1.0)
        await hub.client.create(untyped(WIDGETS), {"metadata": {"name": "w", "namespace": "shop"}, "spec": {}})
        await hub.place()
        await hub.until_indexes([0])
        await hub.client.delete(CRDS, "widgets.example.com")
        await hub.until_indexes([0, 1])
        assert await held(hub) == ["Namespace shop"]
        assert await hub.problem() == ""
        await hub.client.create(CRDS, definition())
        await asyncio.sleep(2.0)
        await hub.client.create(untyped(WIDGETS), {"metadata": {"name": "w", "namespace": "shop"}, "spec": {}})
        await hub.until_indexes([0, 1, 2])
        assert not hub.hub.problems()

    play(act)


def test_only_kinds_that_somebody_needs_are_followed() -> None:
    async def act(hub: Bench) -> None:
        caches = hub.resources._candidates._caches
        await asyncio.sleep(QUIET)
        assert not caches
        await hub.place({"group": "", "version": "v1", "kind": "Namespace", "selectionScope": "NamespaceOnly"})
        await hub.until_indexes([0])
        assert [str(each) for each in caches] == ["namespaces"]
        await hub.change({"resourceSelectors": [SHOP]})
        await until(lambda: len(caches) > 10)
        assert not any(each.kind in ("Pod", "Event", "Lease", "Work") for each in caches)
        await hub.client.delete(CLUSTER.placement, "crp")
        await until(lambda: not caches)
        assert not [name for name in map(str, asyncio.all_tasks()) if "hub: deployments" in name]

    play(act)


def test_a_namespace_that_is_on_its_way_out_is_not_selected_nor_what_is_in_it() -> None:
    async def act(hub: Bench) -> None:
        meta = {"name": "a", "namespace": "shop", "finalizers": ["example.com/stay"]}
        await hub.client.create(ConfigMap, {"metadata": meta})
        await hub.place()
        await hub.until_indexes([0])
        await hub.client.delete(Namespace, "shop")
        await hub.until_indexes([0, 1])
        assert await held(hub) == []

    play(act)


PICKY = {**SHOP, "selectionScope": "NamespaceWithResourceSelectors"}


@pytest.mark.parametrize(
    ("selectors", "wanted"),
    [
        ([{**SHOP, "selectionScope": "NamespaceOnly"}], ["Namespace shop"]),
        ([SHOP], ["Namespace shop", "ConfigMap a", "ConfigMap b"]),
        ([PICKY], ["Namespace shop"]),
        ([PICKY, {**MAPS, "name": "b"}], ["Namespace shop", "ConfigMap b"]),
        ([PICKY, MAPS], ["Namespace shop", "ConfigMap a", "ConfigMap b"]),
        (
            [PICKY, {**MAPS, "labelSelector": {"matchLabels": {"app": "a"}}}],
            ["Namespace shop", "ConfigMap a"],
        ),
    ],
)
def test_how_much_of_a_namespace_is_selected(selectors: list[dict[str, Any]], wanted: list[str]) -> None:
    async def act(hub: Bench) -> None:
        await hub.client.create(Namespace, {"metadata": {"name": "other"}})
        for name in ("a", "b"):
            meta = {"name": name, "namespace": "shop", "labels": {"app": name}}
            await hub.client.create(ConfigMap, {"metadata": meta})
            await hub.client.create(ConfigMap, {"metadata": meta | {"namespace": "other"}})
        await hub.place(*selectors)
        await hub.until_indexes([0])
        assert await held(hub) == wanted

    play(act)


def test_an_object_that_starts_or_stops_matching_is_noticed() -> None:
    async def act(hub: Bench) -> None:
        await hub.client.create(ConfigMap, {"metadata": {"name": "a", "namespace": "shop"}, "data": {}})
        await hub.place({**MAPS, "labelSelector": {"matchLabels": {"app": "a"}}})
        await hub.until_indexes([0])
        await hub.client.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"app": "a"}}}), "shop")
        await hub.until_indexes([0, 1])
        assert await held(hub) == ["ConfigMap a"]
        await hub.client.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"app": "b"}}}), "shop")
        await hub.until_indexes([0, 1, 2])
        assert await held(hub) == []

    play(act, NAMESPACED)


def test_reserved_namespaces_are_passed_over_where_many_are_meant() -> None:
    async def act(hub: Bench) -> None:
        await hub.place({"group": "", "version": "v1", "kind": "Namespace"})
        await hub.until_indexes([0])
        assert await held(hub) == ["Namespace shop"]

    play(act)


class Refusing:
    """A hub whose rules do not let us read one kind."""

    def __init__(self, inner: Transport, plural: str) -> None:
        self._inner = inner
        self._plural = plural
        self.refuses = True

    def _refuses(self, request: Request) -> bool:
        return self.refuses and request.method == "GET" and request.path.endswith(f"/{self._plural}")

    async def send(self, request: Request, *, timeout: float) -> Response:
        return _no(self._plural) if self._refuses(request) else await self._inner.send(request, timeout=timeout)

    @asynccontextmanager
    async def _refusal(self) -> AsyncIterator[Stream]:
        yield BufferedStream(_no(self._plural))

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        if self._refuses(request):
            return self._refusal()
        return self._inner.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._inner.close()


def _no(plural: str) -> Response:
    body = f'{{"kind":"Status","code":403,"reason":"Forbidden","message":"{plural} is forbidden: not for you"}}'
    return Response(403, body.encode())


def test_a_kind_we_may_not_read_stops_only_those_who_need_it_and_is_named() -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            await client.create(Namespace, {"metadata": {"name": "shop"}})
            transport = Refusing(cluster.transport(), "secrets")
            hub = await manager.connect("hub", transport)
            bench = Bench(client, start(manager, hub, CLUSTER), hub, CLUSTER)
            await bench.place(name="with-contents")
            await bench.place({**SHOP, "selectionScope": "NamespaceOnly"}, name="alone")
            await bench.until_indexes([0], "alone")
            await asyncio.sleep(QUIET)
            assert await bench.indexes("with-contents") == []
            assert await bench.problem("with-contents") == (
                "objects of kind secrets cannot be read on the hub: 403 Forbidden: secrets is forbidden: not for you"
            )
            assert hub.problems() == []
            transport.refuses = False
            await bench.until_indexes([0], "with-contents", within=30.0)
            assert await bench.problem("with-contents") == ""

    run(main())


@pytest.mark.parametrize(
    ("code", "answer"),
    [(413, "RequestEntityTooLarge: limit is 3145728"), (500, "InternalError: etcdserver: request is too large")],
)
def test_what_the_server_does_not_keep_is_a_problem_of_the_selection_until_it_changes(code: int, answer: str) -> None:
    reason, _, message = answer.partition(": ")

    class TooLarge(Refusing):
        def _refuses(self, request: Request) -> bool:
            return self.refuses and request.method == "POST" and request.path.endswith("clusterresourcesnapshots")

        async def send(self, request: Request, *, timeout: float) -> Response:
            if self._refuses(request):
                status = {"kind": "Status", "code": code, "reason": reason, "message": message}
                return Response(code, json.dumps(status).encode())
            return await self._inner.send(request, timeout=timeout)

    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            await client.create(Namespace, {"metadata": {"name": "shop"}})
            transport = TooLarge(cluster.transport(), "")
            hub = await manager.connect("hub", transport)
            bench = Bench(client, start(manager, hub, CLUSTER), hub, CLUSTER)
            await bench.place()
            await asyncio.sleep(QUIET)
            assert await bench.problem() == f"the hub does not keep what is selected: {code} {answer}"
            transport.refuses = False
            await bench.keep("a", "smaller")
            await bench.until_indexes([0])
            assert await bench.problem() == ""

    run(main())


class Frozen(Refusing):
    """A transport on which admission refuses snapshots of resources."""

    async def send(self, request: Request, *, timeout: float) -> Response:
        if self.refuses and request.method == "POST" and request.path.endswith("clusterresourcesnapshots"):
            body = b'{"kind":"Status","code":422,"reason":"Invalid","message":"policy freeze denied request"}'
            return Response(422, body)
        return await self._inner.send(request, timeout=timeout)


@pytest.mark.parametrize("is_policy_lost", [False, True])
def test_what_a_policy_of_admission_refuses_is_tried_again(*, is_policy_lost: bool) -> None:
    """Also if somebody deletes the policy by which clusters are picked, or a restore takes it away."""

    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            await client.create(Namespace, {"metadata": {"name": "shop"}})
            transport = Frozen(cluster.transport(), "")
            hub = await manager.connect("hub", transport)
            bench = Bench(client, start(manager, hub, CLUSTER), hub, CLUSTER)
            await bench.place()
            await asyncio.sleep(QUIET)
            wrong = "the hub does not keep what is selected: 422 Invalid: policy freeze denied request"
            assert await bench.problem() == wrong
            if is_policy_lost:
                await client.delete(CLUSTER.policy_snapshot, "crp-0")
            await asyncio.sleep(100.0)
            assert await bench.problem() == wrong
            transport.refuses = False
            await bench.until_indexes([0], within=100.0)
            assert await bench.problem() == ""

    run(main())


def test_whoever_subscribes_is_woken_when_a_selection_may_have_changed() -> None:
    async def act(hub: Bench) -> None:
        woken: list[str] = []
        hub.resources.source(CLUSTER).subscribe(lambda key, _: woken.append(key.name))
        await hub.place()
        await hub.place({**SHOP, "selectionScope": "NamespaceOnly"}, name="alone")
        await hub.until_indexes([0])
        await hub.until_indexes([0], "alone")
        await asyncio.sleep(QUIET)
        woken.clear()
        await hub.keep("a")
        await asyncio.sleep(QUIET)
        assert set(woken) == {"crp"}

    play(act)

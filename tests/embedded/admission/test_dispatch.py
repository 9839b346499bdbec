"""How webhooks are found and asked: services, versions, dry runs, and what becomes of their answers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from embedded.admission.hooks import (
    MAPS,
    NAME,
    VALIDATING,
    Webhook,
    configure,
    deny,
    fail,
    hook,
    hooked_cluster,
    make,
    patched,
)
from kedge.api.resource import Resource
from kedge.embedded.kind import Kind
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import ApiError
from kedge.kube.patches import MergePatch
from support.virtual import run

SERVICES = untyped(Resource("", "v1", "Service", "services"))
SLICES = untyped(Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"))
CRDS = untyped(
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
)
OLD, NEW = (untyped(Resource("t.io", version, "Thing", "things")) for version in ("v1", "v2"))
SERVICE = {"namespace": "default", "name": "hooks", "path": "/ask"}
BY_SERVICE = {"service": SERVICE}


async def refusal(client: Client, name: str = "a") -> str:
    """Why a ConfigMap is refused; empty if it is not."""
    try:
        await make(client, name)
    except ApiError as error:
        return error.message
    return ""


async def make_service(client: Client, **metadata: Any) -> None:
    spec = {"ports": [{"name": "https", "port": 443, "targetPort": 8443}]}
    await client.create(SERVICES, {"metadata": {"name": "hooks", **metadata}, "spec": spec}, "default")


async def make_endpoints(client: Client, *, ready: bool) -> None:
    body = {
        "metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": 8443}],
        "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": ready}}],
    }
    await client.create(SLICES, body, "default")


def test_a_service_is_called_by_its_name_in_the_cluster_at_a_ready_endpoint() -> None:
    async def main() -> None:
        webhook = Webhook()
        async with hooked_cluster(webhook) as (_, client):
            await make_service(client)
            await make_endpoints(client, ready=True)
            await configure(client, hook("configmaps", clientConfig=BY_SERVICE))
            assert await refusal(client) == ""
            (call,) = webhook.calls
            assert (call.url, call.address) == ("https://hooks.default.svc:443/ask?timeout=10s", ("10.0.0.9", 8443))

    run(main())


def test_or_at_the_address_that_somebody_says() -> None:
    async def main() -> None:
        webhook = Webhook()
        async with hooked_cluster(webhook, webhook_addresses={"default/hooks": ("127.0.0.1", 9443)}) as (_, client):
            await configure(client, hook("configmaps", clientConfig=BY_SERVICE))
            assert await refusal(client) == ""
            assert [call.address for call in webhook.calls] == [("127.0.0.1", 9443)]

    run(main())


@pytest.mark.parametrize(
    ("text", "address"), [("127.0.0.1:8443", ("127.0.0.1", 8443)), ("[::1]:8443", ("::1", 8443)), ("nowhere", None)]
)
def test_or_in_the_annotation_of_the_service(text: str, address: tuple[str, int] | None) -> None:
    async def main() -> None:
        webhook = Webhook()
        async with hooked_cluster(webhook) as (_, client):
            await make_service(client, annotations={"kedge.dev/address": text})
            await configure(client, hook("configmaps", clientConfig=BY_SERVICE))
            why = await refusal(client)
            assert [call.address for call in webhook.calls] == ([address] if address else [])
            assert why.endswith("" if address else 'is "nowhere", not a host and a port: 127.0.0.1:8443')

    run(main())


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ("nothing", 'service "hooks" not found'),
        ("service", 'no endpoints available for service "hooks"'),
        ("not ready", 'no endpoints available for service "hooks"'),
        ("other port", 'no service port 444 found for service "hooks"'),
    ],
)
def test_a_service_that_leads_nowhere_is_a_failure(there: str, why: str) -> None:
    async def main() -> None:
        async with hooked_cluster(Webhook()) as (_, client):
            if there != "nothing":
                await make_service(client)
            if there == "not ready":
                await make_endpoints(client, ready=False)
            port = 444 if there == "other port" else 443
            service = {**SERVICE, "port": port}
            await configure(client, hook("configmaps", clientConfig={"service": service}))
            called = f'failed calling webhook "{NAME}": failed to call webhook: '
            post = f'Post "https://hooks.default.svc:{port}/ask?timeout=10s": {why}'
            assert await refusal(client) == f"Internal error occurred: {called}{post}"

    run(main())


def test_who_is_not_there_fails_the_write_unless_that_is_ignored() -> None:
    async def main() -> None:
        async with hooked_cluster(Webhook(fail)) as (_, client):
            await configure(client, hook("configmaps"), hook("secrets", name="other.kedge.dev.test"))
            text = f'Internal error occurred: failed calling webhook "{NAME}": failed to call webhook: nobody is there'
            assert await refusal(client) == text

    run(main())


def test_the_first_of_several_refusals_is_shown_and_all_are_asked() -> None:
    async def main() -> None:
        webhook = Webhook(deny)
        async with hooked_cluster(webhook) as (_, client):
            await configure(client, hook("configmaps"), hook("configmaps", name="other.kedge.dev.test"))
            assert await refusal(client) == f'admission webhook "{NAME}" denied the request: no'
            assert len(webhook.calls) == 2

    run(main())


def test_a_webhook_of_before_that_does_not_support_dry_runs_is_not_asked() -> None:
    async def main() -> None:
        webhook = Webhook()
        async with hooked_cluster(webhook) as (cluster, client):
            await configure(client, hook("configmaps", failurePolicy="Ignore"))
            kind = Kind(VALIDATING.resource)
            stored = cluster.server.store.all(kind).get("hooks")
            assert stored is not None
            body = stored.decode()
            body["webhooks"][0]["sideEffects"] = "Some"  # no API of today takes it
            cluster.server.store.replace(kind, stored, body)
            with pytest.raises(ApiError, match=f'admission webhook "{NAME}" does not support dry run'):
                await client.create(MAPS, {"metadata": {"name": "a"}}, "default", dry_run=True)
            assert webhook.calls == []

    run(main())


def test_a_review_is_in_the_first_version_that_both_know() -> None:
    async def main() -> None:
        webhook = Webhook()
        async with hooked_cluster(webhook) as (_, client):
            await configure(client, hook("configmaps", admissionReviewVersions=["v9", "v1beta1", "v1"]))
            assert await refusal(client) == ""
            assert msgspec.json.decode(webhook.calls[0].body)["apiVersion"] == "admission.k8s.io/v1beta1"

    run(main())


def definition() -> Untyped:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "t.io", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "things.t.io"}, "spec": spec}


@pytest.mark.parametrize("policy", ["Equivalent", "Exact"])
def test_a_webhook_is_asked_in_the_version_of_its_rule(policy: str) -> None:
    async def annotate(request: Untyped) -> Untyped:
        return patched({"op": "add", "path": "/seen", "value": request["object"]["apiVersion"]})

    async def main() -> None:
        webhook = Webhook(annotate)
        async with hooked_cluster(webhook) as (_, client):
            await client.create(CRDS, definition())
            rule = {"operations": ["*"], "apiGroups": ["t.io"], "apiVersions": ["v2"], "resources": ["things"]}
            await configure(client, hook(rules=[rule], matchPolicy=policy), mutating=True)
            made = await client.create(OLD, {"metadata": {"name": "a"}}, "default")
            assert made["apiVersion"] == "t.io/v1"
            if policy == "Exact":
                assert webhook.calls == []
                return
            (asked,) = webhook.asked
            assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v2", "v1")
            assert made["seen"] == "t.io/v2"
            await client.patch(NEW, "a", MergePatch({"more": "x"}), "default")
            assert webhook.asked[1]["oldObject"]["apiVersion"] == "t.io/v2"

    run(main())


def test_a_mutating_webhook_without_a_patch_changes_nothing() -> None:
    async def main() -> None:
        async with hooked_cluster(Webhook()) as (_, client):
            await configure(client, hook("configmaps"), mutating=True)
            assert (await make(client))["data"] == {"k": "v"}

    run(main())


def test_a_webhook_may_not_move_an_object_to_another_namespace() -> None:
    async def move(_: Untyped) -> Untyped:
        return patched({"op": "replace", "path": "/metadata/namespace", "value": "kube-system"})

    async def main() -> None:
        async with hooked_cluster(Webhook(move)) as (_, client):
            await configure(client, hook("configmaps"), mutating=True)
            assert "does not match the namespace" in await refusal(client)

    run(main())

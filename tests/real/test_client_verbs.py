"""Every verb of the client, on a real API server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from controlplane.cluster import Cluster
from kedge.api.apps import Deployment
from kedge.api.core import ConfigMap, Namespace
from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import Bookmark, Event, metadata_of, untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Gone, Invalid, NotFound
from kedge.kube.patches import JsonPatch, MergePatch, Patch, StrategicPatch

WHOLE = untyped(ConfigMap.resource)


class Home:
    """A client, and a namespace of one's own."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def make(self, name: str, **data: str) -> ConfigMap:
        body = ConfigMap(metadata=ObjectMeta(name=name, namespace=self.namespace), data=data)
        return await self.client.create(ConfigMap, body)

    async def look(self, name: str) -> ConfigMap:
        return await self.client.get(ConfigMap, name, self.namespace)

    def meta(self, name: str, **more: object) -> dict[str, object]:
        return {"metadata": {"name": name, "namespace": self.namespace, **more}}

    async def make_deployment(self) -> Deployment:
        container = {"name": "web", "image": "web:1"}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
        spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template, "replicas": 0}
        return await self.client.create(Deployment, {**self.meta("web"), "spec": spec})


@pytest.fixture
async def home(bare_cluster: Cluster) -> AsyncIterator[Home]:
    connection = await asyncio.to_thread(load, [bare_cluster.kubeconfig])
    client = Client(HttpsTransport(connection))
    yield Home(client, await bare_cluster.fresh_namespace())
    await client.close()


async def test_create_and_get(home: Home) -> None:
    made = await home.make("a", color="blue")
    assert made.metadata.uid
    assert await home.look("a") == made


async def test_an_absent_number_stays_absent_and_zero_stays_zero(home: Home) -> None:
    made = await home.make_deployment()
    assert made.spec.replicas == 0
    whole = await home.client.get(untyped(Deployment.resource), "web", home.namespace)
    assert whole["spec"]["replicas"] == 0
    assert "paused" not in whole["spec"]


async def test_a_name_that_is_taken(home: Home) -> None:
    await home.make("a")
    with pytest.raises(AlreadyExists, match="already exists"):
        await home.make("a")


async def test_a_generated_name(home: Home) -> None:
    body = {"metadata": {"generateName": "map-", "namespace": home.namespace}}
    made = await home.client.create(ConfigMap, body)
    assert made.metadata.name.startswith("map-")


async def test_what_is_not_there(home: Home) -> None:
    with pytest.raises(NotFound, match='configmaps "nobody" not found'):
        await home.look("nobody")


async def test_a_kind_that_is_not_there(home: Home) -> None:
    with pytest.raises(NotFound, match="404"):
        await home.client.list(untyped(Resource("nobody.dev", "v1", "Thing", "things")), home.namespace)


async def test_an_object_that_breaks_a_rule_says_where(home: Home) -> None:
    with pytest.raises(Invalid) as caught:
        await home.client.create(ConfigMap, home.meta("Not A Name"))
    assert [cause.field for cause in caught.value.causes] == ["metadata.name"]


async def test_metadata_alone(home: Home) -> None:
    await home.make("a", color="blue")
    found = await home.client.get(metadata_of(ConfigMap.resource), "a", home.namespace)
    assert found.metadata.name == "a"
    listed = await home.client.list(metadata_of(ConfigMap.resource), home.namespace)
    assert [item.metadata.name for item in listed.items] == ["a"]


async def test_a_list_in_pages_with_selectors(home: Home) -> None:
    for number in range(7):
        labels = {"parity": "even" if number % 2 == 0 else "odd"}
        await home.client.create(ConfigMap, home.meta(f"m{number}", labels=labels))
    pages = [page async for page in home.client.pages(ConfigMap, home.namespace, page_size=3)]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1
    even = await home.client.list(ConfigMap, home.namespace, labels={"parity": "even"}, page_size=2)
    assert [item.metadata.name for item in even.items] == ["m0", "m2", "m4", "m6"]
    one = await home.client.list(ConfigMap, home.namespace, fields={"metadata.name": "m3"})
    assert [item.metadata.name for item in one.items] == ["m3"]


async def test_a_continue_token_that_is_nonsense(home: Home) -> None:
    with pytest.raises((BadRequest, Gone)):
        await home.client.list(ConfigMap, home.namespace, labels="a=b,,=", page_size=1)


async def test_a_watch_from_a_list_on(home: Home) -> None:
    await home.make("before")
    listed = await home.client.list(ConfigMap, home.namespace)
    async with home.client.watch(ConfigMap, home.namespace, resource_version=listed.resource_version) as events:
        await home.make("after")
        await home.client.delete(ConfigMap, "before", home.namespace)
        seen = [await anext(events), await anext(events)]
    assert [(event.type, event.object.metadata.name) for event in seen if isinstance(event, Event)] == [
        ("ADDED", "after"),
        ("DELETED", "before"),
    ]


async def test_a_watch_that_begins_with_all_there_is(home: Home) -> None:
    await home.make("a")
    async with home.client.watch(ConfigMap, home.namespace, initial_events=True) as events:
        first, mark = await anext(events), await anext(events)
    assert isinstance(first, Event)
    assert first.object.metadata.name == "a"
    assert isinstance(mark, Bookmark)
    assert mark.initial_events_end


async def test_apply_owns_its_fields_and_gives_up_what_it_leaves_out(home: Home) -> None:
    await home.client.apply(ConfigMap, {**home.meta("a"), "data": {"x": "1", "y": "1"}}, manager="me")
    applied = await home.client.apply(ConfigMap, {**home.meta("a"), "data": {"x": "2"}}, manager="me")
    assert applied.data == {"x": "2"}


async def test_apply_conflicts_with_another_manager_unless_forced(home: Home) -> None:
    await home.client.apply(ConfigMap, {**home.meta("a"), "data": {"x": "1"}}, manager="me")
    theirs = {**home.meta("a"), "data": {"x": "2"}}
    with pytest.raises(Conflict) as caught:
        await home.client.apply(ConfigMap, theirs, manager="them")
    assert [cause.reason for cause in caught.value.causes] == ["FieldManagerConflict"]
    assert (await home.client.apply(ConfigMap, theirs, manager="them", force=True)).data == {"x": "2"}


async def test_apply_to_an_object_that_changed(home: Home) -> None:
    made = await home.make("a")
    await home.client.patch(ConfigMap, "a", MergePatch({"data": {"x": "1"}}), home.namespace)
    body = {**home.meta("a"), "data": {"y": "1"}}
    with pytest.raises(Conflict):
        await home.client.apply(ConfigMap, body, manager="me", resource_version=made.metadata.resource_version)
    with pytest.raises(Conflict):
        await home.client.apply(ConfigMap, body, manager="me", uid="somebody-else")


async def test_apply_with_a_uid_does_not_bring_back_what_was_deleted(home: Home) -> None:
    made = await home.make("a")
    await home.client.delete(ConfigMap, "a", home.namespace)
    with pytest.raises(Conflict, match="uid mismatch"):
        await home.client.apply(ConfigMap, home.meta("a"), manager="me", uid=made.metadata.uid)


async def test_patches_of_every_type(home: Home) -> None:
    await home.make("a", x="1", y="1")
    merged = await home.client.patch(ConfigMap, "a", MergePatch({"data": {"x": None}}), home.namespace)
    assert merged.data == {"y": "1"}
    jsoned = await home.client.patch(
        ConfigMap, "a", JsonPatch([{"op": "replace", "path": "/data/y", "value": "2"}]), home.namespace
    )
    assert jsoned.data == {"y": "2"}
    await home.make_deployment()
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "s:1"}]}}}}
    await home.client.patch(Deployment, "web", StrategicPatch(sidecar), home.namespace)
    whole = await home.client.get(untyped(Deployment.resource), "web", home.namespace)
    assert {item["name"] for item in whole["spec"]["template"]["spec"]["containers"]} == {"web", "sidecar"}


REPLACE = JsonPatch([{"op": "replace", "path": "/data/x", "value": "9"}])


@pytest.mark.parametrize("patch", [MergePatch({"data": {"x": "9"}}), StrategicPatch({"data": {"x": "9"}}), REPLACE])
async def test_a_patch_of_an_object_that_changed(home: Home, patch: Patch) -> None:
    made = await home.make("a", x="1")
    old = made.metadata.resource_version
    await home.client.patch(ConfigMap, "a", MergePatch({"data": {"x": "2"}}), home.namespace)
    with pytest.raises(Conflict):
        await home.client.patch(ConfigMap, "a", patch, home.namespace, resource_version=old)
    with pytest.raises(Conflict):
        await home.client.patch(ConfigMap, "a", patch, home.namespace, uid="somebody-else")
    assert (await home.look("a")).data == {"x": "2"}


async def test_a_whole_object_is_replaced_if_it_did_not_change(home: Home) -> None:
    await home.make("a", x="1")
    whole = await home.client.get(WHOLE, "a", home.namespace)
    put = await home.client.replace(WHOLE, {**whole, "data": {"x": "2"}})
    assert put["data"] == {"x": "2"}
    with pytest.raises(Conflict):
        await home.client.replace(WHOLE, {**whole, "data": {"x": "3"}})


async def test_status_and_scale_are_subresources(home: Home) -> None:
    made = await home.make_deployment()
    status = {"status": {"observedGeneration": made.metadata.generation, "replicas": 0}}
    await home.client.patch(Deployment, "web", MergePatch(status), home.namespace, subresource="status")
    found = await home.client.get(Deployment, "web", home.namespace, subresource="status")
    assert found.status.observed_generation == made.metadata.generation
    scale = MergePatch({"spec": {"replicas": 3}})
    await home.client.patch(untyped(Deployment.resource), "web", scale, home.namespace, subresource="scale")
    assert (await home.client.get(Deployment, "web", home.namespace)).spec.replicas == 3


async def test_a_dry_run_changes_nothing(home: Home) -> None:
    await home.make("a", x="1")
    await home.client.create(ConfigMap, home.meta("b"), dry_run=True)
    await home.client.patch(ConfigMap, "a", MergePatch({"data": {"x": "2"}}), home.namespace, dry_run=True)
    await home.client.apply(ConfigMap, {**home.meta("a"), "data": {"z": "1"}}, manager="me", dry_run=True)
    await home.client.delete(ConfigMap, "a", home.namespace, dry_run=True)
    assert (await home.look("a")).data == {"x": "1"}
    assert len((await home.client.list(ConfigMap, home.namespace)).items) == 1


async def test_a_delete_of_another_object_than_was_meant(home: Home) -> None:
    made = await home.make("a")
    with pytest.raises(Conflict):
        await home.client.delete(ConfigMap, "a", home.namespace, uid="somebody-else")
    with pytest.raises(Conflict):
        await home.client.delete(ConfigMap, "a", home.namespace, resource_version="1")
    await home.client.delete(ConfigMap, "a", home.namespace, uid=made.metadata.uid)
    with pytest.raises(NotFound):
        await home.look("a")


async def test_a_user_without_rights_is_told_so(home: Home, bare_cluster: Cluster) -> None:
    nobody = bare_cluster.user("nobody")
    client = Client(HttpsTransport(await asyncio.to_thread(load, [nobody.kubeconfig])))
    with pytest.raises(Forbidden, match='User "nobody" cannot list'):
        await client.list(Namespace)
    await client.close()

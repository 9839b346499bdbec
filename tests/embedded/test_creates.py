"""Creating: what a new object becomes, and which are refused."""

from random import Random
from typing import Any

import msgspec
import pytest

from embedded.world import (
    CONFIG_MAPS,
    SetClock,
    World,
    config_map,
    meta,
    virtually,
)
from kedge.api.core import ConfigMap
from kedge.embedded.server import Server
from kedge.kube.codec import Untyped
from kedge.kube.errors import AlreadyExists, Invalid
from kedge.kube.transport import Request

NOW = "2030-01-01T00:00:00Z"


@virtually
async def test_a_new_object_is_stamped() -> None:
    world = World()
    made = await world.client.create(CONFIG_MAPS, config_map("a", data={"k": "v"}))
    assert meta(made).pop("uid").count("-") == 4
    assert made == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "creationTimestamp": NOW,
            "resourceVersion": str(world.server.store.number),
        },
        "data": {"k": "v"},
    }
    assert meta(await world.client.get(CONFIG_MAPS, "a", "default"))["name"] == "a"


@virtually
async def test_what_only_the_server_may_say_is_not_taken_from_a_client() -> None:
    world = World()
    claims = {
        "uid": "mine",
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "deletionTimestamp": "2000-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "generation": 7,
        "managedFields": [{"manager": "me"}],
        "selfLink": "/x",
        "labels": {},
        "annotations": None,
    }
    made = await world.config_map("a", **claims)
    assert meta(made).pop("uid") != "mine"
    assert sorted(meta(made)) == ["creationTimestamp", "name", "namespace", "resourceVersion"]
    assert meta(made)["creationTimestamp"] == NOW


@virtually
async def test_the_server_finds_a_name_when_asked_to() -> None:
    world = World()
    made = [
        await world.client.create(CONFIG_MAPS, {"metadata": {"generateName": "web-"}}, "default") for _ in range(20)
    ]
    names = [meta(one)["name"] for one in made]
    assert len(set(names)) == 20
    assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in names)


@virtually
async def test_a_generated_name_stays_short_enough() -> None:
    world = World()
    made = await world.client.create(CONFIG_MAPS, {"metadata": {"generateName": "y" * 70}}, "default")
    assert len(meta(made)["name"]) == 63


@virtually
async def test_a_name_can_be_used_again_only_after_the_object_has_gone() -> None:
    world = World()
    first = await world.config_map("a")
    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        await world.config_map("a")
    await world.client.delete(ConfigMap, "a", "default")
    second = await world.config_map("a")
    assert meta(first)["uid"] != meta(second)["uid"]


@virtually
async def test_an_object_being_deleted_still_holds_its_name() -> None:
    world = World()
    await world.config_map("a", finalizers=["x.io/hold"])
    await world.client.delete(ConfigMap, "a", "default")
    with pytest.raises(AlreadyExists, match="object is being deleted: "):
        await world.config_map("a")


@pytest.mark.parametrize(
    ("metadata", "field", "message"),
    [
        ({}, "metadata.name", "name or generateName is required"),
        ({"name": "A_b"}, "metadata.name", "a lowercase RFC 1123 subdomain must consist of"),
        ({"name": "a..b"}, "metadata.name", "a lowercase RFC 1123 subdomain must consist of"),
        ({"name": "a" * 254}, "metadata.name", "must be no more than 253 characters"),
        ({"generateName": "Gen_"}, "metadata.generateName", "a lowercase RFC 1123 subdomain must consist of"),
        ({"name": "a", "labels": {"a b": "c"}}, "metadata.labels", "name part must consist of alphanumeric"),
        ({"name": "a", "labels": {"a/b/c": "d"}}, "metadata.labels", "a valid label key must consist of"),
        ({"name": "a", "labels": {"/b": "d"}}, "metadata.labels", "prefix part must be non-empty"),
        ({"name": "a", "labels": {"A_/b": "d"}}, "metadata.labels", "prefix part a lowercase RFC 1123 subdomain"),
        ({"name": "a", "labels": {"": "d"}}, "metadata.labels", "name part must be non-empty"),
        ({"name": "a", "labels": {"a": "c c"}}, "metadata.labels", "a valid label must be an empty string or"),
        ({"name": "a", "labels": {"a": "c" * 64}}, "metadata.labels", "must be no more than 63 bytes"),
        ({"name": "a", "annotations": {"a b": ""}}, "metadata.annotations", "name part must consist of"),
        ({"name": "a", "finalizers": ["mine"]}, "metadata.finalizers[0]", "name is neither a standard finalizer"),
        (
            {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "x", "name": "x"}]},
            "metadata.ownerReferences.uid",
            "must not be empty",
        ),
    ],
    ids=str,
)
@virtually
async def test_bad_metadata_is_refused_by_field(metadata: Untyped, field: str, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        await World().client.create(CONFIG_MAPS, {"metadata": metadata}, "default")
    assert refused.value.causes[0].field == field
    assert message in refused.value.causes[0].message
    assert f"{field}: {refused.value.causes[0].message}" in refused.value.message


@virtually
async def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(Invalid) as refused:
        await World().config_map("A", labels={"a": "b c"}, finalizers=["x y"])
    fields = [cause.field for cause in refused.value.causes]
    assert fields == ["metadata.name", "metadata.labels", "metadata.finalizers", "metadata.finalizers[0]"]


@pytest.mark.parametrize(
    ("kind", "name", "fine"),
    [
        ("Namespace", "a.b", False),
        ("Namespace", "a" * 64, False),
        ("Namespace", "a-1", True),
        ("Service", "1a", True),
        ("Service", "a.b", False),
        ("ClusterRole", "system:x", True),
        ("ClusterRole", "a%b", False),
        ("ClusterRole", "..", False),
        ("Node", "a.b", True),
    ],
)
def test_each_kind_has_its_rule_for_names(kind: str, name: str, fine: bool) -> None:
    world = World()
    found = next(one for one in world.server.registry.kinds() if one.resource.kind == kind)
    spec = {"spec": {"ports": [{"port": 80}]}} if kind == "Service" else {}
    body = msgspec.json.encode({"metadata": {"name": name}, **spec})
    answer = world.ask("POST", found.resource.path("default"), body)
    assert answer.status == (201 if fine else 422)


class Unlucky(Random):
    """Draws the same letters so many times before it draws others."""

    def __init__(self, times: int) -> None:
        super().__init__(1)
        self._times = times

    def choices(self, *args: Any, **kwargs: Any) -> Any:
        self._times -= 1
        return ["x"] * 5 if self._times >= 0 else super().choices(*args, **kwargs)


@pytest.mark.parametrize(("times", "code"), [(1, 201), (2, 201), (8, 201), (9, 409)])
def test_a_generated_name_that_is_taken_is_drawn_again_for_a_while(times: int, code: int) -> None:
    server = Server(clock=SetClock(), rng=Unlucky(times))
    request = Request("POST", "/api/v1/namespaces", body=b'{"metadata":{"generateName":"web-"}}')
    assert server.handle(request).status == 201
    assert server.handle(request).status == code

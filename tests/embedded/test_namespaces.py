"""Namespaces: which objects they take in, and how they go."""

import pytest

from embedded.world import (
    CONFIG_MAPS,
    NAMESPACES,
    World,
    meta,
    virtually,
)
from kedge.api.core import ConfigMap
from kedge.kube.codec import Untyped
from kedge.kube.errors import Forbidden, NotFound
from kedge.kube.patches import MergePatch

NOW = "2030-01-01T00:00:00Z"


@virtually
async def test_an_object_needs_its_namespace() -> None:
    world = World()
    with pytest.raises(NotFound, match='namespaces "nope" not found'):
        await world.client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "nope")
    with pytest.raises(NotFound, match='namespaces "nope" not found'):
        await world.client.apply(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "nope"}}, manager="me")
    assert (await world.client.list(ConfigMap, "nope")).items == ()


@virtually
async def test_the_usual_namespaces_are_there_from_the_start() -> None:
    found = await World().client.list(NAMESPACES)
    assert [meta(one)["name"] for one in found.items] == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert found.items[0]["status"] == {"phase": "Active"}
    assert meta(found.items[0])["labels"] == {"kubernetes.io/metadata.name": "default"}


@virtually
async def test_a_deleted_namespace_takes_in_nothing_until_it_is_finalized_away() -> None:
    world = World()
    await world.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await world.client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "shop")
    await world.client.delete(NAMESPACES, "shop")
    going = await world.client.get(NAMESPACES, "shop")
    assert (going["status"]["phase"], meta(going)["deletionTimestamp"]) == ("Terminating", NOW)
    with pytest.raises(Forbidden, match="in namespace shop because it is being terminated"):
        await world.client.create(CONFIG_MAPS, {"metadata": {"name": "b"}}, "shop")
    await world.client.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "v"}}), "shop")
    await world.client.replace(NAMESPACES, {"metadata": {"name": "shop"}, "spec": {}})
    assert (await world.client.get(NAMESPACES, "shop"))["spec"] == {"finalizers": ["kubernetes"]}
    done = {"metadata": {"name": "shop"}, "spec": {"finalizers": []}}
    await world.client.replace(NAMESPACES, done, subresource="finalize")
    with pytest.raises(NotFound):
        await world.client.get(NAMESPACES, "shop")


@virtually
async def test_the_namespaces_everything_needs_cannot_be_deleted() -> None:
    world = World()
    for name in ("default", "kube-system", "kube-public"):
        with pytest.raises(Forbidden, match="this namespace may not be deleted"):
            await world.client.delete(NAMESPACES, name)


@pytest.mark.parametrize("spec", [{"spec": {}}, {"spec": {"finalizers": None}}, {}])
@virtually
async def test_a_finalize_of_any_shape_is_survived(spec: Untyped) -> None:
    world = World()
    await world.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await world.client.replace(NAMESPACES, {"metadata": {"name": "shop"}, **spec}, subresource="finalize")
    assert (await world.client.get(NAMESPACES, "shop"))["spec"] == {"finalizers": []}

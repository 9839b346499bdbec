"""Garbage collection and the end of namespaces: by our keeper, and by kube-controller-manager."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backend import CONFIG_MAPS, HELD, Api, with_metadata
from contract.crds import Own, own
from kedge.kube.codec import Untyped
from support.waiting import until_so

POLICIES = ("Background", "Foreground", "Orphan")
NOBODY = {"metadata": {"name": "nobody", "uid": "00000000-0000-0000-0000-000000000001"}}
UNSERVED = (("example.com/v1", "Widget"), ("v1", "Widget"), ("v7", "ConfigMap"), ("apps/v7", "Deployment"))


def owned_by(*owners: Untyped, blocks: bool = False) -> list[Untyped]:
    block: dict[str, Any] = {"blockOwnerDeletion": True} if blocks else {}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **block,
        }
        for owner in owners
    ]


async def gone(api: Api, name: str, within: float = 40) -> None:
    await until_gone(api, f"{api.maps}/{name}", within)


async def until_gone(api: Api, path: str, within: float = 40) -> None:
    async def is_gone() -> bool:
        return not await api.is_there(path)

    await until_so(is_gone, within)


async def delete(api: Api, name: str, policy: str = "Background") -> None:
    answer = await api.ask("DELETE", f"{api.maps}/{name}", {"propagationPolicy": policy})
    assert answer.code == 200, answer


async def test_dependents_go_after_their_owner(kept: Api) -> None:
    owner = await kept.make("owner")
    await kept.make("child", ownerReferences=owned_by(owner))
    await delete(kept, "owner")
    assert not await kept.is_there(f"{kept.maps}/owner")
    await gone(kept, "child")


async def test_the_dependents_of_dependents_go_too(kept: Api) -> None:
    owner = await kept.make("owner")
    child = await kept.make("child", ownerReferences=owned_by(owner))
    await kept.make("grandchild", ownerReferences=owned_by(child))
    await delete(kept, "owner")
    await gone(kept, "child")
    await gone(kept, "grandchild")


async def test_a_dependent_of_two_stays_while_one_is_there_and_loses_the_other(kept: Api) -> None:
    first, second = await kept.make("first"), await kept.make("second")
    await kept.make("child", ownerReferences=owned_by(first, second))
    await delete(kept, "first")

    async def has_one_owner() -> bool:
        return len((await kept.look(f"{kept.maps}/child"))["metadata"]["ownerReferences"]) == 1

    await until_so(has_one_owner, within=40)
    await delete(kept, "second")
    await gone(kept, "child")


async def test_an_object_that_names_an_owner_that_never_was_goes(kept: Api) -> None:
    await kept.make("child", ownerReferences=owned_by(NOBODY))
    await gone(kept, "child")


def of_kind(api_version: str, kind: str) -> Untyped:
    """A reference to an owner of a kind, which is not there."""
    return {**owned_by(NOBODY)[0], "apiVersion": api_version, "kind": kind, "uid": f"of {api_version} {kind}"}


@pytest.mark.parametrize(("api_version", "kind"), UNSERVED)
async def test_an_object_is_left_alone_while_an_owner_is_of_a_kind_that_is_not_served(
    kept: Api, api_version: str, kind: str
) -> None:
    owner, unknown = await kept.make("owner"), of_kind(api_version, kind)
    named = {
        "alone": [unknown],
        "with-one-that-is-gone": [unknown, *owned_by(NOBODY)],
        "with-one-that-lasts-and-one-that-is-gone": [*owned_by(owner), *owned_by(NOBODY), unknown],
    }
    for name, references in named.items():
        await kept.make(name, ownerReferences=references)
    await kept.make("after", ownerReferences=owned_by(NOBODY))
    await gone(kept, "after")
    for name, references in named.items():
        found = await kept.look(f"{kept.maps}/{name}")
        assert found["metadata"]["ownerReferences"] == references
        assert "deletionTimestamp" not in found["metadata"]


async def test_dependents_go_once_the_kind_of_an_owner_that_never_was_is_served_and_after_one_that_went_with_its_kind(
    kept: Api,
) -> None:
    kind = f"{Own(kept).group}/v1", "Widget"
    await kept.make("child", ownerReferences=[of_kind(*kind)])
    await kept.make("after", ownerReferences=owned_by(NOBODY))
    await gone(kept, "after")
    assert await kept.is_there(f"{kept.maps}/child")
    async with own(kept) as widgets:
        await gone(kept, "child", within=200)  # Kubernetes looks for new kinds now and then, and again ever later
        owner = await widgets.make("owner")
        await kept.make(
            "second", ownerReferences=[{**of_kind(*kind), "name": "owner", "uid": owner["metadata"]["uid"]}]
        )
    await gone(kept, "second")


async def test_dependents_of_a_definition_go_after_it(kept: Api) -> None:
    async with own(kept) as kind:
        definition = owned_by(await kept.look(kind.crd))[0]
        of_definition = {**definition, "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        await kept.make("child", ownerReferences=[of_definition])
    await gone(kept, "child")


async def test_an_owner_of_that_name_and_another_uid_is_no_owner(kept: Api) -> None:
    owner = await kept.make("owner")
    other = with_metadata(owner, uid="00000000-0000-0000-0000-000000000002")
    await kept.make("child", ownerReferences=owned_by(other))
    await gone(kept, "child")
    assert await kept.is_there(f"{kept.maps}/owner")


async def test_in_the_foreground_the_owner_waits_for_dependents_that_block_it(kept: Api) -> None:
    owner = await kept.make("owner")
    await kept.make("child", ownerReferences=owned_by(owner, blocks=True), finalizers=HELD)
    await delete(kept, "owner", "Foreground")

    async def child_is_going() -> bool:
        return "deletionTimestamp" in (await kept.look(f"{kept.maps}/child"))["metadata"]

    await until_so(child_is_going, within=40)
    assert (await kept.look(f"{kept.maps}/owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]
    await kept.merge(f"{kept.maps}/child", {"metadata": {"finalizers": None}})
    await gone(kept, "child")
    await gone(kept, "owner")


async def test_in_the_foreground_dependents_wait_for_theirs(kept: Api) -> None:
    owner = await kept.make("owner")
    child = await kept.make("child", ownerReferences=owned_by(owner, blocks=True))
    await kept.make("grandchild", ownerReferences=owned_by(child, blocks=True), finalizers=HELD)
    await delete(kept, "owner", "Foreground")

    async def grandchild_is_going() -> bool:
        return "deletionTimestamp" in (await kept.look(f"{kept.maps}/grandchild"))["metadata"]

    await until_so(grandchild_is_going, within=40)
    assert (await kept.look(f"{kept.maps}/child"))["metadata"]["finalizers"] == ["foregroundDeletion"]
    await kept.merge(f"{kept.maps}/grandchild", {"metadata": {"finalizers": None}})
    await gone(kept, "owner")


async def test_an_owner_in_another_namespace_is_no_owner(kept: Api) -> None:
    other = CONFIG_MAPS.resource.path(await kept.make_namespace())
    owner = (await kept.ask("POST", other, {"metadata": {"name": "owner"}})).body
    await kept.make("child", ownerReferences=owned_by(owner))
    await gone(kept, "child")
    assert await kept.is_there(f"{other}/owner")


async def test_what_lives_in_no_namespace_is_left_alone_when_it_names_an_owner_in_one(kept: Api) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    lasts, goes = await kept.make("lasts"), await kept.make("goes")
    owners = {"lasts": [lasts], "goes": [goes], "never-was": [NOBODY], "all": [lasts, goes, NOBODY]}
    for name, named in owners.items():
        metadata = {"name": f"{kept.namespace}-{name}", "ownerReferences": owned_by(*named)}
        assert (await kept.ask("POST", roles, {"metadata": metadata, "rules": []})).code == 201
    await delete(kept, "goes")
    await gone(kept, "goes")
    await kept.make("after", ownerReferences=owned_by(NOBODY))
    await gone(kept, "after")
    for name, named in owners.items():
        found = await kept.look(f"{roles}/{kept.namespace}-{name}")
        assert found["metadata"]["ownerReferences"] == owned_by(*named)
        assert "deletionTimestamp" not in found["metadata"]


async def test_in_the_foreground_the_owner_no_longer_waits_for_a_dependent_that_stops_blocking_it(kept: Api) -> None:
    owner = await kept.make("owner")
    await kept.make("child", ownerReferences=owned_by(owner, blocks=True), finalizers=HELD)
    await delete(kept, "owner", "Foreground")
    assert await kept.is_there(f"{kept.maps}/owner")
    released = {"metadata": {"ownerReferences": owned_by(owner)}}
    await kept.merge(f"{kept.maps}/child", released)
    await gone(kept, "owner")
    assert await kept.is_there(f"{kept.maps}/child")
    await kept.merge(f"{kept.maps}/child", {"metadata": {"finalizers": None}})


async def test_in_the_foreground_the_owner_does_not_wait_for_others(kept: Api) -> None:
    owner = await kept.make("owner")
    await kept.make("child", ownerReferences=owned_by(owner), finalizers=HELD)
    await delete(kept, "owner", "Foreground")
    await gone(kept, "owner")
    await kept.merge(f"{kept.maps}/child", {"metadata": {"finalizers": None}})
    await gone(kept, "child")


async def test_orphans_stay_and_name_nobody(kept: Api) -> None:
    owner = await kept.make("owner")
    await kept.make("child", ownerReferences=owned_by(owner))
    await delete(kept, "owner", "Orphan")
    await gone(kept, "owner")
    assert "ownerReferences" not in (await kept.look(f"{kept.maps}/child"))["metadata"]


@pytest.mark.parametrize("policy", POLICIES)
async def test_an_object_without_dependents_goes_by_every_policy(kept: Api, policy: str) -> None:
    await kept.make("alone")
    await delete(kept, "alone", policy)
    await gone(kept, "alone")


async def test_a_volume_that_nobody_claims_goes(kept: Api) -> None:
    path = f"/api/v1/persistentvolumes/{kept.namespace}"
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    made = await kept.ask("POST", "/api/v1/persistentvolumes", {"metadata": {"name": kept.namespace}, "spec": spec})
    assert made.metadata["finalizers"] == ["kubernetes.io/pv-protection"]
    await kept.ask("DELETE", path)
    await until_gone(kept, path)


async def test_a_claim_goes_once_no_pod_on_a_node_uses_it(kept: Api) -> None:
    place = f"/api/v1/namespaces/{kept.namespace}"
    claims, pods = f"{place}/persistentvolumeclaims", f"{place}/pods"

    async def is_furnished() -> bool:
        return await kept.is_there(f"{place}/serviceaccounts/default")

    await until_so(is_furnished, within=40)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for name, node in (("used", {"nodeName": "somewhere"}), ("unused", {"schedulerName": "nobody"})):
        made = await kept.ask("POST", claims, {"metadata": {"name": name}, "spec": spec})
        assert made.metadata["finalizers"] == ["kubernetes.io/pvc-protection"]
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        pod = {"containers": [{"name": "a", "image": "a"}], "volumes": [volume], **node}
        assert (await kept.ask("POST", pods, {"metadata": {"name": name}, "spec": pod})).code == 201
    for name in ("used", "unused"):
        await kept.ask("DELETE", f"{claims}/{name}")
    await until_gone(kept, f"{claims}/unused")
    assert (await kept.look(f"{claims}/used"))["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    await kept.ask("DELETE", f"{pods}/used", {"gracePeriodSeconds": 0})
    await until_gone(kept, f"{claims}/used")


async def test_a_namespace_goes_with_all_that_is_in_it(kept: Api) -> None:
    name = await kept.make_namespace("short")
    await kept.ask("POST", f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "a"}})
    await kept.ask("DELETE", f"/api/v1/namespaces/{name}")
    await until_gone(kept, f"/api/v1/namespaces/{name}", within=60)
    assert not await kept.is_there(f"/api/v1/namespaces/{name}/configmaps/a")


async def test_a_namespace_waits_for_what_finalizers_hold_and_says_so(kept: Api) -> None:
    name = await kept.make_namespace("held")
    place = f"/api/v1/namespaces/{name}"
    await kept.ask("POST", f"{place}/configmaps", {"metadata": {"name": "a", "finalizers": HELD}})
    await kept.ask("DELETE", place)

    async def says_so() -> bool:
        return len((await kept.look(place))["status"].get("conditions", [])) == 5

    await until_so(says_so, within=60)
    told = (await kept.look(place))["status"]["conditions"]
    shown = {one["type"]: (one["status"], one["reason"], one["message"]) for one in told}
    assert shown == {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: contract.kedge.dev/hold in 1 resource instances",
        ),
    }
    await kept.merge(f"{place}/configmaps/a", {"metadata": {"finalizers": None}})
    await until_gone(kept, place, within=60)


async def test_every_namespace_comes_with_an_account_and_an_authority(kept: Api) -> None:
    name = await kept.make_namespace("new")
    place = f"/api/v1/namespaces/{name}"
    for thing in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):

        async def is_there(thing: str = thing) -> bool:
            return await kept.is_there(f"{place}/{thing}")

        await until_so(is_there, within=40)
        await kept.ask("DELETE", f"{place}/{thing}")
        await until_so(is_there, within=40)

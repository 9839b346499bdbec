"""Discovery: what is served, in the form every client knows and in the aggregated one, which tells all at once."""

from typing import Any

import pytest

from contract.backend import Api
from contract.crds import own, version

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
DEPLOYMENT = {
    "name": "deployments",
    "singularName": "deployment",
    "namespaced": True,
    "kind": "Deployment",
    "verbs": ALL_VERBS,
    "shortNames": ["deploy"],
    "categories": ["all"],
}


async def resources(api: Api, path: str) -> dict[str, Any]:
    """The resources of one group and version, by name; without the hash of what is stored."""
    listed = (await api.look(path))["resources"]
    return {one["name"]: {key: one[key] for key in one if key != "storageVersionHash"} for one in listed}


async def aggregated(api: Api, path: str) -> dict[str, Any]:
    """What the aggregated form says of each group: its versions in their order, and their resources by name."""
    answer = await api.ask("GET", path, accept=AGGREGATED)
    assert (answer.code, answer.body["kind"]) == (200, "APIGroupDiscoveryList"), answer
    return {
        group["metadata"].get("name", ""): {
            one["version"]: {resource["resource"]: resource for resource in one["resources"]}
            for one in group["versions"]
        }
        for group in answer.body["items"]
    }


async def test_the_core_has_one_version(api: Api) -> None:
    found = await api.look("/api")
    assert (found["kind"], found["versions"]) == ("APIVersions", ["v1"])


async def test_groups_say_which_versions_they_have_and_which_to_prefer(api: Api) -> None:
    found = await api.look("/apis")
    assert found["kind"] == "APIGroupList"
    assert next(group for group in found["groups"] if group["name"] == "apps") == {
        "name": "apps",
        "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
    }


async def test_a_group_tells_of_itself_alone(api: Api) -> None:
    found = await api.look("/apis/apps")
    assert (found["kind"], found["name"]) == ("APIGroup", "apps")
    assert found["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}


async def test_a_resource_says_what_it_is_called_and_what_can_be_done_with_it(api: Api) -> None:
    assert (await resources(api, "/apis/apps/v1"))["deployments"] == DEPLOYMENT


async def test_its_parts_are_resources_too(api: Api) -> None:
    found = await resources(api, "/apis/apps/v1")
    part = {"singularName": "", "namespaced": True, "verbs": ["get", "patch", "update"]}
    assert found["deployments/status"] == {**part, "name": "deployments/status", "kind": "Deployment"}
    scale = {"name": "deployments/scale", "kind": "Scale", "group": "autoscaling", "version": "v1"}
    assert found["deployments/scale"] == {**part, **scale}


@pytest.mark.parametrize(("name", "namespaced"), [("namespaces", False), ("nodes", False), ("pods", True)])
async def test_a_resource_says_whether_it_lives_in_namespaces(api: Api, name: str, namespaced: bool) -> None:
    assert (await resources(api, "/api/v1"))[name]["namespaced"] is namespaced
    scope = (await aggregated(api, "/api"))[""]["v1"][name]["scope"]
    assert scope == ("Namespaced" if namespaced else "Cluster")


async def test_namespaces_are_not_said_to_be_deleted_all_together(api: Api) -> None:
    assert "deletecollection" not in (await resources(api, "/api/v1"))["namespaces"]["verbs"]


async def test_the_aggregated_form_tells_of_every_group_at_once(api: Api) -> None:
    found = (await aggregated(api, "/apis"))["apps"]["v1"]["deployments"]
    assert {key: found[key] for key in found if key not in ("subresources", "responseKind")} == {
        "resource": "deployments",
        "scope": "Namespaced",
        "singularResource": "deployment",
        "verbs": ALL_VERBS,
        "shortNames": ["deploy"],
        "categories": ["all"],
    }
    assert found["responseKind"]["kind"] == "Deployment"
    assert [part["subresource"] for part in found["subresources"]] == ["scale", "status"]


async def test_the_aggregated_form_has_the_core_apart(api: Api) -> None:
    assert list(await aggregated(api, "/api")) == [""]
    assert "" not in await aggregated(api, "/apis")


async def test_a_group_that_is_not_served_is_not_found(api: Api) -> None:
    assert (await api.ask("GET", "/apis/nobody.kedge.dev")).code == 404
    assert (await api.ask("GET", "/apis/apps/v9")).code == 404


async def test_a_custom_kind_is_told_of_by_the_names_its_definition_gives(api: Api) -> None:
    async with own(api, shortNames=["wd"], categories=["all"], singular="widget") as kind:
        found = (await resources(api, f"/apis/{kind.group}/v1"))["widgets"]
        assert (found["kind"], found["shortNames"], found["categories"]) == ("Widget", ["wd"], ["all"])
        assert sorted(found["verbs"]) == ALL_VERBS


async def test_the_newest_stable_version_is_preferred(api: Api) -> None:
    versions = [version(name=name) for name in ("v1beta1", "v1", "v2alpha1", "v2")]
    async with own(api, *versions) as kind:
        found = await api.look(f"/apis/{kind.group}")
        assert [one["version"] for one in found["versions"]] == ["v2", "v1", "v1beta1", "v2alpha1"]
        assert found["preferredVersion"]["version"] == "v2"
        assert list((await aggregated(api, "/apis"))[kind.group]) == ["v2", "v1", "v1beta1", "v2alpha1"]

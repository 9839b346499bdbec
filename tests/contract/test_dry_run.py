"""Dry run: everything but the keeping."""

import pytest

from contract.backend import CONFIG_MAPS, HELD, Api, config_map, deployment, take
from kedge.kube.errors import Conflict

DRY = {"dryRun": "All"}


async def test_a_dry_create_shows_the_object_and_keeps_nothing(api: Api) -> None:
    answer = await api.ask("POST", api.maps, config_map("a"), **DRY)
    assert (answer.code, answer.metadata["name"], answer.body["data"]) == (201, "a", {"k": "v"})
    assert answer.metadata["uid"]
    assert answer.metadata["creationTimestamp"]
    assert not await api.is_there(f"{api.maps}/a")


async def test_what_was_never_kept_has_no_version(api: Api) -> None:
    answer = await api.ask("POST", api.maps, config_map("a"), **DRY)
    assert "resourceVersion" not in answer.metadata


async def test_a_dry_create_can_generate_a_name(api: Api) -> None:
    answer = await api.ask("POST", api.maps, {"metadata": {"generateName": "map-"}}, **DRY)
    assert answer.code == 201
    assert answer.metadata["name"].startswith("map-")


async def test_a_dry_create_of_a_taken_name_is_refused(api: Api) -> None:
    await api.make("a")
    answer = await api.ask("POST", api.maps, config_map("a"), **DRY)
    assert answer.refusal == (409, "AlreadyExists", 'configmaps "a" already exists')


async def test_a_dry_create_is_checked(api: Api) -> None:
    answer = await api.ask("POST", api.maps, config_map("A"), **DRY)
    assert answer.refusal[:2] == (422, "Invalid")


async def test_a_dry_create_needs_its_namespace(api: Api) -> None:
    answer = await api.ask("POST", CONFIG_MAPS.resource.path(f"{api.namespace}-nowhere"), config_map("a"), **DRY)
    assert answer.refusal[:2] == (404, "NotFound")


async def test_a_dry_put_shows_the_change_and_keeps_the_old(api: Api) -> None:
    made = await api.make_deployment()
    body = {**made, "spec": {**made["spec"], "replicas": 5}}
    answer = await api.ask("PUT", f"{api.deployments}/web", body, **DRY)
    assert (answer.code, answer.body["spec"]["replicas"], answer.metadata["generation"]) == (200, 5, 2)
    assert answer.metadata["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert await api.look(f"{api.deployments}/web") == made


async def test_a_dry_put_of_an_older_version_is_a_conflict(api: Api) -> None:
    made = await api.make("a")
    await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await api.client.replace(CONFIG_MAPS, made, dry_run=True)


async def test_a_dry_patch_shows_the_change_and_keeps_the_old(api: Api) -> None:
    made = await api.make("a")
    answer = await api.merge(f"{api.maps}/a", {"data": {"k": "w"}}, **DRY)
    assert (answer.code, answer.body["data"]) == (200, {"k": "w"})
    assert await api.look(f"{api.maps}/a") == made


async def test_a_dry_status_shows_the_change_and_keeps_the_old(api: Api) -> None:
    made = await api.make_deployment()
    answer = await api.merge(f"{api.deployments}/web/status", {"status": {"replicas": 2}}, **DRY)
    assert answer.body["status"]["replicas"] == 2
    assert await api.look(f"{api.deployments}/web") == made


async def test_a_dry_delete_says_so_and_keeps_the_object(api: Api) -> None:
    made = await api.make("a")
    answer = await api.ask("DELETE", f"{api.maps}/a", **DRY)
    assert (answer.code, answer.body["status"]) == (200, "Success")
    assert await api.look(f"{api.maps}/a") == made


async def test_a_dry_delete_in_the_body_is_dry_too(api: Api) -> None:
    made = await api.make("a")
    await api.client.delete(CONFIG_MAPS, "a", api.namespace, dry_run=True)
    assert await api.look(f"{api.maps}/a") == made


async def test_a_dry_delete_has_preconditions_too(api: Api) -> None:
    await api.make("a")
    with pytest.raises(Conflict):
        await api.client.delete(CONFIG_MAPS, "a", api.namespace, uid="another", dry_run=True)


async def test_a_dry_delete_does_not_mark_a_held_object(api: Api) -> None:
    made = await api.make("a", finalizers=HELD)
    answer = await api.ask("DELETE", f"{api.maps}/a", **DRY)
    assert answer.code == 200
    assert await api.look(f"{api.maps}/a") == made


async def test_a_dry_delete_of_a_collection_keeps_it(api: Api) -> None:
    await api.make("a")
    await api.make("b")
    assert (await api.ask("DELETE", api.maps, **DRY)).code == 200
    assert (await api.ask("GET", api.maps)).names == ["a", "b"]


async def test_a_watch_does_not_hear_of_dry_runs(api: Api) -> None:
    since = (await api.make("a"))["metadata"]["resourceVersion"]
    await api.ask("POST", api.maps, config_map("dry"), **DRY)
    await api.merge(f"{api.maps}/a", {"data": {"k": "w"}}, **DRY)
    await api.ask("DELETE", f"{api.maps}/a", **DRY)
    await api.make("wet")
    async with api.events(resource_version=since) as events:
        assert await take(events, 1) == [("ADDED", "wet")]


@pytest.mark.parametrize(
    ("method", "options"),
    [("POST", "CreateOptions"), ("PUT", "UpdateOptions"), ("PATCH", "PatchOptions"), ("DELETE", "DeleteOptions")],
)
async def test_a_run_is_dry_or_it_is_not(api: Api, method: str, options: str) -> None:
    made = await api.make_deployment()
    path = api.deployments if method == "POST" else f"{api.deployments}/web"
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    body = b"" if method == "DELETE" else deployment("new" if method == "POST" else "web")
    answer = await api.ask(method, path, body, kind, dryRun="Some")
    why = f'{options}.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    assert answer.refusal == (422, "Invalid", why)
    assert await api.look(f"{api.deployments}/web") == made

"""Status: written on its own, beside the spec, by those who observe."""

import pytest

from contract.backend import DEPLOYMENTS, HELD, JSON_PATCH, MODIFIED_MEANWHILE, NO_METHOD, NO_RESOURCE, Api, rv
from kedge.kube.patches import MergePatch

SEEN = {"observedGeneration": 1, "replicas": 2}


async def test_a_put_to_status_changes_the_status_alone(api: Api) -> None:
    made = await api.make_deployment()
    body = {**made, "spec": {**made["spec"], "replicas": 7}, "status": SEEN}
    answer = await api.ask("PUT", f"{api.deployments}/web/status", body)
    assert answer.code == 200
    assert answer.body["status"] == SEEN
    assert answer.body["spec"] == made["spec"]
    assert rv(answer.body) > rv(made)


async def test_a_status_is_no_generation(api: Api) -> None:
    await api.make_deployment()
    answer = await api.merge(f"{api.deployments}/web/status", {"status": SEEN})
    assert answer.metadata["generation"] == 1


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_write_to_the_object_leaves_the_status(api: Api, method: str) -> None:
    await api.make_deployment()
    body = (await api.merge(f"{api.deployments}/web/status", {"status": SEEN})).body
    body["spec"]["replicas"], body["status"] = 5, {"replicas": 9}
    kind = "application/json" if method == "PUT" else "application/merge-patch+json"
    answer = await api.ask(method, f"{api.deployments}/web", body, kind)
    assert (answer.code, answer.body["spec"]["replicas"], answer.body["status"]) == (200, 5, SEEN)


async def test_a_merge_patch_of_status_keeps_the_rest_of_it(api: Api) -> None:
    await api.make_deployment()
    await api.merge(f"{api.deployments}/web/status", {"status": SEEN})
    answer = await api.merge(f"{api.deployments}/web/status", {"status": {"replicas": 3}, "spec": {"replicas": 9}})
    assert answer.body["status"] == {**SEEN, "replicas": 3}
    assert answer.body["spec"]["replicas"] == 2


async def test_a_json_patch_of_status(api: Api) -> None:
    await api.make_deployment()
    operations = [{"op": "add", "path": "/status", "value": SEEN}]
    answer = await api.ask("PATCH", f"{api.deployments}/web/status", operations, JSON_PATCH)
    assert answer.body["status"] == SEEN


async def test_the_client_writes_a_status(api: Api) -> None:
    await api.make_deployment()
    patch = MergePatch({"status": SEEN})
    changed = await api.client.patch(DEPLOYMENTS, "web", patch, api.namespace, subresource="status")
    assert changed["status"] == SEEN


async def test_status_reads_as_the_whole_object(api: Api) -> None:
    await api.make_deployment()
    assert await api.look(f"{api.deployments}/web/status") == await api.look(f"{api.deployments}/web")


@pytest.mark.parametrize(("field", "taken"), [("labels", False), ("annotations", True)])
async def test_a_write_to_the_status_of_a_deployment_takes_annotations_along_but_no_labels(
    api: Api, field: str, taken: bool
) -> None:
    await api.make_deployment(**{field: {"a": "old"}})
    answer = await api.merge(f"{api.deployments}/web/status", {"metadata": {field: {"a": "new"}}, "status": SEEN})
    assert (answer.code, answer.metadata[field]) == (200, {"a": "new" if taken else "old"})
    assert answer.metadata["generation"] == 1


async def test_a_status_of_an_older_version_is_a_conflict(api: Api) -> None:
    made = await api.make_deployment()
    await api.merge(f"{api.deployments}/web", {"spec": {"replicas": 3}})
    answer = await api.ask("PUT", f"{api.deployments}/web/status", {**made, "status": SEEN})
    why = f'Operation cannot be fulfilled on deployments.apps "web": {MODIFIED_MEANWHILE}'
    assert answer.refusal == (409, "Conflict", why)


async def test_a_status_that_is_as_it_was_keeps_the_version(api: Api) -> None:
    await api.make_deployment()
    first = await api.merge(f"{api.deployments}/web/status", {"status": SEEN})
    second = await api.merge(f"{api.deployments}/web/status", {"status": SEEN})
    assert second.body == first.body


async def test_the_status_of_an_object_that_is_going_can_be_written(api: Api) -> None:
    await api.make_deployment(finalizers=HELD)
    await api.ask("DELETE", f"{api.deployments}/web")
    answer = await api.merge(f"{api.deployments}/web/status", {"status": SEEN})
    assert (answer.code, answer.body["status"]) == (200, SEEN)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH"])
async def test_the_status_of_what_is_not_there_is_not_found(api: Api, method: str) -> None:
    body = b"" if method == "GET" else {"metadata": {"name": "web"}, "status": {}}
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = await api.ask(method, f"{api.deployments}/web/status", body, kind)
    assert answer.refusal == (404, "NotFound", 'deployments.apps "web" not found')


@pytest.mark.parametrize("kind", ["maps", "leases"])
async def test_a_kind_without_a_status_has_no_such_place(api: Api, kind: str) -> None:
    path = getattr(api, kind)
    await api.ask("POST", path, {"metadata": {"name": "a"}})
    assert (await api.ask("GET", f"{path}/a/status")).refusal == (404, "NotFound", NO_RESOURCE)


@pytest.mark.parametrize("method", ["DELETE", "POST"])
async def test_a_status_is_neither_made_nor_deleted(api: Api, method: str) -> None:
    await api.make_deployment()
    answer = await api.ask(method, f"{api.deployments}/web/status", b"" if method == "DELETE" else {})
    assert answer.refusal == (405, "MethodNotAllowed", NO_METHOD)

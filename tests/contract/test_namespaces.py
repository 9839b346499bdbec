"""Namespaces: the ones that are always there, and what may live in which."""

import pytest

from contract.backend import CONFIG_MAPS, NAMESPACES, Api, config_map
from kedge.kube.errors import NotFound

HOME = NAMESPACES.resource.path()


async def finalize(api: Api, name: str) -> int:
    """Say that a namespace is empty, as the namespace controller would."""
    body = {**await api.look(f"{HOME}/{name}"), "spec": {"finalizers": []}}
    return (await api.ask("PUT", f"{HOME}/{name}/finalize", body)).code


@pytest.mark.parametrize("name", ["default", "kube-node-lease", "kube-public", "kube-system"])
async def test_these_are_there_from_the_start(api: Api, name: str) -> None:
    found = await api.look(f"{HOME}/{name}")
    assert found["status"] == {"phase": "Active"}
    assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == name


@pytest.mark.parametrize("name", ["default", "kube-public", "kube-system"])
async def test_these_cannot_be_deleted(api: Api, name: str) -> None:
    answer = await api.ask("DELETE", f"{HOME}/{name}")
    why = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert answer.refusal == (403, "Forbidden", why)


async def test_a_new_namespace_is_active_held_and_labelled_with_its_name(api: Api) -> None:
    name = await api.make_namespace()
    found = await api.look(f"{HOME}/{name}")
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    assert found["status"] == {"phase": "Active"}
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert "namespace" not in found["metadata"]


async def test_the_label_with_its_name_stays(api: Api) -> None:
    name = await api.make_namespace()
    answer = await api.merge(
        f"{HOME}/{name}", {"metadata": {"labels": {"kubernetes.io/metadata.name": None, "a": "b"}}}
    )
    assert answer.metadata["labels"] == {"kubernetes.io/metadata.name": name, "a": "b"}


async def test_the_label_with_its_name_says_no_other(api: Api) -> None:
    name = f"{api.namespace}-other"
    body = {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": "somebody"}}}
    answer = await api.ask("POST", HOME, body)
    assert (answer.code, answer.metadata["labels"]) == (201, {"kubernetes.io/metadata.name": name})


async def test_nothing_is_made_where_there_is_no_namespace(api: Api) -> None:
    nowhere = f"{api.namespace}-nowhere"
    answer = await api.ask("POST", CONFIG_MAPS.resource.path(nowhere), config_map("a"))
    assert answer.refusal == (404, "NotFound", f'namespaces "{nowhere}" not found')


async def test_a_list_where_there_is_no_namespace_is_empty(api: Api) -> None:
    answer = await api.ask("GET", CONFIG_MAPS.resource.path(f"{api.namespace}-nowhere"))
    assert (answer.code, answer.names) == (200, [])


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_an_object_where_there_is_no_namespace_is_not_found(api: Api, method: str) -> None:
    answer = await api.ask(method, CONFIG_MAPS.resource.path(f"{api.namespace}-nowhere", "a"))
    assert answer.refusal == (404, "NotFound", 'configmaps "a" not found')


async def test_a_namespace_that_is_not_there_is_not_found(api: Api) -> None:
    with pytest.raises(NotFound, match=f'namespaces "{api.namespace}-nowhere" not found'):
        await api.client.get(NAMESPACES, f"{api.namespace}-nowhere")


async def test_a_body_that_names_another_namespace_is_refused(api: Api) -> None:
    answer = await api.ask("POST", api.maps, config_map("a", namespace="default"))
    why = "the namespace of the provided object does not match the namespace sent on the request"
    assert answer.refusal == (400, "BadRequest", why)


async def test_the_same_name_in_two_namespaces_is_two_objects(api: Api) -> None:
    other = await api.make_namespace()
    here = await api.make("a")
    there = await api.ask("POST", CONFIG_MAPS.resource.path(other), config_map("a"))
    assert there.code == 201
    assert there.metadata["uid"] != here["metadata"]["uid"]
    await api.ask("DELETE", f"{api.maps}/a")
    assert await api.is_there(CONFIG_MAPS.resource.path(other, "a"))


async def test_a_deleted_namespace_stays_terminating(api: Api) -> None:
    name = await api.make_namespace()
    answer = await api.ask("DELETE", f"{HOME}/{name}")
    assert (answer.code, answer.body["kind"]) == (200, "Namespace")
    found = await api.look(f"{HOME}/{name}")
    assert found["status"]["phase"] == "Terminating"
    assert found["metadata"]["deletionTimestamp"]
    assert found == answer.body


async def test_a_terminating_namespace_takes_in_nothing_new(api: Api) -> None:
    await api.ask("DELETE", f"{HOME}/{api.namespace}")
    answer = await api.ask("POST", api.maps, config_map("a"))
    why = f"unable to create new content in namespace {api.namespace} because it is being terminated"
    assert answer.refusal == (403, "Forbidden", f'configmaps "a" is forbidden: {why}')
    assert answer.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {api.namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]


async def test_what_is_in_a_terminating_namespace_can_be_changed_and_deleted(api: Api) -> None:
    await api.make("a")
    await api.ask("DELETE", f"{HOME}/{api.namespace}")
    assert (await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})).code == 200
    assert (await api.ask("DELETE", f"{api.maps}/a")).code == 200


async def test_a_terminating_namespace_goes_when_it_is_finalized(api: Api) -> None:
    name = await api.make_namespace()
    await api.ask("DELETE", f"{HOME}/{name}")
    assert await finalize(api, name) == 200
    assert not await api.is_there(f"{HOME}/{name}")


async def test_a_second_delete_of_a_namespace_changes_nothing(api: Api) -> None:
    name = await api.make_namespace()
    first = await api.ask("DELETE", f"{HOME}/{name}")
    second = await api.ask("DELETE", f"{HOME}/{name}")
    assert (second.code, second.body) == (200, first.body)


async def test_namespaces_are_not_deleted_all_together(api: Api) -> None:
    answer = await api.ask("DELETE", HOME)
    assert answer.refusal[:2] == (405, "MethodNotAllowed")

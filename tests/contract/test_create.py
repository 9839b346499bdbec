"""Create: what a new object gets, and which names it may have."""

from typing import Any

import pytest

from contract.backend import LEASES, NAMESPACES, Api, config_map, deployment
from kedge.kube.errors import AlreadyExists

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


async def test_a_new_object_is_answered_with_201_and_is_what_get_gives(api: Api) -> None:
    answer = await api.ask("POST", api.maps, config_map("a"))
    assert answer.code == 201
    assert answer.body == await api.look(f"{api.maps}/a")


async def test_a_new_object_gets_a_uid_a_version_a_time_and_its_namespace(api: Api) -> None:
    made = (await api.make("a"))["metadata"]
    assert len(made["uid"]) == 36
    assert int(made["resourceVersion"]) > 0
    assert made["creationTimestamp"].endswith("Z")
    assert made["namespace"] == api.namespace


async def test_a_body_may_leave_out_what_kind_it_is(api: Api) -> None:
    answer = await api.ask("POST", api.maps, {"metadata": {"name": "a"}})
    assert (answer.code, answer.body["apiVersion"], answer.body["kind"]) == (201, "v1", "ConfigMap")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uid", "00000000-0000-0000-0000-000000000000"),
        ("creationTimestamp", "2001-01-01T00:00:00Z"),
        ("deletionTimestamp", "2001-01-01T00:00:00Z"),
        ("deletionGracePeriodSeconds", 7),
        ("generation", 7),
    ],
)
async def test_what_only_the_server_may_say_is_not_taken_from_a_client(api: Api, field: str, value: object) -> None:
    answer = await api.ask("POST", api.deployments, deployment(**{field: value}))
    assert answer.code == 201
    assert answer.metadata.get(field) != value


async def test_an_object_with_a_version_cannot_be_created(api: Api) -> None:
    answer = await api.ask("POST", api.maps, config_map("a", resourceVersion="1"))
    assert answer.refusal == (500, "", "resourceVersion should not be set on objects to be created")


async def test_a_name_that_is_taken_is_a_conflict(api: Api) -> None:
    await api.make("a")
    answer = await api.ask("POST", api.maps, config_map("a"))
    assert answer.refusal == (409, "AlreadyExists", 'configmaps "a" already exists')
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_the_client_tells_a_taken_name_from_other_conflicts(api: Api) -> None:
    body = {"metadata": {"name": "lead", "namespace": api.namespace}}
    await api.client.create(LEASES, body)
    with pytest.raises(AlreadyExists, match=r'leases\.coordination\.k8s\.io "lead" already exists'):
        await api.client.create(LEASES, body)


async def test_a_generated_name_is_the_prefix_and_five_more(api: Api) -> None:
    answer = await api.ask("POST", api.maps, {"metadata": {"generateName": "map-"}})
    assert answer.code == 201
    assert answer.metadata["name"].startswith("map-")
    assert len(answer.metadata["name"]) == len("map-") + 5
    assert answer.metadata["generateName"] == "map-"


async def test_a_long_prefix_is_cut_so_that_the_name_fits(api: Api) -> None:
    answer = await api.ask("POST", api.maps, {"metadata": {"generateName": "m" * 100}})
    assert answer.metadata["name"].startswith("m" * 58)
    assert len(answer.metadata["name"]) == 63


async def test_a_name_goes_before_a_prefix(api: Api) -> None:
    answer = await api.ask("POST", api.maps, config_map("a", generateName="map-"))
    assert answer.metadata["name"] == "a"


async def test_a_name_is_needed(api: Api) -> None:
    answer = await api.ask("POST", api.maps, {"metadata": {}})
    why = 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    assert answer.refusal == (422, "Invalid", why)


@pytest.mark.parametrize("name", ["a", "0", "a.b", "a-b.c-d", "a" * 253])
async def test_these_are_names(api: Api, name: str) -> None:
    assert (await api.make(name))["metadata"]["name"] == name


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a-", "a..b", "a b", "é", "a."])
async def test_these_are_no_names(api: Api, name: str) -> None:
    answer = await api.ask("POST", api.maps, config_map(name))
    message = f'ConfigMap "{name}" is invalid: metadata.name: Invalid value: "{name}": {SUBDOMAIN}'
    assert answer.refusal == (422, "Invalid", message)
    assert answer.fields == [("FieldValueInvalid", "metadata.name")]


async def test_a_name_has_at_most_253_characters(api: Api) -> None:
    answer = await api.ask("POST", api.maps, config_map("a" * 254))
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.refusal[2].endswith("must be no more than 253 characters")


@pytest.mark.parametrize(("name", "why"), [("a.b", "must not contain dots"), ("a" * 64, "must be no more than 63")])
async def test_a_namespace_has_a_narrower_name(api: Api, name: str, why: str) -> None:
    answer = await api.ask("POST", NAMESPACES.resource.path(), {"metadata": {"name": name}})
    assert answer.refusal[:2] == (422, "Invalid")
    assert why in answer.refusal[2]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"a b": "x"}}, "metadata.labels"),
        ({"labels": {"a/b/c": "x"}}, "metadata.labels"),
        ({"labels": {"k" * 64: "x"}}, "metadata.labels"),
        ({"labels": {"Bad.Prefix_/a": "x"}}, "metadata.labels"),
        ({"labels": {"a": "x y"}}, "metadata.labels"),
        ({"labels": {"a": "v" * 64}}, "metadata.labels"),
        ({"annotations": {"a b": "x"}}, "metadata.annotations"),
        ({"finalizers": ["not ours"]}, "metadata.finalizers"),
    ],
)
async def test_metadata_that_is_not_well_formed_is_refused_where_it_is(
    api: Api, metadata: dict[str, Any], field: str
) -> None:
    answer = await api.ask("POST", api.maps, config_map("a", **metadata))
    assert answer.refusal[:2] == (422, "Invalid")
    assert {where.partition("[")[0] for _, where in answer.fields} == {field}


async def test_what_is_empty_in_metadata_is_left_out(api: Api) -> None:
    made = await api.make("a", labels={}, annotations={}, finalizers=[], ownerReferences=None)
    assert not {"labels", "annotations", "finalizers", "ownerReferences"} & set(made["metadata"])


async def test_an_object_with_a_spec_begins_at_generation_1_and_without_status(api: Api) -> None:
    made = await api.ask("POST", api.deployments, {**deployment(), "status": {"replicas": 9}})
    assert made.metadata["generation"] == 1
    assert not made.body.get("status")


@pytest.mark.parametrize("path", ["maps", "leases"])
async def test_a_kind_that_does_not_count_has_no_generation(api: Api, path: str) -> None:
    answer = await api.ask("POST", getattr(api, path), {"metadata": {"name": "a"}})
    assert answer.code == 201
    assert "generation" not in answer.metadata


async def test_a_name_is_free_again_after_a_delete_and_the_new_object_is_another(api: Api) -> None:
    first = await api.make("a")
    await api.ask("DELETE", f"{api.maps}/a")
    assert (await api.make("a"))["metadata"]["uid"] != first["metadata"]["uid"]

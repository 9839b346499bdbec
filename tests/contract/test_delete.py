"""Delete: at once, unless something holds the object; and only the object that was meant."""

from typing import Any

import pytest

from contract.backend import CONFIG_MAPS, HELD, Api, config_map, rv
from kedge.kube.errors import Conflict, NotFound

ANOTHER_UID = "00000000-0000-0000-0000-000000000000"
POLICIES = '"Foreground", "Background", "Orphan", "nil"'
CANNOT = 'Operation cannot be fulfilled on ConfigMap "a": '


async def test_a_delete_says_what_is_gone(api: Api) -> None:
    made = await api.make("a")
    answer = await api.ask("DELETE", f"{api.maps}/a")
    assert (answer.code, answer.body["kind"], answer.body["status"]) == (200, "Status", "Success")
    assert answer.body["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert not await api.is_there(f"{api.maps}/a")


async def test_a_delete_of_a_kind_in_a_group_says_which(api: Api) -> None:
    made = await api.make_lease()
    answer = await api.ask("DELETE", f"{api.leases}/lead")
    details = {"name": "lead", "group": "coordination.k8s.io", "kind": "leases", "uid": made["metadata"]["uid"]}
    assert answer.body["details"] == details


async def test_what_is_gone_is_not_found(api: Api) -> None:
    await api.make("a")
    await api.client.delete(CONFIG_MAPS, "a", api.namespace)
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await api.client.delete(CONFIG_MAPS, "a", api.namespace)


async def test_a_delete_of_the_uid_and_version_that_are_there_is_done(api: Api) -> None:
    meta = (await api.make("a"))["metadata"]
    conditions = {"uid": meta["uid"], "resource_version": meta["resourceVersion"]}
    await api.client.delete(CONFIG_MAPS, "a", api.namespace, **conditions)
    assert not await api.is_there(f"{api.maps}/a")


async def test_a_delete_of_another_uid_is_a_conflict(api: Api) -> None:
    made = await api.make("a")
    answer = await api.ask("DELETE", f"{api.maps}/a", {"preconditions": {"uid": ANOTHER_UID}})
    why = (
        f"the UID in the precondition ({ANOTHER_UID}) does not match the UID in record ({made['metadata']['uid']}). "
        "The object might have been deleted and then recreated"
    )
    assert answer.refusal == (409, "Conflict", CANNOT + why)
    assert await api.is_there(f"{api.maps}/a")


async def test_a_delete_of_an_older_version_is_a_conflict(api: Api) -> None:
    old = (await api.make("a"))["metadata"]["resourceVersion"]
    new = (await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})).metadata["resourceVersion"]
    answer = await api.ask("DELETE", f"{api.maps}/a", {"preconditions": {"resourceVersion": old}})
    why = (
        f"the ResourceVersion in the precondition ({old}) does not match the ResourceVersion in record ({new}). "
        "The object might have been modified"
    )
    assert answer.refusal == (409, "Conflict", CANNOT + why)
    with pytest.raises(Conflict):
        await api.client.delete(CONFIG_MAPS, "a", api.namespace, resource_version=old)


async def test_a_finalizer_holds_an_object_that_is_deleted(api: Api) -> None:
    made = await api.make("a", finalizers=HELD)
    answer = await api.ask("DELETE", f"{api.maps}/a")
    assert (answer.code, answer.body["kind"]) == (200, "ConfigMap")
    assert answer.metadata["deletionTimestamp"].endswith("Z")
    assert answer.metadata["deletionGracePeriodSeconds"] == 0
    assert rv(answer.body) > rv(made)
    assert await api.look(f"{api.maps}/a") == answer.body


async def test_a_second_delete_of_a_held_object_changes_nothing(api: Api) -> None:
    await api.make("a", finalizers=HELD)
    first = await api.ask("DELETE", f"{api.maps}/a")
    second = await api.ask("DELETE", f"{api.maps}/a")
    assert (second.code, second.body) == (200, first.body)


async def test_the_write_that_takes_the_last_finalizer_takes_the_object(api: Api) -> None:
    await api.make("a", finalizers=[*HELD, "x.io/y"])
    await api.ask("DELETE", f"{api.maps}/a")
    await api.merge(f"{api.maps}/a", {"metadata": {"finalizers": HELD}})
    assert await api.is_there(f"{api.maps}/a")
    answer = await api.merge(f"{api.maps}/a", {"metadata": {"finalizers": None}})
    assert (answer.code, answer.metadata["name"]) == (200, "a")
    assert not await api.is_there(f"{api.maps}/a")


async def test_a_put_can_take_the_last_finalizer_too(api: Api) -> None:
    await api.make("a", finalizers=HELD)
    marked = (await api.ask("DELETE", f"{api.maps}/a")).body
    del marked["metadata"]["finalizers"]
    assert (await api.ask("PUT", f"{api.maps}/a", marked)).code == 200
    assert not await api.is_there(f"{api.maps}/a")


async def test_an_object_that_is_going_takes_no_new_finalizers(api: Api) -> None:
    await api.make("a", finalizers=HELD)
    await api.ask("DELETE", f"{api.maps}/a")
    answer = await api.merge(f"{api.maps}/a", {"metadata": {"finalizers": [*HELD, "x.io/late"]}})
    assert answer.refusal[:2] == (422, "Invalid")
    assert set(answer.fields) == {("FieldValueForbidden", "metadata.finalizers")}
    assert "no new finalizers can be added if the object is being deleted" in answer.refusal[2]


async def test_an_object_that_is_going_can_still_be_changed(api: Api) -> None:
    await api.make("a", finalizers=HELD)
    await api.ask("DELETE", f"{api.maps}/a")
    answer = await api.merge(f"{api.maps}/a", {"data": {"k": "w"}})
    assert (answer.code, answer.body["data"]) == (200, {"k": "w"})
    assert answer.metadata["deletionTimestamp"]


async def test_nobody_can_take_a_deletion_back(api: Api) -> None:
    await api.make("a", finalizers=HELD)
    marked = (await api.ask("DELETE", f"{api.maps}/a")).metadata
    await api.merge(f"{api.maps}/a", {"metadata": {"deletionTimestamp": None}})
    assert (await api.look(f"{api.maps}/a"))["metadata"]["deletionTimestamp"] == marked["deletionTimestamp"]


async def test_the_name_of_an_object_that_is_going_is_taken(api: Api) -> None:
    await api.make("a", finalizers=HELD)
    await api.ask("DELETE", f"{api.maps}/a")
    answer = await api.ask("POST", api.maps, config_map("a"))
    why = 'object is being deleted: configmaps "a" already exists'
    assert answer.refusal == (409, "AlreadyExists", why)


async def test_being_marked_counts_as_a_generation(api: Api) -> None:
    await api.make_deployment(finalizers=HELD)
    answer = await api.ask("DELETE", f"{api.deployments}/web")
    assert answer.metadata["generation"] == 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"propagationPolicy": "Background"},
        {"gracePeriodSeconds": 0},
        {"gracePeriodSeconds": 30},
        {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"},
    ],
)
async def test_these_options_let_an_object_go_at_once(api: Api, options: dict[str, Any]) -> None:
    await api.make("a")
    assert (await api.ask("DELETE", f"{api.maps}/a", options)).code == 200
    assert not await api.is_there(f"{api.maps}/a")


@pytest.mark.parametrize("policy", ["Foreground", "Orphan"])
async def test_these_policies_are_taken_too(api: Api, policy: str) -> None:
    await api.make("a")
    assert (await api.ask("DELETE", f"{api.maps}/a", {"propagationPolicy": policy})).code == 200


@pytest.mark.parametrize(
    ("policy", "held"),
    [
        (None, ["orphan"]),
        ("Orphan", ["orphan"]),
        ("Foreground", ["foregroundDeletion"]),
        ("Background", None),
    ],
)
async def test_what_was_to_become_of_dependents_holds_unless_a_policy_says_otherwise(
    api: Api, policy: str | None, held: list[str] | None
) -> None:
    await api.make("a", finalizers=["orphan"])
    assert (await api.ask("DELETE", f"{api.maps}/a", {"propagationPolicy": policy})).code == 200
    answer = await api.ask("GET", f"{api.maps}/a")
    assert (answer.metadata["finalizers"] if answer.code == 200 else None) == held


@pytest.mark.parametrize("query", [{"propagationPolicy": "Background"}, {"gracePeriodSeconds": "5"}])
async def test_options_can_come_in_the_query(api: Api, query: dict[str, str]) -> None:
    await api.make("a")
    assert (await api.ask("DELETE", f"{api.maps}/a", **query)).code == 200
    assert not await api.is_there(f"{api.maps}/a")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"propagationPolicy": "Maybe"},
            f'propagationPolicy: Unsupported value: "Maybe": supported values: {POLICIES}',
        ),
        (
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
        ),
    ],
)
async def test_these_options_are_refused(api: Api, options: dict[str, Any], why: str) -> None:
    await api.make("a")
    answer = await api.ask("DELETE", f"{api.maps}/a", options)
    assert answer.refusal == (422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: {why}')
    assert await api.is_there(f"{api.maps}/a")


async def test_a_collection_is_deleted_as_far_as_it_is_selected(api: Api) -> None:
    await api.make("a", labels={"app": "web"})
    await api.make("b", labels={"app": "web"}, finalizers=HELD)
    await api.make("c")
    answer = await api.ask("DELETE", api.maps, labelSelector="app=web")
    assert (answer.code, answer.body["kind"], answer.names) == (200, "ConfigMapList", ["a", "b"])
    left = (await api.ask("GET", api.maps)).body["items"]
    assert [(item["metadata"]["name"], "deletionTimestamp" in item["metadata"]) for item in left] == [
        ("b", True),
        ("c", False),
    ]

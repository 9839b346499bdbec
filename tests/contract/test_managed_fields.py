"""Managed fields: who owns what after plain writes, and what clients may say about it."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backend import JSON_PATCH, Answer, Api, config_map, deployment, rv, with_metadata

STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
ENTRY = {"manager": "z", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}


def owners(obj: Any) -> Any:
    """Who owns what, without times."""
    entries = obj["metadata"].get("managedFields", [])
    return {(one["manager"], one["operation"], one.get("subresource", "")): one["fieldsV1"] for one in entries}


def data_of(obj: Any) -> dict[str, str]:
    """Who owns which keys of the data."""
    found = {name: fields.get("f:data", {}) for (name, _, _), fields in owners(obj).items()}
    return {name: "".join(sorted(key[2:] for key in data if key != ".")) for name, data in found.items()}


async def made(api: Api, obj: Any, path: str = "", **query: str) -> Any:
    answer = await api.ask("POST", path or api.maps, obj, **{"fieldManager": "me", **query})
    assert answer.code == 201, answer
    return answer.body


async def changed(api: Api, patch: Any, manager: str = "you", path: str = "") -> Any:
    answer = await api.merge(path or f"{api.maps}/a", patch, fieldManager=manager)
    assert answer.code == 200, answer
    return answer.body


async def test_whoever_makes_an_object_owns_it(api: Api) -> None:
    found = await made(api, config_map("a", labels={"x": "y"}, annotations={"x": "y"}))
    (entry,) = found["metadata"]["managedFields"]
    assert entry.pop("time")
    assert entry == {
        "manager": "me",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:data": {".": {}, "f:k": {}},
            "f:metadata": {"f:annotations": {".": {}, "f:x": {}}, "f:labels": {".": {}, "f:x": {}}},
        },
    }


async def test_they_are_shown_by_get_list_and_watch(api: Api) -> None:
    found = await made(api, config_map("a"))
    assert await api.look(f"{api.maps}/a") == found
    listed = await api.ask("GET", api.maps)
    assert [item["metadata"]["managedFields"] for item in listed.body["items"]] == [found["metadata"]["managedFields"]]
    async with api.events() as events:
        assert (await anext(events)).object["metadata"]["managedFields"] == found["metadata"]["managedFields"]


async def test_defaults_belong_to_whoever_made_the_object(api: Api) -> None:
    found = await made(api, deployment(), api.deployments)
    container: Any = {
        ".": {},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
        "f:resources": {},
        "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
    }
    pod: Any = {
        "f:containers": {'k:{"name":"web"}': container},
        "f:dnsPolicy": {},
        "f:restartPolicy": {},
        "f:schedulerName": {},
        "f:securityContext": {},
        "f:terminationGracePeriodSeconds": {},
    }
    rolling: Any = {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}
    assert owners(found)["me", "Update", ""] == {
        "f:spec": {
            "f:progressDeadlineSeconds": {},
            "f:replicas": {},
            "f:revisionHistoryLimit": {},
            "f:selector": {},
            "f:strategy": {"f:rollingUpdate": rolling, "f:type": {}},
            "f:template": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": pod},
        }
    }


async def test_what_the_server_gives_is_nobodys(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/services"
    found = await made(api, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, path)
    assert found["spec"]["clusterIP"]
    port: Any = {".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}
    assert owners(found)["me", "Update", ""] == {
        "f:spec": {
            "f:internalTrafficPolicy": {},
            "f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': port},
            "f:sessionAffinity": {},
            "f:type": {},
        }
    }


async def test_a_new_namespace_owns_its_label(api: Api) -> None:
    answer = await api.ask(
        "POST", "/api/v1/namespaces", {"metadata": {"name": f"{api.namespace}-b"}}, fieldManager="me"
    )
    assert owners(answer.body)["me", "Update", ""] == {
        "f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}
    }


async def test_whoever_changes_a_field_takes_it(api: Api) -> None:
    await made(api, {**config_map("a"), "data": {"k": "1", "l": "1"}})
    assert data_of(await changed(api, {"data": {"k": "2"}})) == {"me": "l", "you": "k"}


async def test_writing_what_is_there_takes_nothing(api: Api) -> None:
    first = await made(api, config_map("a"))
    assert await changed(api, {"data": {"k": "v"}}) == first


async def test_whoever_removes_a_field_takes_it_from_all(api: Api) -> None:
    await made(api, {**config_map("a"), "data": {"k": "1", "l": "1"}})
    assert data_of(await changed(api, {"data": {"k": None}})) == {"me": "l"}


async def test_a_put_takes_what_it_changes(api: Api) -> None:
    first = await made(api, {**config_map("a"), "data": {"k": "1", "l": "1"}})
    answer = await api.ask("PUT", f"{api.maps}/a", {**first, "data": {"k": "1", "m": "1"}}, fieldManager="you")
    assert data_of(answer.body) == {"me": "k", "you": "m"}


async def test_a_json_patch_takes_what_it_changes(api: Api) -> None:
    await made(api, config_map("a"))
    operations = [
        {"op": "add", "path": "/data/l", "value": "1"},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
    ]
    answer = await api.ask("PATCH", f"{api.maps}/a", operations, JSON_PATCH, fieldManager="you")
    labels: Any = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}
    assert owners(answer.body)["you", "Update", ""] == {"f:data": {"f:l": {}}, **labels}


async def test_a_strategic_patch_takes_the_items_it_adds(api: Api) -> None:
    await made(api, deployment(), api.deployments)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "env": [{"name": "A", "value": "1"}]}]}}}}
    answer = await api.ask("PATCH", f"{api.deployments}/web", patch, STRATEGIC, fieldManager="you")
    env: Any = {".": {}, 'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}}
    assert owners(answer.body)["you", "Update", ""] == {
        "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:env": env}}}}}
    }


async def test_an_update_takes_from_one_who_applied(api: Api) -> None:
    await api.ask("PATCH", f"{api.maps}/a", config_map("a"), APPLY, fieldManager="me")
    found = await changed(api, {"data": {"k": "w"}})
    assert owners(found) == {("you", "Update", ""): {"f:data": {"f:k": {}}}}


async def test_who_does_not_say_who_they_are_is_called_as_their_program(api: Api) -> None:
    found = await api.make("a")
    (entry,) = found["metadata"]["managedFields"]
    assert entry["manager"] == "kedge"


async def test_a_name_too_long_is_refused(api: Api) -> None:
    answer = await api.ask("POST", api.maps, config_map("a"), fieldManager="x" * 129)
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.fields == [("FieldValueTooLong", "fieldManager")]


async def test_the_status_is_owned_apart(api: Api) -> None:
    await made(api, deployment(), api.deployments)
    patch = {
        "spec": {"replicas": 9},
        "status": {"replicas": 2},
        "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
    }
    found = await changed(api, patch, "me", f"{api.deployments}/web/status")
    assert owners(found)["me", "Update", "status"] == {
        "f:metadata": {"f:annotations": {".": {}, "f:a": {}}},
        "f:status": {"f:replicas": {}},
    }
    assert "f:replicas" in owners(found)["me", "Update", ""]["f:spec"]


async def test_a_write_to_the_rest_does_not_own_the_status(api: Api) -> None:
    await made(api, deployment(), api.deployments)
    found = await changed(api, {"status": {"replicas": 2}, "spec": {"paused": True}}, path=f"{api.deployments}/web")
    assert owners(found)["you", "Update", ""] == {"f:spec": {"f:paused": {}}}


async def test_the_scale_is_owned_apart(api: Api) -> None:
    await made(api, deployment(), api.deployments)
    await changed(api, {"spec": {"replicas": 5}}, path=f"{api.deployments}/web/scale")
    found = owners(await api.look(f"{api.deployments}/web"))
    assert found["you", "Update", "scale"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in found["me", "Update", ""]["f:spec"]


async def test_the_oldest_of_more_than_ten_are_put_together(api: Api) -> None:
    await made(api, {**config_map("a"), "data": {"k0": "v"}}, fieldManager="m00")
    for number in range(1, 13):
        found = await changed(api, {"data": {f"k{number}": "v"}}, f"m{number:02}")
    names = [entry["manager"] for entry in found["metadata"]["managedFields"]]
    assert names == ["ancient-changes", *(f"m{number:02}" for number in range(4, 13))]
    assert owners(found)["ancient-changes", "Update", ""] == {
        "f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}
    }


async def test_an_object_that_nobody_owns_is_not_tracked(api: Api) -> None:
    found = await made(api, {"metadata": {"name": "a"}})
    assert "managedFields" not in found["metadata"]
    assert "managedFields" not in (await changed(api, {"data": {"k": "v"}}))["metadata"]


async def test_a_delete_that_waits_changes_no_owner(api: Api) -> None:
    first = await made(api, config_map("a", finalizers=["x.io/a"]))
    await api.ask("DELETE", f"{api.maps}/a")
    waiting = await api.look(f"{api.maps}/a")
    assert owners(waiting) == owners(first)
    await changed(api, {"metadata": {"finalizers": None}})


# What clients say


async def said(api: Api, entries: Any, data: Any = None) -> Answer:
    """A merge patch that says who the owners are."""
    patch = {"metadata": {"managedFields": entries}, **({"data": data} if data else {})}
    return await api.merge(f"{api.maps}/a", patch, fieldManager="you")


@pytest.mark.parametrize("cleared", [[], [{}]], ids=["empty", "blank"])
async def test_a_client_can_have_all_owners_forgotten(api: Api, cleared: Any) -> None:
    first = await made(api, config_map("a"))
    answer = await said(api, cleared)
    assert "managedFields" not in answer.metadata
    assert rv(answer.body) > rv(first)
    assert "managedFields" not in (await changed(api, {"data": {"l": "v"}}))["metadata"]


async def test_a_put_can_have_all_owners_forgotten(api: Api) -> None:
    first = await made(api, config_map("a"))
    answer = await api.ask("PUT", f"{api.maps}/a", with_metadata(first, managedFields=[{}]), fieldManager="you")
    assert "managedFields" not in answer.metadata


async def test_a_put_that_leaves_them_out_keeps_them(api: Api) -> None:
    first = await made(api, config_map("a"))
    sent = {**with_metadata(first, managedFields=None), "data": {"k": "v", "l": "v"}}
    answer = await api.ask("PUT", f"{api.maps}/a", sent, fieldManager="you")
    assert data_of(answer.body) == {"me": "k", "you": "l"}


async def test_a_client_can_say_who_the_owners_are(api: Api) -> None:
    await made(api, config_map("a"))
    answer = await said(api, [ENTRY], {"l": "v"})
    assert owners(answer.body) == {("z", "Apply", ""): {"f:data": {}}, ("you", "Update", ""): {"f:data": {"f:l": {}}}}


@pytest.mark.parametrize(
    "wrong",
    [{"operation": "Nope"}, {"apiVersion": ""}, {"fieldsType": ""}, {"fieldsV1": {"data": {}}}],
    ids=lambda wrong: next(iter(wrong)),
)
async def test_a_client_that_makes_no_sense_is_not_heard(api: Api, wrong: Any) -> None:
    await made(api, config_map("a"))
    answer = await said(api, [{**ENTRY, **wrong}], {"l": "v"})
    assert data_of(answer.body) == {"me": "k", "you": "l"}


async def test_entries_of_versions_that_are_not_served_are_dropped(api: Api) -> None:
    await made(api, config_map("a"))
    answer = await said(api, [{**ENTRY, "apiVersion": "v9"}, {**ENTRY, "manager": "y"}])
    assert owners(answer.body) == {("y", "Apply", ""): {"f:data": {}}}


async def test_kubectl_moves_from_client_side_to_server_side_apply(api: Api) -> None:
    """It renames the entry of its client-side self, with the version as a condition."""
    obj = {**config_map("a"), "data": {"k": "v", "l": "v"}}
    first = await made(api, obj, fieldManager="kubectl-client-side-apply")
    renamed = [{**entry, "manager": "kubectl", "operation": "Apply"} for entry in first["metadata"]["managedFields"]]
    operations = [
        {"op": "replace", "path": "/metadata/managedFields", "value": renamed},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": first["metadata"]["resourceVersion"]},
    ]
    moved = await api.ask("PATCH", f"{api.maps}/a", operations, JSON_PATCH, fieldManager="kubectl")
    assert owners(moved.body) == {("kubectl", "Apply", ""): {"f:data": {".": {}, "f:k": {}, "f:l": {}}}}
    answer = await api.ask("PATCH", f"{api.maps}/a", config_map("a"), APPLY, fieldManager="kubectl")
    assert answer.body["data"] == {"k": "v"}


LAST = "kubectl.kubernetes.io/last-applied-configuration"


async def test_what_client_side_apply_left_is_no_conflict_for_kubectl(api: Api) -> None:
    last = '{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"name":"a"}}'
    await made(api, config_map("a", annotations={LAST: last}), fieldManager="kubectl-client-side-apply")
    new = {**config_map("a"), "data": {"k": "w"}}
    refused = await api.ask("PATCH", f"{api.maps}/a", new, APPLY, fieldManager="somebody")
    assert refused.refusal[:2] == (409, "Conflict")
    answer = await api.ask("PATCH", f"{api.maps}/a", new, APPLY, fieldManager="kubectl")
    assert answer.code == 200
    assert answer.metadata["annotations"][LAST] == last.replace('"v"}', '"w"}') + "\n"

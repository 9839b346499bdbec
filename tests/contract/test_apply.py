"""Server-side apply: what is applied is owned, what others own is guarded, and what is left out goes."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backend import Answer, Api, config_map, rv
from contract.crds import TEXT, own, spec_of, version

APPLY = "application/apply-patch+yaml"
NOT_DECLARED = "field not declared in schema"


async def apply(api: Api, path: str, config: Any, manager: str = "me", **query: str) -> Answer:
    return await api.ask("PATCH", path, config, APPLY, fieldManager=manager, **query)


async def applied(api: Api, path: str, config: Any, manager: str = "me", **query: str) -> Any:
    answer = await apply(api, path, config, manager, **query)
    assert answer.code in (200, 201), answer
    return answer.body


def a_map(data: Any = None, **metadata: Any) -> Any:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return obj if data is None else {**obj, "data": data}


def a_deployment(*containers: Any, **spec: Any) -> Any:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers)}}
    whole = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": whole}


def of_deployment(**spec: Any) -> Any:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def owners(obj: Any) -> Any:
    """Who owns what, without times."""
    entries = obj["metadata"].get("managedFields", [])
    return {(one["manager"], one["operation"], one.get("subresource", "")): one["fieldsV1"] for one in entries}


def conflicts(answer: Answer) -> list[tuple[str, str]]:
    assert answer.refusal[:2] == (409, "Conflict")
    causes = answer.body["details"]["causes"]
    assert {cause["reason"] for cause in causes} == {"FieldManagerConflict"}
    return sorted((cause["message"], cause["field"]) for cause in causes)


DATA: Any = {"f:data": {"f:k": {}}}


async def test_applying_what_is_not_there_makes_it(api: Api) -> None:
    answer = await apply(api, f"{api.maps}/a", a_map({"k": "v"}))
    assert answer.code == 201
    assert owners(answer.body) == {("me", "Apply", ""): DATA}
    assert await api.look(f"{api.maps}/a") == answer.body


async def test_applying_again_writes_nothing(api: Api) -> None:
    first = await applied(api, f"{api.maps}/a", a_map({"k": "v"}))
    answer = await apply(api, f"{api.maps}/a", a_map({"k": "v"}))
    assert answer.code == 200
    assert answer.body == first


async def test_applying_the_same_as_another_is_owned_together(api: Api) -> None:
    first = await applied(api, f"{api.maps}/a", a_map({"k": "v"}))
    both = await applied(api, f"{api.maps}/a", a_map({"k": "v"}), "you")
    assert owners(both) == {("me", "Apply", ""): DATA, ("you", "Apply", ""): DATA}
    assert rv(both) > rv(first)
    assert [("time" in entry, entry["manager"]) for entry in both["metadata"]["managedFields"]] == [
        (False, "you"),
        (True, "me"),
    ]


async def test_another_value_is_a_conflict_with_its_owner(api: Api) -> None:
    first = await applied(api, f"{api.maps}/a", a_map({"k": "v"}))
    answer = await apply(api, f"{api.maps}/a", a_map({"k": "w"}), "you")
    assert answer.refusal == (409, "Conflict", 'Apply failed with 1 conflict: conflict with "me": .data.k')
    assert answer.body["details"] == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.k"}]
    }
    assert await api.look(f"{api.maps}/a") == first


async def test_one_who_updated_is_named_with_the_version(api: Api) -> None:
    await api.make_deployment()
    await api.merge(f"{api.deployments}/web", {"spec": {"replicas": 3}}, fieldManager="kubectl")
    answer = await apply(api, f"{api.deployments}/web", of_deployment(replicas=5))
    message = 'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas'
    assert answer.refusal == (409, "Conflict", message)


async def test_several_conflicts_are_listed_by_owner(api: Api) -> None:
    await applied(api, f"{api.maps}/a", a_map({"k": "v", "l": "v"}))
    await applied(api, f"{api.maps}/a", a_map({"m": "v"}), "you")
    answer = await apply(api, f"{api.maps}/a", a_map({"k": "w", "l": "w", "m": "w"}), "they")
    assert answer.refusal[2] == (
        'Apply failed with 3 conflicts: conflicts with "me":\n- .data.k\n- .data.l\nconflicts with "you":\n- .data.m'
    )
    assert conflicts(answer) == [
        ('conflict with "me"', ".data.k"),
        ('conflict with "me"', ".data.l"),
        ('conflict with "you"', ".data.m"),
    ]


async def test_a_conflict_in_a_list_names_the_item(api: Api) -> None:
    await applied(api, f"{api.deployments}/web", a_deployment({"name": "web", "image": "a"}))
    answer = await apply(api, f"{api.deployments}/web", a_deployment({"name": "web", "image": "b"}), "you")
    assert conflicts(answer) == [('conflict with "me"', '.spec.template.spec.containers[name="web"].image')]


async def test_force_takes_the_field(api: Api) -> None:
    await applied(api, f"{api.maps}/a", a_map({"k": "v", "l": "v"}))
    taken = await applied(api, f"{api.maps}/a", a_map({"k": "w"}), "you", force="true")
    assert taken["data"] == {"k": "w", "l": "v"}
    assert owners(taken) == {("me", "Apply", ""): {"f:data": {"f:l": {}}}, ("you", "Apply", ""): DATA}


async def test_one_who_lost_everything_is_no_owner(api: Api) -> None:
    await applied(api, f"{api.maps}/a", a_map({"k": "v"}))
    taken = await applied(api, f"{api.maps}/a", a_map({"k": "w"}), "you", force="true")
    assert owners(taken) == {("you", "Apply", ""): DATA}


async def test_what_is_left_out_goes(api: Api) -> None:
    await applied(api, f"{api.maps}/a", a_map({"k": "v", "l": "v"}, labels={"x": "y"}))
    left = await applied(api, f"{api.maps}/a", a_map({"k": "v"}))
    assert left["data"] == {"k": "v"}
    assert "labels" not in left["metadata"]
    assert owners(left) == {("me", "Apply", ""): DATA}


async def test_what_another_owns_too_stays(api: Api) -> None:
    await applied(api, f"{api.maps}/a", a_map({"k": "v", "l": "v"}))
    await applied(api, f"{api.maps}/a", a_map({"k": "v"}), "you")
    left = await applied(api, f"{api.maps}/a", a_map({"l": "v"}))
    assert left["data"] == {"k": "v", "l": "v"}
    assert owners(left) == {("me", "Apply", ""): {"f:data": {"f:l": {}}}, ("you", "Apply", ""): DATA}


async def test_what_nobody_applied_stays(api: Api) -> None:
    await api.make("a", {"k": "v"})
    await applied(api, f"{api.maps}/a", a_map({"l": "v"}))
    left = await applied(api, f"{api.maps}/a", a_map())
    assert left["data"] == {"k": "v"}


async def test_applying_nothing_gives_up_everything(api: Api) -> None:
    await applied(api, f"{api.maps}/a", a_map({"k": "v"}))
    left = await applied(api, f"{api.maps}/a", a_map())
    assert "data" not in left
    assert "managedFields" not in left["metadata"]


async def test_who_updates_and_who_applies_under_one_name_are_two(api: Api) -> None:
    await api.ask("POST", api.maps, config_map("a"), fieldManager="me")
    answer = await apply(api, f"{api.maps}/a", a_map({"k": "w"}))
    assert conflicts(answer) == [('conflict with "me" using v1', ".data.k")]
    both = await applied(api, f"{api.maps}/a", a_map({"k": "v"}))
    assert owners(both) == {("me", "Apply", ""): DATA, ("me", "Update", ""): {"f:data": {".": {}, "f:k": {}}}}


async def test_lists_of_named_things_are_merged_by_name(api: Api) -> None:
    await applied(api, f"{api.deployments}/web", a_deployment({"name": "web", "image": "a"}))
    more = await applied(
        api,
        f"{api.deployments}/web",
        {**of_deployment(template={"spec": {"containers": [{"name": "log", "image": "l"}]}})},
        "you",
    )
    assert [one["name"] for one in more["spec"]["template"]["spec"]["containers"]] == ["web", "log"]
    fewer = await applied(api, f"{api.deployments}/web", of_deployment(template={"spec": {}}), "you")
    assert [one["name"] for one in fewer["spec"]["template"]["spec"]["containers"]] == ["web"]


async def test_items_come_in_the_order_applied(api: Api) -> None:
    one, two, three = ({"name": name, "image": "i"} for name in ("one", "two", "three"))
    await applied(api, f"{api.deployments}/web", a_deployment(one, two))
    found = await applied(api, f"{api.deployments}/web", a_deployment(three, two, one))
    assert [part["name"] for part in found["spec"]["template"]["spec"]["containers"]] == ["three", "two", "one"]


async def test_a_port_is_told_apart_by_its_number_and_protocol(api: Api) -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    made = await applied(api, f"{api.deployments}/web", a_deployment({"name": "web", "image": "a", "ports": ports}))
    found = owners(made)["me", "Apply", ""]["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"web"}']
    assert found["f:ports"] == {
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
        'k:{"containerPort":80,"protocol":"UDP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}},
    }


async def test_a_selector_is_owned_as_one(api: Api) -> None:
    made = await applied(api, f"{api.deployments}/web", a_deployment({"name": "web", "image": "a"}))
    assert owners(made)["me", "Apply", ""]["f:spec"]["f:selector"] == {}


async def test_defaults_are_nobodys(api: Api) -> None:
    made = await applied(api, f"{api.deployments}/web", a_deployment({"name": "web", "image": "a"}))
    assert made["spec"]["replicas"] == 1
    assert owners(made)["me", "Apply", ""] == {
        "f:spec": {
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}, "f:name": {}}}},
            },
        }
    }
    scaled = await applied(api, f"{api.deployments}/web", of_deployment(replicas=3), "you")
    assert scaled["spec"]["replicas"] == 3


async def test_finalizers_are_owned_one_by_one(api: Api) -> None:
    await applied(api, f"{api.maps}/a", a_map(finalizers=["x.io/a"]))
    both = await applied(api, f"{api.maps}/a", a_map(finalizers=["x.io/b"]), "you")
    assert both["metadata"]["finalizers"] == ["x.io/a", "x.io/b"]
    left = await applied(api, f"{api.maps}/a", a_map())
    assert left["metadata"]["finalizers"] == ["x.io/b"]
    await applied(api, f"{api.maps}/a", a_map(), "you")


async def test_the_status_is_not_applied_with_the_rest(api: Api) -> None:
    config = {**a_deployment({"name": "web", "image": "a"}), "status": {"replicas": 3}}
    made = await applied(api, f"{api.deployments}/web", config)
    assert "replicas" not in made["status"]
    assert "f:status" not in owners(made)["me", "Apply", ""]


async def test_the_status_is_applied_apart(api: Api) -> None:
    await applied(api, f"{api.deployments}/web", a_deployment({"name": "web", "image": "a"}))
    config = {**of_deployment(replicas=7), "status": {"readyReplicas": 1, "replicas": 1}}
    found = await applied(api, f"{api.deployments}/web/status", config)
    assert found["spec"]["replicas"] == 1
    assert found["status"] == {"readyReplicas": 1, "replicas": 1}
    assert owners(found)["me", "Apply", "status"] == {"f:status": {"f:readyReplicas": {}, "f:replicas": {}}}
    other = {**of_deployment(), "status": {"replicas": 2}}
    answer = await apply(api, f"{api.deployments}/web/status", other, "you")
    assert conflicts(answer) == [('conflict with "me" with subresource "status"', ".status.replicas")]


async def test_an_object_nobody_owns_is_owned_by_somebody_before_the_first_apply(api: Api) -> None:
    await api.make("a", {"k": "v"})
    await api.merge(f"{api.maps}/a", {"metadata": {"managedFields": [{}]}})
    answer = await apply(api, f"{api.maps}/a", a_map({"k": "w"}))
    assert conflicts(answer) == [('conflict with "before-first-apply" using v1', ".data.k")]
    found = await applied(api, f"{api.maps}/a", a_map({"l": "v"}))
    assert owners(found) == {
        ("me", "Apply", ""): {"f:data": {"f:l": {}}},
        ("before-first-apply", "Update", ""): {"f:data": {".": {}, "f:k": {}}},
    }


async def test_a_dry_run_tells_what_would_be(api: Api) -> None:
    first = await applied(api, f"{api.maps}/a", a_map({"k": "v"}))
    told = await applied(api, f"{api.maps}/a", a_map({"l": "v"}), dryRun="All")
    assert told["data"] == {"l": "v"}
    assert owners(told) == {("me", "Apply", ""): {"f:data": {"f:l": {}}}}
    assert await api.look(f"{api.maps}/a") == first


async def test_the_version_can_be_a_condition(api: Api) -> None:
    first = await applied(api, f"{api.maps}/a", a_map({"k": "v"}))
    version = first["metadata"]["resourceVersion"]
    await applied(api, f"{api.maps}/a", a_map({"k": "w"}, resourceVersion=version))
    answer = await apply(api, f"{api.maps}/a", a_map({"k": "x"}, resourceVersion=version))
    assert answer.refusal[:2] == (409, "Conflict")


@pytest.mark.parametrize(
    ("config", "code", "reason", "message"),
    [
        (a_map({"k": "v"}, managedFields=[{}]), 400, "BadRequest", "metadata.managedFields must be nil"),
        (a_map({"k": "v"}, managedFields=[]), 400, "BadRequest", "metadata.managedFields must be nil"),
        ({**a_map(), "apiVersion": "v2"}, 400, "BadRequest", "invalid object type: /v2, Kind=ConfigMap"),
        ({**a_map(), "spec": {"x": 1}}, 500, "", f".spec: {NOT_DECLARED}"),
        (a_map({"k": 1}), 500, "", ".data.k: expected string, got &value.valueUnstructured{Value:1}"),
        (
            a_map(finalizers=["x.io/a", "x.io/a"]),
            500,
            "",
            '.metadata.finalizers: duplicate entries for key [="x.io/a"]',
        ),
    ],
    ids=["managedFields", "no managedFields", "version", "unknown", "type", "twice"],
)
async def test_what_cannot_be_applied_is_refused(api: Api, config: Any, code: int, reason: str, message: str) -> None:
    await api.make("a")
    answer = await apply(api, f"{api.maps}/a", config)
    typed = "failed to create typed patch object (/a; /v1, Kind=ConfigMap): " if code == 500 else ""
    assert answer.refusal == (code, reason, typed + message)


async def test_whoever_applies_says_who_they_are(api: Api) -> None:
    answer = await api.ask("PATCH", f"{api.maps}/a", a_map({"k": "v"}), APPLY)
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.fields == [("FieldValueRequired", "fieldManager")]


async def test_yaml_is_taken(api: Api) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n"
    answer = await api.ask("PATCH", f"{api.maps}/a", text, APPLY, fieldManager="me")
    assert answer.code == 201
    assert answer.body["data"] == {"k": "v"}


# Custom kinds


SCHEMA = spec_of(
    count={"type": "integer"},
    names={"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    order={"type": "array", "items": TEXT},
    parts={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "kind"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": TEXT, "kind": {**TEXT, "default": "plain"}, "size": {"type": "integer"}},
        },
    },
    whole={"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": TEXT},
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)


@pytest.mark.parametrize(
    ("mine", "yours", "both", "fields"),
    [
        ({"names": ["a", "b"]}, {"names": ["c"]}, {"names": ["a", "b", "c"]}, {"f:names": {'v:"a"': {}, 'v:"b"': {}}}),
        ({"free": {"a": {"b": 1}}}, {"free": {"a": {"c": 1}}}, {"free": {"a": {"b": 1, "c": 1}}}, None),
        (
            {"parts": [{"name": "a", "size": 1}]},
            {"parts": [{"name": "a", "kind": "other"}]},
            {"parts": [{"name": "a", "kind": "plain", "size": 1}, {"name": "a", "kind": "other"}]},
            {"f:parts": {'k:{"kind":"plain","name":"a"}': {".": {}, "f:name": {}, "f:size": {}}}},
        ),
        ({"count": 1}, {"order": ["x"]}, {"count": 1, "order": ["x"]}, {"f:count": {}}),
    ],
    ids=["set", "open", "map", "scalar"],
)
async def test_a_schema_says_how_parts_are_owned(api: Api, mine: Any, yours: Any, both: Any, fields: Any) -> None:
    async with own(api, version(SCHEMA)) as kind:
        await applied(api, kind.path("x"), kind.obj(spec=mine))
        found = await applied(api, kind.path("x"), kind.obj(spec=yours), "you")
        assert found["spec"] == both
        assert fields is None or owners(found)["me", "Apply", ""] == {"f:spec": fields}


@pytest.mark.parametrize("field", ["order", "whole"])
async def test_what_is_owned_as_one_is_replaced_as_one(api: Api, field: str) -> None:
    one, other = (["a"], ["b"]) if field == "order" else ({"a": "1"}, {"b": "1"})
    async with own(api, version(SCHEMA)) as kind:
        await applied(api, kind.path("x"), kind.obj(spec={field: one}))
        answer = await apply(api, kind.path("x"), kind.obj(spec={field: other}), "you")
        assert conflicts(answer) == [('conflict with "me"', f".spec.{field}")]
        found = await applied(api, kind.path("x"), kind.obj(spec={field: other}), "you", force="true")
        assert found["spec"] == {field: other}


async def test_a_custom_kind_without_a_status_of_its_own_owns_it_with_the_rest(api: Api) -> None:
    async with own(api) as kind:
        found = await applied(api, kind.path("x"), kind.obj(spec={"a": 1}, status={"b": 1}))
        assert owners(found) == {
            ("me", "Apply", ""): {"f:spec": {".": {}, "f:a": {}}, "f:status": {".": {}, "f:b": {}}}
        }


async def test_a_null_that_the_schema_does_not_allow_is_refused(api: Api) -> None:
    async with own(api, version(SCHEMA)) as kind:
        answer = await apply(api, kind.path("x"), kind.obj(spec={"count": None}))
        assert answer.refusal[:2] == (422, "Invalid")
        assert answer.fields == [("FieldValueTypeInvalid", "spec.count")]

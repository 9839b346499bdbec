"""Admission webhooks: when a server asks them, what it shows them, and what it makes of their answers."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backend import Api, config_map, deployment
from contract.test_pods import made, pod, pods
from contract.webhooks import NAME, VALIDATING, Hooked, calm, rule
from kedge.kube.codec import Untyped

__all__ = ["pods"]

APPLY = "application/apply-patch+yaml"
DENIED = f'admission webhook "{NAME}" denied the request'
FAILED = f'Internal error occurred: failed calling webhook "{NAME}": '


async def create(hooked: Hooked, name: str = "a", **metadata: Any) -> tuple[int, str, str]:
    """Create a ConfigMap: the refusal, or 201."""
    answer = await hooked.api.ask("POST", hooked.api.maps, config_map(name, **metadata))
    return (201, "", "") if answer.code == 201 else calm(answer.refusal)


CREATED = (201, "", "")


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("deny", (400, "", f"{DENIED}: not today")),
        ("deny-silently", (400, "", f"{DENIED} without explanation")),
        ("deny-with-reason", (400, "BecauseISaySo", f"{DENIED}: BecauseISaySo")),
        ("deny-with-code", (409, "Conflict", f"{DENIED}: not now")),
        ("deny-with-success", (400, "", f"{DENIED}: no")),
    ],
)
async def test_a_webhook_refuses_in_its_own_words(hooked: Hooked, path: str, refusal: tuple[int, str, str]) -> None:
    await hooked.validating(path)
    assert await create(hooked) == refusal
    assert not await hooked.api.is_there(f"{hooked.api.maps}/a")


async def test_a_mutating_webhook_refuses_in_the_same_words(hooked: Hooked) -> None:
    await hooked.mutating("deny")
    assert await create(hooked) == (400, "", f'admission webhook "deny.{NAME}" denied the request: not today')


async def test_one_that_allows_may_warn(hooked: Hooked) -> None:
    await hooked.validating("warn")
    status, warnings = await hooked.send("POST", hooked.api.maps, config_map("a"))
    assert (status, warnings) == (201, '299 - "mind the gap", 299 - "and the step"')


async def test_one_that_refuses_may_warn_too(hooked: Hooked) -> None:
    await hooked.validating("deny-with-warning")
    assert await hooked.send("POST", hooked.api.maps, config_map("a")) == (400, '299 - "you were told"')


async def test_mutating_webhooks_change_an_object_one_after_the_other(hooked: Hooked) -> None:
    await hooked.mutating("annotate", "data")
    assert await create(hooked) == CREATED
    found = await hooked.api.look(f"{hooked.api.maps}/a")
    assert (found["metadata"]["annotations"], found["data"]) == ({"by": "webhook"}, {"k": "v", "more": "by-webhook"})


async def test_nobody_owns_what_a_webhook_wrote(hooked: Hooked) -> None:
    await hooked.mutating("data")
    assert await create(hooked) == CREATED
    owners = (await hooked.api.look(f"{hooked.api.maps}/a"))["metadata"]["managedFields"]
    assert [list(one["fieldsV1"]["f:data"]) for one in owners] == [[".", "f:k"]]


async def test_a_change_is_changed_too(hooked: Hooked) -> None:
    await hooked.api.make("a")
    await hooked.mutating("data")
    assert (await hooked.api.merge(f"{hooked.api.maps}/a", {"data": {"k": "w"}})).code == 200
    assert (await hooked.api.look(f"{hooked.api.maps}/a"))["data"] == {"k": "w", "more": "by-webhook"}


async def test_validating_webhooks_see_what_mutating_ones_made(hooked: Hooked) -> None:
    await hooked.mutating("data")
    await hooked.validating("allow")
    assert await create(hooked) == CREATED
    assert [one["object"]["data"] for one in hooked.asked("object")] == [{"k": "v"}, {"k": "v", "more": "by-webhook"}]


@pytest.mark.parametrize("path", ["impossible", "wrong-type"])
async def test_a_patch_that_cannot_be_applied_fails_the_write(hooked: Hooked, path: str) -> None:
    await hooked.mutating(path)
    assert (await create(hooked))[:2] == (500, "InternalError")


async def test_what_a_webhook_makes_invalid_is_refused(hooked: Hooked) -> None:
    await hooked.mutating("invalid")
    assert (await create(hooked))[:2] == (422, "Invalid")


async def test_a_field_that_there_is_not_is_dropped(hooked: Hooked) -> None:
    await hooked.mutating("unknown-field")
    assert await create(hooked) == CREATED
    assert "nothing" not in await hooked.api.look(f"{hooked.api.maps}/a")


POST = 'failed to call webhook: Post "https://127.0.0.1:PORT/{}?timeout={}s": {}'


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("unreachable", POST.format("unreachable", 1, "dial tcp 127.0.0.1:PORT: connect: connection refused")),
        ("slow", POST.format("slow", 1, "context deadline exceeded")),
        (
            "error",
            'failed to call webhook: an error on the server ("out of order") has prevented the request from succeeding',
        ),
        ("missing", "failed to call webhook: the server could not find the requested resource"),
        ("no-response", "received invalid webhook response: webhook response was absent"),
        ("other-uid", 'received invalid webhook response: expected response.uid="UID", got "other"'),
        ("annotate", "received invalid webhook response: validating webhook may not return response.patch"),
    ],
)
async def test_a_webhook_that_does_not_answer_fails_the_write(hooked: Hooked, path: str, why: str) -> None:
    await hooked.validating(path, timeoutSeconds=1)
    assert await create(hooked) == (500, "InternalError", FAILED + why)


@pytest.mark.parametrize("path", ["unreachable", "slow", "error", "no-response", "other-uid"])
async def test_unless_its_failures_are_ignored(hooked: Hooked, path: str) -> None:
    await hooked.validating(path, timeoutSeconds=1, failurePolicy="Ignore")
    assert await create(hooked) == CREATED


async def test_a_refusal_is_no_failure(hooked: Hooked) -> None:
    await hooked.validating("deny", failurePolicy="Ignore")
    assert (await create(hooked))[0] == 400


@pytest.mark.parametrize("path", ["unreachable", "patch-without-type"])
@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
async def test_the_same_holds_for_mutating_ones(hooked: Hooked, path: str, policy: str, code: int) -> None:
    await hooked.mutating(path, failurePolicy=policy)
    assert (await create(hooked))[0] == code


@pytest.mark.parametrize(
    ("asked", "is_asked"),
    [
        (rule("configmaps"), True),
        (rule("*", scope="Namespaced"), True),
        (rule("*/*", scope="Namespaced"), True),
        (rule("configmaps/*"), True),
        (rule("configmaps/status"), False),
        (rule("secrets"), False),
        (rule("configmaps", operations=("*",)), True),
        (rule("configmaps", operations=("UPDATE", "DELETE")), False),
        (rule("configmaps", apiGroups=["apps"]), False),
        (rule("configmaps", apiVersions=["v2"]), False),
        (rule("configmaps", scope="Namespaced"), True),
        (rule("configmaps", scope="Cluster"), False),
    ],
)
async def test_a_rule_says_which_writes_are_meant(hooked: Hooked, asked: Untyped, is_asked: bool) -> None:
    await hooked.validating(rules=[asked])
    assert (await create(hooked))[0] == (400 if is_asked else 201)


async def test_a_webhook_without_rules_is_asked_nothing(hooked: Hooked) -> None:
    await hooked.validating(rules=[])
    assert await create(hooked) == CREATED


async def test_a_namespace_selector_takes_labels_and_the_name(hooked: Hooked) -> None:
    other = await hooked.api.make_namespace()
    expressions = [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": [hooked.api.namespace]}]
    await hooked.validating(namespaceSelector={"matchExpressions": expressions})
    assert (await create(hooked))[0] == 400
    assert (await hooked.api.ask("POST", f"/api/v1/namespaces/{other}/configmaps", config_map("a"))).code == 201


async def test_an_object_selector_needs_one_of_the_new_and_the_old_object(hooked: Hooked) -> None:
    await hooked.api.make("labelled", labels={"watched": "yes"})
    await hooked.api.make("plain")
    await hooked.validating(objectSelector={"matchLabels": {"watched": "yes"}})
    maps = hooked.api.maps
    assert (await create(hooked, "other"))[0] == 201
    assert (await create(hooked, "new", labels={"watched": "yes"}))[0] == 400
    assert (await hooked.api.merge(f"{maps}/labelled", {"metadata": {"labels": {"watched": None}}})).code == 400
    assert (await hooked.api.merge(f"{maps}/plain", {"metadata": {"labels": {"watched": "yes"}}})).code == 400
    assert (await hooked.api.merge(f"{maps}/plain", {"data": {"k": "w"}})).code == 200


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("object.data.k == 'v'", 400),
        ("object.data.k == 'other'", 201),
        ("request.operation == 'CREATE' && request.name == 'a' && oldObject == null", 400),
        ("request.userInfo.username == 'somebody'", 201),
    ],
)
async def test_match_conditions_must_hold(hooked: Hooked, expression: str, code: int) -> None:
    await hooked.validating(matchConditions=[{"name": "it", "expression": expression}])
    assert (await create(hooked))[0] == code


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_condition_that_fails_is_a_failure_of_the_webhook(hooked: Hooked, policy: str) -> None:
    broken = {"name": "broken", "expression": "object.data.missing == 'v'"}
    await hooked.validating(matchConditions=[broken], failurePolicy=policy)
    why = "expression 'object.data.missing == 'v'' resulted in error: no such key: missing"
    refused = (403, "Forbidden", f'configmaps "a" is forbidden: {why}')
    assert await create(hooked) == (refused if policy == "Fail" else CREATED)


async def test_one_that_is_false_counts_more_than_one_that_fails(hooked: Hooked) -> None:
    broken = {"name": "broken", "expression": "object.data.missing == 'v'"}
    await hooked.validating(matchConditions=[broken, {"name": "no", "expression": "false"}])
    assert await create(hooked) == CREATED


ABOUT = ("kind", "resource", "requestKind", "requestResource", "subResource", "name", "operation", "dryRun", "options")


def about(**more: Any) -> Untyped:
    """What a webhook is told of a write to ConfigMap `a`."""
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    same = {"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource}
    return {**same, "subResource": None, "name": "a", "dryRun": False, **more}


def options(kind: str, **more: Any) -> Untyped:
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **more}


async def test_what_it_is_told_of_a_create(hooked: Hooked) -> None:
    await hooked.validating("allow")
    await hooked.api.ask("POST", hooked.api.maps, config_map("a"), fieldManager="me", fieldValidation="Strict")
    wanted = options("CreateOptions", fieldManager="me", fieldValidation="Strict")
    assert hooked.asked(*ABOUT) == [about(operation="CREATE", options=wanted)]
    (seen,) = hooked.asked("namespace", "object", "oldObject")
    assert (seen["namespace"], seen["oldObject"]) == (hooked.api.namespace, None)
    metadata = seen["object"]["metadata"]
    assert seen["object"]["kind"] == "ConfigMap"
    assert sorted(metadata) == ["creationTimestamp", "managedFields", "name", "namespace", "uid"]


async def test_what_a_mutating_one_is_told_of_a_create(hooked: Hooked) -> None:
    await hooked.mutating("allow")
    answer = await hooked.api.ask("POST", hooked.api.maps, {"metadata": {"generateName": "a-"}, "data": {}})
    assert answer.code == 201
    (seen,) = hooked.asked("name", "namespace", "object")
    assert (seen["name"], seen["namespace"]) == (None, hooked.api.namespace)
    assert seen["object"]["metadata"]["generateName"] == "a-"
    assert not {"uid", "name"} & set(seen["object"]["metadata"])


async def test_what_it_is_told_of_a_dry_run(hooked: Hooked) -> None:
    await hooked.validating("allow")
    await hooked.api.ask("POST", hooked.api.maps, config_map("a"), dryRun="All")
    wanted = options("CreateOptions", dryRun=["All"])
    assert hooked.asked(*ABOUT) == [about(operation="CREATE", dryRun=True, options=wanted)]


async def test_what_it_is_told_of_an_update(hooked: Hooked) -> None:
    old = await hooked.api.make("a")
    await hooked.validating("allow")
    await hooked.api.ask("PUT", f"{hooked.api.maps}/a", {**old, "data": {"k": "w"}})
    await hooked.api.merge(f"{hooked.api.maps}/a", {"data": {"k": "x"}})
    assert hooked.asked(*ABOUT) == [about(operation="UPDATE", options=options("UpdateOptions"))] * 2
    seen = hooked.asked("object", "oldObject")
    assert [(one["oldObject"]["data"]["k"], one["object"]["data"]["k"]) for one in seen] == [("v", "w"), ("w", "x")]


async def test_a_write_that_changes_nothing_is_asked_about_too(hooked: Hooked) -> None:
    await hooked.api.make("a")
    await hooked.validating("deny")
    assert (await hooked.api.merge(f"{hooked.api.maps}/a", {"data": {"k": "v"}})).code == 400


async def test_what_it_is_told_of_an_apply(hooked: Hooked) -> None:
    await hooked.validating("allow")
    path = f"{hooked.api.maps}/a"
    for value in ("v", "w"):
        applied = {**config_map("a"), "data": {"k": value}}
        assert (await hooked.api.ask("PATCH", path, applied, APPLY, fieldManager="me")).code in (200, 201)
    assert hooked.asked(*ABOUT) == [
        about(operation="CREATE", options=options("CreateOptions", fieldManager="me")),
        about(operation="UPDATE", options=options("UpdateOptions", fieldManager="me")),
    ]


async def test_what_it_is_told_of_a_delete(hooked: Hooked) -> None:
    await hooked.api.make("a")
    await hooked.validating("allow", rules=[rule("configmaps", operations=("DELETE",))])
    body = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
    assert (await hooked.api.ask("DELETE", f"{hooked.api.maps}/a", body)).code == 200
    wanted = options("DeleteOptions", **body)
    assert hooked.asked(*ABOUT) == [about(operation="DELETE", options=wanted)]
    (seen,) = hooked.asked("object", "oldObject")
    assert (seen["object"], seen["oldObject"]["data"]) == (None, {"k": "v"})


async def test_it_may_refuse_a_delete(hooked: Hooked) -> None:
    await hooked.api.make("a")
    await hooked.validating("deny", rules=[rule("configmaps", operations=("DELETE",))])
    answer = await hooked.api.ask("DELETE", f"{hooked.api.maps}/a")
    assert answer.refusal == (400, "", f"{DENIED}: not today")
    assert await hooked.api.is_there(f"{hooked.api.maps}/a")


async def test_a_deletion_of_many_is_asked_one_by_one_without_a_name(hooked: Hooked) -> None:
    for name in ("a", "b"):
        await hooked.api.make(name, labels={"mine": "yes"})
    await hooked.validating("allow", rules=[rule("configmaps", operations=("DELETE",))])
    assert (await hooked.api.ask("DELETE", hooked.api.maps, labelSelector="mine=yes")).code == 200
    seen = hooked.asked("name", "oldObject")
    assert sorted((one["name"], one["oldObject"]["metadata"]["name"]) for one in seen) == [(None, "a"), (None, "b")]


async def test_a_mutating_one_cannot_change_a_delete(hooked: Hooked) -> None:
    await hooked.api.make("a")
    await hooked.mutating("annotate", rules=[rule("configmaps", operations=("DELETE",))])
    why = "attempted to modify the object, which is not supported for this operation"
    answer = await hooked.api.ask("DELETE", f"{hooked.api.maps}/a")
    text = f'Internal error occurred: admission webhook "annotate.{NAME}" {why}'
    assert answer.refusal == (500, "InternalError", text)


async def test_a_status_has_a_rule_of_its_own(hooked: Hooked) -> None:
    await hooked.api.make_deployment("web")
    await hooked.validating("deny", rules=[rule("deployments/status")])
    path = f"{hooked.api.deployments}/web"
    assert (await hooked.api.merge(path, {"spec": {"replicas": 3}})).code == 200
    assert (await hooked.api.merge(f"{path}/status", {"status": {"replicas": 1}})).code == 400


@pytest.mark.parametrize("way", ["put", "patch"])
async def test_a_scale_is_shown_as_a_scale(hooked: Hooked, way: str) -> None:
    await hooked.api.make_deployment("web", labels={"app": "web"})
    await hooked.validating("allow", rules=[rule("*/scale")])
    path = f"{hooked.api.deployments}/web/scale"
    if way == "put":
        await hooked.api.ask("PUT", path, {**await hooked.api.look(path), "spec": {"replicas": 5}})
    else:
        await hooked.api.merge(path, {"spec": {"replicas": 5}})
    (seen,) = hooked.asked("kind", "resource", "subResource", "name", "operation", "object", "oldObject")
    new, old = seen.pop("object"), seen.pop("oldObject")
    assert seen == {
        "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "subResource": "scale",
        "name": "web",
        "operation": "UPDATE",
    }
    assert (new["kind"], new["spec"], old["spec"]) == ("Scale", {"replicas": 5}, {"replicas": 2})
    assert "labels" not in new["metadata"]
    assert (await hooked.api.look(f"{hooked.api.deployments}/web"))["spec"]["replicas"] == 5


async def test_an_object_selector_never_selects_a_scale(hooked: Hooked) -> None:
    await hooked.api.make_deployment("web", labels={"watched": "yes"})
    both = [rule("deployments", "deployments/scale")]
    await hooked.validating("deny", rules=both, objectSelector={"matchLabels": {"watched": "yes"}})
    path = f"{hooked.api.deployments}/web"
    assert (await hooked.api.merge(path, {"spec": {"replicas": 3}})).code == 400
    assert (await hooked.api.merge(f"{path}/scale", {"spec": {"replicas": 3}})).code == 200


async def test_a_scale_is_refused_in_the_same_words(hooked: Hooked) -> None:
    await hooked.api.make_deployment("web")
    await hooked.validating("deny", rules=[rule("deployments/scale")])
    answer = await hooked.api.merge(f"{hooked.api.deployments}/web/scale", {"spec": {"replicas": 3}})
    assert answer.refusal == (400, "", f"{DENIED}: not today")
    assert (await hooked.api.look(f"{hooked.api.deployments}/web"))["spec"]["replicas"] == 2


EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}


async def test_an_eviction_is_created_and_no_deletion(hooked: Hooked, pods: str) -> None:
    await made(hooked.api, pods, pod())
    both = [rule("pods/eviction"), rule("pods", operations=("DELETE",))]
    await hooked.validating("allow", rules=both)
    assert (await hooked.api.ask("POST", f"{pods}/a/eviction", EVICTION)).code == 201
    (seen,) = hooked.asked("kind", "resource", "subResource", "name", "operation", "oldObject")
    assert seen == {
        "kind": {"group": "policy", "version": "v1", "kind": "Eviction"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "eviction",
        "name": "a",
        "operation": "CREATE",
        "oldObject": None,
    }
    assert not await hooked.api.is_there(f"{pods}/a")


async def test_an_eviction_may_be_refused(hooked: Hooked, pods: str) -> None:
    await made(hooked.api, pods, pod())
    await hooked.validating("deny-with-code", rules=[rule("pods/eviction")])
    answer = await hooked.api.ask("POST", f"{pods}/a/eviction", EVICTION)
    assert answer.refusal == (409, "Conflict", f"{DENIED}: not now")
    assert await hooked.api.is_there(f"{pods}/a")


@pytest.mark.parametrize(("policy", "count"), [("Never", "1"), ("IfNeeded", "2")])
async def test_a_webhook_is_asked_again_if_a_later_one_changed_the_object(
    hooked: Hooked, policy: str, count: str
) -> None:
    counts = hooked.hook("count", name=f"count.{NAME}", reinvocationPolicy=policy)
    await hooked.mutate_by(counts, hooked.hook("annotate", name=f"annotate.{NAME}"))
    assert await create(hooked) == CREATED
    assert (await hooked.api.look(f"{hooked.api.maps}/a"))["data"]["count"] == count


async def test_its_own_change_is_no_reason_to_ask_it_again(hooked: Hooked) -> None:
    await hooked.mutating("count", reinvocationPolicy="IfNeeded")
    assert await create(hooked) == CREATED
    assert (await hooked.api.look(f"{hooked.api.maps}/a"))["data"]["count"] == "1"


async def test_a_webhook_of_another_version_sees_that_version_of_nothing_with_match_policy_exact(
    hooked: Hooked,
) -> None:
    await hooked.validating("deny", rules=[rule("deployments", apiVersions=["v1beta1"])], matchPolicy="Exact")
    assert (await hooked.api.ask("POST", hooked.api.deployments, deployment())).code == 201


async def test_configurations_of_webhooks_are_exempt(hooked: Hooked) -> None:
    await hooked.validating("deny", rules=[rule("*", apiGroups=["admissionregistration.k8s.io"])])
    await hooked.validating("allow")
    assert await create(hooked) == CREATED


async def test_webhooks_are_asked_in_the_order_of_their_configurations(hooked: Hooked) -> None:
    await hooked.mutating("count", "data")
    await hooked.mutating("annotate")
    assert await create(hooked) == CREATED
    assert [one["path"] for one in hooked.asked("path")] == ["count", "data", "annotate"]


@pytest.mark.parametrize(
    ("conditions", "problems"),
    [
        ([{"name": "a", "expression": "object."}], [("FieldValueInvalid", "expression")]),
        ([{"name": "a", "expression": "1 + 1"}], [("FieldValueInvalid", "expression")]),
        ([{"name": "a", "expression": "nothing == 1"}], [("FieldValueInvalid", "expression")]),
        ([{"name": "a", "expression": ""}], [("FieldValueRequired", "expression")]),
        ([{"name": "", "expression": "true"}], [("FieldValueRequired", "name")]),
        ([{"name": "not a name", "expression": "true"}], [("FieldValueInvalid", "name")]),
    ],
)
async def test_conditions_must_make_sense(
    api: Api, conditions: list[dict[str, str]], problems: list[tuple[str, str]]
) -> None:
    answer = await api.ask("POST", VALIDATING.path(), configuration(api, conditions))
    wanted = [(reason, f"webhooks[0].matchConditions[0].{field}") for reason, field in problems]
    assert (answer.code, answer.fields) == (422, wanted)


async def test_conditions_have_different_names(api: Api) -> None:
    conditions = [{"name": "a", "expression": "true"}] * 2
    answer = await api.ask("POST", VALIDATING.path(), configuration(api, conditions))
    assert answer.fields == [("FieldValueDuplicate", "webhooks[0].matchConditions[1].name")]


def configuration(api: Api, conditions: list[dict[str, str]]) -> Untyped:
    hook = {
        "name": NAME,
        "clientConfig": {"url": "https://hooks.example.com/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": conditions,
    }
    return {"metadata": {"name": api.namespace}, "webhooks": [hook]}

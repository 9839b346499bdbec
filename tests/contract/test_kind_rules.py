"""What a kind refuses beyond its schema, and in which words; and what of an object never changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from contract.backend import Answer, Api
from contract.test_defaults import ENDING, SELECTED, TEMPLATE, made
from kedge.kube.codec import Untyped
from kedge.kube.transport import JSON, Request

NO_MATCH = "`selector` does not match template `labels`"
HIDDEN = (
    'spec.template.spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'
)
OLD_LABEL = (
    'spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'
)
NOT_NEGATIVE = "must be greater than or equal to 0"


def causes(answer: Answer) -> list[tuple[str, str, str]]:
    return [(one["field"], one["reason"], one["message"]) for one in answer.body["details"]["causes"]]


def template(**spec: Any) -> Untyped:
    return {**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}}


def container(**more: Any) -> Untyped:
    return template(containers=[{"name": "a", "image": "a", **more}])


@pytest.mark.parametrize(
    ("change", "field", "reason", "message"),
    [
        ({"replicas": -1}, "spec.replicas", "FieldValueInvalid", f"Invalid value: -1: {NOT_NEGATIVE}"),
        (
            {"selector": {"matchLabels": {"app": "b"}}},
            "spec.template.metadata.labels",
            "FieldValueInvalid",
            f'Invalid value: {{"app":"a"}}: {NO_MATCH}',
        ),
        (
            {"selector": {}},
            "spec.selector",
            "FieldValueInvalid",
            "Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            "spec.strategy.rollingUpdate.maxUnavailable",
            "FieldValueInvalid",
            "Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
            "spec.strategy.rollingUpdate.maxUnavailable",
            "FieldValueInvalid",
            'Invalid value: "101%": must not be greater than 100%',
        ),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            "spec.strategy.rollingUpdate",
            "FieldValueForbidden",
            "Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            {"minReadySeconds": 600},
            "spec.progressDeadlineSeconds",
            "FieldValueInvalid",
            "Invalid value: 600: must be greater than minReadySeconds",
        ),
        (
            {"template": template(restartPolicy="Never")},
            "spec.template.spec.restartPolicy",
            "FieldValueNotSupported",
            'Unsupported value: "Never": supported values: "Always"',
        ),
        (
            {"template": template(containers=[])},
            "spec.template.spec.containers",
            "FieldValueRequired",
            "Required value",
        ),
        (
            {"template": container(image="")},
            "spec.template.spec.containers[0].image",
            "FieldValueRequired",
            "Required value",
        ),
        (
            {"template": container(imagePullPolicy="Now")},
            "spec.template.spec.containers[0].imagePullPolicy",
            "FieldValueNotSupported",
            'Unsupported value: "Now": supported values: "Always", "IfNotPresent", "Never"',
        ),
        (
            {"template": container(ports=[{"containerPort": 70000}])},
            "spec.template.spec.containers[0].ports[0].containerPort",
            "FieldValueInvalid",
            "Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            {"template": container(volumeMounts=[{"name": "v", "mountPath": "/v"}])},
            "spec.template.spec.containers[0].volumeMounts[0].name",
            "FieldValueNotFound",
            'Not found: "v"',
        ),
        (
            {"template": container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})},
            "spec.template.spec.containers[0].resources.requests",
            "FieldValueInvalid",
            'Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"template": container(livenessProbe={})},
            "spec.template.spec.containers[0].livenessProbe",
            "FieldValueRequired",
            "Required value: must specify a handler type",
        ),
        (
            {"template": template(volumes=[{"name": "v"}, {"name": "v"}])},
            "spec.template.spec.volumes[1].name",
            "FieldValueDuplicate",
            'Duplicate value: "v"',
        ),
    ],
)
async def test_a_deployment_that_breaks_a_rule_is_refused_where_it_does(
    api: Api, change: Untyped, field: str, reason: str, message: str
) -> None:
    answer = await api.ask("POST", api.deployments, {"metadata": {"name": "a"}, "spec": {**SELECTED, **change}})
    assert answer.refusal == (422, "Invalid", f'Deployment.apps "a" is invalid: {field}: {message}')
    assert causes(answer) == [(field, reason, message)]


async def test_every_rule_that_is_broken_is_named(api: Api) -> None:
    spec = {**SELECTED, "replicas": -1, "template": container(name="B_ad")}
    answer = await api.ask("POST", api.deployments, {"metadata": {"name": "a"}, "spec": spec})
    assert [field for field, _, _ in causes(answer)] == ["spec.replicas", "spec.template.spec.containers[0].name"]


@pytest.mark.parametrize(
    ("group", "plural", "body", "field", "message"),
    [
        ("api/v1", "configmaps", {"data": {"..": "x"}}, "data[..]", "Invalid value: \"..\": must not be '..'"),
        ("api/v1", "secrets", {"type": "kubernetes.io/ssh-auth"}, "data[ssh-privatekey]", "Required value"),
        (
            "apis/batch/v1",
            "jobs",
            {"spec": {"template": TEMPLATE}},
            "spec.template.spec.restartPolicy",
            'Required value: valid values: "OnFailure", "Never"',
        ),
        (
            "apis/batch/v1",
            "jobs",
            {"spec": {"template": ENDING, "parallelism": -1}},
            "spec.parallelism",
            f"Invalid value: -1: {NOT_NEGATIVE}",
        ),
        (
            "apis/batch/v1",
            "cronjobs",
            {"spec": {"schedule": "x", "jobTemplate": {"spec": {"template": ENDING}}}},
            "spec.schedule",
            'Invalid value: "x": expected exactly 5 fields, found 1: [x]',
        ),
        (
            "apis/policy/v1",
            "poddisruptionbudgets",
            {"spec": {"minAvailable": "120%"}},
            "spec.minAvailable",
            'Invalid value: "120%": must not be greater than 100%',
        ),
        (
            "apis/apps/v1",
            "daemonsets",
            {"spec": {**SELECTED, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}},
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
            "Required value: cannot be 0 when maxSurge is 0",
        ),
        (
            "apis/apps/v1",
            "statefulsets",
            {"spec": {**SELECTED, "updateStrategy": {"rollingUpdate": {"partition": -1}}}},
            "spec.updateStrategy.rollingUpdate.partition",
            f"Invalid value: -1: {NOT_NEGATIVE}",
        ),
        (
            "apis/networking.k8s.io/v1",
            "ingresses",
            {"spec": {}},
            "spec",
            "Invalid value: null: either `defaultBackend` or `rules` must be specified",
        ),
        (
            "apis/rbac.authorization.k8s.io/v1",
            "roles",
            {"rules": [{"apiGroups": [""], "resources": ["pods"]}]},
            "rules[0].verbs",
            "Required value: verbs must contain at least one value",
        ),
        (
            "api/v1",
            "persistentvolumeclaims",
            {"spec": {"resources": {"requests": {"storage": "1Gi"}}}},
            "spec.accessModes",
            "Required value: at least 1 access mode is required",
        ),
        (
            "apis/coordination.k8s.io/v1",
            "leases",
            {"spec": {"leaseDurationSeconds": 0}},
            "spec.leaseDurationSeconds",
            "Invalid value: 0: must be greater than 0",
        ),
    ],
)
async def test_other_kinds_have_rules_too(
    api: Api, group: str, plural: str, body: Untyped, field: str, message: str
) -> None:
    answer = await api.ask("POST", f"/{group}/namespaces/{api.namespace}/{plural}", {"metadata": {"name": "a"}, **body})
    assert answer.refusal[:2] == (422, "Invalid")
    assert [(where, what) for where, _, what in causes(answer)] == [(field, message)]


@pytest.mark.parametrize(
    ("plural", "body", "expected"),
    [
        (
            "apis/apps/v1/deployments",
            {"spec": {**SELECTED, "template": container(env=[{"name": "A"}, {"name": "A"}])}},
            HIDDEN,
        ),
        (
            "apis/apps/v1/deployments",
            {"spec": {**SELECTED, "template": template(nodeSelector={"beta.kubernetes.io/os": "linux"})}},
            OLD_LABEL,
        ),
        ("api/v1/endpoints", {}, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        (
            "api/v1/services",
            {"spec": {"ports": [{"port": 80}], "externalIPs": ["198.51.100.1"]}},
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        ),
    ],
)
async def test_what_is_unwise_is_taken_with_a_warning(api: Api, plural: str, body: Untyped, expected: str) -> None:
    group, _, name = plural.rpartition("/")
    raw = msgspec.json.encode({"metadata": {"name": "a"}, **body})
    request = Request("POST", f"/{group}/namespaces/{api.namespace}/{name}", (), raw, JSON, JSON)
    response = await api.client.transport.send(request, timeout=120.0)
    assert response.status == 201
    assert response.warnings == (expected,)


@pytest.mark.parametrize(
    ("plural", "name", "code"),
    [("deployments", "a.b", 201), ("statefulsets", "a.b", 422), ("statefulsets", "A", 422)],
)
async def test_what_pods_are_named_after_has_a_name_for_a_host(api: Api, plural: str, name: str, code: int) -> None:
    path = f"/apis/apps/v1/namespaces/{api.namespace}/{plural}"
    answer = await api.ask("POST", path, {"metadata": {"name": name}, "spec": SELECTED})
    assert answer.code == code


@pytest.mark.parametrize(("plural", "part", "field"), [("configmaps", "data", "[]"), ("secrets", "stringData", "data")])
async def test_there_is_a_limit_to_what_fits(api: Api, plural: str, part: str, field: str) -> None:
    body = {"metadata": {"name": "a"}, part: {"a": "x" * (1 << 20)}}
    path = f"/api/v1/namespaces/{api.namespace}/{plural}"
    assert (await api.ask("POST", path, body, dryRun="All")).code == 201
    answer = await api.ask("POST", path, {**body, part: {**body[part], "b": "x"}}, dryRun="All")
    assert answer.refusal[:2] == (422, "Invalid")
    assert causes(answer) == [(field, "FieldValueTooLong", "Too long: may not be more than 1048576 bytes")]


OTHER = {"matchLabels": {"app": "b"}}
OTHER_TEMPLATE = {**TEMPLATE, "metadata": {"labels": {"app": "b"}}}
FROZEN = "Forbidden: field is immutable when `immutable` is set"
FORBIDDEN_CHANGE = (
    "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
    "are forbidden"
)


@pytest.mark.parametrize(
    ("group", "plural", "body", "change", "field", "message"),
    [
        *(
            (
                "apis/apps/v1",
                plural,
                {"spec": SELECTED},
                {"spec": {"selector": OTHER, "template": OTHER_TEMPLATE}},
                "spec.selector",
                'Invalid value: {"matchLabels":{"app":"b"}}: field is immutable',
            )
            for plural in ("deployments", "replicasets", "daemonsets")
        ),
        (
            "apis/apps/v1",
            "statefulsets",
            {"spec": SELECTED},
            {"spec": {"serviceName": "other"}},
            "spec",
            FORBIDDEN_CHANGE,
        ),
        (
            "apis/batch/v1",
            "jobs",
            {"spec": {"template": ENDING}},
            {"spec": {"completions": 5}},
            "spec.completions",
            "Invalid value: 5: field is immutable",
        ),
        ("api/v1", "configmaps", {"immutable": True, "data": {"a": "b"}}, {"data": {"a": "c"}}, "data", FROZEN),
        ("api/v1", "secrets", {"immutable": True}, {"immutable": None}, "immutable", FROZEN),
        ("api/v1", "secrets", {}, {"type": "a/b"}, "type", 'Invalid value: "a/b": field is immutable'),
        (
            "apis/rbac.authorization.k8s.io/v1",
            "rolebindings",
            {"roleRef": {"kind": "Role", "name": "a"}},
            {"roleRef": {"name": "b"}},
            "roleRef",
            'Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}: cannot change roleRef',
        ),
    ],
)
async def test_some_things_never_change(
    api: Api, group: str, plural: str, body: Untyped, change: Untyped, field: str, message: str
) -> None:
    await made(api, group, plural, body)
    answer = await api.merge(f"/{group}/namespaces/{api.namespace}/{plural}/a", change)
    assert answer.refusal[:2] == (422, "Invalid")
    assert [(where, what) for where, _, what in causes(answer)] == [(field, message)]


async def test_the_template_of_a_job_never_changes(api: Api) -> None:
    await made(api, "apis/batch/v1", "jobs", {"spec": {"template": ENDING}})
    path = f"/apis/batch/v1/namespaces/{api.namespace}/jobs/a"
    answer = await api.merge(path, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}})
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.fields == [("FieldValueInvalid", "spec.template")]
    assert answer.refusal[2].endswith(": field is immutable")


async def test_a_claim_stays_as_it_was_made(api: Api) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await made(api, "api/v1", "persistentvolumeclaims", {"spec": spec})
    path = f"/api/v1/namespaces/{api.namespace}/persistentvolumeclaims/a"
    answer = await api.merge(path, {"spec": {"accessModes": ["ReadWriteMany"]}})
    assert answer.fields == [("FieldValueForbidden", "spec")]
    assert "spec is immutable after creation" in answer.refusal[2]


async def test_a_daemon_set_counts_the_changes_of_its_template(api: Api) -> None:
    await made(api, "apis/apps/v1", "daemonsets", {"spec": SELECTED})
    path = f"/apis/apps/v1/namespaces/{api.namespace}/daemonsets/a"
    counter = "deprecated.daemonset.template.generation"
    relabelled = await api.merge(path, {"metadata": {"labels": {"a": "b"}}})
    changed = await api.merge(path, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}})
    counted = [answer.metadata["annotations"][counter] for answer in (relabelled, changed)]
    assert counted == ["1", "2"]

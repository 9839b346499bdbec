"""What a server fills in that was left out: the least manifest of a kind, and what it becomes."""

from __future__ import annotations

from typing import Any

import pytest

from contract.backend import Api
from kedge.kube.codec import Untyped

TEMPLATE: Untyped = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "a", "image": "nginx:1"}]},
}
ENDING: Untyped = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "nginx:1"}]}}
RECREATE = {"type": "Recreate"}
SELECTED: Untyped = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}

FILLED_TEMPLATE = {
    "containers": [
        {
            "name": "a",
            "image": "nginx:1",
            "imagePullPolicy": "IfNotPresent",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
    ],
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}


async def made(api: Api, group: str, plural: str, body: Untyped) -> Untyped:
    """What the server makes of a manifest of a kind in a namespace."""
    answer = await api.ask("POST", f"/{group}/namespaces/{api.namespace}/{plural}", {"metadata": {"name": "a"}, **body})
    assert answer.code == 201, answer.body
    found: Untyped = answer.body
    return found


@pytest.mark.parametrize(
    ("group", "plural", "spec", "expected"),
    [
        (
            "apis/apps/v1",
            "deployments",
            SELECTED,
            {
                "replicas": 1,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
        ),
        (
            "apis/apps/v1",
            "deployments",
            {**SELECTED, "strategy": {"rollingUpdate": {"maxSurge": 1}}},
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}}},
        ),
        (
            "apis/apps/v1",
            "deployments",
            {**SELECTED, "strategy": {"type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
        ),
        ("apis/apps/v1", "deployments", {**SELECTED, "replicas": 0}, {"replicas": 0}),
        ("apis/apps/v1", "replicasets", SELECTED, {"replicas": 1}),
        (
            "apis/apps/v1",
            "statefulsets",
            SELECTED,
            {
                "replicas": 1,
                "serviceName": "",
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "revisionHistoryLimit": 10,
            },
        ),
        (
            "apis/apps/v1",
            "statefulsets",
            {**SELECTED, "updateStrategy": {"type": "RollingUpdate"}},
            {"updateStrategy": {"type": "RollingUpdate"}},
        ),
        (
            "apis/apps/v1",
            "daemonsets",
            SELECTED,
            {
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
                "revisionHistoryLimit": 10,
            },
        ),
        (
            "apis/batch/v1",
            "jobs",
            {"template": ENDING},
            {
                "backoffLimit": 6,
                "completionMode": "NonIndexed",
                "completions": 1,
                "manualSelector": False,
                "parallelism": 1,
                "podReplacementPolicy": "TerminatingOrFailed",
                "suspend": False,
            },
        ),
        (
            "apis/batch/v1",
            "cronjobs",
            {"schedule": "@hourly", "jobTemplate": {"spec": {"template": ENDING}}},
            {
                "concurrencyPolicy": "Allow",
                "failedJobsHistoryLimit": 1,
                "successfulJobsHistoryLimit": 3,
                "suspend": False,
            },
        ),
        (
            "apis/autoscaling/v2",
            "horizontalpodautoscalers",
            {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}},
            {
                "minReplicas": 1,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                    }
                ],
            },
        ),
        ("apis/networking.k8s.io/v1", "networkpolicies", {}, {"podSelector": {}, "policyTypes": ["Ingress"]}),
        (
            "apis/networking.k8s.io/v1",
            "networkpolicies",
            {"egress": [{"ports": [{"port": 53}]}]},
            {"egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}], "policyTypes": ["Ingress", "Egress"]},
        ),
        (
            "api/v1",
            "persistentvolumeclaims",
            {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            {"volumeMode": "Filesystem"},
        ),
        ("apis/coordination.k8s.io/v1", "leases", {}, {}),
    ],
)
async def test_what_a_spec_leaves_out_is_filled_in(
    api: Api, group: str, plural: str, spec: Untyped, expected: dict[str, Any]
) -> None:
    found = (await made(api, group, plural, {"spec": spec}))["spec"]
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets", "daemonsets"])
async def test_the_template_of_a_workload_is_filled_in_too(api: Api, plural: str) -> None:
    found = await made(api, "apis/apps/v1", plural, {"spec": SELECTED})
    assert found["spec"]["template"] == {"metadata": {"labels": {"app": "a"}}, "spec": FILLED_TEMPLATE}


@pytest.mark.parametrize(
    ("group", "plural", "body", "status"),
    [
        ("apis/apps/v1", "deployments", {"spec": SELECTED}, {}),
        ("apis/apps/v1", "replicasets", {"spec": SELECTED}, {"replicas": 0}),
        ("apis/apps/v1", "statefulsets", {"spec": SELECTED}, {"replicas": 0, "availableReplicas": 0}),
        (
            "apis/apps/v1",
            "daemonsets",
            {"spec": SELECTED},
            {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0},
        ),
        ("apis/batch/v1", "jobs", {"spec": {"template": ENDING}}, {}),
        (
            "apis/policy/v1",
            "poddisruptionbudgets",
            {"spec": {"minAvailable": 1}},
            {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
        ),
        ("api/v1", "services", {"spec": {"ports": [{"port": 80}]}}, {"loadBalancer": {}}),
        (
            "apis/networking.k8s.io/v1",
            "ingresses",
            {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}},
            {"loadBalancer": {}},
        ),
    ],
)
async def test_a_new_object_begins_with_an_empty_status(
    api: Api, group: str, plural: str, body: Untyped, status: Untyped
) -> None:
    assert (await made(api, group, plural, body))["status"] == status


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("host.example:5000/nginx", "Always"),
        ("host.example:5000/nginx:1", "IfNotPresent"),
        (f"nginx@sha256:{'0' * 64}", "IfNotPresent"),
    ],
)
async def test_an_image_that_may_move_is_fetched_always(api: Api, image: str, policy: str) -> None:
    template = {**TEMPLATE, "spec": {"containers": [{"name": "a", "image": image}]}}
    found = await made(api, "apis/apps/v1", "deployments", {"spec": {**SELECTED, "template": template}})
    assert found["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] == policy


async def test_probes_and_volumes_are_filled_in(api: Api) -> None:
    container = {
        "name": "a",
        "image": "nginx:1",
        "ports": [{"containerPort": 80}],
        "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 0},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }
    volumes = [{"name": "a"}, {"name": "b", "configMap": {"name": "c"}}, {"name": "d", "hostPath": {"path": "/x"}}]
    template = {**TEMPLATE, "spec": {"containers": [container], "volumes": volumes}}
    found = (await made(api, "apis/apps/v1", "deployments", {"spec": {**SELECTED, "template": template}}))["spec"]
    inner = found["template"]["spec"]
    assert inner["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "configMap": {"name": "c", "defaultMode": 420}},
        {"name": "d", "hostPath": {"path": "/x", "type": ""}},
    ]
    first = inner["containers"][0]
    assert first["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert first["env"][0]["valueFrom"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    assert first["readinessProbe"] == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "failureThreshold": 3,
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }


async def test_a_job_finds_its_pods_by_its_uid(api: Api) -> None:
    job = await made(api, "apis/batch/v1", "jobs", {"spec": {"template": ENDING}})
    uid = job["metadata"]["uid"]
    given = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid,
        "job-name": "a",
    }
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"] == given
    assert job["metadata"]["labels"] == given


async def test_text_in_a_secret_is_encoded_with_the_rest(api: Api) -> None:
    secret = await made(api, "api/v1", "secrets", {"data": {"a": "b2xk", "c": "Yw=="}, "stringData": {"a": "new"}})
    assert (secret["type"], secret["data"]) == ("Opaque", {"a": "bmV3", "c": "Yw=="})
    assert "stringData" not in secret


async def test_subjects_belong_to_the_group_of_their_kind(api: Api) -> None:
    body = {
        "roleRef": {"kind": "Role", "name": "a"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
    }
    found = await made(api, "apis/rbac.authorization.k8s.io/v1", "rolebindings", body)
    assert found["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [subject.get("apiGroup") for subject in found["subjects"]] == ["rbac.authorization.k8s.io", None]


async def test_what_a_change_leaves_out_is_filled_in_again(api: Api) -> None:
    await made(api, "apis/apps/v1", "deployments", {"spec": {**SELECTED, "replicas": 3, "paused": True}})
    answer = await api.merge(f"{api.deployments}/a", {"spec": {"replicas": None, "strategy": None, "paused": False}})
    assert answer.code == 200
    spec = answer.body["spec"]
    assert (spec["replicas"], spec["strategy"]["type"], spec.get("paused")) == (1, "RollingUpdate", None)


async def test_a_put_of_the_least_manifest_is_no_change(api: Api) -> None:
    first = await made(api, "apis/apps/v1", "deployments", {"spec": SELECTED})
    answer = await api.ask("PUT", f"{api.deployments}/a", {"metadata": {"name": "a"}, "spec": SELECTED})
    assert answer.code == 200
    assert answer.metadata["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert answer.metadata["generation"] == 1

"""The hash of a pod template: the same whoever filled it in, another for whatever means something else."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kedge.plan.workloads import template_hash

WRITTEN: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "serviceAccountName": "web",
        "containers": [
            {
                "name": "web",
                "image": "registry.example:5000/web:1",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}, "requests": {"memory": "512Mi"}},
                "readinessProbe": {"httpGet": {"port": 80}},
                "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            }
        ],
        "initContainers": [{"name": "first", "image": "first"}],
        "volumes": [{"name": "settings", "configMap": {"name": "web"}}, {"name": "scratch", "emptyDir": {}}],
    },
}
STORED: dict[str, Any] = {
    "metadata": {"labels": {"app": "web", "pod-template-hash": "5d4f"}, "creationTimestamp": None, "annotations": {}},
    "spec": {
        "serviceAccountName": "web",
        "serviceAccount": "web",
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "containers": [
            {
                "name": "web",
                "image": "registry.example:5000/web:1",
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi"},
                    "requests": {"cpu": "1", "memory": "512Mi"},
                },
                "readinessProbe": {
                    "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                    "timeoutSeconds": 1,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                },
                "env": [{"name": "POD", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
            }
        ],
        "initContainers": [
            {
                "name": "first",
                "image": "first",
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "volumes": [
            {"name": "settings", "configMap": {"name": "web", "defaultMode": 420}},
            {"name": "scratch", "emptyDir": {}},
        ],
    },
}


def changed(template: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The template with something else at a path such as `spec.containers.0.image`."""
    result = deepcopy(template)
    place: Any = result
    *way, last = path.split(".")
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    place[last] = value
    return result


def test_what_a_server_fills_in_changes_nothing() -> None:
    assert template_hash(WRITTEN) == template_hash(STORED)


PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
FILLED_IN: dict[str, tuple[Any, Any]] = {
    "securityContext": ({}, {"securityContext": {}}),
    "hostNetwork": ({}, {"hostNetwork": False}),
    "hostPID": ({}, {"hostPID": False}),
    "hostIPC": ({}, {"hostIPC": False}),
    "livenessProbe": (
        {"containers": [{"livenessProbe": {"grpc": {"port": 1}}}]},
        {"containers": [{"livenessProbe": {"grpc": {"port": 1, "service": ""}, **PROBE}}]},
    ),
    "startupProbe": (
        {"containers": [{"startupProbe": {"exec": {"command": ["a"]}}}]},
        {"containers": [{"startupProbe": {"exec": {"command": ["a"]}, **PROBE}}]},
    ),
    "resources": (
        {"containers": [{"name": "a"}], "initContainers": [{"name": "b"}]},
        {
            "containers": [{"name": "a", "resources": {}}],
            "initContainers": [{"name": "b", "resources": {"limits": {}, "requests": {}}}],
        },
    ),
    "secret": (
        {"volumes": [{"secret": {"secretName": "a"}}]},
        {"volumes": [{"secret": {"secretName": "a", "defaultMode": 420}}]},
    ),
    "hostPath": (
        {"volumes": [{"hostPath": {"path": "/a"}}]},
        {"volumes": [{"hostPath": {"path": "/a", "type": ""}}]},
    ),
    "downwardAPI": (
        {"volumes": [{"downwardAPI": {}}]},
        {"volumes": [{"downwardAPI": {"defaultMode": 420}}]},
    ),
    "projected": (
        {"volumes": [{"projected": {"sources": [{"serviceAccountToken": {"path": "a"}}]}}]},
        {
            "volumes": [
                {
                    "projected": {
                        "sources": [{"serviceAccountToken": {"path": "a", "expirationSeconds": 3600}}],
                        "defaultMode": 420,
                    }
                }
            ]
        },
    ),
}


@pytest.mark.parametrize("name", FILLED_IN)
def test_a_default_that_is_filled_in_changes_nothing(name: str) -> None:
    written, stored = FILLED_IN[name]
    assert template_hash({"spec": written}) == template_hash({"spec": stored})


@pytest.mark.parametrize(
    "label",
    [
        "pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
    ],
)
def test_a_label_that_a_controller_adds_changes_nothing(label: str) -> None:
    assert template_hash({"spec": {}, "metadata": {"labels": {label: "x"}}}) == template_hash({"spec": {}})


def test_labels_that_are_none_are_kept_as_they_are() -> None:
    assert template_hash({"metadata": {"labels": "x"}}) != template_hash({})


@pytest.mark.parametrize("template", [WRITTEN, STORED], ids=["written", "stored"])
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.labels.app", "shop"),
        ("metadata.annotations.kubectl\N{FULL STOP}kubernetes", "now"),
        ("spec.containers.0.image", "registry.example:5000/web:2"),
        ("spec.containers.0.imagePullPolicy", "Always"),
        ("spec.initContainers.0.imagePullPolicy", "IfNotPresent"),
        ("spec.containers.0.terminationMessagePolicy", "FallbackToLogsOnError"),
        ("spec.containers.0.readinessProbe.periodSeconds", 11),
        ("spec.containers.0.readinessProbe.httpGet.path", "/healthz"),
        ("spec.containers.0.resources.limits.cpu", "1001m"),
        ("spec.containers.0.resources.requests.memory", "511Mi"),
        ("spec.containers.0.resources.requests.cpu", "500m"),
        ("spec.containers.0.securityContext.privileged", True),
        ("spec.restartPolicy", "OnFailure"),
        ("spec.terminationGracePeriodSeconds", 31),
        ("spec.terminationGracePeriodSeconds", 0),
        ("spec.hostNetwork", True),
        ("spec.serviceAccountName", "shop"),
        ("spec.volumes.0.configMap.defaultMode", 256),
        ("spec.volumes.1.emptyDir.medium", "Memory"),
        ("spec.affinity.podAffinity.x", {}),
        ("spec.nodeSelector.disk", "ssd"),
    ],
)
def test_what_means_something_else_has_another_hash(template: dict[str, Any], path: str, value: Any) -> None:
    assert template_hash(changed(template, path, value)) != template_hash(template)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.annotations", {}),
        ("metadata.labels.job-name", "once"),
        ("metadata.labels.controller-revision-hash", "5d4f"),
        ("metadata.creationTimestamp", "2030-01-01T00:00:00Z"),
        ("spec.nodeSelector", {}),
        ("spec.tolerations", []),
        ("spec.hostNetwork", False),
        ("spec.priority", None),
        ("spec.containers.0.resources.limits.memory", "1024Mi"),
        ("spec.containers.0.resources.requests.cpu", 1),
    ],
)
def test_what_says_nothing_is_left_out(path: str, value: Any) -> None:
    assert template_hash(changed(WRITTEN, path, value)) == template_hash(WRITTEN)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("web", "Always"),
        ("web:latest", "Always"),
        ("host:5000/web", "Always"),
        ("host:5000/web:1", "IfNotPresent"),
        ("web@sha256:0", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_from_the_image(image: str, policy: str) -> None:
    def hashed(**more: str) -> str:
        return template_hash({"spec": {"containers": [{"image": image, **more}]}})

    assert hashed(imagePullPolicy=policy) == hashed()
    other = {"Always": "IfNotPresent", "IfNotPresent": "Always"}[policy]
    assert hashed(imagePullPolicy=other) != hashed()


@pytest.mark.parametrize(
    "template",
    [{}, {"metadata": None}, {"metadata": "x", "spec": 3}, {"spec": {"containers": [{"resources": {"limits": "x"}}]}}],
)
def test_any_template_has_a_hash(template: dict[str, Any]) -> None:
    assert len(template_hash(template)) == 16


def test_an_amount_that_cannot_be_read_counts_as_written() -> None:
    def hashed(amount: Any) -> str:
        return template_hash({"spec": {"containers": [{"resources": {"limits": {"cpu": amount}}}]}})

    assert hashed("much") == hashed("much") != hashed("more")

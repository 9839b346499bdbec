"""Sample: the Deployment every contender reads, as a cluster would hold it.

Promises an object of about 5.5 KB on the wire: two containers with probes and environment, a filled status, and the
managedFields that three appliers and a controller leave behind.
"""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]

CONTROLLER = "kube-controller-manager"


def name(number: int) -> str:
    return f"shop-frontend-{number:05}"


def applied(number: int) -> dict[str, Body]:
    """What each manager applies, in order."""
    return {
        "helm": _object(number, {"labels": _labels(number), "annotations": _release(number)}, _spec(number)),
        "autoscaler": _object(number, {}, {"replicas": 3 + number % 5}),
        "kedge-rollout": _object(number, {"annotations": {"kedge.dev/revision": f"rev-{number % 7}"}}, None),
    }


def status(number: int, step: int = 0) -> Body:
    """What a controller writes to the status; another step is another status."""
    wanted = 3 + number % 5
    ready = wanted - step % 3
    return {
        "status": {
            "observedGeneration": 2,
            "replicas": wanted,
            "updatedReplicas": wanted,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "conditions": [
                _condition(number, "Available", "MinimumReplicasAvailable", "Deployment has minimum availability."),
                _condition(
                    number,
                    "Progressing",
                    "NewReplicaSetAvailable",
                    f'ReplicaSet "{name(number)}-6c5f8d7b9c" has successfully progressed: step {step}.',
                ),
            ],
        }
    }


def _object(number: int, metadata: Body, spec: Body | None) -> Body:
    body: Body = {"metadata": {"name": name(number), **metadata}}
    return body if spec is None else {**body, "spec": spec}


def _labels(number: int) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "shop-frontend",
        "app.kubernetes.io/instance": name(number),
        "app.kubernetes.io/version": f"1.{number % 40}.0",
        "app.kubernetes.io/managed-by": "Helm",
        "team": f"team-{number % 12}",
    }


def _release(number: int) -> dict[str, str]:
    return {
        "meta.helm.sh/release-name": name(number),
        "meta.helm.sh/release-namespace": "shop",
        "deployment.kubernetes.io/revision": str(1 + number % 9),
    }


def _spec(number: int) -> Body:
    selected = {"app": name(number)}
    pod = {"containers": [_web(number), _proxy()], "terminationGracePeriodSeconds": 45}
    return {
        "selector": {"matchLabels": selected},
        "strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": "25%"}},
        "minReadySeconds": 10,
        "template": {"metadata": {"labels": {**selected, "tier": "web"}}, "spec": pod},
    }


def _web(number: int) -> Body:
    return {
        "name": "web",
        "image": f"registry.example/shop/frontend:1.{number % 40}.0",
        "ports": [{"containerPort": 8080, "name": "http"}],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "SHARD", "value": str(number)},
            {"name": "BACKEND_URL", "value": "http://backend.shop.svc:8080"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}, "initialDelaySeconds": 15},
    }


def _proxy() -> Body:
    return {
        "name": "proxy",
        "image": "registry.example/infra/proxy:2.14.1",
        "args": ["--listen=:9090", "--upstream=127.0.0.1:8080"],
        "ports": [{"containerPort": 9090, "name": "proxy"}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "readinessProbe": {"tcpSocket": {"port": "proxy"}},
    }


def _condition(number: int, type: str, reason: str, message: str) -> Body:  # noqa: A002  # the field's own name
    when = f"2026-01-02T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    return {
        "type": type,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastUpdateTime": when,
        "lastTransitionTime": when,
    }

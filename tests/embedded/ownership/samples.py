"""One object of each built-in kind that becomes, when it is made, what was sent with the defaults filled in.

Left out are kinds of which a new object is given more by the server, which nobody owns: Pods, Jobs, volumes.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kedge.api.resource import Resource


class Sample(Struct, frozen=True):
    """What to make."""

    resource: Resource
    status: bool
    content: dict[str, Any]
    name: str = "a"


def _of(group: str, kind: str, plural: str, content: Any, *, version: str = "v1", **more: Any) -> Sample:
    resource = Resource(group, version, kind, plural, namespaced=more.pop("namespaced", True))
    return Sample(resource, more.pop("status", False), content, **more)


_CONTAINER = {
    "name": "c",
    "image": "i",
    "ports": [{"containerPort": 80}],
    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "livenessProbe": {"httpGet": {"port": 80}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
}
_SPREAD = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {}}}
_POD = {
    "containers": [_CONTAINER],
    "initContainers": [{"name": "i", "image": "i"}],
    "volumes": [
        {"name": "v", "configMap": {"name": "x"}},
        {"name": "w", "projected": {"sources": [{"secret": {"name": "s"}}]}},
    ],
    "tolerations": [{"key": "a"}],
    "topologySpreadConstraints": [_SPREAD],
    "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["x"]}],
    "dnsConfig": {"nameservers": ["1.1.1.1"]},
    "readinessGates": [{"conditionType": "x.io/y"}],
}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
_WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_JOB = {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}
_RULE = {"apiGroups": ["x.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["y"]}
_HOOK = {
    "name": "a.b.c",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"url": "https://x.y/z"},
    "rules": [_RULE],
}
_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
_PATHS = [{"path": "/", "pathType": "Prefix", "backend": _BACKEND}]
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"}
_TARGET = {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}
_SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
_VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _SCHEMA}}
_CRD = {"group": "sample.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"}, "versions": [_VERSION]}
_RBAC = "rbac.authorization.k8s.io"
_NETWORK = "networking.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"

SAMPLES = [
    _of("", "Secret", "secrets", {"data": {"c": "YQ=="}}),
    _of("", "ServiceAccount", "serviceaccounts", {"secrets": [{"name": "x"}], "imagePullSecrets": [{"name": "y"}]}),
    _of("", "ReplicationController", "replicationcontrollers", {"spec": {"template": _TEMPLATE}}, status=True),
    _of("", "ResourceQuota", "resourcequotas", {"spec": {"hard": {"pods": "1"}}}, status=True),
    _of("", "LimitRange", "limitranges", {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
    _of("", "Endpoints", "endpoints", {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]}),
    _of("", "Event", "events", {"involvedObject": {"kind": "Pod", "name": "x"}, "reason": "R", "count": 1}),
    _of(
        "", "Node", "nodes", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, namespaced=False, status=True
    ),
    _of("", "PodTemplate", "podtemplates", {"template": _TEMPLATE}),
    _of("apps", "Deployment", "deployments", {"spec": _WORKLOAD}, status=True),
    _of("apps", "ReplicaSet", "replicasets", {"spec": _WORKLOAD}, status=True),
    _of(
        "apps",
        "StatefulSet",
        "statefulsets",
        {"spec": {**_WORKLOAD, "volumeClaimTemplates": [{"metadata": {"name": "q"}, "spec": _CLAIM}]}},
        status=True,
    ),
    _of("apps", "DaemonSet", "daemonsets", {"spec": _WORKLOAD}, status=True),
    _of("apps", "ControllerRevision", "controllerrevisions", {"data": {"a": {"b": 1}}, "revision": 1}),
    _of(
        "batch", "CronJob", "cronjobs", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}}}, status=True
    ),
    _of("policy", "PodDisruptionBudget", "poddisruptionbudgets", {"spec": {"maxUnavailable": 1}}, status=True),
    _of(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": _TARGET}},
        version="v2",
        status=True,
    ),
    _of(
        _NETWORK, "Ingress", "ingresses", {"spec": {"rules": [{"host": "x.y", "http": {"paths": _PATHS}}]}}, status=True
    ),
    _of(_NETWORK, "IngressClass", "ingressclasses", {"spec": {"controller": "x.io/y"}}, namespaced=False),
    _of(_NETWORK, "NetworkPolicy", "networkpolicies", {"spec": {"podSelector": {}, "ingress": [{}]}}),
    _of(_RBAC, "Role", "roles", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    _of(_RBAC, "ClusterRole", "clusterroles", {"rules": []}, namespaced=False),
    _of(_RBAC, "RoleBinding", "rolebindings", {"roleRef": _ROLE, "subjects": [{"kind": "User", "name": "u"}]}),
    _of("storage.k8s.io", "StorageClass", "storageclasses", {"provisioner": "x.io/y"}, namespaced=False),
    _of("storage.k8s.io", "CSIDriver", "csidrivers", {"spec": {}}, namespaced=False),
    _of("scheduling.k8s.io", "PriorityClass", "priorityclasses", {"value": 5}, namespaced=False),
    _of("coordination.k8s.io", "Lease", "leases", {"spec": {"holderIdentity": "x"}}),
    _of(
        "discovery.k8s.io",
        "EndpointSlice",
        "endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80, "name": "a"}]},
    ),
    _of("node.k8s.io", "RuntimeClass", "runtimeclasses", {"handler": "x"}, namespaced=False),
    _of(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        {"spec": _CRD},
        namespaced=False,
        status=True,
        name="foos.sample.io",
    ),
    _of(
        _ADMISSION,
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        {"webhooks": [_HOOK]},
        namespaced=False,
    ),
    _of(
        _ADMISSION,
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        {"spec": {"validations": [{"expression": "true"}], "matchConstraints": {"resourceRules": [_RULE]}}},
        namespaced=False,
        status=True,
    ),
    _of(
        _ADMISSION,
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        {"spec": {"policyName": "p", "validationActions": ["Deny"]}},
        namespaced=False,
    ),
]

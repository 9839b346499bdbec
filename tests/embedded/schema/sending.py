"""Deployments that are odd at one place, and what is said of them: held to the functions and to both servers."""

from typing import Any

Untyped = dict[str, Any]
C = "spec.template.spec.containers.0"


def deployment() -> Untyped:
    container = {"name": "web", "image": "web:1"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def odd(path: str, value: Any, obj: Any = None) -> Any:
    """The object (a Deployment) with another value at a path."""
    step, _, rest = path.partition(".")
    place = deployment() if obj is None else obj
    key: Any = int(step) if isinstance(place, list) else step
    if isinstance(place, list):
        return [*place[:key], odd(rest, value, place[key]) if rest else value, *place[key + 1 :]]
    return {**place, key: odd(rest, value, place.get(key, {})) if rest else value}


# path, value, then what, where and which type Go's decoder says
MISFITS: list[tuple[str, Any, str]] = [
    ("spec.replicas", "x", "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
    ("spec.replicas", 1.0, "number 1.0 into Go struct field DeploymentSpec.spec.replicas of type int32"),
    ("spec.replicas", 1.5, "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
    ("spec.replicas", 2**40, "number 1099511627776 into Go struct field DeploymentSpec.spec.replicas of type int32"),
    ("spec.replicas", True, "bool into Go struct field DeploymentSpec.spec.replicas of type int32"),
    ("spec.replicas", {}, "object into Go struct field DeploymentSpec.spec.replicas of type int32"),
    ("spec.replicas", [], "array into Go struct field DeploymentSpec.spec.replicas of type int32"),
    ("spec.paused", "true", "string into Go struct field DeploymentSpec.spec.paused of type bool"),
    ("spec.paused", 1, "number into Go struct field DeploymentSpec.spec.paused of type bool"),
    ("spec", "x", "string into Go struct field Deployment.spec of type v1.DeploymentSpec"),
    ("spec", [], "array into Go struct field Deployment.spec of type v1.DeploymentSpec"),
    ("spec.selector", [], "array into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector"),
    (
        "spec.selector.matchLabels",
        [],
        "array into Go struct field LabelSelector.spec.selector.matchLabels of type map[string]string",
    ),
    (
        "spec.selector.matchLabels.a",
        1,
        "number into Go struct field LabelSelector.spec.selector.matchLabels of type string",
    ),
    (
        "spec.strategy.type",
        1,
        "number into Go struct field DeploymentStrategy.spec.strategy.type of type v1.DeploymentStrategyType",
    ),
    (
        "spec.strategy.rollingUpdate.maxSurge",
        True,
        "bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
    ),
    ("metadata", "x", "string into Go struct field Deployment.metadata of type v1.ObjectMeta"),
    ("metadata.labels", {"a": 1}, "number into Go struct field ObjectMeta.metadata.labels of type string"),
    ("metadata.labels", "x", "string into Go struct field ObjectMeta.metadata.labels of type map[string]string"),
    ("metadata.finalizers", "x", "string into Go struct field ObjectMeta.metadata.finalizers of type []string"),
    ("metadata.finalizers", [1], "number into Go struct field ObjectMeta.metadata.finalizers of type string"),
    ("metadata.generation", "x", "string into Go struct field ObjectMeta.metadata.generation of type int64"),
    ("metadata.uid", 1, "number into Go struct field ObjectMeta.metadata.uid of type types.UID"),
    (
        "metadata.creationTimestamp",
        1,
        "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
    ),
    (
        "metadata.ownerReferences",
        [{"controller": "x"}],
        "string into Go struct field OwnerReference.metadata.ownerReferences.controller of type bool",
    ),
    (
        "metadata.managedFields",
        "x",
        "string into Go struct field ObjectMeta.metadata.managedFields of type []v1.ManagedFieldsEntry",
    ),
    (C, "x", "string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container"),
    (
        "spec.template.spec.containers",
        {},
        "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
    ),
    (f"{C}.name", 1, "number into Go struct field Container.spec.template.spec.containers.name of type string"),
    (
        f"{C}.env",
        [{"name": "a", "value": 1}],
        "number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string",
    ),
    (
        f"{C}.ports",
        [{"containerPort": "80"}],
        "string into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of type int32",
    ),
    (
        f"{C}.ports",
        [{"containerPort": 80, "protocol": 1}],
        "number into Go struct field ContainerPort.spec.template.spec.containers.ports.protocol of type v1.Protocol",
    ),
    (
        f"{C}.resources",
        {"limits": "x"},
        (
            "string into Go struct field ResourceRequirements.spec.template.spec.containers.resources.limits"
            " of type v1.ResourceList"
        ),
    ),
    (
        f"{C}.livenessProbe",
        {"httpGet": {"port": True}},
        (
            "bool into Go struct field"
            " HTTPGetAction.spec.template.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32"
        ),
    ),
    (
        f"{C}.securityContext",
        {"capabilities": {"add": [1]}},
        (
            "number into Go struct field Capabilities.spec.template.spec.containers.securityContext.capabilities.add"
            " of type v1.Capability"
        ),
    ),
    (
        "spec.template.spec.volumes",
        [{"name": "a", "emptyDir": "x"}],
        (
            "string into Go struct field Volume.spec.template.spec.volumes.VolumeSource.emptyDir"
            " of type v1.EmptyDirVolumeSource"
        ),
    ),
]

_TIME = 'as "2006-01-02T15:04:05Z07:00": cannot parse'
_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_CREATED = "metadata.creationTimestamp"

# path, value, and the whole of what is said
UNREADABLE: list[tuple[str, Any, str]] = [
    (_CREATED, "x", f'parsing time "x" {_TIME} "x" as "2006"'),
    (_CREATED, "", f'parsing time "" {_TIME} "" as "2006"'),
    (_CREATED, "2020-01-01", f'parsing time "2020-01-01" {_TIME} "" as "T"'),
    (_CREATED, "2020-1-01T00:00:00Z", f'parsing time "2020-1-01T00:00:00Z" {_TIME} "1-01T00:00:00Z" as "01"'),
    (_CREATED, "2020-01-01T00:00:00", f'parsing time "2020-01-01T00:00:00" {_TIME} "" as "Z07:00"'),
    (_CREATED, "2020-13-01T00:00:00Z", 'parsing time "2020-13-01T00:00:00Z": month out of range'),
    (_CREATED, "2020-02-30T00:00:00Z", 'parsing time "2020-02-30T00:00:00Z": day out of range'),
    (_CREATED, "2020-01-01T25:00:00Z", 'parsing time "2020-01-01T25:00:00Z": hour out of range'),
    (_CREATED, "2020-01-01T00:00:00Zx", 'parsing time "2020-01-01T00:00:00Zx": extra text: "x"'),
    (f"{C}.resources", {"limits": {"cpu": "x"}}, _NO_QUANTITY),
    (f"{C}.resources", {"limits": {"cpu": []}}, _NO_QUANTITY),
    (f"{C}.resources", {"limits": {"cpu": True}}, _NO_QUANTITY),
    (f"{C}.resources", {"limits": {"cpu": ""}}, _NO_QUANTITY),
    (f"{C}.resources", {"limits": {"cpu": "1.2.3"}}, _NO_QUANTITY),
    (f"{C}.resources", {"limits": {"cpu": "1ii"}}, "unable to parse quantity's suffix"),
    (f"{C}.resources", {"limits": {"cpu": "1e"}}, "unable to parse quantity's suffix"),
]

# path, value, where to look, and what is there then; None if nothing is
ROUND_TRIPS: list[tuple[str, Any, str, Any]] = [
    ("spec.replicas", 0, "spec.replicas", 0),
    ("spec.minReadySeconds", 0, "spec.minReadySeconds", None),
    ("spec.paused", False, "spec.paused", None),
    ("spec.paused", True, "spec.paused", True),
    ("spec.template.spec.hostNetwork", False, "spec.template.spec.hostNetwork", None),
    ("spec.template.spec.enableServiceLinks", False, "spec.template.spec.enableServiceLinks", False),
    ("spec.template.spec.hostname", "", "spec.template.spec.hostname", None),
    ("spec.template.spec.nodeSelector", {}, "spec.template.spec.nodeSelector", None),
    ("spec.template.spec.nodeSelector", None, "spec.template.spec.nodeSelector", None),
    ("spec.template.spec.affinity", {}, "spec.template.spec.affinity", {}),
    ("spec.template.metadata.creationTimestamp", None, "spec.template.metadata.creationTimestamp", None),
    (
        "spec.template.metadata.creationTimestamp",
        "2020-01-01T01:02:03.5+02:00",
        "spec.template.metadata.creationTimestamp",
        "2019-12-31T23:02:03Z",
    ),
    (
        "spec.template.metadata.creationTimestamp",
        "0001-01-01T00:00:00Z",
        "spec.template.metadata.creationTimestamp",
        None,
    ),
    ("metadata.labels", {"a": None}, "metadata.labels", {"a": ""}),
    ("metadata.labels", {}, "metadata.labels", None),
    ("metadata.annotations", {"a": ""}, "metadata.annotations", {"a": ""}),
    (f"{C}.args", [], f"{C}.args", None),
    (f"{C}.args", [None, "a"], f"{C}.args", ["", "a"]),
    (
        f"{C}.env",
        [{"name": "a", "value": ""}, {"name": "b", "value": None}],
        f"{C}.env",
        [{"name": "a"}, {"name": "b"}],
    ),
    (f"{C}.resources", {"limits": {"cpu": 0.5}}, f"{C}.resources.limits.cpu", "500m"),
    (f"{C}.resources", {"limits": {"cpu": "1000m"}}, f"{C}.resources.limits.cpu", "1"),
    (f"{C}.resources", {"limits": {"memory": "1024Mi"}}, f"{C}.resources.limits.memory", "1Gi"),
    (f"{C}.resources", {"limits": {"memory": "0.5Gi"}}, f"{C}.resources.limits.memory", "512Mi"),
    (f"{C}.resources", {"limits": {"memory": 10000000000}}, f"{C}.resources.limits.memory", "10G"),
    (f"{C}.resources", {"limits": {"memory": "12e6"}}, f"{C}.resources.limits.memory", "12e6"),
    (f"{C}.resources", {"limits": {"memory": "9.5Ei"}}, f"{C}.resources.limits.memory", "9223372036854775807"),
    (f"{C}.resources", {"limits": {"cpu": None}}, f"{C}.resources.limits.cpu", "0"),
    (f"{C}.resources", {"limits": {"cpu": "1"}, "requests": {}}, f"{C}.resources", {"limits": {"cpu": "1"}}),
]


def at(obj: Any, path: str) -> Any:
    """What is at a path; None if nothing is."""
    for step in path.split("."):
        if isinstance(obj, list):
            obj = obj[int(step)]
        else:
            obj = obj.get(step) if obj else None
    return obj

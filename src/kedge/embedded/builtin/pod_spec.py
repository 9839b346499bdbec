"""Pod spec: defaults of a pod spec and of a pod template.

`default_spec` is for any pod spec; `default_template` for a template. What only a pod itself gets is in `pods`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kedge.embedded.builtin.defaulting import cached, each, struct
from kedge.kube.codec import Untyped

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::(?P<tag>\w[\w.-]{{0,127}}))?(?P<digest>@[A-Za-z][\w+.-]*:[0-9a-fA-F]{{32,}})?"
)


def tag_of(image: str) -> str:
    """The tag of an image; `latest` without tag and digest, empty with a digest alone or if invalid."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


@lru_cache(4096)
def pull_policy(image: str) -> str:
    """The default imagePullPolicy: Always for `latest`."""
    return "Always" if tag_of(image) == "latest" else "IfNotPresent"


_NOT_SOURCES = ("name",)
READABLE = 0o644


def _pull_policy(container: Untyped) -> Untyped:
    if container.get("imagePullPolicy"):
        return container
    return {**container, "imagePullPolicy": pull_policy(container.get("image", ""))}


def _image_policy(image: Untyped) -> Untyped:
    return image if image.get("pullPolicy") else {**image, "pullPolicy": pull_policy(image.get("reference", ""))}


def _some_source(volume: Untyped) -> Untyped:
    """A volume without a source is an emptyDir."""
    return volume if any(key not in _NOT_SOURCES for key in volume) else {**volume, "emptyDir": {}}


def _both_account_names(spec: Untyped) -> Untyped:
    """`serviceAccount` and `serviceAccountName` always have the same value."""
    old, new = spec.get("serviceAccount"), spec.get("serviceAccountName")
    name = new or old
    if old == new or not name:
        return spec
    return {**spec, "serviceAccount": name, "serviceAccountName": name}


_field_ref = struct({"apiVersion": "v1"})
_resource_ref = struct({"divisor": "0"})
_http_get = struct({"path": "/", "scheme": "HTTP"})
_handler = struct(httpGet=_http_get)
_probe = struct(
    zero={"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    httpGet=_http_get,
    grpc=struct({"service": ""}),
)
_env = struct(
    valueFrom=struct(
        fieldRef=_field_ref,
        resourceFieldRef=_resource_ref,
        fileKeyRef=struct({"optional": False}),
    )
)

container = struct(
    {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}},
    ports=each(struct({"protocol": "TCP"})),
    env=each(_env),
    livenessProbe=_probe,
    readinessProbe=_probe,
    startupProbe=_probe,
    lifecycle=struct(postStart=_handler, preStop=_handler),
    then=_pull_policy,
)

_readable = struct({"defaultMode": READABLE})
_downward_items = each(struct(fieldRef=_field_ref, resourceFieldRef=_resource_ref))
host_path = struct({"type": ""})
iscsi = struct({"iscsiInterface": "default"})
rbd = struct({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"})
azure_disk = struct({"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"})
scale_io = struct({"storageMode": "ThinProvisioned", "fsType": "xfs"})
default_claim_spec = struct({"volumeMode": "Filesystem", "resources": {}})

_volume = struct(
    configMap=_readable,
    secret=_readable,
    downwardAPI=struct({"defaultMode": READABLE}, items=_downward_items),
    projected=struct(
        {"defaultMode": READABLE},
        null=("sources",),
        sources=each(
            struct(
                serviceAccountToken=struct({"expirationSeconds": 3600}),
                downwardAPI=struct(items=_downward_items),
            )
        ),
    ),
    hostPath=host_path,
    ephemeral=struct(volumeClaimTemplate=struct({"metadata": {}, "spec": {}}, spec=default_claim_spec)),
    image=_image_policy,
    iscsi=iscsi,
    rbd=rbd,
    azureDisk=azure_disk,
    scaleIO=scale_io,
    then=_some_source,
)

default_spec = struct(
    {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    null=("containers",),
    containers=each(container),
    initContainers=each(container),
    ephemeralContainers=each(container),
    volumes=each(_volume),
    then=_both_account_names,
)

default_template = cached(struct({"metadata": {}, "spec": {}}, spec=default_spec))


def all_containers(spec: Untyped) -> list[Any]:
    """All containers of a pod, init containers first."""
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]

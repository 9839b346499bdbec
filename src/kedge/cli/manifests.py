"""Manifests: what a role needs in its cluster, as plain data.

Pods run as an unprivileged user, with a read-only file system and no capabilities. Their rights are those of
`kedge.rights`, bound to the service account of the role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from msgspec import to_builtins

from kedge import rights
from kedge.admission.policies import karmada_policies, policies
from kedge.api.crd import crd
from kedge.api.crds import crds, karmada_crds
from kedge.api.dialect import Dialect
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.rbac import GROUP as RBAC
from kedge.api.rbac import PolicyRule
from kedge.api.work import AppliedWork
from kedge.cli.apis import FLEET

Manifest: TypeAlias = dict[str, Any]

HUB: Final = "kedge-hub"
MEMBER: Final = "kedge-member"
ALIGN: Final = "kedge-align"
HUB_SECRET: Final = "kedge-hub"  # noqa: S105  # its name
_PORT: Final = 8081
_HUB_FILE: Final = "/etc/kedge/hub"
_NOTIFICATIONS: Final = "/etc/kedge/notifications"


def hub(dialect: Dialect, image: str, replicas: int, *, notifications: str = "") -> list[Manifest]:
    """What makes a cluster a hub. `notifications` is the Secret with who is notified of events."""
    command = ["hub", f"--dialect={dialect.value}", f"--health=:{_PORT}"]
    own = [definition for definition in crds(dialect) if definition["metadata"]["name"] != str(AppliedWork.resource)]
    return [
        _namespace(),
        *own,
        *policies(),
        _account(HUB),
        *_may_everywhere(HUB, (*rights.HUB, *rights.REPORT_BACK)),
        *_may_at_home(HUB, rights.LEADING),
        with_notifications(_deployment(HUB, image, command, replicas), notifications, "--notifications"),
    ]


def karmada_hub(image: str, replicas: int, *, notifications: str = "") -> list[Manifest]:
    """What makes a cluster a hub of Karmada's kinds."""
    command = ["hub", "--api=karmada", f"--health=:{_PORT}"]
    return [
        _namespace(),
        *karmada_crds(),
        *karmada_policies(),
        _account(HUB),
        *_may_everywhere(HUB, rights.KARMADA_HUB),
        *_may_at_home(HUB, rights.LEADING),
        with_notifications(_deployment(HUB, image, command, replicas), notifications, "--notifications"),
    ]


def member(
    name: str,
    image: str,
    *,
    api: str = FLEET,
    grant_any: bool = False,
    kinds: Sequence[str] = (),
    namespaces: Sequence[str] = (),
) -> list[Manifest]:
    """What makes a cluster the member of this name. The agent may place only these `kinds` and `namespaces`, if any."""
    command = [
        "member",
        *([f"--api={api}"] if api != FLEET else []),
        f"--hub-kubeconfig={_HUB_FILE}/kubeconfig",
        f"--hub-secret={SYSTEM_NAMESPACE}/{HUB_SECRET}",
        f"--member={name}",
        f"--health=:{_PORT}",
    ]
    more = rights.GRANT_ANY if grant_any else ()
    if kinds or namespaces:
        itself = rights.MEMBER_ITSELF if api == FLEET else _karmada_member_itself(namespaces)
        placing = rights.placing(kinds, namespaces)
        granted = [
            *_may_everywhere(MEMBER, (*itself, *placing.everywhere, *more)),
            *_may_at_home(MEMBER, rights.renewing(HUB_SECRET)),
            *(manifest for one in namespaces for manifest in (_namespace(one), *_may_in(one, MEMBER, placing.in_each))),
        ]
    else:
        granted = list(_may_everywhere(MEMBER, (*rights.MEMBER, *more)))
    return [
        _namespace(),
        *([crd(AppliedWork)] if api == FLEET else []),
        _account(MEMBER),
        *granted,
        _deployment(MEMBER, image, command, 1, secret=HUB_SECRET),
    ]


def _karmada_member_itself(namespaces: Sequence[str]) -> tuple[PolicyRule, ...]:
    """Those namespaces, if any are named, come with the rights in them."""
    return (*rights.KARMADA_MEMBER_ITSELF, *(() if namespaces else rights.NEW_NAMESPACES))


def align() -> list[Manifest]:
    """The rights of `kedge align` on a Karmada. No pods run there: the process runs elsewhere, as this account."""
    return [
        _namespace(),
        _account(ALIGN),
        *_may_everywhere(ALIGN, rights.BESIDE),
        *_may_at_home(ALIGN, rights.LEADING),
    ]


def _namespace(name: str = SYSTEM_NAMESPACE) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _account(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _at_home(name)}


def _may_everywhere(name: str, rules: Sequence[PolicyRule]) -> tuple[Manifest, Manifest]:
    meta = {"name": name}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": to_builtins(rules)}
    return role, _bound("ClusterRole", name, meta)


def _may_at_home(name: str, rules: Sequence[PolicyRule]) -> tuple[Manifest, Manifest]:
    return _may_in(SYSTEM_NAMESPACE, name, rules)


def _may_in(namespace: str, name: str, rules: Sequence[PolicyRule]) -> tuple[Manifest, Manifest]:
    meta = {"name": name, "namespace": namespace}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": to_builtins(rules)}
    return role, _bound("Role", name, meta)


def _bound(kind: str, name: str, meta: Manifest) -> Manifest:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": meta,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM_NAMESPACE}],
    }


def _at_home(name: str) -> Manifest:
    return {"name": name, "namespace": SYSTEM_NAMESPACE}


POD_SECURITY: Final[Manifest] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Final[Manifest] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def _deployment(name: str, image: str, command: list[str], replicas: int, *, secret: str = "") -> Manifest:
    labels = {"app.kubernetes.io/name": name}
    pod: Manifest = {
        "serviceAccountName": name,
        "securityContext": POD_SECURITY,
        "containers": [_container(image, command, bool(secret))],
    }
    if secret:
        pod["volumes"] = [{"name": "hub", "secret": {"secretName": secret}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**_at_home(name), "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            # Two agents of one member would do no harm, but twice the work.
            **({"strategy": {"type": "Recreate"}} if secret else {}),
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _container(image: str, command: list[str], mounts_hub: bool) -> Manifest:
    return {
        "name": "kedge",
        "image": image,
        "args": command,
        "ports": [{"name": "health", "containerPort": _PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": CONTAINER_SECURITY,
        **({"volumeMounts": [{"name": "hub", "mountPath": _HUB_FILE, "readOnly": True}]} if mounts_hub else {}),
    }


def with_notifications(deployment: Manifest, secret: str, option: str) -> Manifest:
    """A Deployment that is given this option, with the file `notifications.yaml` of a Secret; without one, as it is."""
    if not secret:
        return deployment
    template = deployment["spec"]["template"]
    pod = template["spec"]
    (container,) = pod["containers"]
    mount = {"name": "notifications", "mountPath": _NOTIFICATIONS, "readOnly": True}
    container = {
        **container,
        "args": [*container["args"], f"{option}={_NOTIFICATIONS}/notifications.yaml"],
        "volumeMounts": [*container.get("volumeMounts", ()), mount],
    }
    volumes = [*pod.get("volumes", ()), {"name": "notifications", "secret": {"secretName": secret}}]
    told = {**template, "spec": {**pod, "containers": [container], "volumes": volumes}}
    return {**deployment, "spec": {**deployment["spec"], "template": told}}

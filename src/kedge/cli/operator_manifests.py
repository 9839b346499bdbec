"""Operator manifests: what an operator needs in its cluster, as plain data.

Names, labels, ports, probes and rules are those of Grafana's rollout-operator, so that what is installed here takes the
place of what is there. With one namespace and one replica the pod runs `kedge rollout-operator`, with the peer's
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct, to_builtins

from kedge import rights
from kedge.admission.application_annotation import PATH as APPLICATIONS
from kedge.admission.rollout_validation import PATH as ROLLOUTS
from kedge.api.admission import REGISTRATION, MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.api.crd import crd
from kedge.api.oam.keys import CORE
from kedge.api.oam.rollouts import ROLLOUT_KINDS
from kedge.api.rbac import GROUP as RBAC
from kedge.api.rbac import PolicyRule
from kedge.api.zones import GROUP, INJECT_CA, INJECT_NAMESPACE, ZONE_KINDS
from kedge.cli.manifests import CONTAINER_SECURITY, POD_SECURITY, Manifest, with_notifications

NAME: Final = "rollout-operator"
SECRET: Final = "rollout-operator-self-signed-certificate"  # noqa: S105  # its name
ZONE_TRACKER: Final = "rollout-operator-zone-tracker"
HTTP_PORT: Final = 8001
HTTPS_PORT: Final = 8443
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"

_NOT_OUR_OWN: Final = {
    "name": "not-the-operator-itself",
    "expression": f"request.resource.resource == 'statefulsets' || !request.name.startsWith('{NAME}')",
}
"""While the operator is replaced nobody answers: its own new ReplicaSet could never be scaled up."""


class OperatorInstall(Struct, frozen=True):
    """What to print: for whom, and how much it may do."""

    namespaces: tuple[str, ...]
    """The namespaces to manage. The first is where the operator runs."""
    image: str
    everywhere: bool = False
    """Whether all namespaces are managed."""
    events: bool = True
    """Whether the operator may report its steps as Events."""
    deployments: bool = False
    """Whether Deployments and ReplicaSets can be guarded against downscales too."""
    mirror: tuple[str, ...] = ()
    """Kinds from which StatefulSets mirror their replicas, beside ReplicaTemplates (`deployments.apps`)."""
    failure_policy: str = "Fail"
    lease: bool = False
    """Whether there are two replicas, of which one leads."""
    batches: bool = False
    """Whether there are rollouts in batches: their CRDs, rights, and the webhooks for them and for Applications."""
    metric_secrets: tuple[str, ...] = ()
    """The Secrets that MetricTemplates of rollouts may name."""
    notifications: str = ""
    """The Secret with who is notified of events; none: nobody."""

    @property
    def home(self) -> str:
        return self.namespaces[0]

    @property
    def is_like_the_peer(self) -> bool:
        """Whether the peer could do the same: one namespace, one replica, no batches."""
        return len(self.namespaces) == 1 and not self.everywhere and not self.lease and not self.batches

    @property
    def rules(self) -> tuple[PolicyRule, ...]:
        """What the operator may do in each namespace it manages."""
        return (
            *rights.OPERATOR,
            *(rights.OPERATOR_EVENTS if self.events else ()),
            *(rights.READ_DEPLOYMENTS if self.deployments else ()),
            *rights.mirroring(self.mirror),
            *(rights.BATCHES if self.batches else ()),
            *rights.metric_secrets(self.metric_secrets),
        )


def manifests(told: OperatorInstall) -> list[Manifest]:
    """All that the operator needs, each before what refers to it. Webhooks come last: they need the rest."""
    return [
        *(crd(kind) for kind in ZONE_KINDS),
        *(crd(kind) for kind in (ROLLOUT_KINDS if told.batches else ())),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _at(told.home, NAME)},
        *_managing(told),
        *_bound(told, "Role", f"{NAME}-webhook-role", rights.certificate_secret(SECRET), told.home),
        *_bound(told, "ClusterRole", f"{NAME}-webhook-{told.home}-clusterrole", rights.WEBHOOK_CONFIGURATIONS),
        *(_bound(told, "Role", f"{NAME}-lease-role", rights.LEADING, told.home) if told.lease else ()),
        _service(told),
        with_notifications(
            _deployment(told), told.notifications, "-notifications" if told.is_like_the_peer else "--notifications"
        ),
        *webhook_configurations(told),
    ]


def _managing(told: OperatorInstall) -> list[Manifest]:
    if told.everywhere:
        # The ConfigMap of the zone tracker is in the namespace of the request, so these rules are for all of them.
        return _bound(told, "ClusterRole", f"{NAME}-{told.home}-clusterrole", told.rules)
    return [one for namespace in told.namespaces for one in _bound(told, "Role", f"{NAME}-role", told.rules, namespace)]


def _bound(
    told: OperatorInstall, kind: str, name: str, rules: Sequence[PolicyRule], namespace: str | None = None
) -> list[Manifest]:
    """A role, and its binding to the operator."""
    role = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": _at(namespace, name), "rules": to_builtins(rules)}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": _at(namespace, f"{name}binding"),
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": told.home}],
    }
    return [role, binding]


def _at(namespace: str | None, name: str) -> Manifest:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def _service(told: OperatorInstall) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _at(told.home, NAME),
        "spec": {
            "selector": {"name": NAME},
            "type": "ClusterIP",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": HTTPS_PORT}],
        },
    }


def _deployment(told: OperatorInstall) -> Manifest:
    labels = {"name": NAME}
    pod = {"serviceAccountName": NAME, "securityContext": POD_SECURITY, "containers": [_container(told)]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _at(told.home, NAME),
        "spec": {
            "replicas": 2 if told.lease else 1,
            "minReadySeconds": 10,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _container(told: OperatorInstall) -> Manifest:
    return {
        "name": NAME,
        "image": told.image,
        "args": arguments(told),
        "ports": [
            {"name": "http-metrics", "containerPort": HTTP_PORT},
            {"name": "https", "containerPort": HTTPS_PORT},
        ],
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": HTTP_PORT},
            "initialDelaySeconds": 5,
            "timeoutSeconds": 1,
        },
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"memory": "200Mi"}},
        "securityContext": CONTAINER_SECURITY,
    }


def arguments(told: OperatorInstall) -> list[str]:
    """The command line of the operator: the peer's, where the peer could do the same."""
    if told.is_like_the_peer:
        return [
            "rollout-operator",
            f"-kubernetes.namespace={told.home}",
            "-use-zone-tracker=true",
            f"-zone-tracker.config-map-name={ZONE_TRACKER}",
            "-zpdb.pod-ready-annotation-patch-timeout=5s",
            "-server-tls.enabled=true",
        ]
    return [
        "operator",
        *(["--all-namespaces"] if told.everywhere else []),
        *(f"--namespace={namespace}" for namespace in told.namespaces),
        *(["--lease"] if told.lease else []),
        *(["--batches"] if told.batches else []),
        f"--zone-tracker={ZONE_TRACKER}",
        "--webhooks",
        f"--webhooks-port={HTTPS_PORT}",
        f"--health=:{HTTP_PORT}",
    ]


def webhook_configurations(told: OperatorInstall) -> list[Manifest]:
    """The webhooks: four of rollout groups, and two of rollouts in batches."""
    return [*_group_webhooks(told), *(_rollout_webhooks(told) if told.batches else ())]


def _group_webhooks(told: OperatorInstall) -> list[Manifest]:
    guarded = ["statefulsets", "deployments", "replicasets"] if told.deployments else ["statefulsets"]
    scaled = [*guarded, *(f"{plural}/scale" for plural in guarded)]
    updates = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    return [
        _webhook(
            told,
            "no-downscale",
            {**updates, "resources": scaled},
            conditions=[_NOT_OUR_OWN] if told.deployments else [],
        ),
        _webhook(
            told,
            "prepare-downscale",
            {**updates, "resources": ["statefulsets", "statefulsets/scale"]},
            kind=MutatingWebhookConfiguration.resource.kind,  # not to change anything: it has side effects
            side_effects="NoneOnDryRun",
        ),
        _webhook(
            told,
            "pod-eviction",
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]},
        ),
        _webhook(
            told,
            "zpdb-validation",
            {
                "apiGroups": [GROUP],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["zoneawarepoddisruptionbudgets"],
            },
        ),
    ]


def _rollout_webhooks(told: OperatorInstall) -> list[Manifest]:
    """Those of OAM's kinds, which the peer does not know."""
    written = {"apiVersions": ["*"], "operations": ["CREATE", "UPDATE"]}
    rollouts = [
        {**written, "apiGroups": [group], "resources": [kind.plural for kind in kinds]}
        for group, kinds in groupby((kind.resource for kind in ROLLOUT_KINDS), key=lambda kind: kind.group)
    ]
    applications = {**written, "apiGroups": [CORE], "resources": ["applications"]}
    return [
        _webhook(told, ROLLOUTS.removeprefix("/"), *rollouts, at=ROLLOUTS, domain="kedge.dev"),
        _webhook(told, APPLICATIONS.removeprefix("/"), applications, at=APPLICATIONS, domain="kedge.dev"),
    ]


def _webhook(
    told: OperatorInstall,
    path: str,
    *rules: Manifest,
    kind: str = ValidatingWebhookConfiguration.resource.kind,
    side_effects: str = "None",
    conditions: Sequence[Manifest] = (),
    at: str = "",
    domain: str = "grafana.com",
) -> Manifest:
    name = f"{path}-{told.home}"
    service = {"name": NAME, "namespace": told.home, "path": at or f"/admission/{path}", "port": 443}
    webhook: dict[str, Any] = {
        "name": f"{name}.{domain}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "failurePolicy": told.failure_policy,
        "matchPolicy": "Equivalent",
        "namespaceSelector": _selector(told),
        "rules": [{**rule, "scope": "Namespaced"} for rule in rules],
        **({"matchConditions": list(conditions)} if conditions else {}),
        "sideEffects": side_effects,
        "timeoutSeconds": 10,
    }
    return {
        "apiVersion": f"{REGISTRATION}/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {INJECT_CA: "true", INJECT_NAMESPACE: told.home}},
        "webhooks": [webhook],
    }


def _selector(told: OperatorInstall) -> Manifest:
    """The namespaces that are managed; an empty selector is all of them."""
    if told.everywhere:
        return {}
    if len(told.namespaces) == 1:
        return {"matchLabels": {_NAMESPACE_LABEL: told.home}}
    return {"matchExpressions": [{"key": _NAMESPACE_LABEL, "operator": "In", "values": list(told.namespaces)}]}

"""`kedge install operator`: the peer's objects, and what more there is."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from io import StringIO
from random import Random
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from kedge import rights
from kedge.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import Namespace
from kedge.api.crds import print_yaml
from kedge.api.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding
from kedge.api.resource import Resource
from kedge.cli import main
from kedge.cli.go_flags import parse
from kedge.cli.operator_manifests import OperatorInstall, manifests
from kedge.cli.rollout_operator import FLAGS, problem
from kedge.controllers.batch.batch_controllers import batch_controllers
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.codec import untyped
from kedge.kube.connect.outbound import HttpOutbound
from kedge.kube.errors import AlreadyExists
from kedge.kube.manager import Manager
from support.virtual import run

# As the documentation of Grafana's rollout-operator prints them, for the namespace default.

ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [list, get, watch, delete]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list, get, watch]
- apiGroups: [apps]
  resources: [statefulsets/status]
  verbs: [update]
"""
NO_DOWNSCALE = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  labels:
    grafana.com/inject-rollout-operator-ca: "true"
    grafana.com/namespace: default
  name: no-downscale-default
webhooks:
- name: no-downscale-default.grafana.com
  admissionReviewVersions: [v1]
  clientConfig:
    service:
      name: rollout-operator
      namespace: default
      path: /admission/no-downscale
      port: 443
  failurePolicy: Fail
  matchPolicy: Equivalent
  rules:
  - apiGroups: [apps]
    apiVersions: [v1]
    operations: [UPDATE]
    resources:
    - statefulsets
    - deployments
    - replicasets
    - statefulsets/scale
    - deployments/scale
    - replicasets/scale
    scope: Namespaced
  sideEffects: None
  timeoutSeconds: 10
"""
PREPARE_DOWNSCALE = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  labels:
    grafana.com/inject-rollout-operator-ca: "true"
    grafana.com/namespace: default
  name: prepare-downscale-default
webhooks:
- admissionReviewVersions: [v1]
  clientConfig:
    service:
      name: rollout-operator
      namespace: default
      path: /admission/prepare-downscale
      port: 443
  failurePolicy: Fail
  matchPolicy: Equivalent
  name: prepare-downscale-default.grafana.com
  rules:
  - apiGroups: [apps]
    apiVersions: [v1]
    operations: [UPDATE]
    resources: [statefulsets, statefulsets/scale]
    scope: Namespaced
  sideEffects: NoneOnDryRun
  timeoutSeconds: 10
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata:
  name: rollout-operator
spec:
  selector:
    name: rollout-operator
  type: ClusterIP
  ports:
  - name: https
    port: 443
    protocol: TCP
    targetPort: 8443
"""
WEBHOOK_ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: rollout-operator-webhook-role
  namespace: default
rules:
  - apiGroups: [""]
    resources: [secrets]
    verbs: [create]
  - apiGroups: [""]
    resources: [secrets]
    resourceNames: [rollout-operator-self-signed-certificate]
    verbs: [update, get]
"""
WEBHOOK_BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: rollout-operator-webhook-rolebinding
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: rollout-operator-webhook-role
subjects:
  - kind: ServiceAccount
    name: rollout-operator
    namespace: default
"""
CLUSTER_ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: rollout-operator-webhook-default-clusterrole
rules:
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  verbs: [list, patch]
"""
CLUSTER_BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: rollout-operator-webhook-default-clusterrolebinding
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: rollout-operator-webhook-default-clusterrole
subjects:
  - kind: ServiceAccount
    name: rollout-operator
    namespace: default
"""

Granted = set[tuple[str, str, str, str]]


def kedge(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("install", "operator", *arguments))


def printed(*arguments: str) -> list[dict[str, Any]]:
    result = kedge(*arguments)
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.output))


def the(found: Iterable[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (only,) = [one for one in found if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return only


def granted(rules: Iterable[dict[str, Any]]) -> Granted:
    return {
        (group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


@pytest.mark.parametrize("peers", [SERVICE, PREPARE_DOWNSCALE, WEBHOOK_ROLE, WEBHOOK_BINDING, CLUSTER_BINDING])
def test_what_the_peer_prints_is_printed(peers: str) -> None:
    theirs = yaml.safe_load(peers)
    ours = the(printed("-n", "default"), theirs["kind"], theirs["metadata"]["name"])
    for webhook in ours.get("webhooks", ()):
        assert webhook.pop("namespaceSelector") == {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    if "namespace" in ours["metadata"]:
        theirs["metadata"]["namespace"] = "default"
    assert ours == theirs


def test_the_peers_guard_of_deployments_is_printed_if_they_are_wanted() -> None:
    theirs = yaml.safe_load(NO_DOWNSCALE)
    ours = the(printed("-n", "default", "--deployments"), "ValidatingWebhookConfiguration", "no-downscale-default")
    (webhook,) = ours["webhooks"]
    del webhook["namespaceSelector"]
    (condition,) = webhook.pop("matchConditions")
    assert "rollout-operator" in condition["expression"], "the operator's own ReplicaSets are never held up"
    assert ours == theirs
    (plain,) = the(printed("-n", "default"), "ValidatingWebhookConfiguration", "no-downscale-default")["webhooks"]
    assert plain["rules"][0]["resources"] == ["statefulsets", "statefulsets/scale"]


@pytest.mark.parametrize(("peers", "name"), [(ROLE, "rollout-operator-role"), (CLUSTER_ROLE, "")])
def test_all_that_the_peer_is_granted_is_granted(peers: str, name: str) -> None:
    theirs = yaml.safe_load(peers)
    ours = the(printed("-n", "default"), theirs["kind"], name or theirs["metadata"]["name"])
    assert granted(ours["rules"]) >= granted(theirs["rules"])


def test_an_operator_is_granted_exactly_this() -> None:
    found = printed("-n", "default", "--no-events")
    mine = granted(rule for role in found if role["kind"] in ("Role", "ClusterRole") for rule in role["rules"])
    group, secret = "rollout-operator.grafana.com", "rollout-operator-self-signed-certificate"
    templates = ("replicatemplates/scale", "replicatemplates/status")
    hooks = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
    assert mine == {
        *(("", "pods", verb, "") for verb in ("list", "get", "watch", "delete", "patch")),
        *(("apps", "statefulsets", verb, "") for verb in ("list", "get", "watch", "patch")),
        ("apps", "statefulsets/status", "update", ""),
        *(("", "configmaps", verb, "") for verb in ("get", "update", "create")),
        *((group, "zoneawarepoddisruptionbudgets", verb, "") for verb in ("get", "list", "watch")),
        *((group, template, verb, "") for template in templates for verb in ("get", "patch")),
        ("", "secrets", "create", ""),
        *(("", "secrets", verb, secret) for verb in ("get", "update")),
        *(("admissionregistration.k8s.io", hook, verb, "") for hook in hooks for verb in ("list", "patch", "watch")),
    }


def test_events_deployments_and_other_kinds_are_granted_as_told() -> None:
    def role(*arguments: str) -> Granted:
        return granted(the(printed("-n", "default", *arguments), "Role", "rollout-operator-role")["rules"])

    assert role() - role("--no-events") == {("", "events", "create", ""), ("", "events", "patch", "")}
    assert role("--deployments") - role() == {
        ("apps", kind, verb, "") for kind in ("deployments", "replicasets") for verb in ("get", "list")
    }
    assert role("--mirror", "deployments.apps,widgets.example.com") - role() == {
        (group, f"{kind}/{part}", verb, "")
        for group, kind in (("apps", "deployments"), ("example.com", "widgets"))
        for part in ("scale", "status")
        for verb in ("get", "patch")
    }


def test_the_deployment_is_the_peers() -> None:
    spec = the(printed("-n", "prod", "--image", "example.com/kedge:1"), "Deployment", "rollout-operator")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]) == (1, {"maxSurge": 0, "maxUnavailable": 1})
    assert spec["template"]["metadata"]["labels"] == spec["selector"]["matchLabels"] == {"name": "rollout-operator"}
    assert {one["name"]: one["containerPort"] for one in container["ports"]} == {"http-metrics": 8001, "https": 8443}
    assert container["readinessProbe"] == {
        "httpGet": {"path": "/ready", "port": 8001}, "initialDelaySeconds": 5, "timeoutSeconds": 1,
    }  # fmt: skip
    assert container["image"] == "example.com/kedge:1"
    assert container["args"][0] == "rollout-operator"
    assert problem(parse(FLAGS, container["args"][1:])) == ""


def test_a_lease_is_two_replicas_and_the_right_to_lead_where_they_run() -> None:
    plain, found = printed("-n", "a", "-n", "b"), printed("-n", "a", "-n", "b", "--lease")
    assert the(found, "Deployment", "rollout-operator")["spec"]["replicas"] == 2
    added = [one for one in found if one not in plain and one["kind"] != "Deployment"]
    assert [(one["kind"], one["metadata"]) for one in added] == [
        ("Role", {"name": "rollout-operator-lease-role", "namespace": "a"}),
        ("RoleBinding", {"name": "rollout-operator-lease-rolebinding", "namespace": "a"}),
    ]
    assert granted(added[0]["rules"]) == {
        ("coordination.k8s.io", "leases", verb, "") for verb in ("get", "create", "patch")
    }
    assert added[1]["subjects"] == [{"kind": "ServiceAccount", "name": "rollout-operator", "namespace": "a"}]


def test_rollouts_in_batches_are_validated_if_they_are_wanted() -> None:
    plain, found = printed("-n", "a"), printed("-n", "a", "--batches")
    added = {one["metadata"]["name"]: one for one in found if one not in plain}
    rollouts, applications = (
        added.pop(f"validate-oam-{kind}-a")["webhooks"][0] for kind in ("rollouts", "applications")
    )
    assert sorted(added) == [
        "applicationdeployments.core.oam.dev",
        "approllouts.core.oam.dev",
        "rollout-operator",
        "rollout-operator-role",
        "rollouts.standard.oam.dev",
        "rollouttraits.standard.oam.dev",
    ]
    asked = [(rule["apiGroups"], sorted(rule["resources"]), rule["operations"]) for rule in rollouts["rules"]]
    written = ["CREATE", "UPDATE"]
    assert asked == [
        (["standard.oam.dev"], ["rollouts", "rollouttraits"], written),
        (["core.oam.dev"], ["applicationdeployments", "approllouts"], written),
    ]
    assert [rule["resources"] for rule in applications["rules"]] == [["applications"]]
    services = [webhook["clientConfig"]["service"]["path"] for webhook in (rollouts, applications)]
    assert services == ["/validate-oam-rollouts", "/validate-oam-applications"]
    assert [webhook["name"] for webhook in (rollouts, applications)] == [
        "validate-oam-rollouts-a.kedge.dev",
        "validate-oam-applications-a.kedge.dev",
    ]


def test_batches_are_rolled_out_only_where_that_is_wanted_and_with_rights_of_their_own() -> None:
    plain, found = printed("-n", "a", "-n", "b"), printed("-n", "a", "-n", "b", "--batches")
    args = the(found, "Deployment", "rollout-operator")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--batches" in args
    for namespace in ("a", "b"):
        before, after = (
            next(one for one in some if one["metadata"] == {"name": "rollout-operator-role", "namespace": namespace})
            for some in (plain, found)
        )
        assert granted(after["rules"]) - granted(before["rules"]) == granted(msgspec.to_builtins(rights.BATCHES))
    assert [one["metadata"]["name"] for one in found if one["kind"] == "ClusterRole"] == [
        "rollout-operator-webhook-a-clusterrole"
    ]


def test_an_operator_reads_only_those_secrets_for_metrics_that_it_is_told() -> None:
    def secrets(*given: str) -> set[tuple[str, ...]]:
        role = the(printed("-n", "a", "--batches", *given), "Role", "rollout-operator-role")
        return {one for one in granted(role["rules"]) if "secrets" in one}

    assert secrets() == set()
    assert secrets("--metric-secrets", "prometheus,thanos.auth") == {
        ("", "secrets", "get", name) for name in ("prometheus", "thanos.auth")
    }


def test_every_kind_of_rollout_that_is_acted_on_is_in_the_rights() -> None:
    async def acted_on() -> list[str]:
        async with Manager(rng=Random(1)) as manager:
            cluster = EmbeddedCluster("cluster", clock=manager.clock, rng=Random(1))
            connected = await manager.connect("cluster", cluster.transport())
            found = batch_controllers(connected, (), clock=manager.clock, outbound=HttpOutbound())
            return [controller.name for controller in found]

    assert sorted(run(acted_on())) == sorted(kind.plural for kind in rights.ROLLOUTS)


@pytest.mark.parametrize("arguments", [("-n", "a"), ("-n", "a", "-n", "b"), ("-n", "a", "-A")])
def test_only_with_a_lease_an_operator_is_told_to_elect_a_leader(arguments: tuple[str, ...]) -> None:
    def told(*given: str) -> list[str]:
        deployment = the(printed(*arguments, *given), "Deployment", "rollout-operator")
        found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        return found

    assert "--lease" not in told()
    assert told("--lease")[0] == "operator"  # the peer's command line knows no leases
    assert "--lease" in told("--lease")


def test_several_namespaces_are_several_roles_and_one_operator() -> None:
    found = printed("-n", "a", "-n", "b")
    roles = [one["metadata"] for one in found if one["kind"] == "Role" and "webhook" not in one["metadata"]["name"]]
    assert [role["namespace"] for role in roles] == ["a", "b"]
    bindings = [one for one in found if one["kind"] == "RoleBinding"]
    assert {subject["namespace"] for binding in bindings for subject in binding["subjects"]} == {"a"}
    selectors = [one["webhooks"][0]["namespaceSelector"] for one in found if "webhooks" in one]
    wanted = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}]}
    assert selectors == [wanted] * 4
    assert not [one for one in found if one["kind"] == "ClusterRole" and "webhook" not in one["metadata"]["name"]]


def test_all_namespaces_are_one_cluster_role() -> None:
    found = printed("-n", "home", "-A")
    assert granted(the(found, "ClusterRole", "rollout-operator-home-clusterrole")["rules"]) == granted(
        the(printed("-n", "home"), "Role", "rollout-operator-role")["rules"]
    )
    assert [one["metadata"]["name"] for one in found if one["kind"] == "Role"] == ["rollout-operator-webhook-role"]


@pytest.mark.parametrize("arguments", [("-n", "a", "-n", "b"), ("-n", "a", "-A"), ("-n", "a", "--lease")])
def test_the_arguments_printed_are_ones_the_command_takes(arguments: tuple[str, ...]) -> None:
    deployment = the(printed(*arguments), "Deployment", "rollout-operator")
    told = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    result = CliRunner().invoke(main, [*told, "--help"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--namespace"),
        (("-n", "No Such"), "no name of a namespace"),
        (("-n", "a", "-n", "b", "-A"), "name only the one that the operator runs in"),
        (("-n", "a", "--mirror", "A B"), "write deployments.apps"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(arguments: tuple[str, ...], says: str) -> None:
    result = kedge(*arguments)
    assert result.exit_code == 2
    assert says in result.output


def test_nobody_is_granted_anything_of_everything() -> None:
    for rules in (rights.OPERATOR, rights.OPERATOR_EVENTS, rights.READ_DEPLOYMENTS, rights.WEBHOOK_CONFIGURATIONS):
        assert not [rule for rule in rules if "*" in words(rule)]


def words(rule: PolicyRule) -> set[str]:
    return {*rule.api_groups, *rule.resources, *(rule.verbs or ())}


# On a server


KINDS = (
    CustomResourceDefinition.resource,
    Resource("", "v1", "ServiceAccount", "serviceaccounts"),
    Resource("", "v1", "Service", "services"),
    Resource("apps", "v1", "Deployment", "deployments"),
    Role.resource,
    RoleBinding.resource,
    ClusterRole.resource,
    ClusterRoleBinding.resource,
    ValidatingWebhookConfiguration.resource,
    MutatingWebhookConfiguration.resource,
)


@pytest.mark.parametrize(
    "told",
    [
        OperatorInstall(("default",), "kedge"),
        OperatorInstall(("default",), "kedge", deployments=True, mirror=("deployments.apps",), failure_policy="Ignore"),
        OperatorInstall(("default", "other"), "kedge"),
        OperatorInstall(("default",), "kedge", everywhere=True),
        OperatorInstall(("default",), "kedge", lease=True),
        OperatorInstall(("default",), "kedge", batches=True),
    ],
    ids=["one", "more", "several", "all", "lease", "rollouts"],
)
def test_a_server_takes_all_of_it(told: OperatorInstall) -> None:
    kinds = {kind.kind: kind for kind in KINDS}
    documents = yaml_of(told)

    async def install() -> None:
        cluster = EmbeddedCluster("one", clock=SystemClock(), rng=Random(1))
        cluster.start()
        client = Client(cluster.transport())
        for namespace in {"default", *told.namespaces}:
            with suppress(AlreadyExists):
                await client.create(Namespace, {"metadata": {"name": namespace}})
        for document in documents:
            kind = untyped(kinds[document["kind"]])
            made = await client.create(kind, document)
            assert covers(made, document)
        cluster.stop()
        await client.close()

    run(install())


def yaml_of(told: OperatorInstall) -> list[dict[str, Any]]:
    text = StringIO()
    print_yaml(manifests(told), text)
    return list(yaml.safe_load_all(text.getvalue()))


def covers(made: Any, told: Any) -> bool:
    """Whether all that was told is there as it was told; a server may add to it."""
    if isinstance(told, dict):
        return all(covers(made.get(key), value) for key, value in told.items())
    if isinstance(told, list):
        return len(made) == len(told) and all(map(covers, made, told))
    return bool(made == told)

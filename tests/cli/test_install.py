"""`kedge install` and the options of the roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kedge import rights
from kedge.api.placement_kinds import NAMESPACED
from kedge.api.rbac import PolicyRule
from kedge.cli import main
from kedge.plan.membership import AGENT_RULES, READ


def kedge(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def printed(*arguments: str) -> list[dict[str, Any]]:
    result = kedge("install", *arguments)
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.output))


def of_kind(kind: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in found if one["kind"] == kind]


def test_a_hub_is_crds_rbac_and_a_deployment() -> None:
    found = printed("hub", "--image", "example.com/kedge:1", "--replicas", "3")
    definitions = {one["metadata"]["name"] for one in of_kind("CustomResourceDefinition", found)}
    assert "memberclusters.cluster.kubernetes-fleet.io" in definitions
    assert "appliedworks.placement.kubernetes-fleet.io" not in definitions
    (deployment,) = of_kind("Deployment", found)
    assert deployment["spec"]["replicas"] == 3
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "example.com/kedge:1"
    assert container["args"] == ["hub", "--dialect=seed", "--health=:8081"]


def test_a_namespace_comes_before_what_is_in_it() -> None:
    for found in (printed("hub"), printed("member", "cluster-1")):
        assert found[0]["kind"] == "Namespace"
        assert found[-1]["kind"] == "Deployment"


def test_a_member_has_the_one_crd_it_needs_and_knows_its_name() -> None:
    found = printed("member", "cluster-1")
    (definition,) = of_kind("CustomResourceDefinition", found)
    assert definition["metadata"]["name"] == "appliedworks.placement.kubernetes-fleet.io"
    (deployment,) = of_kind("Deployment", found)
    assert "--member=cluster-1" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_the_arguments_printed_are_ones_the_command_takes() -> None:
    for command in (printed("hub", "--dialect", "kubefleet"), printed("member", "cluster-1")):
        (deployment,) = of_kind("Deployment", command)
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        result = kedge(*[argument for argument in arguments if "kubeconfig" not in argument], "--help")
        assert result.exit_code == 0, result.output


def test_crds_are_of_the_dialect() -> None:
    assert of_kind("CustomResourceDefinition", printed("hub")) != of_kind(
        "CustomResourceDefinition", printed("hub", "--dialect", "kubefleet")
    )


def test_a_hub_of_karmadas_kinds_has_those_and_no_others() -> None:
    found = printed("hub", "--api", "karmada")
    groups = {one["spec"]["group"] for one in of_kind("CustomResourceDefinition", found)}
    assert groups == {"cluster.karmada.io", "policy.karmada.io", "work.karmada.io", "karmada.io"}
    (deployment,) = of_kind("Deployment", found)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["hub", "--api=karmada", "--health=:8081"]
    assert kedge(*container["args"], "--help").exit_code == 0


def test_a_member_of_karmadas_kinds_needs_no_kinds_of_its_own() -> None:
    found = printed("member", "cluster-1", "--api", "karmada")
    assert of_kind("CustomResourceDefinition", found) == []
    (deployment,) = of_kind("Deployment", found)
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[:2] == ["member", "--api=karmada"]
    assert kedge(*[one for one in arguments if "kubeconfig" not in one], "--help").exit_code == 0


def test_a_member_of_karmadas_kinds_that_is_told_what_to_place_watches_that_and_nothing_else() -> None:
    rules = rules_of(printed("member", "a", "--api", "karmada", "--kinds", "configmaps"), "ClusterRole")
    watches = {name for rule in rules for name in rule.get("resources", ()) if "watch" in rule["verbs"]}
    assert watches == {"configmaps"}


@pytest.mark.parametrize(("more", "may"), [((), True), (("--namespaces", "shop"), False)])
def test_a_member_of_karmadas_kinds_may_create_namespaces_unless_they_are_named(
    more: tuple[str, ...], *, may: bool
) -> None:
    printing = printed("member", "a", "--api", "karmada", "--kinds", "configmaps", *more)
    rules = rules_of(printing, "ClusterRole")
    verbs = {verb for rule in rules if "namespaces" in rule.get("resources", ()) for verb in rule["verbs"]}
    assert verbs == ({"create"} if may else set())


def test_a_hub_of_karmadas_kinds_writes_those_namespaces_events_and_statuses_of_workloads() -> None:
    writes = {(group, resource) for rule in rights.KARMADA_HUB if writing(rule) for group in rule.api_groups
              for resource in rule.resources}  # fmt: skip
    assert not any("*" in resource for _, resource in writes)
    assert {one for one in writes if not one[0].endswith("karmada.io")} == {
        ("", "events"),
        ("", "namespaces"),
        ("apps", "deployments/status"),
        ("apps", "statefulsets/status"),
        ("apps.kruise.io", "clonesets/status"),
    }


def test_nobody_is_cluster_admin_and_only_who_is_told_to_may_grant_anything() -> None:
    for rules in (rights.HUB, rights.KARMADA_HUB, rights.MEMBER, rights.LEADING, rights.REPORT_BACK):
        everything = [rule for rule in rules if "*" in rule.api_groups and "*" in (rule.verbs or ())]
        assert everything == []
        assert not {"escalate", "bind", "impersonate"} & {verb for rule in rules for verb in rule.verbs or ()}
    verbs = {verb for role in of_kind("ClusterRole", printed("member", "a", "--grant-any")) for rule in role["rules"]
             for verb in rule["verbs"]}  # fmt: skip
    assert {"escalate", "bind"} <= verbs


def test_a_hub_holds_all_that_it_gives_to_agents() -> None:
    assert all(rule in rights.HUB for rule in AGENT_RULES)


def test_a_hub_writes_no_kinds_but_the_fleets_its_members_namespaces_and_what_lets_them_in() -> None:
    writes = {(group, resource) for rule in rights.HUB if writing(rule) for group in rule.api_groups
              for resource in rule.resources}  # fmt: skip
    assert not any("*" in resource for _, resource in writes)
    others = {one for one in writes if not one[0].endswith(".kubernetes-fleet.io")}
    assert others == {
        ("", "events"),
        ("", "namespaces"),
        ("rbac.authorization.k8s.io", "roles"),
        ("rbac.authorization.k8s.io", "rolebindings"),
    }


def writing(rule: PolicyRule) -> bool:
    return bool(set(rule.verbs or ()) - set(READ)) and not rule.non_resource_urls


def rules_of(found: list[dict[str, Any]], kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
    """What the agent may do, by the one role of this kind there."""
    (role,) = [one for one in of_kind(kind, found) if one["metadata"].get("namespace") == namespace]
    return [rule for rule in role["rules"] if "resources" in rule]


def test_a_member_may_be_told_which_kinds_are_placed_there() -> None:
    found = printed("member", "a", "--kinds", "namespaces,configmaps,deployments.apps")
    rules = rules_of(found, "ClusterRole")
    assert not [rule for rule in rules if "*" in (*rule["resources"], *rule["apiGroups"], *rule["verbs"])]
    everything = ["get", "list", "watch", "create", "patch", "delete"]
    assert {"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": everything} in rules
    assert {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": everything} in rules
    assert rules_of(found, "Role", "fleet-system") == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["kedge-hub"], "verbs": ["patch"]}
    ]


def test_a_member_may_be_told_in_which_namespaces() -> None:
    found = printed("member", "a", "--kinds", "namespaces,configmaps", "--namespaces", "shop,web")
    anywhere = rules_of(found, "ClusterRole")
    own = {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["shop", "web"],
           "verbs": ["patch", "delete"]}  # fmt: skip
    assert own in anywhere
    assert {"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["get", "list", "watch"]} in anywhere
    for namespace in ("shop", "web"):
        assert rules_of(found, "Role", namespace) == [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "delete"]}
        ]
    assert [one["metadata"]["name"] for one in of_kind("Namespace", found)] == ["fleet-system", "shop", "web"]


def test_of_a_member_that_is_told_namespaces_alone_any_kind_is_placed_there() -> None:
    found = printed("member", "a", "--namespaces", "shop")
    assert {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]} in rules_of(found, "ClusterRole")
    assert rules_of(found, "Role", "shop")[0]["resources"] == ["*"]


def test_every_policy_is_bound_and_refuses_what_it_cannot_judge() -> None:
    found = printed("hub")
    policies = of_kind("ValidatingAdmissionPolicy", found)
    bound = {one["spec"]["policyName"]: one["spec"] for one in of_kind("ValidatingAdmissionPolicyBinding", found)}
    assert bound.keys() == {one["metadata"]["name"] for one in policies}
    assert all(one["validationActions"] == ["Deny"] for one in bound.values())
    assert all(one["spec"]["failurePolicy"] == "Fail" for one in policies)


def test_of_every_namespaced_kind_it_is_decided_who_writes_it() -> None:
    guarded = {
        resource
        for policy in of_kind("ValidatingAdmissionPolicy", printed("hub"))
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for resource in rule["resources"]
    }
    kinds = {getattr(NAMESPACED, field).resource.plural for field in NAMESPACED.__struct_fields__}
    assert kinds | {"works", "internalmemberclusters"} <= guarded
    answers = {"works/status", "internalmemberclusters/status"}
    assert not answers & guarded, "what an agent answers, in its own namespace, is for RBAC to allow"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("hub", "--health", "here"), "write HOST:PORT"),
        (("hub", "--health", "here:99999"), "write HOST:PORT"),
        (("hub", "--dialect", "klingon"), "seed"),
        (("hub", "--collect", "-1"), "--collect"),
        (("member",), "--member"),
        (("member", "--member", "a="), "write NAME, or NAME=CONTEXT"),
        (("member", "--member", "a", "--member", "b"), "each needs its context"),
        (("member", "--member", "a=x", "--member", "b=x"), "context x is given 2 times"),
        (("member", "--member", "a=x", "--member", "a=y"), "member a is given 2 times"),
        (("member", "--member", "a"), "say --hub-kubeconfig or --hub-context"),
        (("join", "a", "--label", "west"), "write KEY=VALUE"),
        (("join", "a", "--token-duration", "soon"), "is not a duration"),
        (("join", "a", "--token-duration", "5m"), "10m"),
        (("join", "a", "--user", "x", "--agent-kubeconfig", "y"), "has credentials already"),
        (("member", "--member", "a", "--hub-secret", "x"), "write NAMESPACE/NAME"),
        (("install", "member", "a", "--kinds", "Config Maps"), "write configmaps,deployments.apps"),
        (("install", "member", "a", "--namespaces", "shop,"), "write shop,web"),
        (("join", "a", "--heartbeat", "0"), "--heartbeat"),
        (("join", "a", "--api", "karmada", "--heartbeat", "5"), "--heartbeat is for --api fleet"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(arguments: tuple[str, ...], says: str) -> None:
    result = kedge(*arguments)
    assert result.exit_code == 2
    assert says in result.output


def test_a_missing_configuration_is_an_error_for_people(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    result = kedge("hub")
    assert result.exit_code == 1
    assert "give a kubeconfig, set $KUBECONFIG" in result.output


def config(path: Path, servers: dict[str, str], current: str) -> str:
    """A kubeconfig with a context of the same name for each server."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server}} for name, server in servers.items()],
        "contexts": [{"name": name, "context": {"cluster": name}} for name in servers],
        "current-context": current,
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


def test_a_member_is_never_guessed_among_several_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = config(tmp_path / "fleet", {"hub": "https://hub:1", "east": "https://east:1"}, current="hub")
    monkeypatch.setenv("KUBECONFIG", fleet)
    for given in (("--hub-context", "hub"), ("--hub-kubeconfig", fleet, "--kubeconfig", fleet)):
        result = kedge("member", *given, "--member", "cluster-1")
        assert result.exit_code == 2
        assert "has 2 contexts, and the current one need not be member cluster-1" in result.output
        assert "write --member cluster-1=CONTEXT, with one of hub, east" in result.output


def test_a_member_that_would_be_the_hub_is_refused(tmp_path: Path) -> None:
    alone = config(tmp_path / "alone", {"hub": "https://hub:1"}, current="hub")
    result = kedge("member", "--hub-kubeconfig", alone, "--kubeconfig", alone, "--member", "cluster-1")
    assert result.exit_code == 2
    assert "member cluster-1 would be the hub itself" in result.output
    assert "write --member cluster-1=CONTEXT if that is meant" in result.output

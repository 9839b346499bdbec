"""RBAC: defaults and validation of roles and their bindings."""

from __future__ import annotations

from collections.abc import Iterator

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.defaulting import each, struct
from kedge.embedded.builtin.label_selectors import selector_problems
from kedge.embedded.causes import invalid_value, must_be_one_of, required_value, unsupported_value
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

GROUP = "rbac.authorization.k8s.io"


def _subject(subject: Untyped) -> Untyped:
    """The default API group of users and groups is RBAC's own; that of accounts is the core."""
    if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
        return {**subject, "apiGroup": GROUP}
    return subject


default_role = struct(null=("rules",))
default_binding = struct({"roleRef": {}}, roleRef=struct({"apiGroup": GROUP}), subjects=each(_subject))


def role_problems(role: Untyped) -> Iterator[Cause]:
    """What is wrong with a Role."""
    for index, rule in enumerate(role["rules"] or ()):
        yield from _rule(f"rules[{index}]", rule, namespaced=True)


def cluster_role_problems(role: Untyped) -> Iterator[Cause]:
    """What is wrong with a ClusterRole, which may have nonResourceURLs and an aggregation rule."""
    for index, rule in enumerate(role["rules"] or ()):
        yield from _rule(f"rules[{index}]", rule, namespaced=False)
    if "aggregationRule" in role:
        at, selectors = "aggregationRule.clusterRoleSelectors", role["aggregationRule"].get("clusterRoleSelectors", ())
        if not selectors:
            yield required_value(at, "at least one clusterRoleSelector required if aggregationRule is non-nil")
        for index, selector in enumerate(selectors):
            yield from selector_problems(f"{at}[{index}]", selector)


def binding_problems(binding: Untyped) -> Iterator[Cause]:
    """What is wrong with a RoleBinding."""
    yield from _binding(binding, "Role", "ClusterRole")


def cluster_binding_problems(binding: Untyped) -> Iterator[Cause]:
    """What is wrong with a ClusterRoleBinding."""
    yield from _binding(binding, "ClusterRole")


def binding_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """The roleRef of a binding cannot be changed; its subjects can."""
    if old["roleRef"] != new["roleRef"]:
        role = new["roleRef"]
        shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
        yield invalid_value("roleRef", shown, "cannot change roleRef")


def _rule(at: str, rule: Untyped, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield required_value(f"{at}.verbs", "verbs must contain at least one value")
    if paths := rule.get("nonResourceURLs"):
        if namespaced:
            yield invalid_value(f"{at}.nonResourceURLs", paths, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid_value(f"{at}.nonResourceURLs", paths, why)
        return
    if not rule.get("apiGroups"):
        yield required_value(f"{at}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required_value(f"{at}.resources", "resource rules must supply at least one resource")


def _binding(binding: Untyped, *kinds: str) -> Iterator[Cause]:
    role = binding["roleRef"]
    yield from must_be_one_of("roleRef.apiGroup", role["apiGroup"], (GROUP,))
    yield from must_be_one_of("roleRef.kind", role.get("kind", ""), kinds)
    name = role.get("name", "")
    if not name:
        yield required_value("roleRef.name")
    else:
        yield from (invalid_value("roleRef.name", name, f"may not contain '{char}'") for char in "/%" if char in name)
    for index, subject in enumerate(binding.get("subjects", ())):
        yield from _subject_problems(f"subjects[{index}]", subject, namespaced="Role" in kinds)


def _subject_problems(at: str, subject: Untyped, *, namespaced: bool) -> Iterator[Cause]:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    if not name:
        yield required_value(f"{at}.name")
    if kind in ("User", "Group"):
        yield from must_be_one_of(f"{at}.apiGroup", group, (GROUP,))
    elif kind == "ServiceAccount":
        if name:
            yield from checks.subdomain(f"{at}.name", name)
        if group:
            yield unsupported_value(f"{at}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield required_value(f"{at}.namespace")
    else:
        yield unsupported_value(f"{at}.kind", kind, ("ServiceAccount", "User", "Group"))

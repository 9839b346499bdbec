"""Matching: which writes a webhook is asked about, by its rules and selectors.

As in kube-apiserver: a webhook that lists no subresource is not asked about any (`pods/*` means pods and all of
theirs); its object selector is held against the new and the old object, and needs to select one of them; its namespace
selector does not count for what is in no namespace. With matchPolicy Equivalent, a rule for another version of the
same resource matches too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from kedge.api.admission import REGISTRATION, ResourceName
from kedge.api.selector import LabelSelector, selects
from kedge.embedded.admission.attributes import Attributes
from kedge.embedded.admission.webhook import Rule, Webhook
from kedge.kube.codec import Untyped

_EXEMPT = frozenset(
    {
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }
)


def is_exempt(asked: Attributes) -> bool:
    """Whether no webhook is asked: what configures admission must stay changeable."""
    return asked.kind.group == REGISTRATION and asked.kind.kind in _EXEMPT


def matched_resource(
    hook: Webhook, asked: Attributes, equivalents: Callable[[ResourceName], Iterable[ResourceName]]
) -> ResourceName | None:
    """The resource by which one of a webhook's rules matches: the request's, or another version of it."""
    if any(rule_matches(rule, asked) for rule in hook.rules):
        return asked.resource
    if hook.match_policy != "Equivalent":
        return None
    others = [replace(asked, resource=other) for other in equivalents(asked.resource)]
    return next((other.resource for rule in hook.rules for other in others if rule_matches(rule, other)), None)


def rule_matches(rule: Rule, asked: Attributes) -> bool:
    """Whether a rule is about a write."""
    return (
        _scope_matches(rule.scope, asked)
        and _is_in(asked.operation, rule.operations)
        and _is_in(asked.resource.group, rule.api_groups)
        and _is_in(asked.resource.version, rule.api_versions)
        and any(_resource_matches(one, asked) for one in rule.resources)
    )


def object_matches(selector: LabelSelector, asked: Attributes) -> bool:
    """Whether the new or the old object has the labels. A `Scale` has none."""
    if selector == LabelSelector():
        return True
    return any(selects(selector, labels_of(obj)) for obj in (asked.obj, asked.old) if obj is not None)


def labels_of(obj: Untyped) -> Mapping[str, str]:
    found: Mapping[str, str] = obj.get("metadata", {}).get("labels") or {}
    return found


def _scope_matches(scope: str, asked: Attributes) -> bool:
    is_namespaced = bool(asked.namespace) and not asked.is_of_namespace
    return scope == "*" or is_namespaced == (scope == "Namespaced")


def _is_in(value: str, allowed: tuple[str, ...]) -> bool:
    return "*" in allowed or value in allowed


def _resource_matches(pattern: str, asked: Attributes) -> bool:
    resource, _, subresource = pattern.partition("/")
    return resource in ("*", asked.resource.resource) and subresource in ("*", asked.subresource)

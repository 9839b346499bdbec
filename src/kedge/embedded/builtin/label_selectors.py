"""Label selectors: validation of label selectors, and whether one selects the labels of its template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kedge.embedded.builtin import checks
from kedge.embedded.causes import forbidden, invalid_value, required_value, sorted_by_key
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

SELECTOR_MISMATCH = "`selector` does not match template `labels`"


def selector_problems(at: str, selector: Untyped) -> Iterator[Cause]:
    """What is wrong with a selector."""
    yield from checks.labels(f"{at}.matchLabels", selector.get("matchLabels", {}))
    for index, one in enumerate(selector.get("matchExpressions", ())):
        yield from _requirement(f"{at}.matchExpressions[{index}]", one)


def matches(selector: Untyped, labels: Mapping[str, str]) -> bool:
    """Whether a valid selector matches these labels."""
    wanted: Mapping[str, str] = selector.get("matchLabels", {})
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(one, labels) for one in selector.get("matchExpressions", ()))


def template_selector_problems(what: str, spec: Untyped, *, needed: bool = True) -> Iterator[Cause]:
    """What is wrong with the selector of a workload: it must exist, not be empty, and match its own template."""
    selector = spec.get("selector")
    labels = (spec.get("template", {}).get("metadata") or {}).get("labels")
    if selector is None:
        if needed:
            yield required_value("spec.selector")
        yield invalid_value("spec.template.metadata.labels", sorted_by_key(labels), SELECTOR_MISMATCH)
        return
    if found := list(selector_problems("spec.selector", selector)):
        yield from found
        yield invalid_value("spec.selector", selector_in_order(selector), "invalid label selector")
        return
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid_value("spec.selector", selector, f"empty selector is invalid for {what}")
    elif not matches(selector, labels or {}):
        yield invalid_value("spec.template.metadata.labels", sorted_by_key(labels), SELECTOR_MISMATCH)


def selector_in_order(selector: Untyped | None) -> Untyped | None:
    """A selector as Kubernetes shows it in a message."""
    if not selector or "matchLabels" not in selector:
        return selector
    return {**selector, "matchLabels": sorted_by_key(selector["matchLabels"])}


def _requirement(at: str, one: Untyped) -> Iterator[Cause]:
    operator, values = one.get("operator", ""), one.get("values", [])
    if operator in ("In", "NotIn"):
        if not values:
            yield required_value(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid_value(f"{at}.operator", operator, "not a valid selector operator")
    yield from checks.qualified_name(f"{at}.key", one.get("key", ""))
    for index, value in enumerate(values):
        yield from checks.label_value(f"{at}.values[{index}]", value)


def _holds(one: Untyped, labels: Mapping[str, str]) -> bool:
    key = one["key"]
    match one["operator"]:
        case "In":
            return labels.get(key) in one["values"]
        case "NotIn":
            return labels.get(key) not in one["values"]
        case "Exists":
            return key in labels
    return key not in labels

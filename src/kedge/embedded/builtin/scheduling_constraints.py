"""Scheduling constraints: validation of tolerations, affinity, topology spread and scheduling gates of a pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.label_selectors import selector_problems
from kedge.embedded.causes import (
    duplicate_value,
    forbidden,
    invalid_value,
    must_be_one_of,
    required_value,
    unsupported_value,
)
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def scheduling_problems(at: str, spec: Untyped) -> Iterator[Cause]:
    """What is wrong with the scheduling constraints of a pod."""
    if selector := spec.get("nodeSelector"):
        yield from checks.labels(f"{at}.nodeSelector", selector)
    if affinity := spec.get("affinity"):
        yield from _affinity(f"{at}.affinity", affinity)
    if gates := spec.get("schedulingGates"):
        yield from _gates(f"{at}.schedulingGates", gates)
    if constraints := spec.get("topologySpreadConstraints"):
        yield from _constraints(f"{at}.topologySpreadConstraints", constraints)
    for index, toleration in enumerate(spec.get("tolerations", ())):
        yield from _toleration(f"{at}.tolerations[{index}]", toleration)


def _toleration(at: str, toleration: Untyped) -> Iterator[Cause]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect, value = toleration.get("effect", ""), toleration.get("value", "")
    if key:
        yield from checks.qualified_name(f"{at}.key", key)
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{at}.operator", operator, why)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        yield invalid_value(f"{at}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("Equal", ""):
        yield from checks.label_value(f"{at}.operator", value)
    elif operator == "Exists":
        if value:
            yield invalid_value(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield unsupported_value(f"{at}.operator", operator, ("Equal", "Exists"))
    if effect:
        yield from must_be_one_of(f"{at}.effect", effect, EFFECTS)


def _gates(at: str, gates: Iterable[Untyped]) -> Iterator[Cause]:
    names: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from checks.qualified_name(f"{at}[{index}]", name)
        if name in names:
            yield duplicate_value(f"{at}[{index}]", name)
        names.add(name)


def _constraints(at: str, constraints: Sequence[Untyped]) -> Iterator[Cause]:
    for index, constraint in enumerate(constraints):
        yield from _spread(f"{at}[{index}]", constraint)
        key = _spread_key(constraint)
        if key in [_spread_key(other) for other in constraints[index + 1 :]]:
            yield duplicate_value(f"{at}[{index}].{{topologyKey, whenUnsatisfiable}}", f"{{{key[0]}, {key[1]}}}")


def _spread_key(constraint: Untyped) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _spread(at: str, constraint: Untyped) -> Iterator[Cause]:
    if constraint.get("maxSkew", 0) <= 0:
        yield invalid_value(f"{at}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
    yield from _topology(f"{at}.topologyKey", constraint.get("topologyKey", ""), strict=False)
    how = constraint.get("whenUnsatisfiable", "")
    yield from must_be_one_of(f"{at}.whenUnsatisfiable", how, ("DoNotSchedule", "ScheduleAnyway"))
    if "minDomains" in constraint:
        if constraint["minDomains"] <= 0:
            yield invalid_value(f"{at}.minDomains", constraint["minDomains"], "must be greater than zero")
        if how != "DoNotSchedule":
            why = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
            yield invalid_value(f"{at}.minDomains", constraint["minDomains"], why)
    if selector := constraint.get("labelSelector"):
        yield from selector_problems(f"{at}.labelSelector", selector)


def _affinity(at: str, affinity: Untyped) -> Iterator[Cause]:
    if node := affinity.get("nodeAffinity"):
        yield from _node_affinity(f"{at}.nodeAffinity", node)
    for part in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate(affinity.get(part, {}).get(_REQUIRED, ())):
            yield from _pod_term(f"{at}.{part}.{_REQUIRED}[{index}]", term)
        for index, one in enumerate(affinity.get(part, {}).get(_PREFERRED, ())):
            where = f"{at}.{part}.{_PREFERRED}[{index}]"
            yield from _weight(f"{where}.weight", one.get("weight", 0))
            yield from _pod_term(f"{where}.podAffinityTerm", one.get("podAffinityTerm", {}))


def _node_affinity(at: str, affinity: Untyped) -> Iterator[Cause]:
    if _REQUIRED in affinity:
        yield from node_selector_problems(f"{at}.{_REQUIRED}", affinity[_REQUIRED])
    for index, one in enumerate(affinity.get(_PREFERRED, ())):
        where = f"{at}.{_PREFERRED}[{index}]"
        yield from _weight(f"{where}.weight", one.get("weight", 0))
        yield from _node_term(f"{where}.preference", one.get("preference", {}))


def node_selector_problems(at: str, selector: Untyped) -> Iterator[Cause]:
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        yield required_value(f"{at}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from _node_term(f"{at}.nodeSelectorTerms[{index}]", term)


def _node_term(at: str, term: Untyped) -> Iterator[Cause]:
    for index, one in enumerate(term.get("matchExpressions", ())):
        where = f"{at}.matchExpressions[{index}]"
        operator, values = one.get("operator", ""), one.get("values", [])
        if operator in ("In", "NotIn") and not values:
            yield required_value(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            yield forbidden(f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator in ("Gt", "Lt") and len(values) != 1:
            yield required_value(f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        elif operator not in _NODE_OPERATORS:
            yield invalid_value(f"{where}.operator", operator, "not a valid selector operator")
        yield from checks.qualified_name(f"{where}.key", one.get("key", ""))


def _pod_term(at: str, term: Untyped) -> Iterator[Cause]:
    if selector := term.get("labelSelector"):
        yield from selector_problems(f"{at}.labelSelector", selector)
    yield from _topology(f"{at}.topologyKey", term.get("topologyKey", ""), strict=True)


def _topology(at: str, key: str, *, strict: bool) -> Iterator[Cause]:
    if not key:
        yield required_value(at, "can not be empty")
    if key or strict:
        yield from checks.qualified_name(at, key)


def _weight(at: str, weight: int) -> Iterator[Cause]:
    if not 1 <= weight <= 100:
        yield invalid_value(at, weight, "must be in the range 1-100")

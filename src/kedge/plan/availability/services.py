"""Services and ServiceExports.

A Service is available when it has an address. Of an ExternalName, which is only a name, nothing can be known.

A ServiceExport is available when it is valid and, unless its weight is 0, without conflict. The types of the conditions
are `Valid` and `Conflict`; `ServiceExportValid` and `ServiceExportConflict`, the names of the same in documents, are
understood too. A change of the weight leaves the generation as it is, so the conditions may be of the weight before;
a weight that is none is therefore judged here as well.
"""

from __future__ import annotations

from kedge.plan.availability.verdict import Verdict, available, not_available, untrackable
from kedge.plan.fields import Object, at, condition, first, generation, name_of, text

WEIGHT = "networking.fleet.azure.com/weight"
MOST = 1000
_VALID = ("Valid", "ServiceExportValid")
_CONFLICT = ("Conflict", "ServiceExportConflict")


def judge_service(obj: Object) -> Verdict:
    match text(obj, "spec", "type") or "ClusterIP":
        case "ClusterIP" | "NodePort":
            return _inside(obj)
        case "LoadBalancer":
            return _outside(obj)
        case kind:
            return untrackable(f"{name_of(obj)} is of type {kind}, whose availability is not trackable")


def _inside(obj: Object) -> Verdict:
    address = first(obj, "spec", "clusterIPs") or text(obj, "spec", "clusterIP")
    if not address:
        return not_available(f"{name_of(obj)} has no cluster IP yet")
    headless = address == "None"  # asked for none: there is nothing to wait for
    return available(f"{name_of(obj)} {'is headless' if headless else f'has the cluster IP {address}'}")


def _outside(obj: Object) -> Verdict:
    ingress = first(obj, "status", "loadBalancer", "ingress")
    address = text(ingress, "ip") or text(ingress, "hostname")
    if not address:
        return not_available(f"{name_of(obj)} has no address of a load balancer yet")
    return available(f"{name_of(obj)} has the load balancer {address}")


def judge_service_export(obj: Object) -> Verdict:
    weight = _weight(obj)
    if weight is None:
        found = at(obj, "metadata", "annotations", WEIGHT)
        return not_available(f"{name_of(obj)} has {found!r} as {WEIGHT}, which must be a whole number from 0 to {MOST}")
    problem = _condition_problem(obj, _VALID, "True", "valid")
    if not problem and weight > 0:
        problem = _condition_problem(obj, _CONFLICT, "False", "free of conflicts")
    if problem:
        return not_available(f"{name_of(obj)} {problem}")
    return available(f"{name_of(obj)} is valid for export with weight {weight}")


def _weight(obj: Object) -> int | None:
    """Its share of the traffic: 1 unless it says; None if what it says is no weight."""
    found = at(obj, "metadata", "annotations", WEIGHT)
    if found is None:
        return 1
    number = int(found) if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) < 9 else -1
    return number if 0 <= number <= MOST else None


def _condition_problem(obj: Object, types: tuple[str, ...], wanted: str, word: str) -> str:
    """What is wrong with a condition; empty if it says what it should, of this generation."""
    found = condition(obj, *types)
    if found is None:
        return f"does not say yet whether it is {word}"
    if text(found, "status") != wanted:
        return f"is not {word}: {text(found, 'message') or text(found, 'reason')}"
    seen = found.get("observedGeneration")
    return f"does not say yet whether it is {word} since it changed" if seen not in (None, generation(obj)) else ""

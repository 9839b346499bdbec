"""Services: they have an address. Of an ExternalName, which is only a name, nothing can be known."""

from __future__ import annotations

from kedge.plan.availability.reading import Object, first, name_of, text
from kedge.plan.availability.verdict import Verdict, available, not_available, untrackable


def judge(obj: Object) -> Verdict:
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

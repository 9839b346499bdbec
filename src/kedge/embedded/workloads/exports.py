"""ServiceExports: says whether a service can be offered to other clusters, as the fleet's network agent does.

    networking.fleet.azure.com/weight: "0"      how much of the traffic it is to get: 0 to 1000, 1 unless told
    kedge.dev/conflict: "true"                  as if another cluster offered another service of that name

Valid is True if there is such a service, with an address of its own, and the weight is one. Conflict is said of an
export that is valid and has a weight; nobody else offers anything here, so it is False unless told. With a weight of 0
nothing is offered and nothing compared, and what was said of a conflict before stays as it was.

Only for clusters that have the kind: a cache of a kind that is not there never fills.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar

from msgspec import Struct, field

from kedge.api.condition import FALSE, TRUE, Condition, set_condition
from kedge.api.core import Service
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.embedded.workloads.view import View
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source

WEIGHT = "networking.fleet.azure.com/weight"
CONFLICT = "kedge.dev/conflict"
MOST = 1000


class ServiceExportStatus(Value, frozen=True, gc=False):
    """What has become of the offer."""

    conditions: tuple[Condition, ...] = ()


class ServiceExport(Value, frozen=True, gc=False):
    """An offer of the service of the same name to other clusters."""

    resource: ClassVar[Resource] = Resource("networking.fleet.azure.com", "v1alpha1", "ServiceExport", "serviceexports")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: ServiceExportStatus = ServiceExportStatus()


class Verdict(Struct, frozen=True):
    """What is to be said of one thing."""

    holds: bool
    reason: str
    message: str


class ServiceExports:
    """The ServiceExports of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._exports = view.of(ServiceExport)
        self._services = view.of(Service)

    def sources(self) -> Iterable[Source]:
        return [self._view.itself(ServiceExport), self._view.itself(Service)]

    async def reconcile(self, key: Key) -> Outcome:
        found = self._exports.get(key.name, key.namespace)
        if found is not None and found.metadata.deletion_timestamp is None:
            service = self._services.get(key.name, key.namespace)
            await self._view.write_status(found, status(found, service, self._view.now()))
        return Outcome.done


def status(export: ServiceExport, service: Service | None, now: datetime) -> ServiceExportStatus:
    """What the export says of itself."""
    valid = is_valid(export, service)
    conditions = set_condition(export.status.conditions, _condition(export, "Valid", valid, now))
    if valid.holds and weight(export) != 0:
        conditions = set_condition(conditions, _condition(export, "Conflict", in_conflict(export), now))
    return ServiceExportStatus(conditions=conditions)


def is_valid(export: ServiceExport, service: Service | None) -> Verdict:
    """Whether there is something to offer."""
    name = f"{export.metadata.namespace}/{export.metadata.name}"
    if service is None or service.metadata.deletion_timestamp is not None:
        return Verdict(False, "ServiceNotFound", f"service {name} is not found")
    if service.spec.type == "ExternalName" or service.spec.cluster_ip == "None":
        return Verdict(False, "ServiceIneligible", f"service {name} is not eligible for export")
    if weight(export) is None:
        text = f"serviceExport {name} has an invalid weight annotation, err = {_wrong_with_weight(export)}"
        return Verdict(False, "ServiceExportInvalidWeightAnnotation", text)
    if weight(export) == 0:
        return Verdict(True, "ServiceIsValid", f"exported service {name} with 0 weight")
    return Verdict(True, "ServiceIsValid", f"service {name} is valid for export")


def in_conflict(export: ServiceExport) -> Verdict:
    """Whether another cluster offers another service under this name."""
    name = f"{export.metadata.namespace}/{export.metadata.name}"
    if export.metadata.annotations.get(CONFLICT) == "true":
        return Verdict(True, "ConflictFound", f"service {name} is in conflict with other exported services")
    return Verdict(False, "NoConflictFound", f"service {name} is exported without conflict")


def weight(export: ServiceExport) -> int | None:
    """How much of the traffic it is to get; None if what is written is no such number."""
    text = export.metadata.annotations.get(WEIGHT, "1")
    number = int(text) if _is_number(text) else -1
    return number if 0 <= number <= MOST else None


def _wrong_with_weight(export: ServiceExport) -> str:
    text = export.metadata.annotations.get(WEIGHT, "")
    fault = f"not in the range [0, {MOST}]" if _is_number(text) else "not a valid integer"
    return f"the weight annotation is {fault}: {text}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdecimal()


def _condition(export: ServiceExport, kind: str, said: Verdict, now: datetime) -> Condition:
    return Condition(
        type=kind,
        status=TRUE if said.holds else FALSE,
        reason=said.reason,
        message=said.message,
        last_transition_time=now,
        observed_generation=export.metadata.generation,
    )

"""Downscale: whether the pods of a zone may be taken away, and which endpoints prepare them for it.

Two rules. `no_downscale` forbids it for objects with the label `grafana.com/no-downscale: "true"`. `unprepared`,
`too_soon` and `unsettled` are the checks of prepare-downscale, in the order in which Grafana's rollout-operator makes
them and in its words: what must be set on the StatefulSet; no other zone of its group scaled down a short while ago;
every pod of every other zone updated and ready.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.apps import StatefulSet
from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.api.times import format_duration, parse_duration
from kedge.api.zones import (
    NO_DOWNSCALE,
    PREPARE_DOWNSCALE,
    PREPARE_DOWNSCALE_PATH,
    PREPARE_DOWNSCALE_PORT,
)
from kedge.plan.zoning.go_time import parse_rfc3339, print_moment
from kedge.plan.zoning.pod_hosts import MOST_PODS, pod_host
from kedge.plan.zoning.pods import is_running_and_ready
from kedge.plan.zoning.replica_change import ALLOWED, UNNAMED, Downscale, RuleVerdict
from kedge.plan.zoning.scaling import min_time_between_zones

TRUE: Final = "true"
NAME: Final = "name"
"""The label of a pod template by which the pods of a StatefulSet are found if they have no owner."""
_PORT: Final = re.compile(r"[0-9]{1,5}")
_DNS: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")

FIND_FAILED: Final = "finding other statefulsets failed."
COUNT_FAILED: Final = "an error occurred while checking whether StatefulSets have non-updated replicas"
PREPARE_FAILED: Final = "one or more pods failed to prepare for shutdown."


def no_downscale(labels: Mapping[str, str], downscale: Downscale) -> RuleVerdict:
    """Whether an object with these labels may be scaled down."""
    if labels.get(NO_DOWNSCALE) != TRUE:
        return ALLOWED
    return downscale.denied(f"it has the label '{NO_DOWNSCALE}={TRUE}'")


def wants_preparation(zone: StatefulSet) -> bool:
    """Whether its pods are told before they go."""
    return zone.metadata.labels.get(PREPARE_DOWNSCALE) == TRUE


def unprepared(zone: StatefulSet, downscale: Downscale) -> RuleVerdict | None:
    """The denial of a StatefulSet that does not say how its pods are told; None if it does."""
    port, path = (zone.metadata.annotations.get(key, "") for key in (PREPARE_DOWNSCALE_PORT, PREPARE_DOWNSCALE_PATH))
    service = zone.spec.service_name
    if not port:
        return downscale.denied(f"the {PREPARE_DOWNSCALE_PORT} annotation is not set or empty.")
    if not path:
        return downscale.denied(f"the {PREPARE_DOWNSCALE_PATH} annotation is not set or empty.")
    if not service:
        return downscale.denied("the serviceName is not set or empty.")
    # These become parts of a URL: what is no port and no name could lead a call anywhere.
    if not downscale.is_named:
        return downscale.denied(f"{UNNAMED}.")
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        return downscale.denied(f"the {PREPARE_DOWNSCALE_PORT} annotation is {port!r}, which is no port.")
    if not _DNS.fullmatch(service):
        return downscale.denied(f"the serviceName is {service!r}, which is no name of a Service.")
    if downscale.old - max(0, downscale.new) > MOST_PODS:
        return downscale.denied(f"it would take away more than {MOST_PODS} pods at once.")
    return None


class BadRecord(ValueError):
    """A time or duration that cannot be read."""


class RecentDownscale(Struct, frozen=True):
    """A zone that was scaled down so short a while ago that the others have to wait."""

    name: str
    at: datetime
    wait: timedelta

    @property
    def text(self) -> str:
        return (
            f"statefulset {self.name} was downscaled at {print_moment(self.at)}"
            f" and is labelled to wait {format_duration(self.wait)} between zone downscales"
        )


def too_soon(others: Iterable[StatefulSet], last: Mapping[str, str], now: datetime) -> RecentDownscale | None:
    """The first of the other zones that makes this one wait. `last` says when each was scaled down, as it is written.

    Raises `BadRecord` for what cannot be read: then nobody knows.
    """
    recent = (_recent(zone, last[zone.metadata.name], now) for zone in others if zone.metadata.name in last)
    return next((one for one in recent if one is not None), None)


def _recent(zone: StatefulSet, written: str, now: datetime) -> RecentDownscale | None:
    name, wait = zone.metadata.name, min_time_between_zones(zone)
    try:
        at = parse_rfc3339(written)
        if wait is None:
            return None
        least = parse_duration(wait)
    except (ValueError, OverflowError) as error:
        raise BadRecord(f"{name}: {error}") from error
    return RecentDownscale(name, at, least) if now - at < least else None


class ZoneCount(Struct, frozen=True):
    """Another zone of the group, and how many of its pods are running and ready; None if they could not be counted."""

    zone: StatefulSet
    ready: int | None


def unsettled(others: Iterable[ZoneCount]) -> str:
    """Why another zone is in no state to be the only one; empty if none is."""
    return next((why for one in others if (why := _unsettled(one))), "")


def _unsettled(count: ZoneCount) -> str:
    status, ready = count.zone.status, count.ready
    if ready is None:
        return COUNT_FAILED
    if status.replicas == ready and status.updated_replicas == ready:
        return ""
    return (
        f"statefulset {count.zone.metadata.name} has {status.replicas - status.updated_replicas} non-updated replicas"
        f" and {status.replicas - ready} non-ready replicas"
    )


def was_not_stored(before: StatefulSet, current: StatefulSet, downscale: Downscale) -> bool:
    """Whether a downscale never reached the StatefulSet: its spec is still the one that was asked about."""
    same = before.metadata.uid == current.metadata.uid and before.metadata.generation == current.metadata.generation
    return same and before.metadata.generation > 0 and current.spec.replicas == downscale.old


def ready_pods(zone: StatefulSet, pods: Iterable[Pod]) -> int:
    """How many pods of a zone are running and ready: those that it controls; if it controls none, those by name.

    Pods are counted by name only if nobody controls them: another StatefulSet may use the same name.
    """
    controlled, by_name = [], []
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is None and pod.metadata.labels.get(NAME) == name_label(zone) != "":
            by_name.append(pod)
        elif owner is not None and owner.uid == zone.metadata.uid:
            controlled.append(pod)
    return sum(map(is_running_and_ready, controlled or by_name))


def name_label(zone: StatefulSet) -> str:
    """The label `name` of its pods; empty if they have none."""
    metadata = zone.spec.template.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    found = labels.get(NAME) if isinstance(labels, Mapping) else None
    return found if isinstance(found, str) else ""


def endpoints(zone: StatefulSet, downscale: Downscale, *, domain: str) -> tuple[str, ...]:
    """The URLs that prepare the pods that would go, the last pod first."""
    port, path = (zone.metadata.annotations.get(key, "") for key in (PREPARE_DOWNSCALE_PORT, PREPARE_DOWNSCALE_PATH))
    # The names of the downscale were checked; those in the object that came with the request were not.
    checked = replace(zone, metadata=replace(zone.metadata, name=downscale.name, namespace=downscale.namespace))
    ordinals = range(downscale.old - 1, max(0, downscale.new) - 1, -1)
    rest = f":{port}/{path.removeprefix('/')}"
    return tuple(f"http://{pod_host(checked, ordinal, domain)}{rest}" for ordinal in ordinals)

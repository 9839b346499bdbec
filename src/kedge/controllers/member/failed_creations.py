"""Failed creations: pods that a member refuses to a StatefulSet, a DaemonSet or a Job, and why.

A Deployment has a condition for this. The others tell of it only in events (`FailedCreate`). So while one of them is
not available and no pod of it says why, the events of its namespace are watched, and no others: of each only what was
refused and to whom is kept. Once it is available, or no longer placed, the watch ends.

An event stays for an hour. It counts if it is not older than the longest that a controller waits before it tries again,
and until the workload says something else of itself than when the event came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from kedge.api.core import Event, ObjectReference
from kedge.api.meta import ObjectMeta
from kedge.kube.cache import Cache
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.store import Change
from kedge.plan.availability import Verdict
from kedge.plan.workloads.pods import PodWorkload

FAILED: Final = "FailedCreate"
KINDS: Final = (("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job"))
TRIED_WITHIN: Final = timedelta(seconds=1000)
"""The longest that Kubernetes' controllers wait before they try again to create a pod."""
_COMBINED: Final = "(combined from similar events): "
_QUOTED: Final = re.compile(r'"[^"]*"')
_LONGEST: Final = 500  # of a message: many events may be kept


class FailedCreations:
    """What one member refuses to create, as far as somebody asks."""

    def __init__(self, member: Cluster, clock: Clock, changed: Callable[[PodWorkload], None]) -> None:
        """`changed` is called when there is something else to say of a workload."""
        self._member = member
        self._clock = clock
        self._changed = changed
        self._asked: dict[PodWorkload, str] = {}  # what each said of itself when it was last asked for
        self._failures: dict[PodWorkload, str] = {}
        self._events: dict[str, Cache[Event]] = {}  # by namespace

    def explain(self, verdict: Verdict, workload: PodWorkload) -> Verdict:
        """The verdict on a workload, with why its pods are not created, if they are not."""
        if verdict.available or (workload.group, workload.kind) not in KINDS:
            self.forget(workload)
            return verdict
        if self._asked.get(workload, verdict.message) != verdict.message:
            self._failures.pop(workload, None)
        self._asked[workload] = verdict.message
        self._watch(workload.namespace)
        failure = self._failures.get(workload)
        return replace(verdict, message=f"{verdict.message.rstrip('.')}: {FAILED}: {failure}") if failure else verdict

    def forget(self, workload: PodWorkload) -> None:
        """Nobody asks for this workload any more."""
        self._failures.pop(workload, None)
        if self._asked.pop(workload, None) is not None:
            self._unwatch(workload.namespace)

    def keep_only(self, placed: Iterable[PodWorkload]) -> None:
        """Nobody asks for any but these."""
        kept = set(placed)
        for workload in [one for one in self._asked if one not in kept]:
            self.forget(workload)

    def _watch(self, namespace: str) -> None:
        if namespace not in self._events:
            fields = f"reason={FAILED}"
            found = self._member.cache(
                Event, namespace, fields=fields, only=_is_of_ours, transform=_in_short, optional=True
            )
            self._events[namespace] = found
            found.on_change(self._heard)

    def _unwatch(self, namespace: str) -> None:
        if all(one.namespace != namespace for one in self._asked):
            self._member.drop(self._events.pop(namespace))

    def _heard(self, change: Change[Event]) -> None:
        event = change.new
        workload = _workload(event.involved_object) if event is not None else None
        if event is None or workload is None or workload not in self._asked or self._is_old(event):
            return
        known = self._failures.get(workload)
        if known is None or _nameless(known) != _nameless(event.message):
            self._failures[workload] = event.message
            self._changed(workload)

    def _is_old(self, event: Event) -> bool:
        at = _last_time(event)
        return at is not None and self._clock.now() - at > TRIED_WITHIN


def _is_of_ours(event: Event) -> bool:
    return _workload(event.involved_object) is not None


def _in_short(event: Event) -> Event:
    meta = event.metadata
    return Event(
        involved_object=event.involved_object,
        type="",
        metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, resource_version=meta.resource_version),
        message=event.message.removeprefix(_COMBINED)[:_LONGEST],
        last_timestamp=_last_time(event),
    )


def _last_time(event: Event) -> datetime | None:
    return event.last_timestamp or event.metadata.creation_timestamp


def _workload(about: ObjectReference) -> PodWorkload | None:
    group = about.api_version.rpartition("/")[0]
    found = PodWorkload(group, about.kind, about.namespace, about.name)
    return found if (group, about.kind) in KINDS else None


def _nameless(message: str) -> str:
    """Without what is quoted: pods that are tried in turn have other names."""
    return _QUOTED.sub("", message)

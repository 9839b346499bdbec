"""Recent evictions: until when a pod that was allowed to go counts as gone."""

from __future__ import annotations

import pytest

from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod, PodStatus
from kedge.controllers.zone.recent_evictions import RecentEvictions
from kedge.kube.store import Change


class Watch:
    """A clock that goes when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def pod(uid: str = "u-1", version: str = "10", phase: str = "Running", namespace: str = "mimir") -> Pod:
    meta = ObjectMeta(name="ingester-zone-a-0", namespace=namespace, uid=uid, resource_version=version)
    return Pod(metadata=meta, status=PodStatus(phase=phase))


def remembering() -> tuple[RecentEvictions, Watch]:
    watch = Watch()
    recent = RecentEvictions(watch)
    recent.record(pod().metadata)
    return recent, watch


def test_a_pod_is_remembered_for_two_minutes() -> None:
    recent, watch = remembering()
    assert recent.uids() == {"u-1"}
    watch.seconds = 119.9
    assert recent.uids() == {"u-1"}
    watch.seconds = 120.0
    assert recent.uids() == frozenset()


def test_allowing_it_again_begins_anew() -> None:
    recent, watch = remembering()
    watch.seconds = 100.0
    recent.record(pod().metadata)
    watch.seconds = 200.0
    assert recent.uids() == {"u-1"}


STILL = {"u-1"}
GONE: set[str] = set()


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (Change(pod(), pod(version="11")), STILL),
        (Change(pod(), pod(version="11", phase="Failed")), GONE),
        (Change(pod(), pod(version="11", phase="Pending")), GONE),
        (Change(pod(version="11"), None), GONE),
        (Change(None, pod(uid="u-2", version="12", phase="Pending")), GONE),
        (Change(None, pod(uid="u-2", version="12")), GONE),
        # what was before the decision, and comes late
        (Change(None, pod(version="9", phase="Pending")), STILL),
        (Change(pod(uid="u-0", version="8"), None), STILL),
        (Change(None, pod(uid="u-0", version="8")), STILL),
        (Change(pod(uid="u-0", version="11"), None), STILL),
        # another pod
        (Change(pod(version="11", namespace="loki"), None), STILL),
        # a server whose versions are no numbers
        (Change(pod(), pod(version="x", phase="Failed")), GONE),
    ],
)
def test_a_pod_is_forgotten_once_it_is_seen_to_have_gone(change: Change[Pod], left: set[str]) -> None:
    recent, _ = remembering()
    recent.observed(change)
    assert recent.uids() == left


def test_a_pod_that_nobody_remembers_changes_nothing() -> None:
    recent = RecentEvictions(Watch())
    recent.observed(Change(pod(), None))
    assert recent.uids() == frozenset()

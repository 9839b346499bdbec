"""Who judges a rollout group sees what is wrong, and nothing else. Needs no cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from kedge.api.pods import Pod
from kedge.kube.codec import Bookmark, Event
from real.zone_group import PODS, ZONES, Recorder

A, B, _ = ZONES


def pod(name: str, *, ready: bool = True, terminating: bool = False) -> Pod:
    meta: dict[str, Any] = {"name": name} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if terminating else {})
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    spec = {"containers": [{"name": "app", "image": "app:1"}]}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Pod, strict=False)


def judged(events: Iterable[Event[Pod] | Bookmark]) -> Recorder:
    """A recorder of a group that is ready, after these events."""
    recorder = Recorder()
    for zone in ZONES:
        for number in range(PODS):
            recorder.take(Event("ADDED", pod(f"{zone}-{number}")))
    recorder.judges = True
    for event in events:
        recorder.take(event)
    return recorder


def deleted(name: str) -> Event[Pod]:
    return Event("DELETED", pod(name))


@pytest.mark.parametrize(
    "events",
    [
        [deleted(f"{A}-0"), deleted(f"{A}-1"), deleted(f"{A}-2")],
        [deleted(f"{A}-0"), Event("MODIFIED", pod(f"{A}-1", ready=False)), deleted(f"{A}-2")],
        [deleted(f"{A}-0"), deleted(f"{B}-0")],
        [deleted(f"{A}-0"), Event("MODIFIED", pod(f"{B}-0", terminating=True))],
        [Event("MODIFIED", pod(f"{A}-0", ready=False)), Event("MODIFIED", pod(f"{B}-0", ready=False))],
    ],
)
def test_too_many_pods_or_pods_of_two_zones_are_wrong(events: list[Event[Pod]]) -> None:
    assert judged(events).wrong


def test_as_many_pods_as_allowed_and_then_those_of_another_zone_are_right() -> None:
    back = [Event("ADDED", pod(f"{A}-{number}")) for number in (0, 1)]
    recorder = judged([deleted(f"{A}-0"), deleted(f"{A}-1"), Bookmark("7"), *back, deleted(f"{B}-9")])
    assert recorder.wrong == []
    assert recorder.worst == 2

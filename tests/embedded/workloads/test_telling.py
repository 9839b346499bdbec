"""Components of one process tell under their own names, and combine what they tell too often, as Kubernetes' own do."""

from __future__ import annotations

import asyncio
from random import Random

from kedge.api.core import ConfigMap, Event
from kedge.api.meta import ObjectMeta
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.events import Recorder
from support.stage import LoopClock
from support.virtual import run

ABOUT = ConfigMap(metadata=ObjectMeta(name="web", namespace="default", uid="uid-1"))


async def told(*messages: str, combine: bool = True, pause: float = 0.0) -> list[Event]:
    """The events on the server after all of this was told, oldest first."""
    cluster = EmbeddedCluster("here", clock=LoopClock(), rng=Random(1))
    client = Client(cluster.transport())
    recorder = Recorder(client, "kedge", clock=LoopClock(), rng=Random(1))
    writing = asyncio.create_task(recorder.run())
    signed = recorder.signed("replicaset-controller", combine=combine)
    for message in messages:
        signed.normal(ABOUT, "SuccessfulCreate", message)
        await asyncio.sleep(pause)
    await recorder.written()
    writing.cancel()
    await asyncio.wait([writing])
    found = await client.list(Event, "default")
    cluster.stop()
    return sorted(found.items, key=lambda one: int(one.metadata.resource_version))


def test_an_event_is_signed_by_the_component_that_tells_it() -> None:
    [event] = run(told("Created pod: a"))
    assert (event.source.component, event.reporting_component) == ("replicaset-controller",) * 2


def test_the_tenth_variant_and_all_after_it_share_an_event_that_says_the_last_of_them() -> None:
    events = run(told(*(f"Created pod: {n}" for n in range(12)), pause=1.0))
    assert [one.message for one in events[:9]] == [f"Created pod: {n}" for n in range(9)]
    assert [(one.message, one.count) for one in events[9:]] == [
        ("(combined from similar events): Created pod: 11", 3),
    ]


def test_what_was_told_before_is_still_counted_where_it_was_told() -> None:
    events = run(told(*(f"Created pod: {n}" for n in range(10)), "Created pod: 0", pause=1.0))
    assert {one.message: one.count for one in events}["Created pod: 0"] == 2


def test_after_ten_quiet_minutes_variants_are_told_apart_again() -> None:
    events = run(told(*(f"Created pod: {n}" for n in range(12)), pause=601.0))
    assert len({one.message for one in events}) == 12


def test_who_does_not_combine_tells_each() -> None:
    events = run(told(*(f"Created pod: {n}" for n in range(12)), combine=False))
    assert [one.message for one in events] == [f"Created pod: {n}" for n in range(12)]

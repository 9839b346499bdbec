"""The delay of a downscale: durations, URLs, and what pods answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api import zones
from kedge.plan.moving.wait import Wait
from kedge.plan.zoning.downscale_delay import (
    Delay,
    delay_of,
    delayed,
    endpoint,
    prepared_at,
    to_cancel,
    to_prepare,
)
from kedge.plan.zoning.pod_hosts import CALL_TIMEOUT, CALLS_AT_ONCE, CLUSTER_DOMAIN, pod_host
from kedge.plan.zoning.scaling import PodAnswer, Reason, ScaleStep
from kedge.plan.zoning.scaling_text import wait_text
from plan.zoning.scaled_sets import NOW, URL, prepared, zone

HOUR = Delay(timedelta(hours=1), URL)


def down(current: int, wanted: int) -> ScaleStep:
    return ScaleStep("ingester-zone-a", current, wanted, Reason.reference, "Thing/x")


@pytest.mark.parametrize(
    ("delay", "url", "length"),
    [
        ("1h", URL, timedelta(hours=1)),
        ("1d", URL, timedelta(days=1)),
        ("1w", URL, timedelta(days=7)),
        ("1h30m", URL, timedelta(minutes=90)),
        ("20m", "https://x:8080/p?q=1", timedelta(minutes=20)),
        ("0", URL, None),
        ("0s", URL, None),
        ("", URL, None),
        ("1h", "", None),
        ("bad", "", None),
    ],
)
def test_a_delay_needs_a_duration_and_a_url(delay: str, url: str, length: timedelta | None) -> None:
    found = delay_of(zone("a", annotations={zones.DELAYED_DOWNSCALE: delay, zones.DELAYED_DOWNSCALE_URL: url}))
    assert found == (None if length is None else Delay(length, url))


@pytest.mark.parametrize(
    ("delay", "url", "about"),
    [
        *((text, URL, zones.DELAYED_DOWNSCALE) for text in ("notaduration", "-5m", "1", "1.5h", "300y", " 1h")),
        *(
            ("1h", text, zones.DELAYED_DOWNSCALE_URL)
            for text in ("pod/path", "/path", "ftp://pod/p", "http://pod:x/", "http://pod:99999/", "http://[::1/", " ")
        ),
        ("1h", "http://pod/a b", zones.DELAYED_DOWNSCALE_URL),
        ("1h", "http://pod/a\nb", zones.DELAYED_DOWNSCALE_URL),
    ],
)
def test_a_bad_delay_is_told_by_its_annotation(delay: str, url: str, about: str) -> None:
    found = delay_of(zone("a", annotations={zones.DELAYED_DOWNSCALE: delay, zones.DELAYED_DOWNSCALE_URL: url}))
    assert isinstance(found, Wait)
    assert wait_text(found).startswith(
        f"not scaled: {about} of the delayed downscale: {(url if 'url' in about else delay)!r}"
    )


def test_pods_without_a_service_cannot_be_called() -> None:
    annotations = {zones.DELAYED_DOWNSCALE: "1h", zones.DELAYED_DOWNSCALE_URL: URL}
    found = delay_of(zone("a", annotations=annotations, service=""))
    assert isinstance(found, Wait)
    why = "it is not set: its pods have no names that can be called"
    assert wait_text(found) == f"not scaled: spec.serviceName of the delayed downscale: {why}"


def test_a_huge_number_of_pods_is_not_called() -> None:
    annotations = {zones.DELAYED_DOWNSCALE: "1h", zones.DELAYED_DOWNSCALE_URL: URL}
    assert isinstance(delay_of(zone("a", 10_000, annotations=annotations)), Delay)
    found = delay_of(zone("a", 10_001, annotations=annotations))
    assert isinstance(found, Wait)
    why = "it is 10001, and at most 10000 pods are told to prepare"
    assert wait_text(found) == f"not scaled: spec.replicas of the delayed downscale: {why}"


@pytest.mark.parametrize(
    ("url", "start", "expected"),
    [
        (URL, 0, "http://ingester-zone-b-4.ingester-zone-b.test.svc.cluster.local./prepare-delayed-downscale"),
        ("http://x/p", 0, "http://ingester-zone-b-4.ingester-zone-b.test.svc.cluster.local./p"),
        ("http://x:8080/p", 0, "http://ingester-zone-b-4.ingester-zone-b.test.svc.cluster.local.:8080/p"),
        ("https://x:1/p?q=a&b", 0, "https://ingester-zone-b-4.ingester-zone-b.test.svc.cluster.local.:1/p?q=a&b"),
        ("http://me:pw@x/p", 0, "http://me:pw@ingester-zone-b-4.ingester-zone-b.test.svc.cluster.local./p"),
        ("http://[::1]:80/p", 0, "http://ingester-zone-b-4.ingester-zone-b.test.svc.cluster.local.:80/p"),
        ("http://x", 10, "http://ingester-zone-b-14.ingester-zone-b.test.svc.cluster.local."),
    ],
)
def test_the_host_of_a_url_is_replaced_by_that_of_a_pod(url: str, start: int, expected: str) -> None:
    assert endpoint(zone("b", start=start), url, 4) == expected


def test_the_domain_of_the_cluster_ends_the_host_of_a_pod() -> None:
    assert CLUSTER_DOMAIN == "cluster.local."
    assert pod_host(zone("b"), 4, "k8s.example.") == "ingester-zone-b-4.ingester-zone-b.test.svc.k8s.example."


def test_at_most_32_pods_are_called_at_once_for_5_seconds_each() -> None:
    assert (CALLS_AT_ONCE, CALL_TIMEOUT) == (32, 5.0)


def test_those_that_stay_cancel_and_those_that_go_prepare() -> None:
    assert (list(to_cancel(down(5, 3))), list(to_prepare(down(5, 3)))) == ([0, 1, 2], [4, 3])
    assert (list(to_cancel(down(2, 5))), list(to_prepare(down(2, 5)))) == ([0, 1], [])
    assert (list(to_cancel(down(2, 0))), list(to_prepare(down(2, 0)))) == ([], [1, 0])


@pytest.mark.parametrize(
    ("body", "moment"),
    [
        (b'{"timestamp": 1893499200}', NOW),
        (b'{"timestamp": 1893499200, "more": {}}', NOW),
        (b'{"timestamp": 1893499200}' + b" " * (65536 - 25), NOW),
        (b'{"timestamp": 1}', datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (b'{"timestamp": 253402300799}', datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_timestamp_counts_in_whole_seconds(body: bytes, moment: datetime) -> None:
    assert prepared_at(body) == moment


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "its answer is not"),
        (b"garbage", "its answer is not"),
        (b"\xff\xfe", "its answer is not"),
        (b"[]", "its answer is not"),
        (b"null", "its answer is not"),
        (b"{}", "its answer is not"),
        (b'{"Timestamp": 5}', "its answer is not"),
        (b'{"timestamp": null}', "its answer is not"),
        (b'{"timestamp": true}', "its answer is not"),
        (b'{"timestamp": "1893499200"}', "its answer is not"),
        (b'{"timestamp": 1893499200.0}', "its answer is not"),
        (b'{"timestamp": 1e9}', "its answer is not"),
        (b'{"timestamp": NaN}', "its answer is not"),
        (b'{"timestamp": 1893499200', "its answer is not"),
        (b'{"timestamp": 0}', "its timestamp is 0: "),
        (b'{"timestamp": -1}', "its timestamp is -1: "),
        (b'{"timestamp": 1893499200000000}', "that is no time"),
        (b'{"timestamp": ' + b"9" * 30 + b"}", "that is no time"),
        (b'{"timestamp": ' + b"9" * 5000 + b"}", "its answer is not"),
        (b'{"timestamp": 1893499200}' + b" " * 65536, "more than 65536"),
    ],
)
def test_a_timestamp_that_does_not_count_is_an_error(body: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        prepared_at(body)


def test_a_delay_that_is_not_reached_says_when_it_will_be() -> None:
    found = delayed(down(5, 3), HOUR, prepared({4: 20, 3: 70}), NOW)
    assert (found.step, found.until) == (None, NOW + timedelta(minutes=40))
    assert found.waits[0].numbers == {"seconds": 3600}
    assert wait_text(found.waits[0]) == (
        "configured downscale delay 1h0m0s has not been reached for any pods at the end of statefulset replicas range: "
        "ingester-zone-a-4 is prepared since 2030-01-01T11:40:00Z, and may go at 2030-01-01T12:40:00Z"
    )


def test_a_pod_that_was_prepared_in_the_future_waits() -> None:
    found = delayed(down(5, 4), HOUR, prepared({4: -10}), NOW)
    assert (found.step, found.until) == (None, NOW + timedelta(minutes=70))


def test_a_pod_that_was_prepared_at_the_end_of_the_calendar_waits_without_a_moment() -> None:
    last = PodAnswer(4, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
    found = delayed(down(5, 4), HOUR, [last], NOW)
    assert (found.step, found.until, len(found.waits)) == (None, None, 1)


def test_one_pod_that_fails_keeps_all_from_going() -> None:
    answers = (*prepared({4: 70, 3: 70}), PodAnswer(2, problem="500", pod="ingester-zone-a-12"))
    found = delayed(down(5, 2), HOUR, answers, NOW)
    assert found.step is None
    assert wait_text(found.waits[0]) == "failed prepare pods for delayed downscale: ingester-zone-a-12: 500"
    assert found.waits[0].numbers == {"failed": 1, "pods": 3}


MINUTES = st.one_of(st.none(), st.integers(-100, 200))


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))), st.data())
def test_no_pod_goes_before_its_time_and_none_without_an_answer(sizes: tuple[int, int], data: st.DataObject) -> None:
    current, wanted = sizes
    ago = {ordinal: data.draw(MINUTES) for ordinal in range(wanted, current)}
    answers = [
        PodAnswer(ordinal, None if minutes is None else NOW - timedelta(minutes=minutes))
        for ordinal, minutes in ago.items()
    ]
    found = delayed(down(current, wanted), HOUR, answers, NOW)
    if found.step is None:
        assert found.waits
        return
    assert wanted <= found.step.replicas < current
    assert None not in ago.values()
    assert all((ago[ordinal] or 0) >= 60 for ordinal in range(found.step.replicas, current))
    reached_end = found.step.replicas == wanted
    assert reached_end or (ago[found.step.replicas - 1] or 0) < 60

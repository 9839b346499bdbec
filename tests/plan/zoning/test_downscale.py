"""Whether the pods of a zone may go: every check of the peer, in its order and its words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api import wire
from kedge.api.apps import StatefulSet
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.pods import Pod, PodStatus
from kedge.api.times import format_duration
from kedge.plan.text import moment
from kedge.plan.zoning.downscale import (
    COUNT_FAILED,
    BadRecord,
    ZoneCount,
    endpoints,
    name_label,
    no_downscale,
    ready_pods,
    too_soon,
    unprepared,
    unsettled,
    wants_preparation,
    was_not_stored,
)
from kedge.plan.zoning.go_time import print_moment
from kedge.plan.zoning.replica_change import ALLOWED, STATEFUL_SET, Downscale, Scaled

NOW = datetime(2024, 5, 1, 20, tzinfo=UTC)
PORT, PATH = "grafana.com/prepare-downscale-http-port", "grafana.com/prepare-downscale-http-path"
MIN_TIME, LAST = "grafana.com/min-time-between-zones-downscale", "grafana.com/last-downscale"
SAID = "downscale of statefulsets/test in default from 5 to 3 replicas is not allowed because "


def zone(
    name: str = "test",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    status: Mapping[str, int] | None = None,
    **spec: Any,
) -> StatefulSet:
    spec = {"serviceName": "service-name", "template": {"metadata": {"labels": {"name": name}}}, **spec}
    meta = {"name": name, "uid": f"uid-{name}", "labels": labels or {}, "annotations": annotations or {}}
    return wire.read_plain({"metadata": meta, "spec": spec, "status": status or {}}, StatefulSet)


def shrinking(old: int = 5, new: int = 3, name: str = "test") -> Downscale:
    return Downscale("statefulsets", name, "default", old, new, Scaled(STATEFUL_SET, old, {}))


@pytest.mark.parametrize(
    ("labels", "denied"),
    [
        ({}, False),
        ({"grafana.com/no-downscale": "false"}, False),
        ({"grafana.com/no-downscale": ""}, False),
        ({"grafana.com/no-downscale": "True"}, False),
        ({"grafana.com/no-downscale": "true"}, True),
    ],
)
def test_the_label_forbids_a_downscale(labels: dict[str, str], denied: bool) -> None:
    verdict = no_downscale(labels, shrinking())
    if denied:
        assert not verdict.allowed
        assert verdict.message == SAID + "it has the label 'grafana.com/no-downscale=true'"
    else:
        assert verdict == ALLOWED


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [({}, False), ({"grafana.com/prepare-downscale": "true"}, True), ({"grafana.com/prepare-downscale": "yes"}, False)],
)
def test_only_zones_with_the_label_are_prepared(labels: dict[str, str], wanted: bool) -> None:
    assert wants_preparation(zone(labels=labels)) == wanted


GOOD = {PORT: "8080", PATH: "prepare-downscale"}


@pytest.mark.parametrize(
    ("annotations", "spec", "why"),
    [
        pytest.param(
            {}, {"serviceName": ""}, f"the {PORT} annotation is not set or empty.", id="nothing is set: the port first"
        ),
        pytest.param({PORT: "", PATH: "p"}, {}, f"the {PORT} annotation is not set or empty.", id="the port is empty"),
        pytest.param(
            {PORT: "80"}, {"serviceName": ""}, f"the {PATH} annotation is not set or empty.", id="then the path"
        ),
        pytest.param({**GOOD, PATH: ""}, {}, f"the {PATH} annotation is not set or empty.", id="the path is empty"),
        pytest.param(GOOD, {"serviceName": ""}, "the serviceName is not set or empty.", id="then the service"),
        pytest.param({**GOOD, PORT: "http"}, {}, f"the {PORT} annotation is 'http', which is no port.", id="no number"),
        pytest.param({**GOOD, PORT: "0"}, {}, f"the {PORT} annotation is '0', which is no port.", id="port 0"),
        pytest.param(
            {**GOOD, PORT: "65536"}, {}, f"the {PORT} annotation is '65536', which is no port.", id="too high"
        ),
        pytest.param(
            {**GOOD, PORT: "80@evil.example"},
            {},
            f"the {PORT} annotation is '80@evil.example', which is no port.",
            id="a port that leads elsewhere",
        ),
        pytest.param(
            GOOD,
            {"serviceName": "x@evil.example/"},
            "the serviceName is 'x@evil.example/', which is no name of a Service.",
            id="a service that leads elsewhere",
        ),
    ],
)
def test_a_zone_has_to_say_how_its_pods_are_told(annotations: dict[str, str], spec: dict[str, Any], why: str) -> None:
    denied = unprepared(zone(annotations=annotations, **spec), shrinking())
    assert denied is not None
    assert not denied.allowed
    assert denied.message == SAID + why


@pytest.mark.parametrize(("name", "namespace"), [("", "default"), ("test", ""), ("test", "evil.example/?")])
def test_pods_that_cannot_be_named_cannot_be_told(name: str, namespace: str) -> None:
    denied = unprepared(zone(annotations=GOOD), replace(shrinking(), name=name, namespace=namespace))
    assert denied is not None
    assert denied.message.endswith("not allowed because the request did not include both a namespace and a name.")


def test_a_zone_that_says_all_of_it_goes_on_to_the_next_check() -> None:
    assert unprepared(zone(annotations=GOOD), shrinking()) is None


@pytest.mark.parametrize("port", ["1", "80", "65535"])
def test_every_port_is_a_port(port: str) -> None:
    assert unprepared(zone(annotations={**GOOD, PORT: port}), shrinking()) is None


def test_a_large_zone_may_lose_a_few_pods() -> None:
    assert unprepared(zone(annotations=GOOD), shrinking(20_000, 19_999)) is None


def test_a_number_that_nobody_can_mean_is_denied() -> None:
    assert unprepared(zone(annotations=GOOD), shrinking(10_000, 0)) is None
    assert unprepared(zone(annotations=GOOD), shrinking(10_001, 0)) is not None
    denied = unprepared(zone(annotations=GOOD), shrinking(2**31 - 1, 0))
    assert denied is not None
    assert denied.message.endswith("because it would take away more than 10000 pods at once.")
    assert unprepared(zone(annotations=GOOD), shrinking(3, -(2**31))) is None


def test_endpoints_go_from_the_last_pod_down() -> None:
    urls = endpoints(zone(annotations=GOOD), shrinking(), domain="cluster.local.")
    assert urls == (
        "http://test-4.service-name.default.svc.cluster.local.:8080/prepare-downscale",
        "http://test-3.service-name.default.svc.cluster.local.:8080/prepare-downscale",
    )


def test_endpoints_count_from_where_the_zone_begins_to_count() -> None:
    urls = endpoints(zone(annotations=GOOD, ordinals={"start": 10}), shrinking(2, 1), domain="local")
    assert urls == ("http://test-11.service-name.default.svc.local:8080/prepare-downscale",)


def test_a_slash_in_front_of_the_path_is_not_doubled() -> None:
    urls = endpoints(zone(annotations={**GOOD, PATH: "/a/b?c=1"}), shrinking(1, 0), domain="local")
    assert urls == ("http://test-0.service-name.default.svc.local:8080/a/b?c=1",)


@given(st.integers(0, 50), st.integers(-5, 50))
def test_there_is_one_endpoint_for_each_pod_that_goes(old: int, new: int) -> None:
    urls = endpoints(zone(annotations=GOOD), shrinking(old, new), domain="local")
    assert len(urls) == len(set(urls)) == max(0, old - max(0, new))


def other(name: str, *, wait: str | None = "12h", status: Mapping[str, int] | None = None) -> StatefulSet:
    return zone(name, labels={} if wait is None else {MIN_TIME: wait}, status=status)


def ago(**length: float) -> str:
    return moment(NOW - timedelta(**length))


@pytest.mark.parametrize(
    ("others", "last", "text"),
    [
        pytest.param([other("b")], {}, "", id="never scaled down"),
        pytest.param([other("b")], {"b": ago(hours=14)}, "", id="long enough ago"),
        pytest.param([other("b")], {"b": ago(hours=12)}, "", id="exactly long enough ago"),
        pytest.param([other("b", wait=None)], {"b": ago(hours=1)}, "", id="no label, no wait"),
        pytest.param([other("b")], {"c": "garbage"}, "", id="nobody of the group"),
        pytest.param(
            [other("b")],
            {"b": ago(hours=10)},
            "statefulset b was downscaled at 2024-05-01 10:00:00 +0000 UTC"
            " and is labelled to wait 12h0m0s between zone downscales",
            id="too short a while ago",
        ),
        pytest.param(
            [other("b"), other("c", wait="90m")],
            {"b": ago(hours=14), "c": ago(hours=1)},
            "statefulset c was downscaled at 2024-05-01 19:00:00 +0000 UTC"
            " and is labelled to wait 1h30m0s between zone downscales",
            id="each with its own label",
        ),
        pytest.param(
            [other("b"), other("c")],
            {"b": ago(hours=2), "c": ago(hours=1)},
            "statefulset b was downscaled at 2024-05-01 18:00:00 +0000 UTC"
            " and is labelled to wait 12h0m0s between zone downscales",
            id="the first of the list",
        ),
        pytest.param(
            [other("b", wait="1s")],
            {"b": ago(hours=-1)},
            "statefulset b was downscaled at 2024-05-01 21:00:00 +0000 UTC"
            " and is labelled to wait 1s between zone downscales",
            id="in the future",
        ),
    ],
)
def test_zones_shrink_one_after_another(others: list[StatefulSet], last: dict[str, str], text: str) -> None:
    found = too_soon(others, last, NOW)
    assert (found.text if found is not None else "") == text


@pytest.mark.parametrize(
    ("wait", "last"),
    [
        ("12h", ""),
        ("12h", "garbage"),
        ("12h", "2024-05-01"),
        (None, "garbage"),
        ("invalid", ago(hours=1)),
        ("", ago(hours=1)),
        ("12", ago(hours=1)),
        ("1d", ago(hours=1)),
        ("9999999999999h", ago(hours=1)),
    ],
)
def test_what_cannot_be_read_denies(wait: str | None, last: str) -> None:
    with pytest.raises(BadRecord, match="b: "):
        too_soon([other("b", wait=wait)], {"b": last}, NOW)


@pytest.mark.parametrize(
    ("labels", "annotations", "wait"),
    [
        pytest.param({}, {MIN_TIME: "12h"}, "12h0m0s", id="as an annotation"),
        pytest.param({MIN_TIME: "1h"}, {MIN_TIME: "12h"}, "12h0m0s", id="both"),
        pytest.param({MIN_TIME: "12h"}, {MIN_TIME: ""}, "12h0m0s", id="an annotation without a value"),
    ],
)
def test_the_time_between_zones_may_be_an_annotation(
    labels: dict[str, str], annotations: dict[str, str], wait: str
) -> None:
    found = too_soon([zone("b", labels=labels, annotations=annotations)], {"b": ago(hours=2)}, NOW)
    assert found is not None
    assert f"is labelled to wait {wait} between" in found.text


@pytest.mark.parametrize("wait", ["-5m", "0s"])
def test_a_wait_that_is_none_does_not_hold_up(wait: str) -> None:
    assert too_soon([other("b", wait=wait)], {"b": ago(seconds=0)}, NOW) is None


@given(st.timedeltas(timedelta(days=-30), timedelta(days=30)), st.timedeltas(timedelta(0), timedelta(days=30)))
def test_a_zone_waits_exactly_until_the_time_has_passed(since: timedelta, wait: timedelta) -> None:
    at = NOW - since.__class__(seconds=int(since.total_seconds()))
    found = too_soon([other("b", wait=format_duration(wait))], {"b": moment(at)}, NOW)
    assert (found is not None) == (NOW - at < wait)
    if found is not None:
        assert print_moment(at) in found.text
        assert format_duration(wait) in found.text


STATUS = {"replicas": 3, "updatedReplicas": 3}


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        pytest.param([], "", id="no other zone"),
        pytest.param([({**STATUS}, 3)], "", id="all updated and ready"),
        pytest.param([({}, 0)], "", id="an empty zone"),
        pytest.param(
            [({**STATUS, "updatedReplicas": 1}, 3)],
            "statefulset z0 has 2 non-updated replicas and 0 non-ready replicas",
            id="some not updated",
        ),
        pytest.param(
            [({**STATUS}, 2)], "statefulset z0 has 0 non-updated replicas and 1 non-ready replicas", id="one not ready"
        ),
        pytest.param(
            [({**STATUS}, 3), ({"replicas": 4, "updatedReplicas": 2}, 1)],
            "statefulset z1 has 2 non-updated replicas and 3 non-ready replicas",
            id="the first that is not settled",
        ),
        pytest.param(
            [({**STATUS}, 4)],
            "statefulset z0 has 0 non-updated replicas and -1 non-ready replicas",
            id="a status that is behind",
        ),
        pytest.param([({**STATUS}, None), ({**STATUS}, 1)], COUNT_FAILED, id="one that cannot be counted"),
        pytest.param(
            [({**STATUS}, 1), ({**STATUS}, None)],
            "statefulset z0 has 0 non-updated replicas and 2 non-ready replicas",
            id="the order decides",
        ),
    ],
)
def test_every_other_zone_has_to_be_updated_and_ready(
    counts: list[tuple[Mapping[str, int], int | None]], text: str
) -> None:
    found = [ZoneCount(zone(f"z{index}", status=status), ready) for index, (status, ready) in enumerate(counts)]
    assert unsettled(found) == text


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_zone_is_settled_exactly_if_all_three_numbers_agree(replicas: int, updated: int, ready: int) -> None:
    status = {"replicas": replicas, "updatedReplicas": updated}
    assert (unsettled([ZoneCount(zone("b", status=status), ready)]) == "") == (replicas == updated == ready)


def pod(name: str, *, owner: str = "", label: str = "b", phase: str = "Running") -> Pod:
    owners = (OwnerReference(api_version="apps/v1", kind="StatefulSet", name="o", uid=owner, controller=True),)
    meta = ObjectMeta(name=name, labels={"name": label}, owner_references=owners if owner else ())
    return Pod(metadata=meta, status=PodStatus(phase=phase))


@pytest.mark.parametrize(
    ("pods", "ready"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([pod("b-0", owner="uid-b"), pod("b-1", owner="uid-b", phase="Failed")], 1, id="by owner"),
        pytest.param([pod("b-0", owner="uid-b"), pod("x-0", owner="uid-x")], 1, id="not those of another zone"),
        pytest.param([pod("b-0", owner="uid-b"), pod("b-1")], 1, id="an owner counts more than a name"),
        pytest.param([pod("b-0"), pod("b-1"), pod("x", label="x")], 2, id="by name if there is no owner"),
        pytest.param([pod("x-0", owner="uid-x"), pod("b-0")], 1, id="by name, but not those of another zone"),
    ],
)
def test_pods_are_counted_by_owner_then_by_name(pods: list[Pod], ready: int) -> None:
    assert ready_pods(zone("b"), pods) == ready


@pytest.mark.parametrize("template", [{}, {"metadata": {}}, {"metadata": {"labels": {}}}, {"metadata": {"labels": 1}}])
def test_without_a_name_no_pod_is_taken_for_one_of_the_zone(template: dict[str, Any]) -> None:
    assert ready_pods(zone("b", template=template), [pod("x", label="")]) == 0


@pytest.mark.parametrize("name", [1, ["b"], {"b": 1}])
def test_a_name_that_is_no_text_is_none(name: Any) -> None:
    assert name_label(zone("b", template={"metadata": {"labels": {"name": name}}})) == ""


def stored(replicas: int, generation: int, uid: str = "u") -> StatefulSet:
    meta = {"name": "test", "uid": uid, "generation": generation}
    return wire.read_plain({"metadata": meta, "spec": {"replicas": replicas}}, StatefulSet)


@pytest.mark.parametrize(
    ("before", "current", "expected"),
    [
        pytest.param(stored(5, 1), stored(5, 1), True, id="nothing has changed"),
        pytest.param(stored(5, 1), stored(3, 2), False, id="stored"),
        pytest.param(stored(5, 1), stored(5, 3), False, id="stored, and scaled up again"),
        pytest.param(stored(5, 1), stored(5, 1, uid="other"), False, id="another object of that name"),
        pytest.param(stored(5, 0), stored(5, 0), False, id="no generation, no knowledge"),
        pytest.param(stored(5, 1), stored(3, 1), False, id="scaled down all the same"),
    ],
)
def test_a_downscale_was_not_stored_if_the_spec_is_still_the_same(
    before: StatefulSet, current: StatefulSet, expected: bool
) -> None:
    assert was_not_stored(before, current, shrinking(5, 3)) == expected

"""Two runs of a server that behaves the same mask to the same; one that does not, does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.kube.transport import Request, Response
from support.recording.exchange import Exchange, answered
from support.recording.masking import masked


def exchange(method: str, path: str, got: Any, sent: Any = None, code: int = 200, **more: Any) -> Exchange:
    request = Request(method, path, body=b"" if sent is None else msgspec.json.encode(sent))
    return answered(request, Response(code, msgspec.json.encode(got)), **more)


def made(**metadata: Any) -> Exchange:
    return exchange("POST", "/a", {"kind": "A", "metadata": metadata})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (made(uid="1"), made(uid="2")),
        (made(resourceVersion="1"), made(resourceVersion="200")),
        (made(creationTimestamp="2026-01-01T00:00:00Z"), made(creationTimestamp="2027-02-03T10:20:30Z")),
        (made(generateName="a-", name="a-x1y2z"), made(generateName="a-", name="a-bbbbb")),
        (exchange("GET", "/a?resourceVersion=7", {}), exchange("GET", "/a?resourceVersion=19", {})),
        (
            exchange("GET", "/a", {"spec": {"clusterIP": "10.0.0.7"}}),
            exchange("GET", "/a", {"spec": {"clusterIP": "10.0.0.9"}}),
        ),
        (exchange("GET", "/a", {"message": "is 10.0.0.7"}), exchange("GET", "/a", {"message": "is 10.0.0.9"})),
    ],
)
def test_what_differs_every_time_is_no_difference(one: Exchange, other: Exchange) -> None:
    assert one != other
    assert masked([one]) == masked([other])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (made(labels={"a": "1"}), made(labels={"a": "2"})),
        (made(uid="1"), made()),
        (exchange("POST", "/a", {}), exchange("PUT", "/a", {})),
        (exchange("GET", "/a", {"message": "one"}), exchange("GET", "/a", {"message": "two"})),
    ],
)
def test_all_else_is(one: Exchange, other: Exchange) -> None:
    assert masked([one]) != masked([other])


def test_how_often_one_asks_while_one_waits_does_not_matter() -> None:
    not_yet, there = exchange("GET", "/a", {"kind": "Status"}, code=404), exchange("GET", "/a", {"kind": "A"})
    assert masked([not_yet, not_yet, there]) == masked([there])


def test_nor_does_it_with_dry_runs() -> None:
    not_yet, there = (exchange("POST", "/a?dryRun=All", {"v": number}, {"k": 1}) for number in (1, 2))
    other = exchange("POST", "/a?dryRun=All", {"v": 3}, {"k": 2})
    assert masked([not_yet, not_yet, there, other]) == masked([there, other])
    assert masked([there]) != masked([there, other])


def test_what_tells_of_all_there_is_tells_of_other_tests_too() -> None:
    one, other = (exchange("GET", "/api/v1/services?limit=5", {"items": items}) for items in ([], [1]))
    assert masked([one]) == masked([other])
    assert masked([exchange("GET", "/api/v1/namespaces/a", {"v": 1})]) != masked([])


def test_an_order_that_is_chance_does_not_matter() -> None:
    one, other = (exchange("GET", "/a", {"metadata": {"managedFields": list(order)}}) for order in ("ab", "ba"))
    assert masked([one]) == masked([other])


def test_what_one_reads_before_a_change_is_not_what_one_reads_after_it() -> None:
    write, old, new = made(), exchange("GET", "/a", {"v": 1}), exchange("GET", "/a", {"v": 2})
    assert masked([old, write, new]) != masked([new, write, new])


def test_where_others_act_only_what_the_test_did_and_whether_it_could_counts() -> None:
    one = [exchange("PATCH", "/a", {"v": 1}, others_act=True), exchange("GET", "/a", {"v": 1}, others_act=True)]
    other = [exchange("PATCH", "/a", {"v": 2}, others_act=True)]
    assert masked(one) == masked(other)
    assert masked(one) != masked([exchange("PATCH", "/b", {"v": 1}, others_act=True)])

"""Events as CloudEvents, and the signature of a delivery."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

from msgspec.structs import replace

from kedge.api.core import ObjectReference
from kedge.kube.events import RecordedEvent
from kedge.notifications.cloud_event import cloud_event, encode, headers, signature

ABOUT = ObjectReference(
    api_version="placement.kubernetes-fleet.io/v1beta1", kind="StagedUpdateRun", namespace="shop", name="web", uid="u-1"
)
EVENT = RecordedEvent(
    cluster="hub",
    component="staged-update-run-controller",
    about=ABOUT,
    type="Warning",
    reason="RunStuck",
    message="cluster-1 is not ready",
    at=datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC),
)


def test_an_event_has_the_attributes_that_the_standard_asks_for() -> None:
    sent = json.loads(encode(cloud_event(EVENT, "https://hub.example.com")))
    assert len(sent.pop("id")) == 32
    assert sent == {
        "specversion": "1.0",
        "source": "https://hub.example.com/hub/staged-update-run-controller",
        "type": "dev.kedge.rollout.RunStuck",
        "subject": "StagedUpdateRun/shop/web",
        "time": "2026-03-01T12:00:00.250000Z",
        "datacontenttype": "application/json",
        "data": {
            "cluster": "hub",
            "component": "staged-update-run-controller",
            "type": "Warning",
            "reason": "RunStuck",
            "message": "cluster-1 is not ready",
            "object": {
                "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
                "kind": "StagedUpdateRun",
                "namespace": "shop",
                "name": "web",
                "uid": "u-1",
            },
        },
    }


def test_a_subject_without_a_namespace_and_a_time_elsewhere() -> None:
    at = datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1)))
    found = cloud_event(replace(EVENT, about=replace(ABOUT, namespace=""), at=at), "/kedge")
    assert (found.subject, found.time) == ("StagedUpdateRun/web", "2026-03-01T12:00:00Z")


def test_a_source_is_a_URI_whatever_clusters_are_called() -> None:
    assert cloud_event(replace(EVENT, cluster="hub for a/b"), "/kedge").source.startswith("/kedge/hub%20for%20a%2Fb/")


def test_the_same_event_has_the_same_id_and_another_one_has_not() -> None:
    ids = [
        cloud_event(event, "/kedge").id
        for event in (
            EVENT,
            replace(EVENT),
            replace(EVENT, message="cluster-2 is not ready"),
            replace(EVENT, at=EVENT.at + timedelta(seconds=1)),
            replace(EVENT, about=replace(ABOUT, uid="u-2")),
            replace(EVENT, cluster="other"),
        )
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 5


def test_the_signature_of_a_known_delivery() -> None:
    """Computed with `printf '1772366400.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef`."""
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert headers(b'{"a":1}', "0123456789abcdef", now) == {
        "Content-Type": "application/cloudevents+json; charset=utf-8",
        "Kedge-Timestamp": "1772366400",
        "Kedge-Signature": "sha256=acd30bf13a2aa541abed423b71367f807abad7340e7235616e930e329422e0f4",
    }


def test_body_timestamp_and_secret_all_change_the_signature() -> None:
    rows = [(b"a", "s", "1"), (b"b", "s", "1"), (b"a", "t", "1"), (b"a", "s", "2")]
    assert len({signature(body, secret, timestamp) for body, secret, timestamp in rows}) == len(rows)


def test_without_a_secret_nothing_is_signed() -> None:
    assert list(headers(b"", "", EVENT.at)) == ["Content-Type"]

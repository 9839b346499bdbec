"""Cloud event: an event as CloudEvents 1.0 in JSON, and the signature of its delivery.

Deliveries are repeated until one is answered, so a receiver may get one twice: `source` and `id` are then the same. The
signature is an HMAC-SHA256 of the timestamp header, a dot, and the body as sent. The timestamp is that of the attempt,
so a receiver can refuse old ones.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from kedge.kube.events import RecordedEvent

CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"
TIMESTAMP_HEADER: Final = "Kedge-Timestamp"
SIGNATURE_HEADER: Final = "Kedge-Signature"
TYPE_PREFIX: Final = "dev.kedge.rollout."


class AboutObject(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object that an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class EventData(Struct, frozen=True):
    """The `data` of a CloudEvent."""

    cluster: str
    component: str
    type: str
    reason: str
    message: str
    object: AboutObject


class CloudEvent(Struct, frozen=True):
    """One event, in the form that receivers of CloudEvents know."""

    id: str
    source: str
    type: str
    subject: str
    time: str
    data: EventData
    specversion: str = "1.0"
    datacontenttype: str = "application/json"


def cloud_event(event: RecordedEvent, source: str) -> CloudEvent:
    """The event as it is sent. The same event always has the same id."""
    about = event.about
    return CloudEvent(
        id=event_id(event),
        source=f"{source}/{quote(event.cluster, safe='')}/{quote(event.component, safe='')}",
        type=f"{TYPE_PREFIX}{event.reason}",
        subject="/".join(part for part in (about.kind, about.namespace, about.name) if part),
        time=event.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        data=EventData(
            cluster=event.cluster,
            component=event.component,
            type=event.type,
            reason=event.reason,
            message=event.message,
            object=AboutObject(about.api_version, about.kind, about.name, about.namespace, about.uid),
        ),
    )


def encode(event: CloudEvent) -> bytes:
    """The body of a delivery."""
    return msgspec.json.encode(event)


def event_id(event: RecordedEvent) -> str:
    """A digest of all that an event says."""
    return hashlib.sha256(msgspec.json.encode(event)).hexdigest()[:32]


def headers(body: bytes, secret: str, now: datetime) -> Mapping[str, str]:
    """The headers of a delivery at this moment; with a secret, signed."""
    plain = {"Content-Type": CONTENT_TYPE}
    if not secret:
        return plain
    timestamp = str(int(now.timestamp()))
    return {**plain, TIMESTAMP_HEADER: timestamp, SIGNATURE_HEADER: f"sha256={signature(body, secret, timestamp)}"}


def signature(body: bytes, secret: str, timestamp: str) -> str:
    """The signature of a delivery, in hexadecimal digits."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()

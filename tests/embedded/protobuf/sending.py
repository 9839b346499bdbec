"""Bodies in protobuf, made by hand."""

from __future__ import annotations

from typing import Any

from kedge.api import protowire as wire
from kedge.embedded.protobuf.object_decoding import decode_content, open_envelope
from kedge.kube.transport import Request

PROTOBUF = "application/vnd.kubernetes.protobuf"
NAMED = b"\x0a\x05\x0a\x03abc"  # metadata.name: abc


def message(**fields: bytes | int | list[bytes]) -> bytes:
    """A message of fields by number: `message(_1=b"a")`."""
    values = {int(name.strip("_")): value if isinstance(value, list) else [value] for name, value in fields.items()}
    return wire.written({number: list(value) for number, value in values.items()})


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    """An object in its envelope, as client-go writes it."""
    said = message(_1=api_version.encode(), _2=kind.encode())
    return b"k8s\x00" + message(_1=said, _2=raw, _3=b"", _4=b"")


def ask(method: str, path: str, sent: bytes, media: str = PROTOBUF, **query: str) -> Request:
    return Request(method, path, tuple(query.items()), sent, media)


def decode_object(sent: bytes) -> dict[str, Any]:
    """The object in a body."""
    return decode_content(open_envelope(sent))

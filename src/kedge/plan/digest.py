"""Digest: a hash that identifies a content. The order of the keys of a map does not matter."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(order="sorted")


def digest(value: Any) -> str:
    """The SHA-256 of a value's JSON, in hex."""
    return hashlib.sha256(_ENCODER.encode(value)).hexdigest()

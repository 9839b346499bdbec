"""Contents: what a snapshot holds, how it is told from another, and how it is divided into parts.

One object in etcd may not be larger than about 1.5 MB, so that what is larger than 800 KB comes in several parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kedge.api.placement import GROUP
from kedge.plan.selecting.kinds import ENVELOPES
from kedge.plan.selecting.sanitising import Manifest

LARGEST: Final = 800 * 1024
"""How many bytes of JSON one part holds at most, unless a single object is larger."""

_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def resource_hash(manifests: Sequence[Manifest]) -> str:
    """What tells these resources from others: as KubeFleet counts it, so that its hub and ours know each other's."""
    text = _ENCODER.encode({"selectedResources": list(manifests)})
    for plain, written in _AS_GO_WRITES.items():
        text = text.replace(plain, written)
    return hashlib.sha256(text).hexdigest()


_AS_GO_WRITES: Final[Mapping[bytes, bytes]] = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


def parts(manifests: Iterable[Manifest], largest: int = LARGEST) -> tuple[tuple[Manifest, ...], ...]:
    """The same in order, divided so that each part is small enough; one empty part if there is nothing."""
    divided: list[list[Manifest]] = [[]]
    size = 0
    for manifest in manifests:
        needs = len(_ENCODER.encode(manifest))
        if divided[-1] and size + needs > largest:
            divided.append([])
            size = 0
        divided[-1].append(manifest)
        size += needs
    return tuple(tuple(part) for part in divided)


def envelopes(manifests: Iterable[Mapping[str, Any]]) -> int:
    """How many of these wrap others."""
    return sum(
        1
        for manifest in manifests
        if manifest.get("kind") in ENVELOPES and str(manifest.get("apiVersion")).startswith(f"{GROUP}/")
    )

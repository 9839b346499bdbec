"""Audit: the API server's own record of who asked for what, the impartial witness of a test.

Promises an event for every request, reads and writes alike, at the level Metadata: who, what, when, the answer's
code, never the content. It is in the log before the answer is sent; a watch has one event when it starts and one when
it ends. Health checks are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*"]},
        {"level": "Metadata"},
    ],
}


def write_policy(path: Path) -> Path:
    path.write_text(yaml.safe_dump(_POLICY))
    return path


def read(log: Path) -> list[dict[str, Any]]:
    """The events so far, oldest first. A line that is still being written is left for the next time."""
    if not log.exists():
        return []
    whole, _, _ = log.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def is_write(event: dict[str, Any]) -> bool:
    """Whether the event is of a request that changes something."""
    return event["verb"] in WRITES

"""The kubeconfig of a fleet: a file only its owner can read, with a context for each cluster."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def write(file: Path, servers: Mapping[str, str], *, authority: bytes | None, token: str) -> None:
    """Write it completely or not at all. `servers` are URLs by the names of their contexts, the current one first.

    Without an `authority`, the CAs of the machine are trusted.
    """
    write_privately(file, yaml.safe_dump(_config(servers, authority, token), sort_keys=False))


def write_privately(file: Path, text: str) -> None:
    """Write a file completely or not at all. Only its owner can read it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as out:
        out.write(text)
    beside.replace(file)


def _config(servers: Mapping[str, str], authority: bytes | None, token: str) -> dict[str, Any]:
    trusted = {"certificate-authority-data": base64.b64encode(authority).decode()} if authority else {}
    clusters = [{"name": name, "cluster": {"server": url, **trusted}} for name, url in servers.items()]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(servers)),
        "clusters": clusters,
        "contexts": [{"name": name, "context": {"cluster": name, "user": "kedge"}} for name in servers],
        "users": [{"name": "kedge", "user": {"token": token}}],
    }

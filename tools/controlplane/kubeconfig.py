"""Kubeconfigs: files that tell a client where a cluster is and who it is there.

Promises files of mode 0600 that carry their certificates in themselves, so that they can be moved; the context,
the cluster and the user in it are named after the cluster.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from controlplane.certs import KeyPair


def write(path: Path, name: str, *, url: str, ca_file: Path, client: KeyPair) -> Path:
    """A kubeconfig for one cluster, whose user is known by a client certificate."""
    cluster = {"server": url, "certificate-authority-data": _inline(ca_file)}
    user = {"client-certificate-data": _inline(client.certificate), "client-key-data": _inline(client.key)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return _save(path, content)


def merge(path: Path, kubeconfigs: Iterable[Path]) -> Path:
    """One file with the contexts of several; the first one's is current."""
    contents = [yaml.safe_load(kubeconfig.read_text()) for kubeconfig in kubeconfigs]
    merged = contents[0] | {
        part: [entry for content in contents for entry in content[part]] for part in ("clusters", "users", "contexts")
    }
    return _save(path, merged)


def _inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _save(path: Path, content: dict[str, Any]) -> Path:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        yaml.safe_dump(content, file, sort_keys=False)
    return path

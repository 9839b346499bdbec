"""Config: how this process finds its API server.

    connection = load()                                  # $KUBECONFIG, ~/.kube/config, or the pod's service account
    connection = load(context="cluster-1")               # another context of the same files
    connection = load([Path("fleet.yaml")], "hub")       # files given by name must exist

Reads files, so call it at start-up, or in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from kedge.kube.clock import Clock, SystemClock
from kedge.kube.connect import in_cluster
from kedge.kube.connect.connection import ConfigError, Connection, Impersonation
from kedge.kube.connect.kubeconfig import KubeConfig

__all__ = ["ConfigError", "Connection", "Impersonation", "KubeConfig", "kubeconfig", "load"]


def load(
    paths: Iterable[Path] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> Connection:
    """The connection that a context stands for; in a pod without a kubeconfig, that of its service account."""
    environ = os.environ if environ is None else environ
    clock = clock or SystemClock()
    found = kubeconfig(paths, environ=environ)
    if not found.empty:
        return found.connection(context, clock=clock, environ=environ)
    if paths is None and context is None and in_cluster.inside(environ=environ):
        return in_cluster.connection(environ=environ, clock=clock)
    raise ConfigError(
        f"{found.origin}: no cluster is configured there, and this is no pod with a service account: "
        "give a kubeconfig, set $KUBECONFIG, or write one with `kubectl config`"
    )


def kubeconfig(paths: Iterable[Path] | None = None, *, environ: Mapping[str, str] | None = None) -> KubeConfig:
    """The kubeconfig that would be used. Files given by name must exist; others are skipped if they do not."""
    if paths is not None:
        return KubeConfig.read(paths)
    usual = _usual(os.environ if environ is None else environ)
    there = [path for path in usual if path.exists()]
    if there:
        return KubeConfig.read(there)
    return KubeConfig.parse("", origin=", ".join(str(path) for path in usual))


def _usual(environ: Mapping[str, str]) -> list[Path]:
    named = [Path(name) for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    return list(dict.fromkeys(named)) or [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]

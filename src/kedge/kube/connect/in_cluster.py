"""In-cluster: the connection that Kubernetes gives every pod with a service account.

Assumes the mounted token, CA and namespace, and `KUBERNETES_SERVICE_HOST` and `_PORT`. The token is read again as the
kubelet replaces it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kedge.kube.clock import Clock, SystemClock
from kedge.kube.connect import proxies
from kedge.kube.connect.connection import ConfigError, Connection
from kedge.kube.connect.credentials import CredentialsFailed, IdentityFiles

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def inside(*, directory: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] | None = None) -> bool:
    """Whether this process runs in a pod with a service account."""
    environ = os.environ if environ is None else environ
    return bool(environ.get(HOST) and environ.get(PORT)) and (directory / "token").is_file()


def connection(
    *,
    directory: Path = SERVICE_ACCOUNT,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> Connection:
    """The API server of the cluster this process runs in. Raises `ConfigError` outside of one."""
    environ = os.environ if environ is None else environ
    server = _server(environ)
    try:
        return Connection(
            server=server,
            ca=_content(directory / "ca.crt"),
            proxy=proxies.from_environment(server, environ),
            credentials=IdentityFiles(token_file=directory / "token").credentials(clock or SystemClock()),
            namespace=_namespace(directory / "namespace"),
        )
    except (OSError, CredentialsFailed, ValueError) as error:
        raise ConfigError(
            f"in a cluster ({HOST} is set), but its service account cannot be used: {error}; "
            "check that the pod has one and automountServiceAccountToken is not false"
        ) from error


def _server(environ: Mapping[str, str]) -> str:
    host, port = environ.get(HOST), environ.get(PORT)
    if not host or not port:
        raise ConfigError(
            f"not in a cluster: {HOST} and {PORT} are not set; run in a pod, or give a kubeconfig instead"
        )
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if b"BEGIN CERTIFICATE" not in content:
        raise ValueError(f"{path} holds no PEM certificate")
    return content


def _namespace(path: Path) -> str:
    return path.read_text().strip() if path.is_file() else "default"

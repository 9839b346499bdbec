"""Components: the command lines of a cluster's programs.

Promises a cluster as a real one is set up where clients can tell: RBAC, certificates, audit, controllers with an
identity each. Leaves out what one machine has no use for: leader election, serving of metrics, endpoints of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controlplane.binaries import Binaries
from controlplane.certs import KeyPair

STAGES = Path(__file__).parent / "stages"
_CALLS_A_SECOND = "--kube-api-qps=200"
_CALLS_AT_ONCE = "--kube-api-burst=400"

Command = list[str | Path]


@dataclass(frozen=True)
class Files:
    """What a cluster's programs read and write."""

    ca: Path
    serving: KeyPair
    service_accounts: KeyPair
    tokens: Path
    audit_policy: Path
    audit_log: Path


def kube_apiserver(
    binaries: Binaries, files: Files, *, etcd: str, prefix: str, port: int, flags: Sequence[str]
) -> Command:
    return [
        binaries["kube-apiserver"],
        f"--etcd-servers={etcd}",
        f"--etcd-prefix={prefix}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={files.serving.certificate}",
        f"--tls-private-key-file={files.serving.key}",
        f"--client-ca-file={files.ca}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.service_accounts.certificate}",
        f"--service-account-signing-key-file={files.service_accounts.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        f"--audit-policy-file={files.audit_policy}",
        f"--audit-log-path={files.audit_log}",
        "--audit-log-mode=blocking",  # an event is in the file before its request is answered
        "--audit-log-maxsize=1000000",  # MB: never begin a second file
        "--profiling=false",
        *flags,
    ]


def kube_controller_manager(binaries: Binaries, files: Files, kubeconfig: Path, only: Sequence[str] = ()) -> Command:
    """With `only`, no other controllers than these."""
    return [
        binaries["kube-controller-manager"],
        f"--kubeconfig={kubeconfig}",
        f"--root-ca-file={files.ca}",
        f"--service-account-private-key-file={files.service_accounts.key}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--secure-port=0",
        _CALLS_A_SECOND,
        _CALLS_AT_ONCE,
        *([f"--controllers={','.join(only)}"] if only else []),
    ]


def kube_scheduler(binaries: Binaries, kubeconfig: Path) -> Command:
    return [
        binaries["kube-scheduler"],
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        _CALLS_A_SECOND,
        _CALLS_AT_ONCE,
    ]


def kwok(binaries: Binaries, kubeconfig: Path, *, port: int) -> Command:
    stages = [f"--config={file}" for file in sorted(STAGES.glob("*.yaml"))]
    return [
        binaries["kwok"],
        f"--kubeconfig={kubeconfig}",
        *stages,
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        "--node-ip=127.0.0.1",
        "--cidr=10.244.0.0/16",
        f"--server-address=127.0.0.1:{port}",
    ]

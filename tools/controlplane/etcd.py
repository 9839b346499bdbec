"""etcd: the one store behind all clusters of a control plane.

Promises real compaction, through etcd's HTTP gateway. Data is as durable as a test needs it: it survives a killed
kube-apiserver, not a crash of the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controlplane.processes import Process, wait_until
from controlplane.rest import Server

_ANY_KEY = "AA=="  # a zero byte: with the same as end of the range, it means all keys


class Etcd:
    """A running etcd, ready when `until_ready` comes back."""

    def __init__(self, program: Path, folder: Path, *, client_port: int, peer_port: int) -> None:
        self.url = f"http://127.0.0.1:{client_port}"
        self._server = Server(self.url)
        self.process = Process("etcd", _command(program, folder, self.url, peer_port), folder / "etcd.log")

    async def until_ready(self) -> None:
        await wait_until(lambda: self._server.answers("/health"), by=self.process, what="/health")

    def revision(self) -> int:
        """The revision of the latest write, in any cluster."""
        answer = self._ask("/v3/kv/range", {"key": _ANY_KEY, "range_end": _ANY_KEY, "count_only": True})
        return int(answer["header"]["revision"])

    def compact(self) -> int:
        """Forget everything before the latest write, for good; returns its revision."""
        revision = self.revision()
        self._ask("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def _ask(self, path: str, body: dict[str, Any]) -> Any:
        answer = self._server.ask("POST", path, body)
        if answer.status != 200:
            raise OSError(f"etcd refused {path}: {answer.status} {answer.text}")
        return answer.json()


def _command(program: Path, folder: Path, url: str, peer_port: int) -> list[str | Path]:
    peer = f"http://127.0.0.1:{peer_port}"
    return [
        program,
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]

"""Credential programs: an identity from a command that a kubeconfig names (`users[].user.exec`).

Promises: one run at a time, off the event loop, with a time-out; its children end with it. What it prints stays
secret; of what it complains about, errors show the end. Assumes no terminal unless there is one and the program insists
(`interactiveMode: Always`), because nobody watches a controller.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

import msgspec
from cryptography import x509
from msgspec import UNSET, Meta, Struct, UnsetType

from kedge.api.redacted import Redacted
from kedge.kube.clock import Clock
from kedge.kube.connect.credentials import (
    ClientCertificate,
    Credentials,
    CredentialsFailed,
    Identity,
    IssuedIdentity,
    RefreshingCredentials,
    bearer,
)

RUN_AGAIN = 5.0
"""Seconds between two runs at least, whatever the server answers."""
INFO = "KUBERNETES_EXEC_INFO"
_TAIL = 800
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
KIND = "ExecCredential"


def at_terminal() -> bool:
    """Whether somebody could answer a question."""
    return sys.stdin is not None and sys.stdin.isatty()


class ExecPlugin(Redacted, Struct, frozen=True):
    """A program that logs in, and how to run it."""

    where: str
    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    always_interactive: bool = False
    install_hint: str = ""
    cluster: ClusterInfo | None = None
    timeout: float = 60.0
    terminal: Callable[[], bool] = at_terminal

    def credentials(self, clock: Clock) -> Credentials:
        return RefreshingCredentials(self.run, clock=clock, pause=RUN_AGAIN)

    async def run(self) -> IssuedIdentity:
        """Run it once. Raises `CredentialsFailed`."""
        interactive = self._interactive()
        info = exec_info(self.api_version, interactive=interactive, cluster=self.cluster)
        process = await self._start({**os.environ, **dict(self.env), INFO: info}, interactive)
        printed = await self._finish(process, group=not interactive)
        try:
            return read_credential(printed, api_version=self.api_version)
        except ValueError as error:
            raise self._failed(f"gave no credentials: {error}") from None

    def _interactive(self) -> bool:
        if not self.always_interactive:
            return False
        if not self.terminal():
            raise self._failed(
                "needs a terminal (interactiveMode: Always), and there is none: "
                "use a program that logs in on its own, or a service account's token"
            )
        return True

    async def _start(self, env: Mapping[str, str], interactive: bool) -> asyncio.subprocess.Process:
        mine = None if interactive else asyncio.subprocess.DEVNULL
        try:
            return await asyncio.create_subprocess_exec(
                self.command,
                *self.args,
                env=env,
                stdin=mine,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,
                start_new_session=not interactive,  # so that its children can be ended with it
            )
        except FileNotFoundError:
            raise self._failed(f"is not there: install it, or correct its path.{self._hint()}") from None
        except OSError as error:
            raise self._failed(f"cannot be run: {error.strerror}.{self._hint()}") from error

    async def _finish(self, process: asyncio.subprocess.Process, *, group: bool) -> bytes:
        try:
            async with asyncio.timeout(self.timeout):
                printed, complaint = await process.communicate()
        except TimeoutError:
            raise self._failed(f"did not finish within {self.timeout:g} s") from None
        finally:
            if process.returncode is None:
                await _end(process, group=group)
        if process.returncode:
            said = self._end_of(complaint)
            raise self._failed(f"failed with exit code {process.returncode}{said}{self._hint()}")
        return printed

    def _end_of(self, complaint: bytes | None) -> str:
        """The end of what it complained about, without the values it was given in `env`."""
        text = _CONTROL.sub("", (complaint or b"")[-4 * _TAIL :].decode(errors="replace")).strip()
        for _, value in self.env:
            text = text.replace(value, "…") if len(value) >= 6 else text
        return f": {text[-_TAIL:]}" if text else " and said nothing"

    def _hint(self) -> str:
        return f" {_CONTROL.sub('', self.install_hint).strip()}" if self.install_hint else ""

    def _failed(self, what: str) -> CredentialsFailed:
        return CredentialsFailed(f"{self.where}: the credential program {self.command!r} {what}")


async def _end(process: asyncio.subprocess.Process, *, group: bool) -> None:
    with suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(TimeoutError):  # something that fled from its group may still hold the pipes
        async with asyncio.timeout(1):
            await process.wait()


# The document that a program gets, and the one it prints: ExecCredential, v1 and v1beta1.
# What a program printed is never part of an error: it may hold a secret.


class ClusterInfo(Redacted, Struct, frozen=True, rename="kebab", omit_defaults=True):
    """What a program may know of the cluster it logs in to (`provideClusterInfo`)."""

    server: str
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority_data: bytes = b""
    proxy_url: str = ""
    config: Any = None


class _Spec(Struct, frozen=True):
    interactive: bool
    cluster: ClusterInfo | UnsetType = UNSET


class _Question(Struct, frozen=True, rename="camel"):
    api_version: str
    spec: _Spec
    kind: str = KIND


class _Status(Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, Meta(tz=True)] | None = None


class _Answer(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


def exec_info(api_version: str, *, interactive: bool, cluster: ClusterInfo | None) -> str:
    """What goes into `KUBERNETES_EXEC_INFO`."""
    spec = _Spec(interactive, UNSET if cluster is None else cluster)
    return msgspec.json.encode(_Question(api_version, spec)).decode()


def read_credential(printed: bytes, *, api_version: str) -> IssuedIdentity:
    """The identity in what a program printed. Raises ValueError, saying what is wrong with it."""
    status = _status(printed, api_version)
    certificate = _certificate(status)
    if not status.token and certificate is None:
        raise ValueError("its status has no token and no clientCertificateData")
    identity = Identity(bearer(status.token) if status.token else None, certificate)
    return IssuedIdentity(identity, _earliest(status.expiration_timestamp, certificate))


def _status(printed: bytes, api_version: str) -> _Status:
    try:
        answer = msgspec.json.decode(printed, type=_Answer)
    except msgspec.DecodeError as error:
        raise ValueError(f"what it printed is no {KIND}: {error}") from None
    if (answer.kind, answer.api_version) != (KIND, api_version):
        raise ValueError(
            f"it printed kind {answer.kind!r} of {answer.api_version!r}, "
            f"but is configured for {KIND} of {api_version!r}"
        )
    if answer.status is None:
        raise ValueError("what it printed has no status")
    return answer.status


def _certificate(status: _Status) -> ClientCertificate | None:
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise ValueError("its status has one of clientCertificateData and clientKeyData; it takes both or none")
    return ClientCertificate(certificate.encode(), key.encode()) if certificate and key else None


def _earliest(stated: datetime | None, certificate: ClientCertificate | None) -> datetime | None:
    """When the identity ends: as stated, or with its certificate, if that comes first."""
    if certificate is None:
        return stated
    try:
        ends = x509.load_pem_x509_certificate(certificate.certificate).not_valid_after_utc
    except ValueError:
        raise ValueError("its clientCertificateData is no PEM certificate") from None
    return ends if stated is None else min(stated, ends)

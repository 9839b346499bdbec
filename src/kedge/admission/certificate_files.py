"""Certificate files: the certificate of a webhook server from two files, read again when they change.

    files = CertificateFiles(cert_file, key_file, show=shown.show, clock=clock, registry=registry)
    await files.run()

The contents count, not times of files: a Secret volume exchanges a link, other tools write in place. Promises that a
pair which is missing, half-written or does not belong together changes nothing: the old one stays in use, the log says
so once, and the gauge is 1 until the files are right again. An expired certificate is shown if it is all there is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Gauge

from kedge.kube.clock import Clock
from kedge.kube.connect.tls import TlsRefused
from kedge.plan.zoning.certificate import BadCertificate, ServingPair, read_pair

LOOK_EVERY: Final = 5.0
Contents: TypeAlias = tuple[bytes, bytes]
log = logging.getLogger(__name__)


class CertificateFiles:
    """A certificate (a chain) and its key in two files, PEM."""

    def __init__(
        self,
        certificate: Path,
        key: Path,
        *,
        show: Callable[[ServingPair], Awaitable[None]],
        clock: Clock,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """`show` is called with every pair that can be used."""
        self._certificate = certificate
        self._key = key
        self._show = show
        self._clock = clock
        self._shown: Contents | None = None
        self._problem = ""
        self._bad = Gauge(
            "kedge_serving_certificate_files_bad",
            "Whether the certificate files cannot be used, and an older certificate stays in use",
            registry=registry,
        )

    @property
    def problem(self) -> str:
        """What is wrong with the files; empty if nothing is."""
        return self._problem

    async def run(self, every: float = LOOK_EVERY) -> None:
        """Look at the files every so many seconds, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(every)

    async def look(self) -> None:
        """Read the files, and show what they hold if that is new and can be used."""
        try:
            contents = await asyncio.to_thread(self._read)
            if contents != self._shown:
                await self._use(contents)
            self._set_problem("")
        except OSError as error:
            self._set_problem(f"{error.filename or 'a file'}: {error.strerror or error}")
        except (BadCertificate, TlsRefused) as error:
            self._set_problem(str(error))

    def _read(self) -> Contents:
        """Both files, of one moment: they may be exchanged between the reads."""
        certificate, key = self._certificate.read_bytes(), self._key.read_bytes()
        if self._certificate.read_bytes() != certificate:
            return self._certificate.read_bytes(), self._key.read_bytes()
        return certificate, key

    async def _use(self, contents: Contents) -> None:
        pair = read_pair(*contents)
        if outdated := pair.problem(self._clock.now()):
            if self._shown is not None:
                raise BadCertificate(outdated)
            log.warning("the certificate in %s is shown as it is: %s", self._certificate, outdated)
        await self._show(pair)
        self._shown = contents
        log.info("serving the certificate in %s, which ends at %s", self._certificate, pair.not_after)

    def _set_problem(self, problem: str) -> None:
        if problem and problem != self._problem:
            left = "the old one stays in use" if self._shown is not None else "there is none to serve yet"
            log.error(
                "the certificate in %s and %s cannot be used: %s; %s", self._certificate, self._key, problem, left
            )
        self._problem = problem
        self._bad.set(bool(problem))

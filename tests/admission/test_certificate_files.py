"""A certificate in files, which others write as they like."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from kedge.admission.certificate import GeneratedCertificate
from kedge.admission.certificate_files import CertificateFiles
from kedge.kube.clock import SystemClock
from kedge.plan.zoning.certificate import ServingPair
from support import certificates
from support.waiting import until


def made(**more: timedelta) -> GeneratedCertificate:
    return certificates.made(at=SystemClock().now(), **more)  # type: ignore[arg-type]


class Files:
    """A folder as a Secret volume has it: `tls.crt` → `..data/tls.crt`, and `..data` → a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shown: list[ServingPair] = []
        self.registry = CollectorRegistry()
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.watched = CertificateFiles(
            self.certificate, self.key, show=self._show, clock=SystemClock(), registry=self.registry
        )

    async def _show(self, pair: ServingPair) -> None:
        self.shown.append(pair)

    def write(self, one: GeneratedCertificate) -> None:
        self.certificate.write_bytes(one.certificate)
        self.key.write_bytes(one.key)

    def mount(self, one: GeneratedCertificate, version: str) -> None:
        """As kubelet does it: a new folder, and one link that is exchanged."""
        new = self.folder / version
        new.mkdir()
        (new / "tls.crt").write_bytes(one.certificate)
        (new / "tls.key").write_bytes(one.key)
        link = self.folder / "..tmp"
        link.symlink_to(version)
        link.rename(self.folder / "..data")
        for name in ("tls.crt", "tls.key"):
            with suppress(FileExistsError):
                (self.folder / name).symlink_to(f"..data/{name}")

    @property
    def bad(self) -> float | None:
        return self.registry.get_sample_value("kedge_serving_certificate_files_bad")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def test_files_are_read_again_when_they_change(files: Files) -> None:
    one, other = made(), made()
    await asyncio.to_thread(files.write, one)
    await files.watched.look()
    await files.watched.look()
    assert [pair.certificate for pair in files.shown] == [one.certificate]
    await asyncio.to_thread(files.write, other)
    await files.watched.look()
    assert [pair.certificate for pair in files.shown] == [one.certificate, other.certificate]
    assert files.bad == 0


async def test_an_exchanged_link_is_noticed(files: Files) -> None:
    one, other = made(), made()
    await asyncio.to_thread(files.mount, one, "..1")
    await files.watched.look()
    await asyncio.to_thread(files.mount, other, "..2")
    await files.watched.look()
    assert [pair.key for pair in files.shown] == [one.key, other.key]


HALVES: dict[str, Callable[[Files, GeneratedCertificate], object]] = {
    "half a certificate": lambda files, one: files.certificate.write_bytes(one.certificate[:200]),
    "no certificate": lambda files, _: files.certificate.write_bytes(b""),
    "half a key": lambda files, one: files.key.write_bytes(one.key[:60]),
    "only the certificate": lambda files, one: files.certificate.write_bytes(one.certificate),
    "only the key": lambda files, one: files.key.write_bytes(one.key),
    "no file": lambda files, _: files.key.unlink(),
}


@pytest.mark.parametrize("half", HALVES)
async def test_a_half_written_pair_changes_nothing_and_is_reported_once(
    half: str, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = made(), made()
    await asyncio.to_thread(files.write, one)
    await files.watched.look()
    await asyncio.to_thread(HALVES[half], files, other)
    for _ in range(3):
        await files.watched.look()
    assert len(files.shown) == 1
    assert files.bad == 1
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(said) == 1
    assert "the old one stays in use" in said[0]
    await asyncio.to_thread(files.write, other)
    await files.watched.look()
    assert files.shown[-1].certificate == other.certificate
    assert files.bad == 0
    assert files.watched.problem == ""


async def test_files_that_come_late_are_waited_for(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    running = asyncio.create_task(files.watched.run(every=0.01))
    await until(lambda: files.watched.problem)
    assert "there is none to serve yet" in caplog.text
    assert "tls.crt: No such file or directory" in files.watched.problem
    await asyncio.to_thread(files.write, made())
    await until(lambda: files.shown)
    running.cancel()
    await asyncio.wait([running])


async def test_an_expired_certificate_does_not_take_the_place_of_another(files: Files) -> None:
    expired = made(expiration=timedelta(seconds=-1))
    await asyncio.to_thread(files.write, expired)
    await files.watched.look()
    assert len(files.shown) == 1  # better than none
    one = made()
    await asyncio.to_thread(files.write, one)
    await files.watched.look()
    await asyncio.to_thread(files.write, expired)
    await files.watched.look()
    assert files.shown[-1].certificate == one.certificate
    assert files.watched.problem.startswith("it expired at")

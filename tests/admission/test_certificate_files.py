"""A certificate in files, which others write as they like."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from kedge.admission.certificate import GeneratedCertificate
from kedge.admission.certificate_files import CertificateFiles
from kedge.admission.tls_server import ShownCertificate, serve
from kedge.kube.clock import SystemClock
from kedge.kube.connect.outbound import Call, HttpOutbound
from kedge.kube.health import Address
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
    expired = certificates.made(at=SystemClock().now() - timedelta(days=2), expiration=timedelta(days=1))
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


async def test_no_call_fails_while_files_are_written_in_place(files: Files) -> None:
    """Each file is cut off, then filled in two parts, as a careless tool does it; callers trust all of them."""
    every = [certificates.made("127.0.0.1", at=SystemClock().now()) for _ in range(4)]
    bundle = b"".join(one.ca for one in every)
    shown = ShownCertificate(CollectorRegistry())
    watched = CertificateFiles(files.certificate, files.key, show=shown.show, clock=SystemClock())
    await asyncio.to_thread(files.write, every[0])
    await watched.look()
    outbound, problems, answered = HttpOutbound(environ={}), set[str](), 0
    async with serve(_application(), Address("127.0.0.1", 0), shown) as url:
        for one in every[1:]:
            for path, content in ((files.certificate, one.certificate), (files.key, one.key)):
                for part in (b"", content[:100], content):
                    await asyncio.to_thread(path.write_bytes, part)
                    await watched.look()
                    problems.add(watched.problem)
                    for _ in range(2):
                        answer = await outbound.fetch(Call("GET", url, {"Connection": "close"}, ca=bundle), timeout=60)
                        answered += answer.body == b"yes"
            assert await asyncio.to_thread(shown_by, url, bundle) == one.certificate
        await outbound.close()
    assert answered == 3 * 2 * 3 * 2
    assert len(problems) > 1  # so it did read what was half-written


def shown_by(url: str, ca: bytes) -> bytes:
    """The certificate that a new connection gets."""
    context = ssl.create_default_context(cadata=ca.decode())
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    with socket.create_connection(address) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
        return ssl.DER_cert_to_PEM_cert(secured.getpeercert(binary_form=True) or b"").encode()


def _application() -> web.Application:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="yes")

    app = web.Application()
    app.router.add_get("/", answer)
    return app

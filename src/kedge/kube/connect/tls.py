"""TLS contexts: whom to trust, and which certificate to show.

Promises TLS 1.2 at least, and trust in the given CAs only. The system's CAs are loaded only when none are given, and
then once: they cost tens of milliseconds and most of a megabyte (reference §2.7). A key is in memory while OpenSSL
reads it, or, where there is no such thing, in a private file that is removed at once.
Building a context blocks: do it in a thread.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from kedge.kube.connect.credentials import ClientCertificate

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class TlsRefused(Exception):
    """The certificates given cannot be used; the message says which, and why."""


def context(
    ca: bytes | None = None, *, insecure: bool = False, certificate: ClientCertificate | None = None
) -> ssl.SSLContext:
    """A client's context. `ca` is PEM; without it the system's CAs count; `insecure` trusts anyone."""
    if ca is None and certificate is None and not insecure:
        return _system()
    made = _bare()
    if insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    elif ca is None:
        made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(made, ca)
    if certificate is not None:
        show(made, certificate)
    return made


@cache
def _system() -> ssl.SSLContext:
    made = _bare()
    made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return made


def _bare() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    # As Go: every certificate in the list is trusted as it is, also one that another CA has signed.
    made.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    made.set_alpn_protocols(["http/1.1"])
    return made


def _trust(made: ssl.SSLContext, ca: bytes) -> None:
    found = _PEM.findall(ca)
    if not found:
        raise TlsRefused("the certificate authority holds no PEM certificate (-----BEGIN CERTIFICATE-----)")
    try:
        made.load_verify_locations(cadata=b"\n".join(found).decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise TlsRefused(f"the certificate authority holds a broken PEM certificate: {error}") from error


def show(made: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Have a context, a client's or a server's, show this certificate. Blocks; raises `TlsRefused`."""
    with _readable(certificate.certificate + b"\n" + certificate.key) as path:
        try:
            made.load_cert_chain(path, password=_no_password)
        except ssl.SSLError as error:
            raise TlsRefused(f"the client certificate and its key cannot be used: {_why(error)}") from error


def _no_password() -> str:
    # Without this, OpenSSL would ask on the terminal.
    raise TlsRefused("the client key is encrypted: give it without a pass phrase")


def _why(error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "they do not belong together"
    return "they are not a PEM certificate chain and its PEM key"


@contextmanager
def _readable(secret: bytes) -> Iterator[str]:
    """A path that shows these bytes to this process, and only while it is needed."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        with open(os.memfd_create("kedge"), "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(secret)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.TemporaryDirectory(prefix="kedge-") as private:  # mode 0700
        path = Path(private, "pair.pem")
        path.touch(mode=0o600)
        path.write_bytes(secret)
        yield str(path)

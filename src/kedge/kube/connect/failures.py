"""Failed connections, in words: what happened, whether the request was under way, and what to do.

Below the seams it is aiohttp, ssl and the operating system that fail, each in its own tongue. Here is the one place
that reads them.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import aiohttp
from aiohttp.client import ClientTimeout
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from aiohttp.tracing import Trace

FAILURES = (aiohttp.ClientError, HttpProcessingError, OSError)
"""All that a connection may fail with; time-outs and TLS errors are OSErrors."""

_UNSENT = "the request was not sent"
_UNTRUSTED = {2, 7, 18, 19, 20, 21}  # X509_V_ERR_…: no issuer, one of the same name, a self-signed one
_OTHER_NAME = {62, 63, 64}  # X509_V_ERR_…: hostname, email or IP address mismatch
_NOT_YET, _EXPIRED = 9, 10  # X509_V_ERR_…


class Unanswered(aiohttp.ClientConnectionError):
    """A connection that ended without an answer, for a reason that is its cause."""


last_look: ContextVar[Callable[[], None] | None] = ContextVar("last_look", default=None)
"""What has a say when a request of this context is about to be written."""


class Connector(aiohttp.TCPConnector):
    """Connects as its parent does, and marks what fails before there is a connection.

    Once there is one, and nothing written to it, the `last_look` of the request may still refuse, by raising.
    """

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:
        with before_sending:
            connection = await super().connect(req, traces, timeout)
            look = last_look.get()
            try:
                if look is not None:
                    look()
            except BaseException:
                connection.release()
                raise
        return connection


class _BeforeSending:
    """Marks what fails inside, time-outs and cancellations too, as come to nothing before a request was sent."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            error.add_note(_UNSENT)


before_sending = _BeforeSending()


def never_sent(error: BaseException) -> bool:
    """Whether the request cannot have reached the server: no connection, or one it did not let us in through."""
    return certificate_refused(error) or any(_UNSENT in getattr(e, "__notes__", ()) for e in _chain(error))


def certificate_refused(error: BaseException) -> bool:
    """Whether the server ended the handshake because of the certificate we showed, or did not show.

    In TLS 1.3 that comes after we believe to be connected, but before the server reads a request.
    """
    return any(isinstance(e, ssl.SSLError) and _about_ours(str(e)) for e in _chain(error))


def explain(error: BaseException, *, timeout: float, ca_given: bool = False) -> str:
    """What happened and what to do, for people. Shows no header and no URL."""
    if isinstance(error, Unanswered) and error.__cause__ is not None:
        error = error.__cause__
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _distrust(error.certificate_error, ca_given=ca_given)
        case aiohttp.ClientHttpProxyError():
            return f"the proxy refused with {error.status} {error.message}"
        case aiohttp.ClientProxyConnectionError():
            return f"the proxy cannot be reached: {_reason(error.os_error)}"
        case aiohttp.ClientConnectorDNSError():
            return f"the name {error.host!r} cannot be resolved: {_reason(error.os_error)}"
        case aiohttp.ClientConnectorSSLError():
            return _handshake(error.os_error)
        case aiohttp.ClientConnectorError():
            return f"cannot connect: {_reason(error.os_error)}"
        case _ if certificate_refused(error):
            return "the server refused our client certificate, or wants one: renew it, or use one it knows"
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection without an answer"
        case aiohttp.ClientPayloadError() | HttpProcessingError():
            return "the connection was cut in the middle of the answer"
        case TimeoutError() if never_sent(error):
            return f"no connection within {timeout:g} s: check the address, what is between, and the login"
        case TimeoutError():
            return f"no answer within {timeout:g} s"
        case OSError():
            return f"the connection broke: {_reason(error)}"
    return f"the connection failed: {type(error).__name__}"


def _distrust(error: Exception, *, ca_given: bool) -> str:
    code = getattr(error, "verify_code", 0)
    told = getattr(error, "verify_message", "") or type(error).__name__
    if code in _UNTRUSTED:
        fix = "the CA given is not the one that signed it" if ca_given else "give its CA (certificate-authority-data)"
        return f"the server's certificate is not trusted ({told}): {fix}"
    if code in _OTHER_NAME:
        return f"the server's certificate is for another name ({told}): correct the URL, or set tls-server-name"
    if code in {_NOT_YET, _EXPIRED}:
        return f"the server's certificate is out of its time ({told}): renew it, or set this machine's clock"
    return f"the server's certificate is not valid: {told}"


def _handshake(error: OSError) -> str:
    if certificate_refused(error):
        return "the server refused our client certificate, or wants one: renew it, or use one it knows"
    if getattr(error, "reason", "") in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}:
        return "the server does not speak TLS: is it an http:// address?"
    return f"TLS failed: {_reason(error)}"


def _reason(error: OSError) -> str:
    return str(getattr(error, "reason", None) or error.strerror or type(error).__name__)


def _about_ours(alert: str) -> bool:
    alert = alert.upper().replace(" ", "_")
    return "ALERT" in alert and any(word in alert for word in ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED"))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__

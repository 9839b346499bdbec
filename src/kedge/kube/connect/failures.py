"""Failures: errors of connections as sentences: what happened, whether the request was sent, and what to do.

ssl and the operating system raise errors of their own; our side raises `BrokenConnection`. Only this module reads them.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator

_UNSENT = "the request was not sent"
_UNTRUSTED = {2, 7, 18, 19, 20, 21}  # X509_V_ERR_…: no issuer, one of the same name, a self-signed one
_OTHER_NAME = {62, 63, 64}  # X509_V_ERR_…: hostname, email or IP address mismatch
_NOT_YET, _EXPIRED = 9, 10  # X509_V_ERR_…


class BrokenConnection(Exception):
    """A connection that cannot be used. The message says why."""


class ServerUnreachable(BrokenConnection):
    """The server cannot be reached. The message says why."""


class HungUp(BrokenConnection):
    """The connection ended before a byte of an answer came."""

    def __init__(self) -> None:
        super().__init__("the server closed the connection without an answer")


class CutOff(BrokenConnection):
    """The connection ended in the middle of an answer."""

    def __init__(self) -> None:
        super().__init__("the connection was cut in the middle of the answer")


class Malformed(BrokenConnection):
    """The bytes are not an answer, or more than one."""

    def __init__(self, why: str) -> None:
        super().__init__(f"what the server sent cannot be read as an answer: {why}")


class TooLarge(BrokenConnection):
    """An answer that is larger than allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is larger than {limit} bytes, so it is not used")


FAILURES = (BrokenConnection, OSError)
"""All errors of a connection; time-outs and TLS errors are OSErrors."""


class _BeforeSending:
    """Marks errors inside, also time-outs and cancellations, as raised before the request was sent."""

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
    if isinstance(error, HungUp) and error.__cause__ is not None:
        error = error.__cause__
    match error:
        case ssl.SSLCertVerificationError():
            return _distrust(error, ca_given=ca_given)
        case _ if certificate_refused(error):
            return "the server refused our client certificate, or wants one: renew it, or use one it knows"
        case BrokenConnection():
            return str(error)
        case ssl.SSLError():
            return _handshake(error)
        case TimeoutError() if never_sent(error):
            return f"no connection within {timeout:g} s: check the address, what is between, and the login"
        case TimeoutError():
            return f"no answer within {timeout:g} s"
        case OSError():
            return f"the connection broke: {reason(error)}"
    return f"the connection failed: {type(error).__name__}"


def reason(error: OSError) -> str:
    """The reason, as the operating system or TLS says it."""
    return str(getattr(error, "reason", None) or error.strerror or type(error).__name__)


def _distrust(error: ssl.SSLCertVerificationError, *, ca_given: bool) -> str:
    code, told = error.verify_code, error.verify_message or type(error).__name__
    if code in _UNTRUSTED:
        fix = "the CA given is not the one that signed it" if ca_given else "give its CA (certificate-authority-data)"
        return f"the server's certificate is not trusted ({told}): {fix}"
    if code in _OTHER_NAME:
        return f"the server's certificate is for another name ({told}): correct the URL, or set tls-server-name"
    if code in {_NOT_YET, _EXPIRED}:
        return f"the server's certificate is out of its time ({told}): renew it, or set this machine's clock"
    return f"the server's certificate is not valid: {told}"


def _handshake(error: ssl.SSLError) -> str:
    if error.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}:
        return "the server does not speak TLS: is it an http:// address?"
    return f"TLS failed: {reason(error)}"


def _about_ours(alert: str) -> bool:
    alert = alert.upper().replace(" ", "_")
    return "ALERT" in alert and any(word in alert for word in ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED"))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__

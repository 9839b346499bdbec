"""Calls: one question to one webhook over HTTPS, and its answer.

Everything that keeps a webhook from answering is a `CallFailed`, in the words of kube-apiserver where it has some of
its own: nobody listens, no answer in time, a certificate that is not trusted, a status that is an error.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from yarl import URL

from kedge.embedded.admission.service_addresses import Address, ServiceAddresses, Unresolved
from kedge.embedded.admission.webhook import Webhook
from kedge.kube.connect.failures import HungUp
from kedge.kube.connect.outbound import Answer, Call, Outbound, OutboundFailed
from kedge.kube.transport import JSON

_HEADERS: Mapping[str, str] = {"Content-Type": JSON, "Accept": f"{JSON}, */*"}
_UNTRUSTED = frozenset({2, 7, 18, 19, 20, 21})  # X509_V_ERR_…: no issuer that is known
_MESSAGES: Mapping[int, str] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class CallFailed(Exception):
    """A webhook gave no answer. The message says why."""


class _Endpoint(Struct, frozen=True):
    """Where to ask: a URL, and the address behind it if its name is that of a Service."""

    url: str
    address: Address | None = None


class WebhookCalls:
    """Asks the webhooks of one server. Without an `outbound`, none can be reached."""

    def __init__(self, outbound: Outbound | None, addresses: ServiceAddresses) -> None:
        self._outbound = outbound
        self._addresses = addresses

    async def ask(self, hook: Webhook, review: bytes) -> bytes:
        """The body of the answer. Raises `CallFailed`."""
        shown = f'Post "{_url(hook)}"'
        try:
            endpoint = self._endpoint(hook)
        except Unresolved as error:
            raise CallFailed(f"{shown}: {error}") from None
        if self._outbound is None:
            raise CallFailed(f"{shown}: this server calls no webhooks")
        call = Call(
            "POST",
            endpoint.url,
            _HEADERS,
            review,
            ca=hook.client_config.ca_bundle,
            name=shown,
            address=endpoint.address,
        )
        try:
            answer = await self._outbound.fetch(call, timeout=hook.timeout_seconds)
        except OutboundFailed as error:
            raise CallFailed(_go_words(error, endpoint, shown) or str(error)) from error
        return _body(answer)

    def _endpoint(self, hook: Webhook) -> _Endpoint:
        service = hook.client_config.service
        return _Endpoint(_url(hook), self._addresses.resolve(service) if service else None)


def _url(hook: Webhook) -> str:
    """The URL that is asked: the webhook is told how long it has. A Service has its name in the cluster."""
    config = hook.client_config
    base = config.url or ""
    if service := config.service:
        base = f"https://{service.name}.{service.namespace}.svc:{service.port}/{service.path.removeprefix('/')}"
    return f"{base}{'&' if '?' in base else '?'}timeout={hook.timeout_seconds}s"


def _body(answer: Answer) -> bytes:
    if 200 <= answer.status <= 206:
        return answer.body
    raise CallFailed(_status_message(answer.body) or _error_text(answer))


def _status_message(body: bytes) -> str:
    """The message of a Status, if that is the answer."""
    try:
        found: Any = msgspec.json.decode(body)
    except ValueError:
        return ""
    is_status = isinstance(found, dict) and found.get("kind") == "Status"
    return str(found.get("message", "")) if is_status else ""


def _error_text(answer: Answer) -> str:
    is_text = answer.headers.get("content-type", "").startswith("text/")
    said = answer.body.decode(errors="replace").strip() if is_text else "unknown"
    if answer.status in _MESSAGES:
        return _MESSAGES[answer.status]
    if answer.status in (403, 503):
        return said
    if answer.status >= 500:
        return f'an error on the server ("{said}") has prevented the request from succeeding'
    return f"the server responded with the status code {answer.status} but did not return more information"


def _go_words(error: OutboundFailed, endpoint: _Endpoint, shown: str) -> str:
    """Why there was no answer, as Go's HTTP client says it; empty if it has no such words."""
    url = URL(endpoint.url)
    host, port = endpoint.address or (url.host, url.port)
    for cause in _chain(error):
        match cause:
            case ConnectionRefusedError():
                return f"{shown}: dial tcp {host}:{port}: connect: connection refused"
            case ssl.SSLCertVerificationError() if cause.verify_code in _UNTRUSTED:
                return f"{shown}: tls: failed to verify certificate: x509: certificate signed by unknown authority"
            case TimeoutError():
                return f"{shown}: context deadline exceeded"
            case HungUp():
                return f"{shown}: EOF"
    return ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__

"""Metric queries: measures metrics, as their MetricTemplates say.

    measurement = await queries.measure(metric, subject, wake, key=(uid, batch, since))
    # None: the answer takes a while; `wake` is called when it is there

Template and Secret are read by name, each time: a few measurements a minute do not need every Secret in memory.
Promises that it never raises for what a template, a Secret or a Prometheus says, and that no credential is in what it
gives back. A Prometheus that hangs holds up only those who ask the same server (`pending_calls`).
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Final, Protocol
from urllib.parse import urlencode

from msgspec import Struct
from yarl import URL

from kedge.api.core import Secret
from kedge.api.metric_template import MetricTemplate
from kedge.api.oam.rollout_plan import CanaryMetric, ObjectReference
from kedge.api.redacted import Redacted
from kedge.controllers.pending_calls import PATIENCE, PendingCalls
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.credentials import basic
from kedge.kube.connect.outbound import Call, Outbound, OutboundFailed, fetch_within
from kedge.kube.errors import Forbidden, NotFound, NotUnderstood
from kedge.plan.measuring.measurement import Measurement, NotMeasured
from kedge.plan.measuring.prometheus import QUERY_PATH, read_answer
from kedge.plan.measuring.query import MetricSubject, QueryRefused, query_of
from kedge.plan.text import object_name

TIMEOUT: Final = 10.0
"""Seconds that one query may take."""
_SECRETS: Final = untyped(Secret.resource)
_FORM: Final = "application/x-www-form-urlencoded"
_TOO_OLD: Final = 30.0  # seconds: a measurement that nobody asked for in time says nothing of now


class Measures(Protocol):
    """Whoever measures metrics."""

    async def measure(
        self, metric: CanaryMetric, subject: MetricSubject, wake: Callable[[], None], *, key: Hashable
    ) -> Measurement | None:
        """One measurement; None if it takes longer, and then `wake` is called when it is there."""
        ...


class NoMeasures:
    """Measures nothing: for a hub that can reach nobody. What is missing is never success."""

    async def measure(
        self,
        metric: CanaryMetric,  # noqa: ARG002
        subject: MetricSubject,  # noqa: ARG002
        wake: Callable[[], None],  # noqa: ARG002
        *,
        key: Hashable,  # noqa: ARG002
    ) -> Measurement | None:
        return NotMeasured("metrics are not measured here")


class _Access(Redacted, Struct, frozen=True):
    """How to show who asks, and whom to trust."""

    authorization: str = ""
    ca: bytes | None = None


class _Timed(Struct, frozen=True):
    """A measurement, and when it was made in the loop's time."""

    measurement: Measurement
    at: float


class MetricQueries:
    """Measures metrics."""

    def __init__(self, client: Client, outbound: Outbound, *, patience: float = PATIENCE) -> None:
        """`client` reads templates and Secrets. `patience` is how many seconds `measure` waits for an answer itself."""
        self._client = client
        self._outbound = outbound
        self._pending: PendingCalls[_Timed] = PendingCalls(patience=patience)

    async def measure(
        self, metric: CanaryMetric, subject: MetricSubject, wake: Callable[[], None], *, key: Hashable
    ) -> Measurement | None:
        """One measurement; None if it takes longer. `key` says whose it is, and after what."""
        ref = metric.template_ref or ObjectReference()
        namespace = ref.namespace or subject.namespace
        try:
            template = await self._client.get(MetricTemplate, ref.name, namespace)
            query = query_of(template, metric, subject)
            access = await self._access(template, namespace)
        except (NotFound, Forbidden, NotUnderstood, QueryRefused) as error:
            return NotMeasured(f"{object_name('MetricTemplate', namespace, ref.name)}: {_why(error)}")
        call = _call(template, query, access, metric.name)
        server = URL(call.url).host or ""
        while True:
            timed = await self._pending.result((key, metric.name), partial(self._made, call), wake, server=server)
            if timed is None:
                return None
            if asyncio.get_running_loop().time() - timed.at <= _TOO_OLD:
                return timed.measurement

    async def close(self) -> None:
        """End all queries."""
        await self._pending.close()

    async def _made(self, call: Call) -> _Timed:
        try:
            answer = await fetch_within(self._outbound, call, TIMEOUT)
            found = read_answer(answer.status, answer.body)
        except OutboundFailed as error:
            found = NotMeasured(str(error).removeprefix(f"{call}: "))
        return _Timed(found, asyncio.get_running_loop().time())

    async def _access(self, template: MetricTemplate, namespace: str) -> _Access:
        ref = template.spec.provider.secret_ref
        if ref is None:
            return _Access()
        try:
            found = await self._client.get(_SECRETS, ref.name, namespace)
        except (NotFound, Forbidden, NotUnderstood) as error:
            raise QueryRefused(f"Secret {ref.name}: {_why(error)}") from None
        return _access_of(found.get("data") or {}, ref.name)


def _call(template: MetricTemplate, query: str, access: _Access, name: str) -> Call:
    provider = template.spec.provider
    url = URL(provider.address)
    path = f"{url.path.rstrip('/')}/{QUERY_PATH}"
    headers = {header: ", ".join(values) for header, values in provider.headers.items()}
    headers |= {"Content-Type": _FORM, "Accept": "application/json"}
    headers |= {"Authorization": access.authorization} if access.authorization else {}
    body = urlencode({"query": query}).encode()
    return Call("POST", str(url.with_path(path, keep_query=True)), headers, body, access.ca, name=f"metric {name}")


def _access_of(data: Mapping[str, str], name: str) -> _Access:
    """What a Secret gives. Raises QueryRefused if it holds nothing of use."""
    try:
        values = {key: b64decode(value, validate=True) for key, value in data.items()}
        username, password, token = (
            values[key].decode() if key in values else None for key in ("username", "password", "token")
        )
    except (binascii.Error, UnicodeDecodeError):
        raise QueryRefused(f"Secret {name} cannot be read") from None
    ca = values.get("ca.crt")
    if username is not None and password is not None:
        return _Access(basic(username, password), ca)
    if token:
        return _Access(f"Bearer {token.strip()}", ca)
    if ca is not None and username is None and password is None:
        return _Access("", ca)
    raise QueryRefused(f"Secret {name} holds neither username and password nor token")


def _why(error: NotFound | Forbidden | NotUnderstood | QueryRefused) -> str:
    if isinstance(error, NotFound):
        return "it does not exist"
    if isinstance(error, NotUnderstood):
        return "it cannot be read"
    return "reading it is not allowed" if isinstance(error, Forbidden) else str(error)

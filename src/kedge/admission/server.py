"""Webhook server: the rules of an operator behind their paths, as an aiohttp application.

    app = WebhookServer({"/admission/no-downscale": rule}).application([RequestMetrics(registry).middleware])

A rule is asked for one write at a time and answers on its own; a slow one does not hold up others. Promises an answer
in time: a rule that has none after nine tenths of the time a request may take is stopped, and the write denied. What is
no AdmissionReview is answered with 400, one that is too large with 413. A rule that breaks is answered with 500, and
logged with the object it was about; the API server then does what the webhook's failurePolicy says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Middleware

from kedge.admission import review
from kedge.admission.review import JSON, BadReview, Question
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.api.times import format_duration
from kedge.kube.logs import about

Rule: TypeAlias = Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]

MAX_BODY_BYTES: Final = 7 * 2**20
"""An object has at most 3 MiB, a review has two of them and little else."""
REQUEST_TIMEOUT: Final = 10.0
_SHARE: Final = 0.9
log = logging.getLogger(__name__)


def rule_deadline(request_timeout: float = REQUEST_TIMEOUT) -> float:
    """How many seconds a rule has, out of those that a request may take."""
    return _SHARE * request_timeout


class WebhookServer:
    """Answers for the rules, by path. `request_timeout` is how long a request may take, in seconds."""

    def __init__(
        self,
        rules: Mapping[str, Rule],
        *,
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        self._rules = dict(rules)
        self._timeout = request_timeout

    def application(self, middlewares: Sequence[Middleware] = ()) -> web.Application:
        """The application: serve it over TLS."""
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=middlewares)
        for path in self._rules:
            app.router.add_route("*", path, self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(self._timeout):
                body = await request.read()
        except TimeoutError:
            return web.Response(status=408, text="the request did not arrive in time\n")
        path = request.path
        try:
            question = review.decode(request.headers.get("Content-Type", ""), body)
        except BadReview as error:
            log.warning("refused a request: %s", error, extra={"webhook": path})
            return web.Response(status=400, text=f"{error}\n")
        with about(webhook=path, **_object_fields(question.request)):
            return await self._decide(path, question)

    async def _decide(self, path: str, question: Question) -> web.Response:
        try:
            response = await self._in_time(self._rules[path], question.request)
        except Exception:
            log.exception("the rule failed")
            return web.Response(status=500, text=f"{path} failed: its log says why\n")
        log.debug("answered", extra={"allowed": response.allowed, "warnings": response.warnings})
        return web.Response(body=review.encode(question, response), headers={"Content-Type": JSON})

    async def _in_time(self, rule: Rule, request: AdmissionRequest) -> AdmissionResponse:
        deadline = rule_deadline(self._timeout)
        limit = asyncio.timeout(deadline)
        try:
            async with limit:
                return await rule(request)
        except TimeoutError:
            if not limit.expired():
                raise
            within = format_duration(timedelta(seconds=deadline))
            log.warning("denied, because the rule did not decide in time", extra={"within": within})
            return review.deny(request, f"no decision on {_named(request)} within {within}: try again", code=504)


def _named(request: AdmissionRequest) -> str:
    name = f"{request.resource.resource}/{request.name}"
    return f"{name} in {request.namespace}" if request.namespace else name


def _object_fields(request: AdmissionRequest) -> dict[str, str]:
    """What log lines about a request say it is about."""
    return {
        "resource": "/".join(filter(None, (request.resource.resource, request.sub_resource))),
        "namespace": request.namespace,
        "name": request.name,
        "uid": request.uid,
        "operation": request.operation,
    }

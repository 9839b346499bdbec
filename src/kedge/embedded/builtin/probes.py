"""Probes: what is wrong with how a container is asked whether it is well."""

from __future__ import annotations

from collections.abc import Iterator

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.causes import NOT_NEGATIVE, forbidden, one_of, required, wrong
from kedge.embedded.rules import Untyped
from kedge.kube.errors import Cause

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def probe_problems(at: str, probe: Untyped, *, once: bool) -> Iterator[Cause]:
    """What is wrong with a probe. `once`: one success must be enough for it."""
    yield from handler_problems(at, probe)
    for name in _NUMBERS:
        if probe.get(name, 0) < 0:
            yield wrong(f"{at}.{name}", probe[name], NOT_NEGATIVE)
    if probe.get("terminationGracePeriodSeconds", 1) < 1:
        where = f"{at}.terminationGracePeriodSeconds"
        yield wrong(where, probe["terminationGracePeriodSeconds"], "must be greater than 0")
    if once and probe["successThreshold"] != 1:
        yield wrong(f"{at}.successThreshold", probe["successThreshold"], "must be 1")


def handler_problems(at: str, handler: Untyped, grace: int = 0) -> Iterator[Cause]:
    """What is wrong with what is done: there must be exactly one thing to do."""
    named = [name for name in _HANDLERS if name in handler]
    if not named:
        yield required(at, "must specify a handler type")
    for name in named[1:]:
        yield forbidden(f"{at}.{name}", "may not specify more than 1 handler type")
    for name in named[:1]:
        yield from _action(f"{at}.{name}", name, handler[name], grace)


def _action(at: str, name: str, action: Untyped, grace: int) -> Iterator[Cause]:
    if name == "exec" and not action.get("command"):
        yield required(f"{at}.command")
    if name == "httpGet":
        if not action.get("path"):
            yield required(f"{at}.path")
        yield from checks.port_or_name(f"{at}.port", action.get("port", 0))
        yield from one_of(f"{at}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS"))
    if name == "tcpSocket":
        yield from checks.port_or_name(f"{at}.port", action.get("port", 0))
    if name == "sleep" and not 0 <= action.get("seconds", 0) <= grace:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield wrong(at, action["seconds"], why)
    if name == "grpc":
        yield from checks.port(f"{at}.port", action.get("port", 0))

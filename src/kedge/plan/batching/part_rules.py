"""Part rules: what the hooks, metrics and traffic of a rollout plan may say.

Each function yields the problems of one part; the path it is given leads to that part. `spec_rules` puts them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from kedge.api.numbers import IntOrPercent
from kedge.api.oam.rollout_plan import (
    CanaryMetric,
    HookType,
    MetricsRange,
    ObjectReference,
    RolloutWebhook,
    Traffic,
    TrafficProvider,
)
from kedge.api.oam.rollout_rules import NUMBER
from kedge.api.patterns import compiled
from kedge.api.times import parse_duration

METHODS: Final = ("", "POST", "GET", "PUT")
"""An empty one is POST."""
BATCH_HOOKS: Final = frozenset({HookType.pre_batch_rollout, HookType.post_batch_rollout})
METRIC_TEMPLATE: Final = "MetricTemplate"
_NAME: Final = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
_KIND: Final = r"^[A-Za-z][A-Za-z0-9]{0,62}$"
_API_VERSION: Final = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[a-z][-a-z0-9]{0,62}$"
ROUTES: Final[Mapping[TrafficProvider, str]] = {
    TrafficProvider.gateway_api: "HTTPRoute",
    TrafficProvider.istio: "VirtualService",
    TrafficProvider.nginx: "Ingress",
}
_LONGEST_TIMEOUT: Final = 300
_MOST_WEIGHT: Final = 100


class Problem(Struct, frozen=True, order=True):
    """Something that a rollout may not say."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def hook_problems(path: str, hooks: Iterable[RolloutWebhook], *, of_batch: bool) -> Iterator[Problem]:
    """Of webhooks: those of one batch are called before or after it, those of a rollout at any point."""
    for index, hook in enumerate(hooks):
        here = f"{path}[{index}]"
        if of_batch and hook.type not in BATCH_HOOKS:
            yield Problem(
                f"{here}.type",
                f"the webhook of a batch can only be pre-batch-rollout or post-batch-rollout, not {hook.type}",
            )
        if not hook.name:
            yield Problem(f"{here}.name", "a webhook has to have a name")
        if hook.method not in METHODS:
            yield Problem(f"{here}.method", f"the method can only be POST, GET or PUT, not {hook.method!r}")
        yield from _call_problems(here, hook)


def _call_problems(here: str, hook: RolloutWebhook) -> Iterator[Problem]:
    if why := url_problem(hook.url):
        yield Problem(f"{here}.url", why)
    if hook.timeout_seconds is not None and not 1 <= hook.timeout_seconds <= _LONGEST_TIMEOUT:
        yield Problem(f"{here}.timeoutSeconds", f"a call takes from 1 to {_LONGEST_TIMEOUT} seconds")
    for position, status in enumerate(hook.expected_status):
        if not 100 <= status <= 599:
            yield Problem(f"{here}.expectedStatus[{position}]", f"{status} is not an HTTP status, from 100 to 599")


def url_problem(url: str) -> str:
    """What is wrong with the URL of a webhook, or nothing."""
    problem = f"{url!r} is not a URL such as https://example.com/check"
    if any(character.isspace() or not character.isprintable() for character in url):
        return problem
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or brackets that do not close
        return problem
    return "" if is_complete else problem


def same_call_problems(hooks: Iterable[tuple[str, RolloutWebhook]]) -> Iterator[Problem]:
    """Of webhooks that are called at the same time: their results are recorded by name."""
    names: set[tuple[HookType, str]] = set()
    for path, hook in hooks:
        if (hook.type, hook.name) in names:
            yield Problem(f"{path}.name", f"another webhook of the type {hook.type} has the name {hook.name!r}, too")
        names.add((hook.type, hook.name))


def metric_problems(path: str, metrics: Iterable[CanaryMetric], namespace: str) -> Iterator[Problem]:
    """Of metrics: each asks something, and accepts some answers and refuses others."""
    for index, metric in enumerate(metrics):
        here = f"{path}[{index}]"
        if not metric.name:
            yield Problem(f"{here}.name", "a metric has to have a name")
        if why := interval_problem(metric.interval):
            yield Problem(f"{here}.interval", why)
        yield from _range_problems(f"{here}.metricsRange", metric.metrics_range)
        yield from _template_problems(f"{here}.templateRef", metric.template_ref, namespace)
        yield from _count_problems(here, metric)


def interval_problem(interval: str) -> str:
    """What is wrong with an interval, or nothing. None at all is the default."""
    if not interval:
        return ""
    try:
        is_positive = parse_duration(interval) > timedelta()
    except ValueError as error:
        return str(error)
    return "" if is_positive else f"{interval!r} is no time at all: write a duration above 0, such as 1m"


def _range_problems(path: str, found: MetricsRange | None) -> Iterator[Problem]:
    if found is None or (found.min is None and found.max is None):
        yield Problem(path, "a metric has to have a range: set min, max or both")
        return
    numbers = {}
    for end, value in (("min", found.min), ("max", found.max)):
        numbers[end] = _number(value)
        if value is not None and numbers[end] is None:
            yield Problem(f"{path}.{end}", f"{value!r} is not a number such as 5 or '0.99'")
    least, most = numbers["min"], numbers["max"]
    if least is not None and most is not None and least > most:
        yield Problem(path, f"min {found.min} is more than max {found.max}: nothing is in this range")


def _number(value: IntOrPercent | None) -> Decimal | None:
    return Decimal(value) if value is not None and compiled(NUMBER).search(str(value)) else None


def _template_problems(path: str, ref: ObjectReference | None, namespace: str) -> Iterator[Problem]:
    if ref is None or not ref.name:
        yield Problem(path, f"a metric has to refer to a {METRIC_TEMPLATE} by its name")
        return
    if ref.kind not in ("", METRIC_TEMPLATE):
        yield Problem(f"{path}.kind", f"can only be {METRIC_TEMPLATE}, not {ref.kind}")
    yield from reference_problems(path, ref, namespace)


def reference_problems(path: str, ref: ObjectReference, namespace: str) -> Iterator[Problem]:
    """Of a reference, as far as it is given: what can be no name or kind, and what is of another namespace."""
    given = (("apiVersion", ref.api_version, _API_VERSION), ("kind", ref.kind, _KIND), ("name", ref.name, _NAME))
    for field, value, pattern in given:
        if value and compiled(pattern).search(value) is None:
            yield Problem(f"{path}.{field}", f"{value!r} is not the {_FIELDS[field]} of an object")
    yield from _elsewhere_problems(path, ref, namespace)


_FIELDS: Final = {"apiVersion": "API version", "kind": "kind", "name": "name"}


def _elsewhere_problems(path: str, ref: ObjectReference, namespace: str) -> Iterator[Problem]:
    """Of a reference: whoever may write in one namespace does not change or read others through a rollout."""
    if namespace and ref.namespace not in ("", namespace):
        yield Problem(f"{path}.namespace", f"can only be the namespace of the rollout, {namespace}")


def _count_problems(here: str, metric: CanaryMetric) -> Iterator[Problem]:
    if metric.count is not None and metric.count < 1:
        yield Problem(f"{here}.count", "at least 1 measurement is needed")
    for name, limit in (("failureLimit", metric.failure_limit), ("inconclusiveLimit", metric.inconclusive_limit)):
        if limit is not None and limit < 0:
            yield Problem(f"{here}.{name}", "cannot be less than 0")


def same_metric_problems(metrics: Iterable[tuple[str, CanaryMetric]]) -> Iterator[Problem]:
    """Of metrics that are measured at the same time: their results are recorded by name."""
    names: set[str] = set()
    for path, metric in metrics:
        if metric.name in names:
            yield Problem(f"{path}.name", f"another metric has the name {metric.name!r}, too")
        names.add(metric.name)


def traffic_problems(path: str, traffic: Traffic, namespace: str) -> Iterator[Problem]:
    """Of traffic: one route that divides it between two Services."""
    route, expected = traffic.route_ref, ROUTES[traffic.provider]
    if not route.name:
        yield Problem(f"{path}.routeRef.name", f"the name of the {expected} has to be given")
    if route.kind not in ("", expected):
        yield Problem(f"{path}.routeRef.kind", f"the provider {traffic.provider} takes a {expected}, not {route.kind}")
    yield from reference_problems(f"{path}.routeRef", route, namespace)
    for name, service in (("sourceService", traffic.source_service), ("targetService", traffic.target_service)):
        if not service:
            yield Problem(f"{path}.{name}", "the name of a Service has to be given")
    if traffic.source_service and traffic.source_service == traffic.target_service:
        yield Problem(f"{path}.targetService", "cannot be the same as sourceService: there is nothing to divide")
    if traffic.max_weight is not None and not 1 <= traffic.max_weight <= _MOST_WEIGHT:
        yield Problem(f"{path}.maxWeight", f"can only be from 1 to {_MOST_WEIGHT}")

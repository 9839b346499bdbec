"""Query: the query of a MetricTemplate for one rollout, and why it cannot be asked.

The query is a Go template in Flagger. Of that, `{{ name }}`, `{{ namespace }}`, `{{ target }}` and `{{ interval }}` are
known, also with the marks that trim white space (`{{- name -}}`); anything else is refused.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from yarl import URL

from kedge.api.metric_template import PROMETHEUS, MetricTemplate
from kedge.api.oam.rollout_plan import CanaryMetric
from kedge.plan.measuring.measurement import DEFAULT_INTERVAL
from kedge.plan.text import cut, listed

_ACTION: Final = re.compile(r"(?:\s*\{\{-\s|\{\{)(.*?)(?:\s-\}\}\s*|\}\})", re.DOTALL)
_HARMLESS: Final = re.compile(r"[A-Za-z0-9._/:-]*")
_LONGEST_SHOWN: Final = 40


class MetricSubject(Struct, frozen=True):
    """What is measured: the rollout, and the workload that it rolls out."""

    name: str
    namespace: str
    target: str


class QueryRefused(ValueError):
    """The template cannot be asked; the message says why."""


def query_of(template: MetricTemplate, metric: CanaryMetric, subject: MetricSubject) -> str:
    """The query for this rollout. Raises QueryRefused if the template is one that cannot be asked."""
    if problem := provider_problem(template):
        raise QueryRefused(problem)
    values = {
        "name": subject.name,
        "namespace": subject.namespace,
        "target": subject.target,
        "interval": metric.interval or DEFAULT_INTERVAL,
    }
    query = _filled(template.spec.query, values).strip()
    if not query:
        raise QueryRefused("spec.query is empty")
    return query


def provider_problem(template: MetricTemplate) -> str:
    """Why this provider cannot be asked; empty if it can."""
    provider = template.spec.provider
    if provider.type != PROMETHEUS:
        return f"spec.provider.type is {provider.type}: only {PROMETHEUS} is known here"
    try:
        url = URL(provider.address)
    except ValueError:
        url = URL()
    if url.scheme not in {"http", "https"} or not url.host:
        return "spec.provider.address is no http:// or https:// URL"
    if provider.insecure_skip_verify and url.scheme == "https":
        return "spec.provider.insecureSkipVerify is not supported: give the CA as ca.crt in the Secret of secretRef"
    return ""


def _filled(template: str, values: dict[str, str]) -> str:
    def value(action: re.Match[str]) -> str:
        name = action[1].strip()
        if name not in values:
            known = listed(f"{{{{ {one} }}}}" for one in values)
            raise QueryRefused(f"spec.query has {{{{ {cut(name, _LONGEST_SHOWN)} }}}}: only {known} are known here")
        if not _HARMLESS.fullmatch(values[name]):
            raise QueryRefused(f"spec.query has {{{{ {name} }}}}, whose value cannot be part of a query")
        return values[name]

    if "{{" in _ACTION.sub("", template):
        raise QueryRefused("spec.query has {{ without }}")
    return _ACTION.sub(value, template)

"""Metric template: what to measure and where, as in Flagger. `CanaryMetric.templateRef` refers to one.

The definition keeps every field that Flagger has, so that both can use the same objects. Measured is only with
Prometheus; `kedge.plan.measuring.query` says what else is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from msgspec import field

from kedge.api.markers import AGE, Column, Definition, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

FLAGGER: Final = "flagger.app"
PROMETHEUS: Final = "prometheus"


class SecretReference(Value, frozen=True, gc=False):
    """A Secret of the same namespace."""

    name: str
    """Its name."""


class MetricProvider(Value, frozen=True, gc=False):
    """Where to ask."""

    type: str
    """What answers: prometheus."""
    address: str = ""
    """Its URL, such as http://prometheus.monitoring:9090."""
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """HTTP headers to send along."""
    secret_ref: SecretReference | None = None
    """The Secret with `username` and `password`, or with `token`; and with `ca.crt`, if its CA is not a public one."""
    region: str = ""
    """Not used with Prometheus."""
    insecure_skip_verify: bool = False
    """Not supported: give the CA as `ca.crt` in the Secret."""


class MetricTemplateSpec(Value, frozen=True, gc=False):
    """What to ask whom."""

    provider: Annotated[MetricProvider, Schema(preserve_unknown_fields=True)]
    """Where to ask."""
    query: str
    """The query. It may contain {{ name }}, {{ namespace }}, {{ target }} and {{ interval }}."""


class MetricTemplate(Value, frozen=True, gc=False):
    """A metric that rollouts measure."""

    resource: ClassVar[Resource] = Resource(FLAGGER, "v1beta1", "MetricTemplate", "metrictemplates")
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1beta1", storage=True),),
        categories=("all",),
        status=True,
        columns=(Column("Provider", ".spec.provider.type"), AGE),
    )
    spec: MetricTemplateSpec
    """What to ask whom."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

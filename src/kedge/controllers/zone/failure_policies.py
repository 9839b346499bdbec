"""Failure policies: a gauge of what API servers do when a webhook of this operator does not answer.

The name, labels and values are those that dashboards and alerts of Grafana's rollout-operator know: for every webhook
and each of the two policies, 1 for the one that it has, else 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kedge.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.controllers.zone.webhook_configurations import Configuration

NAME: Final = "kube_validating_webhook_failure_policy"
TEXT: Final = "FailurePolicy setting of Kubernetes ValidatingWebhooks and MutatingWebhooks"
POLICIES: Final = ("Fail", "Ignore")
_TYPES: Final = {
    ValidatingWebhookConfiguration.resource.plural: "ValidatingWebhook",
    MutatingWebhookConfiguration.resource.plural: "MutatingWebhook",
}


class FailurePolicies(Collector):
    """The gauge. May be read from another thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._policies: dict[str, Mapping[str, str]] = {}  # by plural: policy by webhook
        registry.register(self)

    def seen(self, plural: str, found: Iterable[Configuration]) -> None:
        """These are all of a kind."""
        self._policies[plural] = {
            webhook.name: webhook.failure_policy or "Fail" for one in found for webhook in one.webhooks
        }

    def describe(self) -> Iterable[Metric]:
        return ()  # or a registry would collect at once, to learn the name

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(NAME, TEXT, labels=["type", "webhook", "policy"])
        for plural, policies in list(self._policies.items()):
            for webhook, chosen in policies.items():
                for policy in POLICIES:
                    family.add_metric([_TYPES[plural], webhook, policy], float(policy == chosen))
        yield family

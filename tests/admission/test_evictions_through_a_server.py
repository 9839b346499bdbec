"""Evictions and budgets that are sent to an API server, which asks the rules: what a user of kubectl sees."""

from __future__ import annotations

import pytest

from kedge.api.admission import ValidatingWebhookConfiguration
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.controllers.zone.disruption_budgets import BUDGETS
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import ApiError, TooManyRequests
from support.budget_bed import LABELS, NAMESPACE, BudgetBed, play

PODS = untyped(Resource("", "v1", "Pod", "pods"))
EVICTION_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods/eviction"],
    "scope": "Namespaced",
}
BUDGET_RULE = {
    "apiGroups": ["rollout-operator.grafana.com"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["zoneawarepoddisruptionbudgets"],
    "scope": "Namespaced",
}


def configuration(name: str, rule: Untyped) -> Untyped:
    """As the manifests of rollout-operator have it, but for the address."""
    webhook = {
        "name": f"{name}-{NAMESPACE}.grafana.com",
        "clientConfig": {"url": f"https://rollout-operator.{NAMESPACE}.svc/admission/{name}"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": f"{name}-{NAMESPACE}"}, "webhooks": [webhook]}


async def configure(here: BudgetBed) -> None:
    configurations = untyped(ValidatingWebhookConfiguration.resource)
    await here.client.create(configurations, configuration("pod-eviction", EVICTION_RULE))
    await here.client.create(configurations, configuration("zpdb-validation", BUDGET_RULE))


async def evict(here: BudgetBed, short: str, *, dry_run: bool = False) -> None:
    name = f"ingester-zone-{short}"
    meta = {"name": name, "namespace": NAMESPACE}
    whole = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    options = {"deleteOptions": {"gracePeriodSeconds": 0}}
    await here.client.without_retry().create(
        PODS, whole | options, NAMESPACE, name=name, subresource="eviction", dry_run=dry_run
    )


def test_an_eviction_is_refused_with_429_while_another_zone_is_disrupted() -> None:
    async def scene(here: BudgetBed) -> None:
        await configure(here)
        await here.set_budget(maxUnavailable=1)
        await evict(here, "a-0", dry_run=True)
        await evict(here, "b-0")
        with pytest.raises(TooManyRequests) as caught:
            await evict(here, "a-0")
        assert caught.value.message == (
            'admission webhook "pod-eviction-mimir.grafana.com" denied the request: 1 pod unknown in ingester-zone-b'
        )
        left = {pod.metadata.name for pod in (await here.client.list(Pod, NAMESPACE, labels=LABELS)).items}
        assert len(left) == 8
        assert "ingester-zone-a-0" in left

    play(scene)


def test_a_budget_that_means_nothing_is_refused_with_400() -> None:
    async def scene(here: BudgetBed) -> None:
        await configure(here)
        spec = {"selector": {"matchLabels": LABELS}, "podNamePartitionRegex": "x"}
        with pytest.raises(ApiError) as caught:
            await here.client.create(BUDGETS, {"metadata": {"name": "x", "namespace": NAMESPACE}, "spec": spec})
        assert caught.value.code == 400
        assert caught.value.message == (
            'admission webhook "zpdb-validation-mimir.grafana.com" denied the request: '
            "invalid value: regex is not valid, got regular expression requires at least one subexpression"
        )
        assert here.budgets.in_namespace(NAMESPACE) == ()

    play(scene)


def test_a_negative_number_is_refused_by_the_schema_first() -> None:
    async def scene(here: BudgetBed) -> None:
        await configure(here)
        spec = {"selector": {"matchLabels": LABELS}, "maxUnavailable": -1}
        with pytest.raises(ApiError, match='"x" is invalid'):
            await here.client.create(BUDGETS, {"metadata": {"name": "x", "namespace": NAMESPACE}, "spec": spec})

    play(scene)

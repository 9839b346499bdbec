"""Templates that ask for another number of replicas than a binding that was written by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import ResourceBinding
from kedge.plan.aligning.differing import replicas_differ

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
RETAINS = {"labels": {"resourcetemplate.karmada.io/retain-replicas": "true"}}
CLUSTERS = [{"name": "a", "replicas": 4}, {"name": "b", "replicas": 6}]


def binding(**spec: Any) -> ResourceBinding:
    resource = {**DEPLOYMENT, "name": "web"}
    body = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"resource": resource, **spec}}
    return msgspec.convert(body, ResourceBinding)


def template(replicas: int | None, **more: Any) -> dict[str, Any]:
    spec = {} if replicas is None else {"replicas": replicas}
    return {**DEPLOYMENT, "metadata": {}, "spec": spec, **more}


@pytest.mark.parametrize(
    ("given", "asked", "differ"),
    [
        (binding(clusters=CLUSTERS), template(12), True),
        (binding(clusters=CLUSTERS), template(0), True),
        (binding(clusters=CLUSTERS), template(10), False),
        (binding(clusters=CLUSTERS), template(None), False),
        (binding(clusters=CLUSTERS), None, False),
        (binding(), template(12), False),
        (binding(clusters=CLUSTERS, placement={"clusterTolerations": []}), template(12), False),
        (binding(clusters=CLUSTERS), template(12, metadata=RETAINS), False),
        (binding(clusters=CLUSTERS), template(12, kind="Job", apiVersion="batch/v1"), False),
    ],
)
def test_replicas_of_a_binding_by_hand_may_differ(
    given: ResourceBinding, asked: dict[str, Any] | None, differ: bool
) -> None:
    assert bool(replicas_differ(given, asked)) is differ


def test_it_says_both_numbers_and_which_one_counts() -> None:
    assert replicas_differ(binding(clusters=CLUSTERS), template(12)) == (
        "Deployment shop/web has spec.replicas: 12, and spec.clusters of this binding 10 in all: the binding decides,"
        " so scale there"
    )

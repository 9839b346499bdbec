"""Clusters that decide by themselves how many pods they have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.keys import RETAIN_REPLICAS
from kedge.api.karmada.works import Work
from kedge.plan.aligning.beside import RETAINED, BesideInput, plan_beside
from kedge.plan.aligning.binding import plan_binding
from kedge.plan.aligning.ledger import Report, Spec
from kedge.plan.aligning.ledger_text import ledger_text
from kedge.plan.aligning.retaining import retained, retains_replicas, sized, with_retained, without_retaining
from kedge.plan.fields import at
from plan.aligning.test_binding import bound, deployment, seen, work


def labelled(obj: Any, value: str = "true") -> dict[str, Any]:
    labels = {**obj["metadata"]["labels"], RETAIN_REPLICAS: value}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("false", False), ("yes", False)])
def test_a_label_says_so(value: str, *, expected: bool) -> None:
    assert retains_replicas(labelled(deployment(), value)) is expected
    assert not retains_replicas(deployment())


def test_what_clusters_ask_for_counts_unless_they_are_to_leave_or_do_not_say() -> None:
    reports = {"a": Report(1, 5, asked=7), "b": Report(1, 5), "c": Report(1, 5, asked=4)}
    wanted = {"a": 5, "b": 5}
    assert retained(labelled(deployment()), reports, wanted) == {"a": 7}
    assert retained(deployment(), reports, wanted) == {}


def test_every_spec_has_the_replicas_that_the_cluster_decided_on() -> None:
    specs = (Spec(1, "v1", 5, 1), Spec(2, "v2", 6, 2))
    assert sized(specs, 8) == (Spec(1, "v1", 8, 1), Spec(2, "v2", 8, 2))
    assert sized(specs, None) is specs


def test_an_object_that_was_made_to_keep_its_replicas_keeps_them() -> None:
    kept, plain = labelled(deployment(replicas=3)), deployment(replicas=3)
    live = labelled(deployment(replicas=9))
    assert at(with_retained(kept, live), "spec", "replicas") == 9
    assert with_retained(kept, deployment(replicas=0)) is kept  # it was just created, without pods
    assert with_retained(plain, live) is plain
    without = {**live, "spec": {}}
    assert with_retained(kept, without) is kept


def test_the_label_can_be_taken_away() -> None:
    plain = deployment()
    assert without_retaining(labelled(plain)) == plain
    assert without_retaining(plain) is plain


def reported(manifest: Any, asked: int) -> Work:
    """A Work whose cluster has scaled its workload, and all its pods are there."""
    found = msgspec.to_builtins(work(manifest))
    status = found["status"]["manifestStatuses"][0]["status"]
    status |= {"specReplicas": asked, **dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), asked)}
    return msgspec.convert(found, Work)


def scaled(sizes: dict[str, int]) -> tuple[str, dict[str, Work | None]]:
    """The ledger after a first release to two clusters, which have other sizes by now."""
    first = plan_binding(seen(labelled(deployment()), {"a": None, "b": None}, spec=bound(a=4, b=6)))
    return ledger_text(first.ledger), {name: reported(one, sizes[name]) for name, one in first.manifests.items()}


def test_a_cluster_that_scales_itself_is_not_written_to() -> None:
    ledger, works = scaled({"a": 9, "b": 2})
    found = plan_binding(seen(labelled(deployment()), works, spec=bound(a=4, b=6), ledger=ledger))
    assert found.alignment is not None
    assert found.alignment.specs == {}
    assert found.waiting == {}
    assert (found.aim.replicas if found.aim else None) == 11


def test_the_budget_is_that_of_all_pods_there_are() -> None:
    ledger, works = scaled({"a": 30, "b": 10})
    share = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}}
    template = labelled(deployment("app:2", strategy=share))
    found = plan_binding(seen(template, works, spec=bound(a=4, b=6), ledger=ledger))
    assert found.alignment is not None
    assert {name: spec.unavailable for name, spec in found.alignment.specs.items()} == {"a": 3, "b": 1}
    assert (found.alignment.held.fewest, found.alignment.held.most) == (36, 40)


def test_a_cluster_that_is_to_leave_decides_no_more_and_has_what_it_has_taken_away() -> None:
    ledger, works = scaled({"a": 10, "b": 2})
    found = plan_binding(seen(labelled(deployment()), works, spec=bound(a=10), ledger=ledger))
    assert found.alignment is not None
    assert {name: spec.replicas for name, spec in found.alignment.specs.items()} == {"b": 2}  # it was asked for six
    assert not retains_replicas(found.manifests["b"])


def test_beside_a_karmada_it_is_refused_in_words() -> None:
    found = plan_beside(BesideInput(bound(a=4, b=6), labelled(deployment())))
    assert found.problems == (RETAINED,)
    assert not found.granted

"""What is kept of a member's objects, and what is counted about applying them."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from controllers.member.applying_bed import MAPS, NAMESPACES, Bed, config, deployment, namespace, play
from kedge.controllers.member.apply_metrics import ApplyMetrics
from kedge.controllers.member.following import content_of, is_placed, reduced, status_of
from kedge.plan.applying.ownership import Owner


def with_metadata(obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def test_a_status_and_what_the_server_counts_are_no_change_and_all_else_is() -> None:
    plain = deployment()
    same = with_metadata({**plain, "status": {"replicas": 2}}, resourceVersion="9", generation=4, managedFields=[{}])
    assert content_of(same) == content_of(plain)
    assert status_of(same) != status_of(plain)
    others = [
        with_metadata(plain, labels={"a": "b"}),
        with_metadata(plain, annotations={"a": "b"}),
        with_metadata(plain, finalizers=["x"]),
        with_metadata(plain, ownerReferences=[Owner("w", "1").reference]),
        deployment(image="app:2"),
    ]
    assert len({content_of(one) for one in (plain, *others)}) == len(others) + 1


def test_only_who_it_is_and_whose_is_kept() -> None:
    owners = [Owner("w", "1").reference, {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "2"}]
    kept = reduced(with_metadata(deployment(), uid="7", labels={"a": "b"}, ownerReferences=owners)).metadata
    assert (kept.name, kept.namespace, kept.uid, kept.labels) == ("web", "shop", "7", {})
    assert [owner.name for owner in kept.owner_references] == ["w"]


def test_what_no_work_placed_does_not_count() -> None:
    assert not is_placed(config())
    assert not is_placed(with_metadata(config(), ownerReferences=[{"apiVersion": "x/v1", "kind": "AppliedWork"}]))
    assert is_placed(with_metadata(config(), ownerReferences=[Owner("w", "1").reference]))


def test_a_large_population_that_is_not_ours_is_not_kept() -> None:
    async def scene(here: Bed) -> None:
        await here.member.create(NAMESPACES, {"metadata": {"name": "crowd"}})
        for n in range(300):
            await here.member.create(MAPS, {"metadata": {"name": f"m{n}", "namespace": "crowd"}, "data": {"a": "b"}})
        await here.place(namespace(), config())
        await here.rest()
        caches = here.applier._following._caches
        assert {resource.plural: len(cache) for resource, cache in caches.items()} == {"namespaces": 1, "configmaps": 1}

    play(scene)


def test_what_comes_of_works_is_counted_under_the_names_dashboards_know() -> None:
    registry = CollectorRegistry()

    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment(), {**config(), "metadata": {"name": "Bad_", "namespace": "shop"}})
        await here.rest()
        await here.place(namespace())
        await here.rest()
        work = {"apply_status": "failed", "availability_status": "skipped", "diff_reporting_status": "skipped"}
        assert registry.get_sample_value("fleet_work_processing_requests_total", work)
        work = {"apply_status": "applied", "availability_status": "available", "diff_reporting_status": "skipped"}
        assert registry.get_sample_value("fleet_work_processing_requests_total", work)
        manifest = {**work, "drift_detection_status": "skipped", "diff_detection_status": "skipped"}
        manifest["availability_status"] = "unavailable"
        assert registry.get_sample_value("fleet_manifest_processing_requests_total", manifest)
        assert registry.get_sample_value("work_apply_time_seconds_count")

    play(scene, metrics=ApplyMetrics.of(registry))
    assert ApplyMetrics.of(registry) is ApplyMetrics.of(registry)

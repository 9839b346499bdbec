"""What is kept of a member's objects, and what is counted about applying them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from controllers.member.applying_bed import MAPS, NAMESPACES, Bed, config, deployment, namespace, play
from kedge.controllers.member.apply_metrics import ApplyMetrics


def test_a_large_population_that_is_not_ours_is_not_kept() -> None:
    async def scene(here: Bed) -> None:
        await here.member.create(NAMESPACES, {"metadata": {"name": "crowd"}})
        for n in range(300):
            await here.member.create(MAPS, {"metadata": {"name": f"m{n}", "namespace": "crowd"}, "data": {"a": "b"}})
        await here.place(namespace(), config())
        await here.rest()
        caches = here.applier._objects._caches
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

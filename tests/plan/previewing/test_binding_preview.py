"""What a preview of a binding foretells: the order of its clusters, and what all of them keep."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.works import Work
from kedge.plan.aligning.binding import BindingInput, plan_binding
from kedge.plan.aligning.binding_story import PodShare
from kedge.plan.aligning.ledger_text import ledger_text
from kedge.plan.previewing.binding_preview import BindingPreview, binding_preview
from plan.aligning.test_binding import bound, deployed, deployment, seen, work


def previewed(found: BindingInput, *failing: str) -> BindingPreview:
    binding = {"metadata": {"name": "demo-deployment", "namespace": "shop"}, "spec": msgspec.to_builtins(found.spec)}
    return binding_preview(msgspec.convert(binding, ResourceBinding), found, failing)


def release(image: str = "app:2", **given: Any) -> BindingInput:
    first, works = deployed()
    return seen(deployment(image, **given.pop("with_spec", {})), works, ledger=ledger_text(first.ledger), **given)


def test_the_largest_cluster_moves_first_and_the_other_with_what_it_gives_back() -> None:
    preview = previewed(release())
    assert [one.name for one in preview.clusters] == ["b", "a"]
    b, a = preview.clusters
    assert (b.begins, b.moves, b.granted) == (1, 6, PodShare(2, 1))
    assert b.ends is not None
    assert a.begins is not None
    assert 1 < a.begins <= b.ends + 1
    assert (a.moves, preview.waves, preview.is_done) == (4, a.ends, True)


def test_the_bounds_are_those_of_every_decision_on_the_way() -> None:
    preview = previewed(release())
    assert (preview.fewest, preview.most) == (8, 11)
    assert (preview.sure, preview.highest) == (8, 11)


def test_nothing_moves_without_a_change() -> None:
    preview = previewed(release("app:1"))
    assert (preview.waves, preview.is_done, [one.begins for one in preview.clusters]) == (0, True, [None, None])


def test_a_cluster_whose_new_pods_never_become_available_keeps_the_other_waiting() -> None:
    preview = previewed(release(), "b")
    assert not preview.is_done
    b, a = preview.clusters
    assert (b.name, b.moves, a.begins) == ("b", 3, None)
    assert a.why.startswith("at most 2 of 10 pods may be unavailable, and 1 may be extra: b holds that")
    assert (preview.sure, preview.highest) == (8, 11)


def test_a_cluster_that_is_not_heard_from_does_not_move_and_the_other_does() -> None:
    found = release()
    lost = msgspec.structs.replace(found.clusters["b"], is_reachable=False)
    preview = previewed(msgspec.structs.replace(found, clusters={**found.clusters, "b": lost}))
    assert [(one.name, one.moves, one.is_done) for one in preview.clusters] == [("a", 4, True), ("b", 0, False)]
    assert not preview.is_done


def test_the_first_release_goes_everywhere_at_once() -> None:
    preview = previewed(seen(deployment(), {"a": None, "b": None}))
    assert [(one.begins, one.ends, one.moves) for one in preview.clusters] == [(1, 1, 4), (1, 1, 6)]
    assert (preview.pods, preview.is_done) == (0, True)


def test_a_paused_workload_is_foretold_to_wait() -> None:
    preview = previewed(release(with_spec={"paused": True}))
    assert not preview.is_done
    assert {one.why for one in preview.clusters} == {
        "the workload is paused: no cluster is granted anything until it is resumed"
    }


def rolled(sizes: tuple[int, int], unavailable: Any, surge: Any, image: str, *wanted: int) -> BindingPreview:
    """A release, or other replicas, of a Deployment with this strategy in two clusters of these sizes."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}
    spec = bound(a=sizes[0], b=sizes[1])
    first = plan_binding(seen(deployment(strategy=strategy), {"a": None, "b": None}, spec=spec))
    works: dict[str, Work | None] = {name: work(manifest) for name, manifest in first.manifests.items()}
    then = bound(a=wanted[0], b=wanted[1]) if wanted else spec
    return previewed(seen(deployment(image, strategy=strategy), works, ledger=ledger_text(first.ledger), spec=then))


def test_replicas_that_move_are_added_before_others_go() -> None:
    preview = rolled((4, 6), 0, 1, "app:1", 6, 4)
    assert preview.is_done
    assert [one.name for one in preview.clusters] == ["a", "b"]
    assert (preview.sure, preview.highest) == (10, 11)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 7), (5, 5), (1, 9)])
@pytest.mark.parametrize(("unavailable", "surge"), [(1, 0), (0, 1), ("25%", "25%")])
def test_every_release_ends_within_its_bounds(sizes: tuple[int, int], unavailable: Any, surge: Any) -> None:
    preview = rolled(sizes, unavailable, surge, "app:2")
    assert preview.is_done
    assert preview.sure >= preview.fewest
    assert preview.highest <= preview.most
    assert sum(one.moves for one in preview.clusters) == sum(sizes)

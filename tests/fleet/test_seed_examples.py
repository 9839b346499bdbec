"""The seeds' examples, to the letter, on both backends, judged by raw watches of the members' own objects."""

from __future__ import annotations

import pytest

from fleet import kinds
from fleet.bed import MEMBERS, SECONDS, Backend, Bed
from fleet.seeds import example
from fleet.story import PLACEMENT, deployment, is_only_on, is_so, set_image
from fleet.traces import Untyped
from fleet.watching import Happening, image, is_available, watched
from kedge.api.dialect import Dialect

pytestmark = pytest.mark.timeout(SECONDS)

EAST = {"fleet-member-cluster-3", "fleet-member-cluster-4"}


async def begin(bed: Bed, replicas: int, spec: Untyped) -> None:
    """The namespace with a deployment in it, placed and available."""
    await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-ns"}})
    await bed.apply(deployment("app:1", replicas))
    await bed.apply(spec)
    await bed.until(lambda: is_so(bed, "Available"))


async def messages(bed: Bed) -> str:
    """All that the placement says of its rollout."""
    status = (await bed.get(kinds.PLACEMENTS, PLACEMENT))["status"]
    conditions = [*status["conditions"], *(one for entry in status["placementStatuses"] for one in entry["conditions"])]
    return "\n".join(one.get("message", "") for one in conditions if "RolloutStarted" in one["type"])


@pytest.mark.parametrize("replicas", [1, pytest.param(3, marks=pytest.mark.core)])
def test_a_bad_image_reaches_exactly_one_cluster_and_the_placement_says_why(backend: Backend, replicas: int) -> None:
    async def play(bed: Bed) -> tuple[list[Happening], str]:
        async with watched(bed, kinds.DEPLOYMENTS, *MEMBERS) as seen:
            await begin(bed, replicas, example(1)[0])
            await set_image(bed, "app:bad")
            await bed.until(lambda: is_so(bed, "RolloutStarted", "False"))
            await bed.wait_and_see()
            return seen, await messages(bed)

    seen, said = backend.play(play, Dialect.seed)
    assert len({one.where for one in seen if image(one) == "app:1"}) == 3
    (bad,) = {one.where for one in seen if image(one) == "app:bad"}
    why = f"at most 1 of 3 clusters may be unavailable, and {bad} is not available: Deployment test-ns/web has"
    assert f" waits: {why} " in said


@pytest.mark.core
def test_a_good_image_after_a_bad_one_reaches_every_cluster_and_never_two_at_once(backend: Backend) -> None:
    async def play(bed: Bed) -> tuple[list[Happening], list[Untyped]]:
        await begin(bed, 2, example(1)[0])
        await set_image(bed, "app:bad")
        await bed.until(lambda: is_so(bed, "RolloutStarted", "False"))
        async with watched(bed, kinds.DEPLOYMENTS, *MEMBERS) as seen:
            await set_image(bed, "app:2")
            await bed.until(lambda: is_so(bed, "Available"))
            return seen, [*await bed.all(kinds.BINDINGS), *await bed.all(kinds.WORKS)]

    seen, moved = backend.play(play)
    assert [one["kind"] for one in moved if "managedFields" in one["metadata"]] == []  # each costs a server's time
    assert len({one.where for one in seen if image(one) == "app:2" and is_available(one)}) == 3
    assert most_unavailable(seen) == 1


def most_unavailable(seen: list[Happening]) -> int:
    """At how many clusters a Deployment was, at worst, not available at the same time."""
    now: dict[str, bool] = {}
    worst = 0
    for happening in seen:
        now[happening.where] = is_available(happening)
        worst = max(worst, sum(not available for available in now.values()))
    return worst


@pytest.mark.core
def test_both_east_clusters_get_their_works_before_a_west_one_is_removed(backend: Backend) -> None:
    async def play(bed: Bed) -> list[Happening]:
        west, east = example(2)
        await begin(bed, 2, west)
        async with watched(bed, kinds.WORKS, "hub") as works, watched(bed, kinds.DEPLOYMENTS, *MEMBERS) as seen:
            await bed.apply(east)
            await bed.until(lambda: is_only_on(bed, "cluster-3", "cluster-4"))
            await bed.until(lambda: is_so(bed, "Available"))
            return sorted([*works, *seen], key=lambda one: one.at)

    seen = backend.play(play, Dialect.seed)
    given = [n for n, one in enumerate(seen) if is_work_of(one, "cluster-3") or is_work_of(one, "cluster-4")]
    both = next(n for n in given if {seen[m].obj["metadata"]["namespace"] for m in given if m <= n} == EAST)
    told, gone = first_removals(seen, "Work"), first_removals(seen, "Deployment")
    assert list(told) == ["cluster-1", "cluster-2"]
    assert both < told["cluster-1"]
    available = next(n for n, one in enumerate(seen) if one.where in ("cluster-3", "cluster-4") and is_available(one))
    assert available < told["cluster-2"]
    assert all(told[member] < gone[member] for member in told)  # which goes first is up to the members' own collectors


def is_work_of(happening: Happening, member: str) -> bool:
    is_work = happening.where == "hub" and happening.obj["kind"] == "Work"
    return is_work and happening.obj["metadata"]["namespace"] == f"fleet-member-{member}"


def first_removals(seen: list[Happening], kind: str) -> dict[str, int]:
    """The members whose objects of this kind went away, and when first, in the order it happened."""
    found: dict[str, int] = {}
    for number, one in enumerate(seen):
        if one.obj["kind"] == kind and one.is_removal:
            found.setdefault(one.member, number)
    return found

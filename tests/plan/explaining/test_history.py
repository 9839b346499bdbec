"""History: revisions, and who has which."""

from kedge.plan.explaining.history import revisions
from plan.explaining.objects import ALL_WELL, PREFIX, STEPS, binding, passed, placement, snapshot


def test_the_newest_comes_first_with_the_clusters_that_have_it() -> None:
    held = [binding("cluster-10", index=0), binding("cluster-9", index=0), binding("cluster-1", index=1)]
    found = revisions(ALL_WELL, [snapshot(0), snapshot(1, latest=True)], held)
    assert [(one.index, one.clusters, one.is_newest) for one in found] == [
        (1, ("cluster-1",), True),
        (0, ("cluster-9", "cluster-10"), False),
    ]


def test_the_one_it_is_held_at_is_pinned() -> None:
    held = placement(passed(*STEPS, prefix=PREFIX), [], annotations={"kedge.dev/pinned-resource-index": "0"})
    found = revisions(held, [snapshot(0), snapshot(1, latest=True)], ())
    assert [one.is_pinned for one in found] == [False, True]

"""What must hold of every explanation: its parts do not contradict each other, nor the facts.

    wrong = contradiction(story, known_available)

* What is available is nowhere said not to be.
* A cluster that others wait for is not shown as one that has what is rolled out, and works.
* A cluster is no better and no worse than the objects shown below it.
* The numbers are those of the clusters shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set

from kedge.api.binding import BindingState
from kedge.api.condition import TRUE, find_condition, is_true
from kedge.api.fleet import PARENT_BINDING, PARENT_SNAPSHOT_NAME
from kedge.api.placement_kinds import Binding
from kedge.api.work import Work
from kedge.plan.explaining.cluster_places import ClusterPlace
from kedge.plan.explaining.phrases import explained, of_place, summary
from kedge.plan.explaining.story import Story
from kedge.plan.state import State


def available_by_works(bindings: Iterable[Binding], works: Iterable[Work]) -> set[str]:
    """Clusters whose own agents say that all they were given is available, as it is now."""
    found = list(bindings)
    by_binding: dict[str, list[Work]] = {}
    for work in works:
        by_binding.setdefault(work.metadata.labels.get(PARENT_BINDING, ""), []).append(work)
    return {
        one.spec.target_cluster
        for one in found
        if sum(other.spec.target_cluster == one.spec.target_cluster for other in found) == 1
        and one.spec.state == BindingState.bound
        and _say_so(one, by_binding.get(one.metadata.name, []))
    }


def _say_so(binding: Binding, works: list[Work]) -> bool:
    synced = is_true(binding.status.conditions, "WorkSynchronized", generation=binding.metadata.generation)
    return synced and bool(works) and all(_says_so(binding, work) for work in works)


def _says_so(binding: Binding, work: Work) -> bool:
    applied, said = (find_condition(work.status.conditions, kind) for kind in ("Applied", "Available"))
    return (
        work.metadata.annotations.get(PARENT_SNAPSHOT_NAME) == binding.spec.resource_snapshot_name
        and applied is not None
        and said is not None
        and applied.observed_generation == said.observed_generation == work.metadata.generation
        and applied.status == said.status == TRUE
    )


def contradiction(story: Story, available: Set[str]) -> str:
    """What is wrong with an explanation of a placement, of whose clusters these are known to be available."""
    lines = explained(story)
    wrong = [
        *_denied(lines, available),
        *(wrong for place in story.places for wrong in _of_place(place, available)),
        *_proven_blockers(story),
        *_miscounted(story),
    ]
    return "\n".join([wrong[0], *lines]) if wrong else ""


def _denied(lines: Iterable[str], available: Set[str]) -> Iterable[str]:
    for line in lines:
        for cluster in re.findall(r"(?<!\S)(\S{1,63}) is not available", line):
            if cluster in available:
                yield f"{cluster} is available, and said not to be"


def _of_place(place: ClusterPlace, available: Set[str]) -> Iterable[str]:
    said, shown = of_place(place).partition(": ")[0], {thing.state for thing in place.things}
    if "not available" in said and place.cluster in available:
        yield f"{place.cluster} is available, and its line says not"
    if place.state is State.available and not shown <= {State.available}:
        yield f"{place.cluster} is shown as available, and one of its objects is not"
    if place.state in (State.moving, State.failed) and shown == {State.available}:
        yield f"{place.cluster} is shown as not available, and all of its objects are"


def _proven_blockers(story: Story) -> Iterable[str]:
    done = {place.cluster for place in story.places if place.state is State.available}
    for place in story.places:
        named = {
            name for name in done - {place.cluster} if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", place.why)
        }
        if named and place.state in (State.waiting, State.leaving):
            yield f"{place.cluster} waits for {sorted(named)}, which is shown as done"


def _miscounted(story: Story) -> Iterable[str]:
    said = re.search(r"(\d+) of (\d+) available", summary(story))
    shown = [place for place in story.places if place.state is not State.leaving]
    doubted = [place for place in shown if re.search("not available|not known", of_place(place).partition(": ")[0])]
    # One that is shown as available counts as such, also if nobody can say its revision since that was deleted.
    without = [place for place in shown if not place.index and place.state is not State.available]
    if said and int(said[1]) > len(shown) - len(set(map(_name, doubted)) | set(map(_name, without))):
        yield f"{said[0]}, and {len(doubted)} are shown as not"


def _name(place: ClusterPlace) -> str:
    return place.cluster

"""Explaining a run: why it is where it is, in sentences; and one of its clusters."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kedge.api.condition import TRUE
from kedge.api.reasons import CLUSTER_STARTED, SUCCEEDED, UPDATING_SKIPPED
from kedge.api.staged_status import ClusterUpdateStatus
from kedge.api.twins import Run
from kedge.plan.staging.saying import find, is_moving
from kedge.plan.staging.stories import RunStory, StageStory, stage_name
from kedge.plan.state import State
from kedge.plan.text import listed, of_all


class ClusterStory(Struct, frozen=True):
    """A run on one cluster."""

    cluster: str
    stage: str
    state: State
    why: str = ""


def explained_run(story: RunStory) -> list[str]:
    """Why a run is where it is: a sentence for the run, one for each stage, and what there is to do."""
    said = [f"{story.kind} {story.path} moves {story.placement} to revision {story.index or '?'}", story.word]
    why = "" if any(stage.why for stage in story.stages) else story.why
    doubt = [story.doubt] if story.doubt else []
    return [": ".join([*said, *([why] if why else [])]), *map(_stage, story.stages), *doubt, *_advice(story)]


def _stage(stage: StageStory) -> str:
    if not stage.clusters:
        return f"{stage.name}: no clusters"
    parts = [f"{of_all(stage.done, stage.clusters, 'cluster')} done"]
    parts += [f"{listed(stage.moving, most=10)} not done yet"] if stage.moving else []
    parts += [f"{listed(stage.failed, most=10)} failed"] if stage.failed else []
    parts += stage.approved
    return f"{stage.name}: {', '.join(parts)}" + (f": {stage.why}" if stage.why else "")


def _advice(story: RunStory) -> Iterable[str]:
    match story.state:
        case State.paused:
            yield f"It is stopped: `kedge resume {story.path}` lets it go on, `kedge rollback {story.path}` goes back."
        case State.failed if not story.stages:
            yield "It has not begun, and never will: correct what is wrong, and make a new run."
        case State.failed:
            yield (
                f"`kedge retry {story.path}` tries once more what failed, `kedge rollback {story.path}` brings its "
                "clusters back to what they had."
            )
        case State.rolled_back:
            yield "It is over: to bring the change out after all, make a new run."


def tell_cluster(run: Run, cluster: str) -> ClusterStory | None:
    """Where a run stands on one cluster; None if that is no part of it."""
    last = run.status.deletion_stage_status
    for stage in (*run.status.stages_status, *((last,) if last is not None else ())):
        for one in stage.clusters:
            if one.cluster_name == cluster:
                return ClusterStory(cluster, stage_name(stage), *_where(one))
    return None


def clusters_of(run: Run) -> list[str]:
    """Every cluster that is part of a run, in their order."""
    last = run.status.deletion_stage_status
    stages = (*run.status.stages_status, *((last,) if last is not None else ()))
    return [one.cluster_name for stage in stages for one in stage.clusters]


def _where(cluster: ClusterUpdateStatus) -> tuple[State, str]:
    done, begun = find(cluster, SUCCEEDED), find(cluster, CLUSTER_STARTED)
    if done is not None and (done.status == TRUE or done.reason == UPDATING_SKIPPED):
        return State.available, done.message
    if done is not None:
        return State.failed, done.message
    if is_moving(cluster) and begun is not None:
        return State.moving, begun.message
    return State.waiting, "the run has not begun with it"


def explained_cluster(story: ClusterStory) -> str:
    """The same as a sentence."""
    word = {State.available: "done", State.moving: "not done yet", State.waiting: "waits"}.get(story.state, story.state)
    return f"{story.cluster}: stage {story.stage}: {word}" + (f": {story.why}" if story.why else "")

"""Runs: staged update runs from the command line: approve, stop, resume, retry, take back, show.

Each that changes something is a patch of one object, or the making of one, so kubectl can do it too.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import click
from msgspec.structs import replace
from rich.text import Text
from rich.tree import Tree

from kedge.api.condition import TRUE, find_condition
from kedge.api.reasons import APPROVAL_GIVEN, APPROVED
from kedge.api.twins import Approval, Run
from kedge.cli.asking import MANAGER, Hub, Which
from kedge.cli.hub_lease import hub_silent_since
from kedge.cli.showing import can_draw, console, line_of
from kedge.controllers.hub.run_writes import roll_back
from kedge.kube.client import Client
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.staging.approvers import signed
from kedge.plan.staging.returning import taken_back_by
from kedge.plan.staging.saying import says
from kedge.plan.staging.stories import RunStory, StageStory, tell_run
from kedge.plan.staging.verbs import Verb, answer_to
from kedge.plan.staging.waiting import moment
from kedge.plan.telling.freshness import silence
from kedge.plan.telling.words import age, listed
from kedge.plan.verbs import Answer

BAR: Final = 20  # letters


async def find_run(client: Client, name: str, namespace: str | None) -> tuple[Which, Run]:
    """The run that is meant, or a sentence that says there is none."""
    which = Which.of(name, namespace)
    try:
        return which, await client.get(which.twins.run, which.name, which.namespace)
    except NotFound as error:
        known = (await client.list(which.twins.run, which.namespace)).items
        there = f": there is {listed(run.metadata.name for run in known)}" if known else ", nor any other run"
        raise click.ClickException(f"there is no {which.twins.run.resource.kind} {which.path}{there}") from error


async def is_run(client: Client, name: str, namespace: str | None) -> bool:
    """Whether a name is that of a run, and of no placement."""
    which = Which.of(name, namespace)
    with suppress(NotFound):
        await client.get(which.twins.placement, which.name, which.namespace)
        return False
    with suppress(NotFound):
        await client.get(which.twins.run, which.name, which.namespace)
        return True
    return False


# Approving


def run_approve(hub: Hub, name: str, stage: str | None, namespace: str | None, message: str) -> None:
    """Say yes to what a run asks."""
    click.echo(hub.ask(lambda client: approve(client, name, stage, namespace, message=message, now=datetime.now(UTC))))


async def approve(
    client: Client, name: str, stage: str | None, namespace: str | None = None, *, message: str, now: datetime
) -> str:
    """Say yes to the one thing a run asks, or to what it asks about a stage; gives what came of it."""
    which, run = await find_run(client, name, namespace)
    agreed(answer_to(Verb.approve, run, await rollback_of_run(client, which, run)))
    asked = await _asked(client, which, run)
    wanted = [one for one in asked if stage in (None, one.spec.target_stage)]
    if not wanted:
        raise click.ClickException(_nothing_asked(which.path, run, stage, asked))
    if len(wanted) > 1:
        stages = listed(one.spec.target_stage for one in wanted)
        raise click.ClickException(f"{which.path} asks about {stages}: say which stage")
    await _approve(client, which, wanted[0], message, now)
    return f"stage {wanted[0].spec.target_stage} of {which.path} is approved"


def _nothing_asked(path: str, run: Run, stage: str | None, asked: list[Approval]) -> str:
    if asked:
        return f"{path} does not ask about {stage}: it asks about {listed(one.spec.target_stage for one in asked)}"
    story = tell_run(run)
    about = f" of {stage}" if stage else ""
    return f"{path} does not ask for approval{about}" + (f": {story.why}" if story.why else "")


async def _asked(client: Client, which: Which, run: Run) -> list[Approval]:
    """The requests of a run that are not approved."""
    last = run.status.deletion_stage_status
    stages = (*run.status.stages_status, *((last,) if last is not None else ()))
    tasks = [task for one in stages for task in (*one.before_stage_task_status, *one.after_stage_task_status)]
    found: list[Approval] = []
    for task in tasks:
        if task.approval_request_name and not says(task, APPROVAL_GIVEN):
            with suppress(NotFound):
                found.append(await client.get(which.twins.approval, task.approval_request_name, which.namespace))
    return [one for one in found if not _is_approved(one)]


def _is_approved(request: Approval) -> bool:
    said = find_condition(request.status.conditions, APPROVED)
    return said is not None and said.status == TRUE


async def _approve(client: Client, which: Which, request: Approval, message: str, now: datetime) -> None:
    meta = request.metadata
    said: dict[str, Any] = {
        "type": APPROVED,
        "status": TRUE,
        "reason": f"{which.twins.approval.resource.kind}Approved",
        "message": signed(_me(), message),
        "lastTransitionTime": moment(now),
        "observedGeneration": meta.generation,
    }
    others = [one for one in request.status.conditions if one.type != APPROVED]
    await client.amend(
        which.twins.approval, meta, {"status": {"conditions": [*others, said]}}, manager=MANAGER, subresource="status"
    )


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"user {os.getuid()}"


# Stopping, going on, trying again, going back


def run_verb(hub: Hub, verb: Verb, name: str, namespace: str | None) -> None:
    """Stop a run, let it go on, or try once more what failed."""

    async def question(client: Client) -> str:
        which, run = await find_run(client, name, namespace)
        answer = agreed(answer_to(verb, run, await rollback_of_run(client, which, run)))
        if answer.patch:
            await _patch(client, which, run, answer.patch)
        return answer.message

    click.echo(hub.ask(question))


def run_take_back(hub: Hub, name: str, namespace: str | None) -> None:
    """Make the run that brings a run's clusters back to what they had."""
    click.echo(hub.ask(lambda client: take_back(client, name, namespace)))


async def take_back(client: Client, name: str, namespace: str | None = None) -> str:
    """Make the run that brings a run's clusters back, unless it is there; gives what came of it."""
    which, run = await find_run(client, name, namespace)
    rollback = await rollback_of_run(client, which, run)
    answer = agreed(answer_to(Verb.rollback, run, rollback))
    if rollback is not None:
        return answer.message
    by, _ = await roll_back(client, which.twins, run, manager=MANAGER)
    return f"run {by} {answer.message}"


async def rollback_of_run(client: Client, which: Which, run: Run) -> Run | None:
    """The run that takes this one back, if there is one."""
    return taken_back_by(run, (await client.list(which.twins.run, which.namespace)).items)


def agreed(answer: Answer) -> Answer:
    """The answer, or the sentence of one that refuses."""
    if answer.is_refused:
        raise click.ClickException(answer.message)
    return answer


async def _patch(client: Client, which: Which, run: Run, body: Mapping[str, Any]) -> None:
    meta = run.metadata
    patch = MergePatch(dict(body))
    await client.patch(which.twins.run, meta.name, patch, meta.namespace, uid=meta.uid, manager=MANAGER)


# Showing


async def run_story(client: Client, name: str, namespace: str | None) -> RunStory:
    """Where a run stands now."""
    which, run = await find_run(client, name, namespace)
    story = tell_run(run, await rollback_of_run(client, which, run))
    return story if story.has_ended else doubted(story, await hub_silent_since(client))


def doubted(story: RunStory, since: datetime | None) -> RunStory:
    """The story as it is told by a hub that was not heard from since then; how a run ended is not told otherwise."""
    return story if story.has_ended else replace(story, doubt=silence(since))


def show_run(story: RunStory) -> None:
    out = console()
    out.print(run_tree(story, datetime.now(UTC), drawn=can_draw(out)))


def run_tree(story: RunStory, now: datetime, *, drawn: bool = True) -> Tree:
    """A run and its stages, a bar for each."""
    what = f"{story.placement}, revision {story.index or '?'}"
    why = "" if any(stage.why for stage in story.stages) else story.why
    root = Tree(line_of(story.state, f"run {story.path}", ": ".join(part for part in (what, why) if part), drawn))
    for stage in story.stages:
        root.add(line_of(stage.state, stage.name, _stage(stage, now, drawn), drawn))
    if story.doubt:
        root.add(Text(story.doubt, "red"))
    return root


def _stage(stage: StageStory, now: datetime, drawn: bool) -> str:
    if not stage.clusters:
        return "no clusters"
    full, empty = ("█", "░") if drawn else ("#", ".")
    filled = BAR * stage.done // stage.clusters
    parts = [f"{full * filled}{empty * (BAR - filled)} {stage.done}/{stage.clusters}"]
    parts += [f"moving {listed(stage.moving, most=3)}"] if stage.moving else []
    parts += [f"failed {listed(stage.failed, most=3)}"] if stage.failed else []
    parts += [f"{age(stage.until - now)} to wait"] if stage.until is not None and stage.until > now else []
    parts += stage.approved
    return ", ".join([*parts, *([stage.why] if stage.why and stage.until is None else [])])

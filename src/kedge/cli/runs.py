"""Runs: staged update runs on the command line: approve, stop, resume, retry, roll back, show.

Every change is a patch of one object, or creates one, so kubectl can do it too.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import click
from msgspec.structs import replace
from rich.text import Text
from rich.tree import Tree

from kedge.api.condition import TRUE, find_condition
from kedge.api.placement_kinds import Approval, Run
from kedge.api.reasons import APPROVAL_GIVEN, APPROVED
from kedge.cli.hub_lease import hub_silent_since
from kedge.cli.render import can_draw, console, line_of
from kedge.cli.safe_text import printable
from kedge.cli.served_kinds import without_placements
from kedge.cli.targets import MANAGER, PLACEMENT, RUN, Hub, PlacementName, PlacementTarget
from kedge.controllers.hub.run_writes import roll_back
from kedge.kube.client import Client
from kedge.kube.errors import Forbidden, NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.explaining.freshness import silence
from kedge.plan.moving.wait import Wait
from kedge.plan.staging.approvals import signed
from kedge.plan.staging.conditions import has_condition
from kedge.plan.staging.progress import creation_order
from kedge.plan.staging.rollbacks import retried, rollback_run_of
from kedge.plan.staging.run_observation import RunObjects, approval_names, observe_run, resources_of, run_waits
from kedge.plan.staging.run_story import RunStory, StageStory, tell_run
from kedge.plan.staging.verbs import RunVerb, answer_to
from kedge.plan.text import age, listed, moment
from kedge.plan.verbs import VerbAnswer

BAR: Final = 20  # letters


async def find_run(client: Client, name: str, namespace: str | None) -> tuple[PlacementName, Run]:
    """The run of this name. If there is none, the error names those that exist."""
    which = PlacementName.of(name, namespace)
    try:
        return which, await client.get(which.kinds.run, which.name, which.namespace)
    except NotFound as error:
        raise click.ClickException(await _what_there_is(client, which)) from error


async def _what_there_is(client: Client, which: PlacementName) -> str:
    try:
        known = (await client.list(which.kinds.run, which.namespace)).items
    except NotFound:
        return await without_placements(client, which.path)
    there = f": there is {listed(run.metadata.name for run in known)}" if known else ", nor any other run"
    return f"there is no {which.kinds.run.resource.kind} {which.path}{there}"


async def is_run(client: Client, name: str, namespace: str | None) -> bool:
    """Whether the name is that of a run, and not of a placement."""
    which = PlacementName.of(name, namespace)
    if name.startswith(PLACEMENT):
        return False
    if not name.startswith(RUN):
        with suppress(NotFound):
            await client.get(which.kinds.placement, which.name, which.namespace)
            return False
    with suppress(NotFound):
        await client.get(which.kinds.run, which.name, which.namespace)
        return True
    return False


# Approve


def run_approve(hub: Hub, name: str, stage: str | None, namespace: str | None, message: str) -> None:
    """Approve a stage of a run."""
    click.echo(hub.ask(lambda client: approve(client, name, stage, namespace, message=message, now=datetime.now(UTC))))


async def approve(
    client: Client, name: str, stage: str | None, namespace: str | None = None, *, message: str, now: datetime
) -> str:
    """Approve the only stage of a run that waits for approval, or this stage. Returns the message for the user."""
    which, run = await find_run(client, name, namespace)
    accepted(answer_to(RunVerb.approve, run, await rollback_of_run(client, which, run)))
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


async def _asked(client: Client, which: PlacementName, run: Run) -> list[Approval]:
    """The approval requests of a run that are not approved yet."""
    last = run.status.deletion_stage_status
    stages = (*run.status.stages_status, *((last,) if last is not None else ()))
    tasks = [task for one in stages for task in (*one.before_stage_task_status, *one.after_stage_task_status)]
    found: list[Approval] = []
    for task in tasks:
        if task.approval_request_name and not has_condition(task, APPROVAL_GIVEN):
            with suppress(NotFound):
                found.append(await client.get(which.kinds.approval, task.approval_request_name, which.namespace))
    return [one for one in found if not _is_approved(one)]


def _is_approved(request: Approval) -> bool:
    said = find_condition(request.status.conditions, APPROVED)
    return said is not None and said.status == TRUE


async def _approve(client: Client, which: PlacementName, request: Approval, message: str, now: datetime) -> None:
    meta = request.metadata
    said: dict[str, Any] = {
        "type": APPROVED,
        "status": TRUE,
        "reason": f"{which.kinds.approval.resource.kind}Approved",
        "message": signed(_me(), message),
        "lastTransitionTime": moment(now),
        "observedGeneration": meta.generation,
    }
    others = [one for one in request.status.conditions if one.type != APPROVED]
    await client.amend(
        which.kinds.approval, meta, {"status": {"conditions": [*others, said]}}, manager=MANAGER, subresource="status"
    )


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user of a container may have no name
        return f"user {os.getuid()}"


# Stop, resume, retry, roll back


def run_verb(hub: Hub, verb: RunVerb, name: str, namespace: str | None) -> None:
    """Stop, resume or retry a run."""

    async def question(client: Client) -> str:
        which, run = await find_run(client, name, namespace)
        answer = accepted(answer_to(verb, run, await rollback_of_run(client, which, run)))
        if answer.patch:
            await _patch(client, which, run, answer.patch)
        return answer.message

    click.echo(hub.ask(question))


def run_rollback_of_run(hub: Hub, name: str, namespace: str | None) -> None:
    """Roll a run back, and print what was done."""
    click.echo(hub.ask(lambda client: roll_back_run(client, name, namespace)))


async def roll_back_run(client: Client, name: str, namespace: str | None = None) -> str:
    """Create the run that gives the clusters of a run back what they had, unless it exists. Returns the message."""
    which, run = await find_run(client, name, namespace)
    rollback = await rollback_of_run(client, which, run)
    answer = accepted(answer_to(RunVerb.rollback, run, rollback))
    if rollback is not None:
        return answer.message
    by, _ = await roll_back(client, which.kinds, run, manager=MANAGER)
    return f"run {by} {answer.message}"


async def rollback_of_run(client: Client, which: PlacementName, run: Run) -> Run | None:
    """The run that rolls this one back, if there is one."""
    return rollback_run_of(run, (await client.list(which.kinds.run, which.namespace)).items)


def accepted(answer: VerbAnswer) -> VerbAnswer:
    """The answer. If it is a refusal, the command ends with its message."""
    if answer.is_refused:
        raise click.ClickException(answer.message)
    return answer


async def _patch(client: Client, which: PlacementName, run: Run, body: Mapping[str, Any]) -> None:
    meta = run.metadata
    patch = MergePatch(dict(body))
    await client.patch(which.kinds.run, meta.name, patch, meta.namespace, uid=meta.uid, manager=MANAGER)


# Show


async def run_story(client: Client, name: str, namespace: str | None, *, with_waits: bool = False) -> RunStory:
    """The story of a run as it is now; if that is asked for, with what it waits for as data."""
    which, run = await find_run(client, name, namespace)
    runs = (await client.list(which.kinds.run, which.namespace)).items
    rollback = rollback_run_of(run, runs)
    waits = await _waits(client, which, run, runs) if with_waits and rollback is None else ()
    story = tell_run(run, rollback, waits)
    return story if story.has_ended else with_doubt(story, await hub_silent_since(client))


async def _waits(client: Client, which: PlacementName, run: Run, runs: Iterable[Run]) -> tuple[Wait, ...]:
    """What a run waits for, found as the hub finds it; empty if the objects that it depends on may not be read."""
    kinds, namespace, now = which.kinds, which.namespace, datetime.now(UTC)
    run = replace(run, status=retried(run))
    try:
        placement = await client.get(kinds.placement, run.spec.placement_name, namespace)
        target = PlacementTarget(client, PlacementName(kinds, namespace, run.spec.placement_name), placement)
        policies = await client.list(kinds.policy_snapshot, namespace, labels=target.labels)
        requests = await client.list(kinds.approval, namespace)
        snapshots, bindings = await target.snapshots(), await target.bindings()
    except (Forbidden, NotFound):
        return ()
    names, same = set(approval_names(run)), run.spec.placement_name
    objects = RunObjects(
        placement=placement,
        bindings=tuple(bindings),
        policies=tuple(policies.items),
        snapshot=next((one for one in snapshots if one.name == resources_of(run)), None),
        approvals=tuple(one for one in requests.items if one.metadata.name in names),
        members=await target.members(),
        runs=tuple(sorted((one for one in runs if one.spec.placement_name == same), key=creation_order)),
    )
    return run_waits(observe_run(run, objects), now)


def with_doubt(story: RunStory, since: datetime | None) -> RunStory:
    """The story of a hub that has been silent since then. The story of a run that has ended stays as it is."""
    return story if story.has_ended else replace(story, doubt=silence(since))


def show_run(story: RunStory) -> None:
    out = console()
    out.print(run_tree(story, datetime.now(UTC), drawn=can_draw(out)))


def run_tree(story: RunStory, now: datetime, *, drawn: bool = True) -> Tree:
    """A run and its stages, each with a progress bar."""
    what = f"{story.placement}, revision {story.index or '?'}"
    why = "" if any(stage.why for stage in story.stages) else story.why
    root = Tree(line_of(story.state, f"run {story.path}", ": ".join(part for part in (what, why) if part), drawn))
    for stage in story.stages:
        root.add(line_of(stage.state, stage.name, _stage(stage, now, drawn), drawn))
    if story.doubt:
        root.add(Text(printable(story.doubt), "red"))
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

"""Placement verbs: pause, resume, roll back, unpin. Each patches annotations of the placement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from kedge.api.fleet import PAUSED, PINNED
from kedge.cli.runs import accepted, is_run, run_rollback_of_run, run_verb
from kedge.cli.targets import MANAGER, Hub, PlacementTarget, find
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch
from kedge.plan.explaining.history import Revision, revisions
from kedge.plan.explaining.verbs import pause, resume, unpin
from kedge.plan.placements import is_external
from kedge.plan.revisions import newest_resources, resource_index
from kedge.plan.staging.verbs import RunVerb
from kedge.plan.text import listed
from kedge.plan.verbs import VerbAnswer


def run_pause(hub: Hub, name: str, namespace: str | None) -> None:
    """Pause the rollout."""

    async def question(client: Client) -> str:
        found = await _rolling(client, name, namespace)
        return await _done(found, pause(found.placement))

    click.echo(hub.ask(question))


def run_resume(hub: Hub, name: str, namespace: str | None) -> None:
    """Resume the rollout, or a stopped run."""
    if hub.ask(lambda client: is_run(client, name, namespace)):
        run_verb(hub, RunVerb.resume, name, namespace)
        return

    async def question(client: Client) -> str:
        found = await _rolling(client, name, namespace)
        return await _done(found, resume(found.placement))

    click.echo(hub.ask(question))


def run_unpin(hub: Hub, name: str, namespace: str | None) -> None:
    """Let it move to the newest revision again."""

    async def question(client: Client) -> str:
        found = await _rolling(client, name, namespace)
        newest = newest_resources(await found.snapshots())
        return await _done(found, unpin(found.placement, resource_index(newest) if newest is not None else None))

    click.echo(hub.ask(question))


def run_rollback(hub: Hub, name: str, namespace: str | None, index: int | None) -> None:
    """Roll back to an earlier revision, and stay there."""
    if index is None and hub.ask(lambda client: is_run(client, name, namespace)):
        run_rollback_of_run(hub, name, namespace)
        return

    async def question(client: Client) -> str:
        found = await _rolling(client, name, namespace)
        kept = revisions(found.placement, await found.snapshots(), ())
        wanted = _wanted(found, kept, index)
        was_paused = found.placement.metadata.annotations.get(PAUSED) == "true"
        await _patch(found, {"metadata": {"annotations": {PINNED: str(wanted), PAUSED: None}}})
        paused = ", and is no longer paused" if was_paused else ""
        return f"{found.path} goes back to revision {wanted}{paused}, and stays there until `kedge unpin {found.path}`"

    click.echo(hub.ask(question))


def _wanted(found: PlacementTarget, kept: list[Revision], index: int | None) -> int:
    """The requested revision, or the one before the current one."""
    known = sorted(revision.index for revision in kept)
    if index is not None:
        if index in known:
            return index
        there = f"kept are {listed(map(str, known), most=10)}" if known else "none is kept"
        raise click.ClickException(f"{found.path} has no revision {index}: {there}")
    pinned = found.placement.metadata.annotations.get(PINNED, "")
    current = int(pinned) if pinned.isascii() and pinned.isdecimal() else max(known, default=0)
    earlier = [number for number in known if number < current]
    if not earlier:
        raise click.ClickException(f"{found.path} has no revision before {current} to go back to")
    return max(earlier)


async def _rolling(client: Client, name: str, namespace: str | None) -> PlacementTarget:
    found = await find(client, name, namespace)
    if is_external(found.placement):
        raise click.ClickException(f"{found.path} has strategy External: staged update runs move it, and hold it")
    return found


async def _done(found: PlacementTarget, answer: VerbAnswer) -> str:
    """Write the patch of an answer, unless it refuses. Returns its message."""
    if accepted(answer).patch:
        await _patch(found, answer.patch)
    return answer.message


async def _patch(found: PlacementTarget, body: Mapping[str, Any]) -> None:
    meta, patch = found.placement.metadata, MergePatch(dict(body))
    await found.client.patch(
        found.which.kinds.placement, meta.name, patch, meta.namespace, uid=meta.uid, manager=MANAGER
    )

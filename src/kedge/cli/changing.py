"""Changing a rollout: hold it, let it go on, take it back. Each is a patch of annotations on the placement."""

from __future__ import annotations

import click

from kedge.api.fleet import PAUSED, PINNED
from kedge.api.rollout import RolloutStrategyType
from kedge.cli.asking import MANAGER, Found, Hub, find
from kedge.cli.runs import is_run, run_take_back, run_verb
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch
from kedge.plan.staging.verbs import Verb
from kedge.plan.telling.history import Revision, revisions
from kedge.plan.telling.story import tell
from kedge.plan.telling.words import listed


def run_pause(hub: Hub, name: str, namespace: str | None) -> None:
    """Hold it where it is."""

    async def question(client: Client) -> str:
        found = await _rolling(client, name, namespace)
        if found.placement.metadata.annotations.get(PAUSED) == "true":
            return f"{found.path} is paused already"
        await _annotate(found, {PAUSED: "true"})
        what = "the next change waits" if tell(found.placement).is_done else "no further cluster moves"
        return f"{found.path} is paused: {what} until `kedge resume {found.path}`"

    click.echo(hub.ask(question))


def run_resume(hub: Hub, name: str, namespace: str | None) -> None:
    """Let it go on, to the newest resources."""
    if hub.ask(lambda client: is_run(client, name, namespace)):
        run_verb(hub, Verb.resume, name, namespace)
        return

    async def question(client: Client) -> str:
        found = await _rolling(client, name, namespace)
        held = [key for key in (PAUSED, PINNED) if key in found.placement.metadata.annotations]
        if not held:
            return f"{found.path} is neither paused nor rolled back"
        await _annotate(found, dict.fromkeys(held))
        kept = revisions(found.placement, await found.snapshots(), ())
        newest = [f", to revision {revision.index}" for revision in kept if revision.is_newest]
        return f"{found.path} goes on{''.join(newest)}"

    click.echo(hub.ask(question))


def run_rollback(hub: Hub, name: str, namespace: str | None, index: int | None) -> None:
    """Go back to earlier resources, and stay there."""
    if index is None and hub.ask(lambda client: is_run(client, name, namespace)):
        run_take_back(hub, name, namespace)
        return

    async def question(client: Client) -> str:
        found = await _rolling(client, name, namespace)
        kept = revisions(found.placement, await found.snapshots(), ())
        wanted = _wanted(found, kept, index)
        await _annotate(found, {PINNED: str(wanted), PAUSED: None})
        return f"{found.path} goes back to revision {wanted}, and stays there until `kedge resume {found.path}`"

    click.echo(hub.ask(question))


def _wanted(found: Found, kept: list[Revision], index: int | None) -> int:
    """The revision asked for, or the one before the one that is rolled out now."""
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


async def _rolling(client: Client, name: str, namespace: str | None) -> Found:
    found = await find(client, name, namespace)
    strategy = found.placement.spec.strategy
    if strategy is not None and strategy.type is RolloutStrategyType.external:
        raise click.ClickException(f"{found.path} has strategy External: staged update runs move it, and hold it")
    return found


async def _annotate(found: Found, annotations: dict[str, str | None]) -> None:
    meta = found.placement.metadata
    patch = MergePatch({"metadata": {"annotations": annotations}})
    await found.client.patch(
        found.which.twins.placement, meta.name, patch, meta.namespace, uid=meta.uid, manager=MANAGER
    )

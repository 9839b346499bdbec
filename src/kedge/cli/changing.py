"""Changing a rollout: hold it, let it go on, take it back. Each is a patch of annotations on the placement."""

from __future__ import annotations

from pathlib import Path

import click

from kedge.api.fleet import PAUSED, PINNED
from kedge.api.rollout import RolloutStrategyType
from kedge.cli.asking import Found, ask, find
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch
from kedge.plan.telling.history import Revision, revisions

MANAGER = "kedge-cli"


def run_pause(kubeconfig: Path | None, context: str | None, name: str, namespace: str | None) -> None:
    """Hold it where it is."""

    async def question(client: Client) -> None:
        found = await _rolling(client, name, namespace)
        await _annotate(found, {PAUSED: "true"})
        click.echo(f"{name} is paused: nothing moves until `kedge resume {name}`")

    ask(kubeconfig, context, question)


def run_resume(kubeconfig: Path | None, context: str | None, name: str, namespace: str | None) -> None:
    """Let it go on, to the newest resources."""

    async def question(client: Client) -> None:
        found = await _rolling(client, name, namespace)
        held = [key for key in (PAUSED, PINNED) if key in found.placement.metadata.annotations]
        if not held:
            click.echo(f"{name} is neither paused nor rolled back")
            return
        await _annotate(found, dict.fromkeys(held))
        click.echo(f"{name} goes on")

    ask(kubeconfig, context, question)


def run_rollback(
    kubeconfig: Path | None, context: str | None, name: str, namespace: str | None, index: int | None
) -> None:
    """Go back to earlier resources, and stay there."""

    async def question(client: Client) -> None:
        found = await _rolling(client, name, namespace)
        kept = revisions(found.placement, await found.snapshots(), ())
        wanted = _wanted(kept, index, found.placement.metadata.annotations.get(PINNED))
        await _annotate(found, {PINNED: str(wanted), PAUSED: None})
        click.echo(f"{name} rolls back to resources {wanted}; `kedge resume {name}` goes to the newest again")

    ask(kubeconfig, context, question)


def _wanted(kept: list[Revision], index: int | None, pinned: str | None) -> int:
    """The version asked for, or the one before the one that is rolled out now."""
    known = [revision.index for revision in kept]
    if index is not None:
        if index in known:
            return index
        raise click.ClickException(f"there are no resources {index}: kept are {', '.join(map(str, known)) or 'none'}")
    current = int(pinned) if pinned is not None and pinned.isdecimal() else max(known, default=0)
    earlier = [known_index for known_index in known if known_index < current]
    if not earlier:
        raise click.ClickException("there are no earlier resources to go back to")
    return max(earlier)


async def _rolling(client: Client, name: str, namespace: str | None) -> Found:
    found = await find(client, name, namespace)
    strategy = found.placement.spec.strategy
    if strategy is not None and strategy.type is RolloutStrategyType.external:
        raise click.ClickException(f"{name} has strategy External: staged update runs move it, and hold it")
    return found


async def _annotate(found: Found, annotations: dict[str, str | None]) -> None:
    meta = found.placement.metadata
    patch = MergePatch({"metadata": {"annotations": annotations}})
    await found.client.patch(found.twins.placement, meta.name, patch, meta.namespace, uid=meta.uid, manager=MANAGER)

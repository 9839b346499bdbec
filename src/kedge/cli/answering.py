"""Answering: what placements there are, where one stands, and why."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml
from rich.console import Console
from rich.live import Live

from kedge.api.twins import TWINS
from kedge.cli.asking import Found, ask, find
from kedge.cli.showing import explained, history_table, placements_table, tree
from kedge.kube.client import Client
from kedge.kube.errors import NotFound
from kedge.plan.telling.history import revisions
from kedge.plan.telling.story import Story, tell

BETWEEN_LOOKS = 0.3  # of somebody who follows, when something changed


def run_get(
    kubeconfig: Path | None, context: str | None, names: Sequence[str], namespace: str | None, form: str
) -> None:
    """Every placement, or those named."""

    async def question(client: Client) -> list[Story]:
        if names:
            return [tell((await find(client, name, namespace)).placement) for name in names]
        return await _all(client, namespace)

    stories = ask(kubeconfig, context, question)
    if form == "table":
        Console(soft_wrap=True).print(placements_table(stories))
    else:
        _print(stories, form)


async def _all(client: Client, namespace: str | None) -> list[Story]:
    found: list[Story] = []
    for twins in TWINS:
        if namespace and not twins.placement.resource.namespaced:
            continue
        try:
            page = await client.list(twins.placement, namespace if twins.placement.resource.namespaced else None)
        except NotFound as error:
            raise click.ClickException(
                "this cluster knows no placements: `kedge install hub` prints what it needs"
            ) from error
        found += [tell(placement) for placement in page.items]
    return sorted(found, key=lambda story: (story.namespace or "", story.name))


def run_status(
    kubeconfig: Path | None,
    context: str | None,
    name: str,
    namespace: str | None,
    *,
    watch: bool,
    timeout: float | None,
    form: str,
) -> bool:
    """Show it, once or until it is available; says whether it is."""

    async def question(client: Client) -> Story:
        found = await find(client, name, namespace)
        return await _follow(found, timeout, form) if watch else await _story(found)

    story = ask(kubeconfig, context, question)
    if not watch or form != "tree":
        _show(story, form)
    return story.is_done


async def _story(found: Found) -> Story:
    return tell(found.placement, await found.bindings(), await found.works())


async def _follow(found: Found, timeout: float | None, form: str) -> Story:
    """Look again whenever the placement changes, until it is available or time is up."""
    console = Console(file=sys.stdout if form == "tree" else sys.stderr)
    story = await _story(found)
    with Live(tree(story), console=console, auto_refresh=False, vertical_overflow="visible") as live:
        try:
            async with asyncio.timeout(timeout):
                while not story.is_done:
                    await _changed(found)
                    found = await found.again()
                    story = await _story(found)
                    live.update(tree(story), refresh=True)
        except TimeoutError:
            pass
    return story


async def _changed(found: Found) -> None:
    """Wait for the placement to be another than this one; not more often than people can read."""
    meta = found.placement.metadata
    await asyncio.sleep(BETWEEN_LOOKS)
    watching = found.client.watch(
        found.twins.placement,
        meta.namespace,
        fields={"metadata.name": meta.name},
        resource_version=meta.resource_version,
        seconds=30,
    )
    async with watching as events:
        async for _ in events:
            return


def run_explain(
    kubeconfig: Path | None, context: str | None, name: str, namespace: str | None, cluster: str | None, form: str
) -> None:
    """Say why."""

    async def question(client: Client) -> Story:
        return await _story(await find(client, name, namespace))

    story = ask(kubeconfig, context, question)
    if cluster is not None and cluster not in [place.cluster for place in story.places]:
        picked = ", ".join(place.cluster for place in story.places) or "none"
        raise click.ClickException(f"{name} is not on {cluster}: it is on {picked}")
    if form == "text":
        click.echo("\n".join(explained(story, cluster)))
    else:
        _print([place for place in story.places if place.cluster == cluster] if cluster else story, form)


def run_history(kubeconfig: Path | None, context: str | None, name: str, namespace: str | None, form: str) -> None:
    """Every version of its resources."""

    async def question(client: Client) -> Any:
        found = await find(client, name, namespace)
        return revisions(found.placement, await found.snapshots(), await found.bindings())

    known = ask(kubeconfig, context, question)
    if form == "table":
        Console(soft_wrap=True).print(history_table(known, datetime.now(UTC)))
    else:
        _print(known, form)


def _show(story: Story, form: str) -> None:
    if form == "tree":
        Console(soft_wrap=True).print(tree(story))
    else:
        _print(story, form)


def _print(value: Any, form: str) -> None:
    plain = msgspec.to_builtins(value)
    if form == "yaml":
        click.echo(yaml.safe_dump(plain, sort_keys=False), nl=False)
    else:
        click.echo(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())

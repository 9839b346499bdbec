"""Answering: what placements and runs there are, where one stands, and why."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import click
import msgspec
import yaml
from rich.console import Console

from kedge.api.twins import TWINS, Run
from kedge.cli.asking import NO_PLACEMENTS, Found, Hub, find
from kedge.cli.following import Moving, follow, screen
from kedge.cli.hub_lease import hub_silent_since
from kedge.cli.run_following import follow_run
from kedge.cli.runs import find_run, is_run, run_story, show_run
from kedge.cli.showing import can_draw, console, draw, history_table, placements_table, runs_table, tree
from kedge.kube.client import Client
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.staging.explaining import clusters_of, explained_cluster, explained_run, tell_cluster
from kedge.plan.staging.returning import taken_back_by
from kedge.plan.staging.stories import RunStory, tell_run
from kedge.plan.telling.freshness import silence
from kedge.plan.telling.history import revisions
from kedge.plan.telling.phrases import explained, explained_place
from kedge.plan.telling.story import Story, tell
from kedge.plan.text import listed, natural

LINES = 200
"""More than so many lines nobody reads: what is well is left out of longer trees, unless all is asked for."""


def run_get(hub: Hub, names: Sequence[str], namespace: str | None, form: str) -> None:
    """Every placement and run, or those named."""

    async def question(client: Client) -> tuple[list[Story | RunStory], str]:
        doubt = silence(await hub_silent_since(client))
        if names:
            return [await _named(client, name, namespace) for name in names], doubt
        return [*await _all(client, namespace), *await _all_runs(client, namespace)], doubt

    found, doubt = hub.ask(question)
    if doubt:
        click.echo(doubt, err=True)
    placements = [one for one in found if isinstance(one, Story)]
    runs = [one for one in found if isinstance(one, RunStory)]
    if form != "table":
        return _print([*map(_counted, placements), *map(_counted_run, runs)], form)
    if placements:
        draw(placements_table(placements))
    if runs:
        click.echo("\n" if placements else "", nl=False)
        draw(runs_table(runs))
    if not found:
        click.echo(f"there are no placements{f' in namespace {namespace}' if namespace else ''}", err=True)
    return None


async def _named(client: Client, name: str, namespace: str | None) -> Story | RunStory:
    if await is_run(client, name, namespace):
        return await run_story(client, name, namespace)
    return tell((await find(client, name, namespace)).placement)


async def _all(client: Client, namespace: str | None) -> list[Story]:
    found: list[Story] = []
    for twins in TWINS:
        namespaced = twins.placement.resource.namespaced
        if namespace and not namespaced:
            continue
        try:
            page = await client.list(twins.placement, namespace if namespaced else None)
        except NotFound as error:
            raise click.ClickException(NO_PLACEMENTS) from error
        found += [tell(placement) for placement in page.items]
    return sorted(found, key=lambda story: (natural(story.namespace or ""), natural(story.name)))


async def _all_runs(client: Client, namespace: str | None) -> list[RunStory]:
    """Those one may see."""
    found: list[RunStory] = []
    for twins in TWINS:
        namespaced = twins.run.resource.namespaced
        if namespace and not namespaced:
            continue
        with suppress(NotFound, Forbidden):
            runs = (await client.list(twins.run, namespace if namespaced else None)).items
            found += [tell_run(run, taken_back_by(run, _beside(run, runs))) for run in runs]
    return sorted(found, key=lambda story: (natural(story.namespace or ""), natural(story.name)))


def _beside(run: Run, runs: Iterable[Run]) -> Iterable[Run]:
    return (one for one in runs if one.metadata.namespace == run.metadata.namespace)


def run_status(
    hub: Hub, name: str, namespace: str | None, *, watch: bool, timeout: float | None, everything: bool, form: str
) -> bool:
    """Show it, once or until it is available; says whether it is."""

    async def question(client: Client) -> Story | RunStory:
        if await is_run(client, name, namespace):
            return await (follow_run(client, name, namespace, timeout) if watch else run_story(client, name, namespace))
        found = await find(client, name, namespace)
        return await _followed(found, timeout, form) if watch else await found.checked(await found.story())

    story = hub.ask(question)
    if isinstance(story, RunStory):
        _show_run(story, form, watch)
    elif form != "tree":
        _print(_counted(story), form)
    elif not watch:
        _show_tree(story, everything)
    if isinstance(story, Story) and story.is_unknowable:
        raise click.ClickException(story.doubt)
    return story.is_done


async def _followed(found: Found, timeout: float | None, form: str) -> Story:
    """Followed where people read it: beside the answer, if that is for a program."""
    out = console(sys.stdout if form == "tree" else sys.stderr)
    with screen(out) as shown:
        story = await follow(found, shown, timeout)
    if not story.is_done and not isinstance(shown, Moving):
        _say(explained(story), out)
    return story


def _show_run(story: RunStory, form: str, watch: bool) -> None:
    if form != "tree":
        _print(_counted_run(story), form)
    elif not watch:
        show_run(story)


def _show_tree(story: Story, everything: bool) -> None:
    out = console()
    draw(tree(story, lines=None if everything else LINES, drawn=can_draw(out)), out)


def run_explain(hub: Hub, name: str, namespace: str | None, cluster: str | None, form: str) -> None:
    """Say why."""
    if hub.ask(lambda client: is_run(client, name, namespace)):
        return _explain_run(hub, name, namespace, cluster, form)

    async def question(client: Client) -> Story:
        found = await find(client, name, namespace)
        return await found.checked(await found.story())

    story = hub.ask(question)
    if cluster is None:
        return _say(explained(story)) if form == "text" else _print(_counted(story), form)
    place = next((place for place in story.places if place.cluster == cluster), None)
    if place is None:
        clusters = listed((place.cluster for place in story.places), most=10) or "no cluster"
        raise click.ClickException(f"{story.path} is not on {cluster}: it is on {clusters}")
    return _say(explained_place(place)) if form == "text" else _print(place, form)


def _explain_run(hub: Hub, name: str, namespace: str | None, cluster: str | None, form: str) -> None:
    if cluster is None:
        story = hub.ask(lambda client: run_story(client, name, namespace))
        return _say(explained_run(story)) if form == "text" else _print(_counted_run(story), form)
    which, run = hub.ask(lambda client: find_run(client, name, namespace))
    told = tell_cluster(run, cluster)
    if told is None:
        clusters = listed(clusters_of(run), most=10) or "no cluster yet"
        raise click.ClickException(f"{cluster} is no part of {which.path}: it has {clusters}")
    return _say([explained_cluster(told)]) if form == "text" else _print(told, form)


def run_history(hub: Hub, name: str, namespace: str | None, form: str) -> None:
    """Every revision of its resources."""

    async def question(client: Client) -> Any:
        found = await find(client, name, namespace)
        return revisions(found.placement, await found.snapshots(), await found.bindings())

    known = hub.ask(question)
    if form == "table":
        draw(history_table(known, datetime.now(UTC)))
    else:
        _print(known, form)


def _say(lines: Sequence[str], where: Console | None = None) -> None:
    out = where or console()
    for line in lines:
        out.print(line, soft_wrap=True)


def _counted(story: Story) -> dict[str, Any]:
    """With the numbers a script would otherwise have to count."""
    numbers = {"done": story.done, "updated": story.updated, "up": story.up, "wanted": story.wanted}
    return {**msgspec.to_builtins(story), **numbers}


def _counted_run(story: RunStory) -> dict[str, Any]:
    return {**msgspec.to_builtins(story), "done": story.done, "wanted": story.wanted}


def _print(value: Any, form: str) -> None:
    plain = msgspec.to_builtins(value)
    if form == "yaml":
        click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)
    else:
        click.echo(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())

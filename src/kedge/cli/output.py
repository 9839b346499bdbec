"""Output: what `kedge get`, `status`, `explain` and `history` print about placements and runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from kedge.api.placement_kinds import PLACEMENT_KINDS, Run
from kedge.cli.hub_lease import hub_silent_since
from kedge.cli.render import (
    can_draw,
    console,
    draw,
    history_table,
    placements_table,
    print_data,
    print_lines,
    runs_table,
    tree,
)
from kedge.cli.runs import find_run, is_run, run_story, show_run
from kedge.cli.safe_text import bounded, bounded_place, printable
from kedge.cli.served_kinds import without_placements
from kedge.cli.targets import Hub, PlacementTarget, find
from kedge.cli.watch import PlacementTree, screen, watch_placement, watch_run
from kedge.kube.client import Client
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.explaining.freshness import silence
from kedge.plan.explaining.history import revisions
from kedge.plan.explaining.phrases import explained, explained_place
from kedge.plan.explaining.story import Story, tell
from kedge.plan.staging.rollbacks import rollback_run_of
from kedge.plan.staging.run_story import RunStory, clusters_of, explained_cluster, explained_run, tell_cluster, tell_run
from kedge.plan.text import listed, natural

LINES = 200
"""Lines of a tree. Longer trees leave out what is available, unless `--all` is given."""


def run_get(hub: Hub, names: Sequence[str], namespace: str | None, form: str) -> None:
    """Print every placement and run, or those named."""

    async def question(client: Client) -> tuple[list[Story | RunStory], str]:
        doubt = silence(await hub_silent_since(client))
        if names:
            return [await _named(client, name, namespace) for name in names], doubt
        return [*await _all(client, namespace), *await _all_runs(client, namespace)], doubt

    found, doubt = hub.ask(question)
    if doubt:
        click.echo(printable(doubt), err=True)
    placements = [one for one in found if isinstance(one, Story)]
    runs = [one for one in found if isinstance(one, RunStory)]
    if form != "table":
        return print_data([*map(_story_data, placements), *map(_run_data, runs)], form)
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
    for kinds in PLACEMENT_KINDS:
        namespaced = kinds.placement.resource.namespaced
        if namespace and not namespaced:
            continue
        try:
            page = await client.list(kinds.placement, namespace if namespaced else None)
        except NotFound as error:
            raise click.ClickException(await without_placements(client)) from error
        found += [tell(placement) for placement in page.items]
    return sorted(found, key=lambda story: (natural(story.namespace or ""), natural(story.name)))


async def _all_runs(client: Client, namespace: str | None) -> list[RunStory]:
    """The runs that the user may read."""
    found: list[RunStory] = []
    for kinds in PLACEMENT_KINDS:
        namespaced = kinds.run.resource.namespaced
        if namespace and not namespaced:
            continue
        with suppress(NotFound, Forbidden):
            runs = (await client.list(kinds.run, namespace if namespaced else None)).items
            found += [tell_run(run, rollback_run_of(run, _in_same_namespace(run, runs))) for run in runs]
    return sorted(found, key=lambda story: (natural(story.namespace or ""), natural(story.name)))


def _in_same_namespace(run: Run, runs: Iterable[Run]) -> Iterable[Run]:
    return (one for one in runs if one.metadata.namespace == run.metadata.namespace)


def run_status(
    hub: Hub, name: str, namespace: str | None, *, watch: bool, timeout: float | None, everything: bool, form: str
) -> bool:
    """Print it once, or follow it until it is available. Returns whether it is."""

    async def question(client: Client) -> Story | RunStory:
        if await is_run(client, name, namespace):
            return await _run(client, name, namespace, timeout, watch=watch, form=form)
        found = await find(client, name, namespace)
        return await _followed(found, timeout, form) if watch else await found.checked(await found.story())

    story = hub.ask(question)
    if isinstance(story, RunStory):
        _show_run(story, form, watch)
    elif form != "tree":
        print_data(_story_data(story), form)
    elif not watch:
        _show_tree(story, everything)
    if isinstance(story, Story) and story.is_unknowable:
        raise click.ClickException(printable(story.doubt))
    return story.is_done


async def _run(
    client: Client, name: str, namespace: str | None, timeout: float | None, *, watch: bool, form: str
) -> RunStory:
    story = await watch_run(client, name, namespace, timeout) if watch else None
    if story is not None and (form == "tree" or story.has_ended):
        return story
    return await run_story(client, name, namespace, with_waits=form != "tree")


async def _followed(found: PlacementTarget, timeout: float | None, form: str) -> Story:
    """Follow it on standard output, or on standard error if the output is for a program."""
    out = console(sys.stdout if form == "tree" else sys.stderr)
    with screen(out) as shown:
        story = await watch_placement(found, shown, timeout)
    if not story.is_done and not isinstance(shown, PlacementTree):
        print_lines(explained(bounded(story)), out)
    return story


def _show_run(story: RunStory, form: str, watch: bool) -> None:
    if form != "tree":
        print_data(_run_data(story), form)
    elif not watch:
        show_run(story)


def _show_tree(story: Story, everything: bool) -> None:
    out = console()
    shown = tree(story, drawn=can_draw(out)) if everything else tree(bounded(story), lines=LINES, drawn=can_draw(out))
    draw(shown, out)


def run_explain(hub: Hub, name: str, namespace: str | None, cluster: str | None, form: str) -> None:
    """Print why a placement or a run is where it is."""
    if hub.ask(lambda client: is_run(client, name, namespace)):
        return _explain_run(hub, name, namespace, cluster, form)

    async def question(client: Client) -> Story:
        found = await find(client, name, namespace)
        return await found.checked(await found.story())

    story = hub.ask(question)
    if cluster is None:
        return print_lines(explained(bounded(story))) if form == "text" else print_data(_story_data(story), form)
    place = next((place for place in story.places if place.cluster == cluster), None)
    if place is None:
        clusters = listed((place.cluster for place in story.places), most=10) or "no cluster"
        raise click.ClickException(f"{story.path} is not on {cluster}: it is on {clusters}")
    return print_lines(explained_place(bounded_place(place))) if form == "text" else print_data(place, form)


def _explain_run(hub: Hub, name: str, namespace: str | None, cluster: str | None, form: str) -> None:
    if cluster is None:
        story = hub.ask(lambda client: run_story(client, name, namespace, with_waits=form != "text"))
        return print_lines(explained_run(story)) if form == "text" else print_data(_run_data(story), form)
    which, run = hub.ask(lambda client: find_run(client, name, namespace))
    told = tell_cluster(run, cluster)
    if told is None:
        clusters = listed(clusters_of(run), most=10) or "no cluster yet"
        raise click.ClickException(f"{cluster} is no part of {which.path}: it has {clusters}")
    return print_lines([explained_cluster(told)]) if form == "text" else print_data(told, form)


def run_history(hub: Hub, name: str, namespace: str | None, form: str) -> None:
    """Print every revision of its resources."""

    async def question(client: Client) -> Any:
        found = await find(client, name, namespace)
        return revisions(found.placement, await found.snapshots(), await found.bindings())

    known = hub.ask(question)
    if form == "table":
        draw(history_table(known, datetime.now(UTC)))
    else:
        print_data(known, form)


def _story_data(story: Story) -> dict[str, Any]:
    """The story as data, with the numbers that a script would otherwise have to count."""
    numbers = {"done": story.done, "updated": story.updated, "up": story.up, "wanted": story.wanted}
    return {**msgspec.to_builtins(story), **numbers}


def _run_data(story: RunStory) -> dict[str, Any]:
    return {**msgspec.to_builtins(story), "done": story.done, "wanted": story.wanted}

"""Bindings for the daily verbs: `kedge get bindings`, `kedge status binding/NAME`, `kedge explain binding/NAME`.

They read the hub with the rights of the user, and ask the functions with which the controller decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import click
from rich.console import Console
from rich.tree import Tree

from kedge.api.karmada.works import Work
from kedge.cli.binding_target import (
    BINDING_KINDS,
    BINDING_WORDS,
    NOT_SERVED,
    BindingName,
    BindingReader,
    Kind,
    binding_named,
)
from kedge.cli.follow import Followed, changes, follow
from kedge.cli.group_target import home_of
from kedge.cli.render import bindings_table, can_draw, console, draw, line_of, print_data, print_lines
from kedge.cli.targets import Hub
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.aligning.binding_story import BindingStory
from kedge.plan.aligning.binding_text import binding_line, cluster_line, explained_binding, explained_cluster
from kedge.plan.aligning.refusing import work_name_of
from kedge.plan.text import listed, natural

ALL: Final = ("bindings", "binding")
"""The words that `kedge get` takes for bindings of both kinds."""
STABLE_FOR: Final = 1.5
"""Seconds for which a binding has to stay done: the hub may not have taken note of a change that was just made."""
TICK: Final = 1.0
"""Seconds after which it is read anew though no Work has changed: the resource may have."""
PAUSE: Final = 0.3
"""Seconds between two readings: each takes a few requests."""


# get


def bindings_named(names: Sequence[str]) -> tuple[Sequence[Kind], Sequence[str]] | None:
    """The kinds of bindings and the names that `kedge get` is asked for; None if it is asked for something else."""
    if not names:
        return None
    if names[0] in ALL:
        return BINDING_KINDS, names[1:]
    if names[0] in BINDING_WORDS:
        return (BINDING_WORDS[names[0]],), names[1:]
    split = [name.partition("/") for name in names]
    if not all(slash and word in BINDING_WORDS for word, slash, _ in split):
        return None
    return BINDING_KINDS, [rest for _, _, rest in split]


def run_get_bindings(hub: Hub, kinds: Sequence[Kind], names: Sequence[str], namespace: str | None, form: str) -> None:
    """Print every binding of these kinds, or those named."""
    home = home_of(hub)

    async def question(client: Client) -> list[BindingStory]:
        return await _all(BindingReader(client), kinds, namespace, home)

    found = hub.ask(question)
    for name in names:
        if not any(name in (story.name, story.path) for story in found):
            raise click.ClickException(
                f"there is no binding {name}: there is {listed(story.path for story in found) or 'none'}"
            )
    wanted = [story for story in found if not names or story.name in names or story.path in names]
    if form != "table":
        return print_data([story.as_json() for story in wanted], form)
    if wanted:
        return draw(bindings_table(wanted))
    where = f" in namespace {namespace}" if namespace else ""
    return click.echo(f"there are no bindings{where}", err=True)


async def _all(reader: BindingReader, kinds: Sequence[Kind], namespace: str | None, home: str) -> list[BindingStory]:
    """The bindings of a namespace, or of all; of the context's own if the user may not list all."""
    is_served, found = False, []
    for kind in kinds:
        with suppress(NotFound):
            found += await _of_kind(reader, kind, namespace, home)
            is_served = True
    if not is_served:
        raise click.ClickException(NOT_SERVED)
    return sorted(found, key=lambda story: (natural(story.namespace), natural(story.name)))


async def _of_kind(reader: BindingReader, kind: Kind, namespace: str | None, home: str) -> list[BindingStory]:
    if namespace is not None and not kind.resource.namespaced:
        return []
    try:
        return await reader.stories(kind, namespace)
    except Forbidden:
        if namespace is not None or not kind.resource.namespaced:
            raise
        return await reader.stories(kind, home)


# status


def binding_status(
    hub: Hub, name: str, namespace: str | None, *, watch: bool, timeout: float | None, form: str
) -> bool | None:
    """Print a binding once, or follow it until it is done. Returns whether it is; None if this is none."""
    which = binding_named(name, namespace, home=home_of(hub))
    if which is None:
        return None

    async def question(client: Client) -> BindingStory:
        return await watch_binding(client, which, timeout, form) if watch else await BindingReader(client).story(which)

    story = hub.ask(question)
    if form != "tree":
        print_data(story.as_json(), form)
    elif not watch:
        out = console()
        draw(binding_tree(story, drawn=can_draw(out)), out)
    return story.is_done


async def watch_binding(client: Client, which: BindingName, timeout: float | None, form: str) -> BindingStory:
    """Show a binding until it is done and stays so, or until time is up. Returns the last story."""
    reader = BindingReader(client)
    named = {"metadata.name": work_name_of((await reader.one(which))[0])}
    works = Cache(client, metadata_of(Work.resource), fields=named)
    own = Cache(client, metadata_of(which.kind.resource), which.namespace, fields={"metadata.name": which.name})

    async def tell() -> BindingStory:
        return await reader.story(which)

    followed = Followed(tell, lambda story: story.is_done, _lines, _tree, stable_for=STABLE_FOR, tick=TICK, pause=PAUSE)
    async with changes(own, works) as changed:
        return await follow(followed, changed, timeout, form)


def _lines(story: BindingStory) -> dict[str, str]:
    clusters = {one.name: f"  {one.name}: {cluster_line(story, one)}" for one in story.clusters}
    return {"": f"{story.title}: {binding_line(story)}", **clusters}


def _tree(story: BindingStory, out: Console) -> Tree:
    return binding_tree(story, drawn=can_draw(out))


def binding_tree(story: BindingStory, *, drawn: bool = True) -> Tree:
    """A binding and its clusters."""
    root = Tree(line_of(story.state, story.title, binding_line(story), drawn))
    for cluster in story.clusters:
        root.add(line_of(cluster.state, cluster.name, cluster_line(story, cluster), drawn))
    return root


# explain


def explain_binding(hub: Hub, name: str, namespace: str | None, part: str | None, form: str) -> bool:
    """Print why a binding, or one of its clusters, is where it is. False if this is no binding."""
    which = binding_named(name, namespace, home=home_of(hub))
    if which is None:
        return False
    lines, data = _explained(hub.ask(lambda client: BindingReader(client).story(which)), part)
    if form == "text":
        print_lines(lines)
    else:
        print_data(data, form)
    return True


def _explained(story: BindingStory, part: str | None) -> tuple[list[str], Any]:
    if part is None:
        return explained_binding(story), story.as_json()
    for cluster in story.clusters:
        if part == cluster.name:
            return explained_cluster(story, cluster), cluster
    known = listed((one.name for one in story.clusters), most=10) or "none"
    raise click.ClickException(f"{part} is no cluster of {story.title}: its clusters are {known}")

"""Rollouts in batches for the daily verbs: get, status, explain, pause, resume, abort, retry, rollback.

Every verb that changes something patches the rollout, so kubectl can do it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import click
from rich.console import Console
from rich.tree import Tree

from kedge.api.oam.rollouts import ROLLOUT_KINDS, AnyRollout
from kedge.api.pods import Pod
from kedge.cli.batch_target import KIND_WORDS, Kind, RolloutName, find_rollout, split_kind
from kedge.cli.follow import Followed, changes, follow
from kedge.cli.group_target import CLUSTER, home_of
from kedge.cli.render import can_draw, console, draw, line_of, print_data, print_lines, rollouts_table
from kedge.cli.runs import accepted
from kedge.cli.targets import MANAGER, Hub, error_sentences
from kedge.controllers.kinds import Kinds
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.errors import Forbidden, NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.batching.rollout_story import (
    RolloutStory,
    batch_line,
    explained_batch,
    explained_rollout,
    rollout_line,
    tell_rollout,
)
from kedge.plan.batching.rollout_verbs import RolloutVerb, answer_to
from kedge.plan.fields import at
from kedge.plan.text import listed, natural

ALL: Final = ("rollouts", "rollout", "batches")
"""The words that `kedge get` takes for rollouts of every kind."""
NOT_SERVED: Final = "this cluster serves no rollouts in batches: `kedge crds --batches` prints their kinds"
_TICK: Final = 1.0
"""Seconds between two updates of how long something waits."""


# get


def kinds_named(names: Sequence[str]) -> tuple[Sequence[Kind], Sequence[str]] | None:
    """The kinds of rollouts and the names that `kedge get` is asked for; None if it is asked for something else."""
    if not names:
        return None
    if names[0] in ALL:
        return ROLLOUT_KINDS, names[1:]
    if names[0] in KIND_WORDS:
        return (KIND_WORDS[names[0]],), names[1:]
    return (ROLLOUT_KINDS, names) if all(split_kind(name)[0] is not None for name in names) else None


def run_get_rollouts(hub: Hub, kinds: Sequence[Kind], names: Sequence[str], namespace: str | None, form: str) -> None:
    """Print every rollout of these kinds, or those named."""
    home = home_of(hub)

    async def question(client: Client) -> list[RolloutStory]:
        with error_sentences(CLUSTER):
            return await _all(client, kinds, namespace, home)

    found = hub.ask(question)
    for name in names:
        if not any(_is_named(story, name) for story in found):
            known = listed(story.path for story in found) or "none"
            raise click.ClickException(f"there is no rollout {name}: there is {known}")
    wanted = [story for story in found if not names or any(_is_named(story, name) for name in names)]
    if form != "table":
        return print_data([story.as_json() for story in wanted], form)
    if wanted:
        return draw(rollouts_table(wanted))
    where = f" in namespace {namespace}" if namespace else ""
    return click.echo(f"there are no rollouts in batches{where}", err=True)


def _is_named(story: RolloutStory, name: str) -> bool:
    kind, rest = split_kind(name)
    return rest in (story.name, story.path) and kind in (None, KIND_WORDS[story.kind.lower()])


async def _all(client: Client, kinds: Sequence[Kind], namespace: str | None, home: str) -> list[RolloutStory]:
    """The rollouts of a namespace, or of all; of the context's own if the user may not list all."""
    served, found = False, []
    for kind in kinds:
        with suppress(NotFound):
            found += [tell_rollout(one) for one in await _listed(client, kind, namespace, home)]
            served = True
    if not served:
        raise click.ClickException(NOT_SERVED)
    return sorted(found, key=lambda story: (natural(story.namespace), natural(story.name), story.kind))


async def _listed(client: Client, kind: Kind, namespace: str | None, home: str) -> Sequence[AnyRollout]:
    try:
        found: Sequence[AnyRollout] = (await client.list(kind, namespace)).items
    except Forbidden:
        if namespace is not None:
            raise
        found = (await client.list(kind, home)).items
    return found


# status


def rollout_status(
    hub: Hub, name: str, namespace: str | None, *, watch: bool, timeout: float | None, form: str
) -> bool | None:
    """Print a rollout once, or follow it until it has ended. Returns whether it succeeded; None if this is none."""
    home = home_of(hub)

    async def question(client: Client) -> RolloutStory | None:
        which = await find_rollout(client, name, namespace, home=home)
        if which is None:
            return None
        with error_sentences(CLUSTER):
            return await watch_rollout(client, which, timeout, form) if watch else await rollout_story(client, which)

    story = hub.ask(question)
    if story is None:
        return None
    if form != "tree":
        print_data(story.as_json(), form)
    elif not watch:
        out = console()
        draw(rollout_tree(story, datetime.now(UTC), drawn=can_draw(out)), out)
    return story.is_done


async def rollout_story(client: Client, which: RolloutName) -> RolloutStory:
    """Where a rollout stands, with what is wrong with the pods of its target."""
    rollout = await _read(client, which)
    story = tell_rollout(rollout)
    return story if story.is_done else tell_rollout(rollout, await _pods(client, rollout))


async def _read(client: Client, which: RolloutName) -> AnyRollout:
    try:
        found: AnyRollout = await client.get(which.kind, which.name, which.namespace)
    except NotFound as error:
        raise click.ClickException(f"{which} has been deleted") from error
    return found


async def _pods(client: Client, rollout: AnyRollout) -> Sequence[Pod]:
    """The pods of the workload that a rollout moves to, once that is known; none if they may not be read."""
    ref, namespace = rollout.status.target_workload, rollout.metadata.namespace
    if ref is None:
        return ()
    with suppress(NotFound, Forbidden):
        resource = await Kinds(client).find(ref.api_version, ref.kind)
        if resource is None:
            return ()
        workload = await client.get(untyped(resource), ref.name, namespace)
        labels = at(workload, "spec", "selector", "matchLabels")
        return (await client.list(Pod, namespace, labels=labels)).items if labels else ()
    return ()


async def watch_rollout(client: Client, which: RolloutName, timeout: float | None, form: str) -> RolloutStory:
    """Show a rollout until it has ended, or until time is up. Returns the last story."""
    cache: Cache[Any] = Cache(client, which.kind, which.namespace, fields={"metadata.name": which.name})

    async def tell() -> RolloutStory:
        found = cache.get(which.name, which.namespace)
        if found is None:
            raise click.ClickException(f"{which} has been deleted")
        return tell_rollout(found)

    followed = Followed(tell, lambda story: story.has_ended, _lines, _tree, tick=_TICK)
    async with changes(cache) as changed:
        return await follow(followed, changed, timeout, form)


def _lines(story: RolloutStory) -> dict[str, str]:
    now = story.since or datetime.now(UTC)  # how long it waits is another line every second
    return {"": f"{story.title}: {rollout_line(story, now).removesuffix(' (for 0s)')}"}


def _tree(story: RolloutStory, out: Console) -> Tree:
    return rollout_tree(story, datetime.now(UTC), drawn=can_draw(out))


def rollout_tree(story: RolloutStory, now: datetime, *, drawn: bool = True) -> Tree:
    """A rollout, its batches, and what is wrong with pods."""
    root = Tree(line_of(story.state, story.title, rollout_line(story, now), drawn))
    for batch in story.batches:
        branch = root.add(line_of(batch.state, f"batch {batch.index}", batch_line(story, batch, now), drawn))
        for gate in batch.gates if not batch.is_done else ():
            branch.add(line_of(batch.state, gate, "", drawn))
        if batch.index == story.current:
            for trouble in story.troubles:
                branch.add(line_of(batch.state, trouble, "", drawn))
    return root


# explain


def explain_rollout(hub: Hub, name: str, namespace: str | None, part: str | None, form: str) -> bool:
    """Print why a rollout, or one of its batches, is where it is. False if this is no rollout."""
    home = home_of(hub)

    async def question(client: Client) -> RolloutStory | None:
        which = await find_rollout(client, name, namespace, home=home)
        with error_sentences(CLUSTER):
            return None if which is None else await rollout_story(client, which)

    story = hub.ask(question)
    if story is None:
        return False
    lines, data = _explained(story, part)
    if form == "text":
        print_lines(lines)
    else:
        print_data(data, form)
    return True


def _explained(story: RolloutStory, part: str | None) -> tuple[list[str], Any]:
    now = datetime.now(UTC)
    if part is None:
        return explained_rollout(story, now), story.as_json()
    for batch in story.batches:
        if part.removeprefix("batch-") == str(batch.index):
            return explained_batch(story, batch, now), batch
    there = f"they are 0 to {len(story.batches) - 1}" if story.batches else "its batches are not known yet"
    raise click.ClickException(f"{story.kind} {story.path} has no batch {part}: {there}")


# Verbs that change something


def rollout_verb(hub: Hub, verb: RolloutVerb, name: str, namespace: str | None, *, must_be: bool = False) -> bool:
    """Do it and say so. False if this is no rollout; with `must_be` an error then."""
    home = home_of(hub)

    async def question(client: Client) -> str | None:
        which = await find_rollout(client, name, namespace, home=home)
        if which is None:
            return None
        with error_sentences(CLUSTER):
            return await do_verb(client, verb, which)

    said = hub.ask(question)
    if said is not None:
        click.echo(said)
    elif must_be:
        raise click.ClickException(f"there is no rollout in batches {name} in namespace {namespace or home}")
    return said is not None


async def do_verb(client: Client, verb: RolloutVerb, which: RolloutName) -> str:
    """Do it. Returns the message."""
    rollout = await _read(client, which)
    answer = accepted(answer_to(verb, rollout))
    if answer.patch:
        meta, patch = rollout.metadata, MergePatch(dict(answer.patch))
        await client.patch(which.kind, meta.name, patch, meta.namespace, uid=meta.uid, manager=MANAGER)
    return answer.message

"""Rollout groups for the daily verbs: `kedge get groups`, `kedge status GROUP`, `kedge explain GROUP|POD`.

They read the StatefulSets and pods with the rights of the user, and ask the functions with which the operator decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.tree import Tree

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.api.zones import ROLLOUT_GROUP
from kedge.cli.follow import Followed, changes, follow
from kedge.cli.group_target import CLUSTER, GroupName, find_group, group_reader, home_of, no_group, read_group
from kedge.cli.render import can_draw, console, draw, groups_table, line_of, print_data, print_lines
from kedge.cli.targets import Hub, error_sentences
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.errors import Forbidden
from kedge.plan.state import State
from kedge.plan.text import listed, natural
from kedge.plan.zoning.group_story import (
    GroupStory,
    PodStory,
    ZoneStory,
    explained_group,
    explained_pod,
    explained_zone,
    group_line,
    pod_line,
    zone_line,
    zones_of,
)

GROUPS: Final = ("groups", "group")
"""The words that `kedge get` takes for rollout groups."""
STABLE_FOR: Final = 1.5
"""Seconds for which a group has to stay done: a status may lag behind a change that has just been made."""


# get


def run_get_groups(hub: Hub, names: Sequence[str], namespace: str | None, form: str) -> None:
    """Print every rollout group, or those named."""
    home = home_of(hub)

    async def question(client: Client) -> list[GroupStory]:
        with error_sentences(CLUSTER):
            return await _all_groups(home, client, namespace)

    found = hub.ask(question)
    wanted = [story for story in found if not names or story.name in names or story.path in names]
    if missing := [name for name in names if not any(name in (story.name, story.path) for story in found)]:
        known = listed(story.path for story in found) or "none"
        raise click.ClickException(f"there is no rollout group {missing[0]}: there is {known}")
    if form != "table":
        return print_data(list(map(_data, wanted)), form)
    if wanted:
        return draw(groups_table(wanted))
    where = f" in namespace {namespace}" if namespace else ""
    return click.echo(f"there are no rollout groups{where}", err=True)


async def _all_groups(home: str, client: Client, namespace: str | None) -> list[GroupStory]:
    """The groups of a namespace, or of all; of the context's own if the user may not list all."""
    try:
        sets = (await client.list(StatefulSet, namespace, labels=ROLLOUT_GROUP)).items
    except Forbidden:
        if namespace is not None:
            raise
        namespace = home
        sets = (await client.list(StatefulSet, namespace, labels=ROLLOUT_GROUP)).items
    return await _stories(client, namespace, sets)


async def _stories(client: Client, namespace: str | None, sets: Sequence[StatefulSet]) -> list[GroupStory]:
    if not sets:
        return []
    pods = (await client.list(Pod, namespace)).items
    groups: dict[tuple[str, str], list[StatefulSet]] = {}
    for one in sets:
        groups.setdefault((one.metadata.namespace or "", one.metadata.labels[ROLLOUT_GROUP]), []).append(one)
    reader = group_reader(client)
    found = [await reader.story(*key, zones_of(members, pods)) for key, members in groups.items()]
    return sorted(found, key=lambda story: (natural(story.namespace), natural(story.name)))


# status


def group_status(
    hub: Hub, name: str, namespace: str | None, *, watch: bool, timeout: float | None, form: str
) -> bool | None:
    """Print a group once, or follow it until it is done. Returns whether it is; None if this is no group."""
    home = home_of(hub)

    async def question(client: Client) -> GroupStory | None:
        which = await find_group(client, name, namespace, home=home)
        if which is None:
            return None
        with error_sentences(CLUSTER):
            return await watch_group(client, which, timeout, form) if watch else await read_group(client, which)

    story = hub.ask(question)
    if story is None:
        return None
    if form != "tree":
        print_data(_data(story), form)
    elif not watch:
        out = console()
        draw(group_tree(story, drawn=can_draw(out)), out)
    return story.is_done


async def watch_group(client: Client, which: GroupName, timeout: float | None, form: str) -> GroupStory:
    """Show a group until it is done and stays so, or until time is up. Returns the last story."""
    reader = group_reader(client)
    sets = Cache(client, StatefulSet, which.namespace, labels={ROLLOUT_GROUP: which.name})
    pods = Cache(client, Pod, which.namespace)

    async def tell() -> GroupStory:
        if not (found := sets.all()):
            raise click.ClickException(no_group(which))
        return await reader.story(which.namespace, which.name, zones_of(found, pods.all()))

    followed = Followed(tell, lambda story: story.is_done, _lines, _tree, stable_for=STABLE_FOR)
    async with changes(sets, pods) as changed:
        return await follow(followed, changed, timeout, form)


def _lines(story: GroupStory) -> dict[str, str]:
    zones = {zone.name: f"  {zone.name}: {zone_line(zone)}" for zone in story.zones}
    return {"": f"rollout group {story.path}: {group_line(story)}", **zones}


def _tree(story: GroupStory, out: Console) -> Tree:
    return group_tree(story, drawn=can_draw(out), lines=out.height - 2)


def group_tree(story: GroupStory, *, drawn: bool = True, lines: int | None = None) -> Tree:
    """A group, its zones, and those of their pods that are not done."""
    root = Tree(line_of(story.state, f"rollout group {story.path}", group_line(story), drawn))
    room = None if lines is None else max(0, lines - 1 - len(story.zones))
    for zone in story.zones:
        branch = root.add(line_of(zone.state, zone.name, zone_line(zone), drawn))
        shown = [pod for pod in zone.pods if pod.state in (State.failed, State.moving, State.next)][:room]
        room = None if room is None else room - len(shown)
        for pod in shown:
            branch.add(line_of(pod.state, pod.name, pod_line(pod), drawn))
    return root


# explain


def explain_group(hub: Hub, name: str, namespace: str | None, part: str | None, form: str) -> bool:
    """Print why a group, or one of its zones or pods, is where it is. False if this is no group, and no pod of one."""
    home = home_of(hub)

    async def question(client: Client) -> tuple[GroupName, GroupStory] | None:
        which = await find_group(client, name, namespace, home=home, pods=True)
        if which is None:
            return None
        with error_sentences(CLUSTER):
            return which, await read_group(client, which)

    found = hub.ask(question)
    if found is None:
        return False
    which, story = found
    lines, data = _explained(story, part or which.part)
    if form == "text":
        print_lines(lines)
    else:
        print_data(data, form)
    return True


def _explained(story: GroupStory, part: str) -> tuple[list[str], Any]:
    """What to say about a group, a zone or a pod, as lines and as data."""
    if not part:
        return explained_group(story), _data(story)
    for zone in story.zones:
        if part == zone.name:
            return explained_zone(zone), zone
        for pod in zone.pods:
            if part == pod.name:
                return explained_pod(story, zone, pod), _pod_data(story, zone, pod)
    zones = listed((zone.name for zone in story.zones), most=10)
    raise click.ClickException(f"{part} is no zone and no pod of rollout group {story.path}: its zones are {zones}")


def _data(story: GroupStory) -> dict[str, Any]:
    """The story as data, with the numbers that a script would otherwise have to count."""
    numbers = {"updated": story.updated, "ready": story.ready, "pods": story.pods, "done": story.is_done}
    return {**msgspec.to_builtins(story), **numbers, "why": story.why}


def _pod_data(story: GroupStory, zone: ZoneStory, pod: PodStory) -> dict[str, Any]:
    return {"group": story.path, "zone": zone.name, **msgspec.to_builtins(pod)}

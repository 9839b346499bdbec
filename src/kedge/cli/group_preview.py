"""Group preview: what a change would do to rollout groups, or what the operator does about one as it is now.

Reads StatefulSets and pods with the rights of the user, and simulates the operator in this process. Nothing is written
to any cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

import click
from msgspec.structs import replace

from kedge.api.apps import StatefulSet
from kedge.api.zones import ROLLOUT_GROUP, ZONE_KINDS
from kedge.cli.group_preview_text import GroupsResult
from kedge.cli.group_target import CLUSTER, GroupName, find_group, home_of, no_group
from kedge.cli.preview import PreviewOptions, progress_line
from kedge.cli.targets import Hub, error_sentences, quiet_logs
from kedge.kube.client import Client
from kedge.kube.codec import Untyped
from kedge.kube.errors import ApiError, Forbidden, NotFound
from kedge.plan.previewing.durations import Durations
from kedge.plan.previewing.group_preview import GroupPreview
from kedge.plan.text import listed, natural
from kedge.simulate.preview.fleet_reader import read_fleet
from kedge.simulate.preview.fleet_state import FLEET_GROUPS, group_of
from kedge.simulate.preview.group_runner import GroupAssumptions, run_group_preview
from kedge.simulate.preview.group_state import GroupState, is_stateful_set
from kedge.simulate.preview.group_state_reader import NotObserved, read_group

_OURS = frozenset((kind.resource.group, kind.resource.kind) for kind in ZONE_KINDS)


def preview_groups(hub: Hub, options: PreviewOptions, changed: Sequence[Untyped]) -> GroupsResult | None:
    """Simulate what happens to rollout groups. None if neither the file nor the name is about one."""
    if options.source or not (options.placement or any(map(is_stateful_set, changed))):
        return None
    if any(group_of(one) in FLEET_GROUPS for one in changed):
        return None
    now, home = datetime.now(UTC), home_of(hub)
    placed = _placed(options, changed, home)

    async def question(client: Client) -> list[GroupState] | None:
        groups = await _groups(client, options, placed, home)
        if not groups or (not options.placement and await _is_for_placements(client, placed, now)):
            return None
        with error_sentences(CLUSTER):
            return [await _read(client, one, placed, now) for one in groups]

    found = hub.ask(question)
    if found is None:
        return None
    if options.save is not None:
        raise click.UsageError("--save saves a fleet: leave it out for a rollout group")
    return _played(found, placed, options, now)


# Which groups are meant


def _placed(options: PreviewOptions, changed: Sequence[Untyped], home: str) -> list[Untyped]:
    """The objects with the namespaces that kubectl would give them."""
    ours = [one for one in changed if is_stateful_set(one) or (group_of(one), one["kind"]) in _OURS]
    found = [{**one, "metadata": {"namespace": options.namespace or home, **one["metadata"]}} for one in ours]
    for one in found:
        place = one["metadata"]["namespace"]
        if options.namespace not in (None, place):
            what = f'the namespace from the provided object "{place}" does not match'
            fix = f"You must pass '--namespace={place}' to perform this operation."
            raise click.ClickException(f'{what} the namespace "{options.namespace}". {fix}')
    return found


async def _groups(client: Client, options: PreviewOptions, changed: Sequence[Untyped], home: str) -> list[GroupName]:
    """The group that is named, or those of the StatefulSets in the file, as they are and as they would be."""
    if options.placement:
        named = await find_group(client, options.placement, options.namespace, home=home)
        return [] if named is None else [named]
    found: list[GroupName] = []
    for one in filter(is_stateful_set, changed):
        meta = one["metadata"]
        names = [(meta.get("labels") or {}).get(ROLLOUT_GROUP), await _group_now(client, meta)]
        found += [GroupName(meta["namespace"], name) for name in names if name]
    return list(dict.fromkeys(found))


async def _group_now(client: Client, meta: Untyped) -> str | None:
    try:
        found = await client.get(StatefulSet, meta["name"], meta["namespace"])
    except (NotFound, Forbidden):
        return None
    return found.metadata.labels.get(ROLLOUT_GROUP)


async def _is_for_placements(client: Client, changed: Sequence[Untyped], now: datetime) -> bool:
    """Whether the cluster is a hub on which placements select what changes: then members roll it out."""
    try:
        fleet = await read_fleet(client, (), changed, now)
    except (NotFound, Forbidden):
        return False
    return bool(fleet.targets)


async def _read(client: Client, which: GroupName, changed: Sequence[Untyped], now: datetime) -> GroupState:
    own = [one for one in changed if one["metadata"]["namespace"] == which.namespace]
    try:
        found = await read_group(client, which.namespace, which.name, own, now)
    except NotObserved as error:
        raise click.ClickException(str(error)) from error
    if not found.sets and not own:
        raise click.ClickException(no_group(which))
    return found


# Simulating


def _played(
    groups: Sequence[GroupState], changed: Sequence[Untyped], options: PreviewOptions, now: datetime
) -> GroupsResult:
    _check_zones(groups, changed, options)
    found = [_played_one(group, changed, options) for group in groups]
    previews, times = tuple(one for one, _ in found), tuple(times for _, times in found)
    return GroupsResult(now.replace(microsecond=0), previews, times, options.within)


def _played_one(
    group: GroupState, changed: Sequence[Untyped], options: PreviewOptions
) -> tuple[GroupPreview, Durations]:
    own = [one for one in changed if one["metadata"]["namespace"] == group.namespace]
    given = Durations(given=options.ready, for_all=options.ready_all, failing=frozenset(options.fail))
    times = replace(given, measured=group.measured)
    assumptions = GroupAssumptions(times=times, within=options.within)
    try:
        with quiet_logs(), progress_line(f"rollout group {group.name}", options.within) as report:
            return run_group_preview(group, own, assumptions, report), times
    except ApiError as error:
        raise click.ClickException(f"the cluster would refuse it: {error.message or error.answer}") from error


def _check_zones(groups: Sequence[GroupState], changed: Sequence[Untyped], options: PreviewOptions) -> None:
    sets = [one for group in groups for one in group.sets] + [one for one in changed if is_stateful_set(one)]
    zones = sorted({one["metadata"]["name"] for one in sets}, key=natural)
    for option, names in (("--fail", options.fail), ("--ready-after", options.ready)):
        for name in names:
            if name not in zones:
                close = get_close_matches(name, zones) or zones
                raise click.ClickException(f"{option} {name}: the group has no such zone, but {listed(close)}")

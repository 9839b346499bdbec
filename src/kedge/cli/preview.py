"""Preview: what a change would do, before anything is touched.

Reads the hub, or a file, and simulates the change in this process. Nothing is written to any cluster.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import click
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.placement_kinds import PLACEMENT_KINDS
from kedge.api.staged import ClusterStagedUpdateRun, StagedUpdateRun
from kedge.cli.preview_text import PreviewResult, span
from kedge.cli.served_kinds import without_placements
from kedge.cli.targets import Hub, PlacementName, quiet_logs
from kedge.kube.client import Client
from kedge.kube.codec import Untyped
from kedge.kube.errors import ApiError, NotFound
from kedge.plan.text import listed, natural
from kedge.simulate.preview.fleet_reader import catalogue_of, placements_selecting, read_fleet
from kedge.simulate.preview.fleet_state import (
    BadFleetFile,
    FleetState,
    Target,
    from_yaml,
    group_of,
    parse_documents,
    parse_objects,
    to_yaml,
)
from kedge.simulate.preview.runner import Assumptions, PreviewChange, measured_times, run_preview, worst_case
from kedge.simulate.preview.trial import TrialRefused, read_trial, run_trial

_PROGRESS_EVERY: Final = 0.5  # seconds
_CLEAR_LINE: Final = "\r\033[K"


class PreviewOptions(Struct, frozen=True):
    """The options of the command."""

    file: str | None = None
    placement: str | None = None
    namespace: str | None = None
    source: str | None = None
    save: Path | None = None
    fail: tuple[str, ...] = ()
    ready: dict[str, float] = {}
    ready_all: float | None = None
    approve_after: float | None = 0.0
    within: float = 24 * 3600.0
    worst: bool = True
    dialect: Dialect = Dialect.seed


def run_preview_command(hub: Hub, options: PreviewOptions, changed: tuple[Untyped, ...]) -> PreviewResult | None:
    """Simulate the change, which are the objects of the file. None if the fleet was only to be saved."""
    targets = _named(options, changed)
    fleet = _from_file(options.source) if options.source else _from_hub(hub, targets, changed)
    if options.save is not None:
        _save(fleet, options.save)
        if not options.file and not options.placement:
            return None
    targets = _found(fleet, targets, changed)
    _check_members(fleet, options)
    return _played(fleet, PreviewChange(targets, changed), options)


def _played(fleet: FleetState, change: PreviewChange, options: PreviewOptions) -> PreviewResult:
    times = measured_times(fleet)
    times = replace(times, given=options.ready, for_all=options.ready_all, failing=frozenset(options.fail))
    assumptions = Assumptions(
        times=times, within=options.within, approved_after=options.approve_after, dialect=options.dialect
    )
    try:
        with quiet_logs():
            with progress_line("what is expected", options.within) as report:
                expected = run_preview(fleet, change, assumptions, report)
            with progress_line("the worst case", options.within) as report:
                worst = run_preview(fleet, change, worst_case(assumptions), report) if options.worst else ()
    except ApiError as error:
        raise click.ClickException(f"the hub would refuse it: {error.message or error.answer}") from error
    except BadFleetFile as error:
        raise click.ClickException(str(error)) from error
    return PreviewResult(fleet.taken, expected, worst, times, options.within, bool(change.objects))


@contextmanager
def progress_line(what: str, within: float) -> Iterator[Callable[[float], None]]:
    """On a terminal, a line that says how far a preview has come. Yields the function to report seconds to."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    printed = time.monotonic()

    def report(played: float) -> None:
        nonlocal printed
        if time.monotonic() - printed >= _PROGRESS_EVERY:
            printed = time.monotonic()
            click.echo(f"{_CLEAR_LINE}simulating {what}: {span(played)} of at most {span(within)}", err=True, nl=False)

    try:
        yield report
    finally:
        click.echo(_CLEAR_LINE, err=True, nl=False)


# Which placements are meant


def _named(options: PreviewOptions, changed: Sequence[Untyped]) -> tuple[Target, ...]:
    """The placements that are named, or that the file is about; empty if that depends on what is selected."""
    if options.placement:
        which = PlacementName.of(options.placement, options.namespace)
        return (Target(which.name, which.namespace),)
    if not changed and options.save is None:
        raise click.UsageError(
            "name a placement or a rollout group, or a file with -f: `kedge plan web`, `kedge plan -f web.yaml`"
        )
    found = [target for one in changed if (target := _target_in(one)) is not None]
    return tuple(dict.fromkeys(found))


def _target_in(obj: Untyped) -> Target | None:
    """The placement that an object is, or that it moves if it is a run."""
    meta, kind = obj["metadata"], (group_of(obj), obj["kind"])
    for kinds in PLACEMENT_KINDS:
        if kind == (kinds.placement.resource.group, kinds.placement.resource.kind):
            return Target(meta["name"], meta.get("namespace") if kinds.placement.resource.namespaced else None)
    for run in (ClusterStagedUpdateRun, StagedUpdateRun):
        if kind == (run.resource.group, run.resource.kind):
            name = (obj.get("spec") or {}).get("placementName") or ""
            return Target(name, meta.get("namespace") if run.resource.namespaced else None)
    return None


def _found(fleet: FleetState, targets: tuple[Target, ...], changed: Sequence[Untyped]) -> tuple[Target, ...]:
    """The placements to preview. All of them exist, or are in the file."""
    if not targets:
        return _selecting(fleet, changed)
    new = {target_in for one in changed if (target_in := _own(one)) is not None}
    for target in targets:
        if target not in new and not fleet.has(target):
            raise click.ClickException(_missing(target, fleet))
    return targets


def _own(obj: Untyped) -> Target | None:
    is_run = obj["kind"] in (ClusterStagedUpdateRun.resource.kind, StagedUpdateRun.resource.kind)
    return None if is_run else _target_in(obj)


def _selecting(fleet: FleetState, changed: Sequence[Untyped]) -> tuple[Target, ...]:
    if not changed:
        return fleet.targets
    catalogue = catalogue_of(fleet.of(CustomResourceDefinition.resource))
    placements = [one for kinds in PLACEMENT_KINDS for one in fleet.of(kinds.placement.resource)]
    found = placements_selecting(placements, changed, catalogue)
    if not found:
        names = listed(f"{one['kind']} {one['metadata']['name']}" for one in changed)
        raise click.ClickException(f"no placement selects {names}: nothing would happen")
    return tuple(Target(one["metadata"]["name"], one["metadata"].get("namespace")) for one in found)


def _missing(target: Target, fleet: FleetState) -> str:
    known = [one.path for one in fleet.targets]
    close = get_close_matches(target.path, known)
    hint = f": did you mean {listed(close)}?" if close else (f": there is {listed(known)}" if known else "")
    return f"there is no {target}{hint}"


def _check_members(fleet: FleetState, options: PreviewOptions) -> None:
    members = sorted((one["metadata"]["name"] for one in fleet.of(MemberCluster.resource)), key=natural)
    if not members:
        raise click.ClickException("the fleet has no members: nothing can be placed")
    for option, names in (("--fail", options.fail), ("--ready-after", options.ready)):
        for name in names:
            if name not in members:
                close = get_close_matches(name, members) or members
                raise click.ClickException(f"{option} {name}: the fleet has no such member, but {listed(close)}")


# Reading


def _from_hub(hub: Hub, targets: tuple[Target, ...], changed: Sequence[Untyped]) -> FleetState:
    now = datetime.now(UTC)

    async def question(client: Client) -> FleetState:
        try:
            return await read_fleet(client, targets, changed, now)
        except NotFound as error:
            name = targets[0].path if targets else ""
            raise click.ClickException(await without_placements(client, name)) from error

    return hub.ask(question)


def _from_file(name: str) -> FleetState:
    try:
        return from_yaml(_text(name))
    except BadFleetFile as error:
        raise click.ClickException(f"{name} holds no fleet: {error}") from error


def read_objects(name: str) -> tuple[Untyped, ...]:
    """The objects of a file; of standard input, if its name is `-`."""
    try:
        found = tuple(parse_objects(parse_documents(_text(name))))
    except BadFleetFile as error:
        raise click.ClickException(f"{name} cannot be read: {error}") from error
    if not found:
        raise click.ClickException(f"{name} holds no objects")
    return found


def tried(hub: Hub, objects: Sequence[Untyped], who: str, *, with_rules: bool = True) -> tuple[Untyped, ...]:
    """The objects of a file as they would be once it is applied. What `who` would refuse ends the command.

    Without the rules of definitions, if the preview itself tells what these refuse.
    """
    if not objects:
        return ()
    try:
        trial = hub.ask(lambda client: read_trial(client, objects, with_rules=with_rules))
        with quiet_logs():
            return run_trial(trial)
    except TrialRefused as error:
        raise click.ClickException(f"{who} would refuse {error}") from error


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise click.ClickException(f"{name} cannot be read: {why}") from error


def _save(fleet: FleetState, file: Path) -> None:
    """Write the fleet to a file that only the user can read: it may hold Secrets."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(to_yaml(fleet))
    click.echo(f"saved {len(fleet.objects)} objects to {file}, which may hold Secrets", err=True)

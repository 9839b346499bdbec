"""`kedge plan`: what a change would do, before anything is touched.

Reads the hub, or a file, and plays the change through in this process. Nothing is written to any cluster.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.staged import ClusterStagedUpdateRun, StagedUpdateRun
from kedge.api.twins import TWINS
from kedge.cli.asking import NO_PLACEMENTS, Hub, Which
from kedge.cli.planned import Planned
from kedge.cli.playing import playing
from kedge.cli.quiet import quiet
from kedge.kube.client import Client
from kedge.kube.codec import Untyped
from kedge.kube.errors import ApiError, NotFound
from kedge.plan.text import listed, natural
from kedge.simulate.preview.picture import (
    BadPicture,
    Picture,
    Target,
    documents_in,
    group_in,
    objects_in,
    read,
    written,
)
from kedge.simulate.preview.previewing import Assumed, Change, at_worst, measured_in, previewed
from kedge.simulate.preview.selecting import catalogue_of, selecting
from kedge.simulate.preview.taking import take


class Asked(Struct, frozen=True):
    """What was typed."""

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


def plan(hub: Hub, asked: Asked) -> Planned | None:
    """Play it through; None if the fleet was only to be saved."""
    changed = _objects(asked.file) if asked.file else ()
    targets = _named(asked, changed)
    picture = _from_file(asked.source) if asked.source else _from_hub(hub, targets, changed)
    if asked.save is not None:
        _save(picture, asked.save)
        if not asked.file and not asked.placement:
            return None
    targets = _found(picture, targets, changed)
    _check_members(picture, asked)
    return _played(picture, Change(targets, changed), asked)


def _played(picture: Picture, change: Change, asked: Asked) -> Planned:
    times = measured_in(picture)
    times = replace(times, given=asked.ready, for_all=asked.ready_all, failing=frozenset(asked.fail))
    assumed = Assumed(times=times, within=asked.within, approved_after=asked.approve_after, dialect=asked.dialect)
    try:
        with quiet():
            with playing("what is expected", asked.within) as says:
                expected = previewed(picture, change, assumed, says)
            with playing("the worst case", asked.within) as says:
                worst = previewed(picture, change, at_worst(assumed), says) if asked.worst else ()
    except ApiError as error:
        raise click.ClickException(f"the hub would refuse it: {error.message or error.answer}") from error
    except BadPicture as error:
        raise click.ClickException(str(error)) from error
    return Planned(picture.taken, expected, worst, times, asked.within, bool(change.objects))


# Which placements are meant


def _named(asked: Asked, changed: Sequence[Untyped]) -> tuple[Target, ...]:
    """Those named, and those the file is about; empty if that depends on what is selected."""
    if asked.placement:
        which = Which.of(asked.placement, asked.namespace)
        return (Target(which.name, which.namespace),)
    if not changed and asked.save is None:
        raise click.UsageError("name a placement, or a file with -f: `kedge plan web`, `kedge plan -f web.yaml`")
    found = [target for one in changed if (target := _target_in(one)) is not None]
    return tuple(dict.fromkeys(found))


def _target_in(obj: Untyped) -> Target | None:
    """The placement that an object of a file is, or that a run moves."""
    meta, kind = obj["metadata"], (group_in(obj), obj["kind"])
    for twins in TWINS:
        if kind == (twins.placement.resource.group, twins.placement.resource.kind):
            return Target(meta["name"], meta.get("namespace") if twins.placement.resource.namespaced else None)
    for run in (ClusterStagedUpdateRun, StagedUpdateRun):
        if kind == (run.resource.group, run.resource.kind):
            name = (obj.get("spec") or {}).get("placementName") or ""
            return Target(name, meta.get("namespace") if run.resource.namespaced else None)
    return None


def _found(picture: Picture, targets: tuple[Target, ...], changed: Sequence[Untyped]) -> tuple[Target, ...]:
    """The placements to look at, all of which there are, or will be."""
    if not targets:
        return _selecting(picture, changed)
    new = {target_in for one in changed if (target_in := _own(one)) is not None}
    for target in targets:
        if target not in new and not picture.has(target):
            raise click.ClickException(_missing(target, picture))
    return targets


def _own(obj: Untyped) -> Target | None:
    is_run = obj["kind"] in (ClusterStagedUpdateRun.resource.kind, StagedUpdateRun.resource.kind)
    return None if is_run else _target_in(obj)


def _selecting(picture: Picture, changed: Sequence[Untyped]) -> tuple[Target, ...]:
    if not changed:
        return picture.targets
    catalogue = catalogue_of(picture.of(CustomResourceDefinition.resource))
    placements = [one for twins in TWINS for one in picture.of(twins.placement.resource)]
    found = selecting(placements, changed, catalogue)
    if not found:
        names = listed(f"{one['kind']} {one['metadata']['name']}" for one in changed)
        raise click.ClickException(f"no placement selects {names}: nothing would happen")
    return tuple(Target(one["metadata"]["name"], one["metadata"].get("namespace")) for one in found)


def _missing(target: Target, picture: Picture) -> str:
    known = [one.path for one in picture.targets]
    close = get_close_matches(target.path, known)
    hint = f": did you mean {listed(close)}?" if close else (f": there is {listed(known)}" if known else "")
    return f"there is no {target}{hint}"


def _check_members(picture: Picture, asked: Asked) -> None:
    members = sorted((one["metadata"]["name"] for one in picture.of(MemberCluster.resource)), key=natural)
    if not members:
        raise click.ClickException("the fleet has no members: nothing can be placed")
    for option, names in (("--fail", asked.fail), ("--ready-after", asked.ready)):
        for name in names:
            if name not in members:
                close = get_close_matches(name, members) or members
                raise click.ClickException(f"{option} {name}: the fleet has no such member, but {listed(close)}")


# Reading


def _from_hub(hub: Hub, targets: tuple[Target, ...], changed: Sequence[Untyped]) -> Picture:
    now = datetime.now(UTC)

    async def question(client: Client) -> Picture:
        try:
            return await take(client, targets, changed, now)
        except NotFound as error:
            raise click.ClickException(NO_PLACEMENTS) from error

    return hub.ask(question)


def _from_file(name: str) -> Picture:
    try:
        return read(_text(name))
    except BadPicture as error:
        raise click.ClickException(f"{name} cannot be taken for a fleet: {error}") from error


def _objects(name: str) -> tuple[Untyped, ...]:
    try:
        found = tuple(objects_in(documents_in(_text(name))))
    except BadPicture as error:
        raise click.ClickException(f"{name} cannot be read: {error}") from error
    if not found:
        raise click.ClickException(f"{name} holds no objects")
    return found


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise click.ClickException(f"{name} cannot be read: {why}") from error


def _save(picture: Picture, file: Path) -> None:
    """For the eyes of who asked alone: it may hold Secrets."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(written(picture))
    click.echo(f"saved {len(picture.objects)} objects to {file}, which may hold Secrets", err=True)

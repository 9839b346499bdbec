"""Batch preview: what a rollout in batches would do, before anything is touched.

Reads the rollout, its workloads and autoscalers with the rights of the user, as the controller does. Nothing is written
to any cluster, and no webhook or metric is asked.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click
import msgspec
from msgspec.structs import replace

from kedge.api.apps import Deployment
from kedge.api.kruise import CloneSet
from kedge.api.oam.rollouts import ROLLOUT_KINDS, AnyRollout
from kedge.cli.batch_preview_text import RolloutsResult
from kedge.cli.batch_target import KIND_WORDS, Kind, RolloutName, find_rollout
from kedge.cli.group_target import CLUSTER, home_of
from kedge.cli.preview import PreviewOptions, tried
from kedge.cli.targets import Hub, error_sentences
from kedge.controllers.batch.batch_controllers import batch_rollouts
from kedge.controllers.batch.rollouts import Rollouts
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Untyped
from kedge.kube.connect.outbound import Answer, Call
from kedge.kube.errors import NotFound
from kedge.plan.batching.moves import Workload
from kedge.plan.batching.registry import moves_for
from kedge.plan.batching.rollout_rules import rollout_problems, rollout_update_problems
from kedge.plan.batching.rollout_story import target_text
from kedge.plan.batching.steps import BatchRolloutInput
from kedge.plan.fields import at, merged
from kedge.plan.previewing.rollout_preview import RolloutPreview, begun_anew, rollout_preview
from kedge.simulate.preview.fleet_state import group_of

_GROUPS = {(kind.resource.group, kind.resource.kind): kind for kind in ROLLOUT_KINDS}
_MEANT = frozenset({*(group for group, _ in _GROUPS), Deployment.resource.group, CloneSet.resource.group})
"""The groups of rollouts and of what they move."""


def preview_rollouts(hub: Hub, options: PreviewOptions, changed: Sequence[Untyped]) -> RolloutsResult | None:
    """What rollouts in batches would do. None if neither the file nor the name is about one."""
    if options.source:
        return None
    home = home_of(hub)
    placed = [_in_namespace(one, options, home) for one in changed]
    _check(hub, placed)

    async def question(client: Client) -> list[RolloutPreview] | None:
        if not changed and options.placement:
            named = await find_rollout(client, options.placement, options.namespace, home=home)
            wanted = [] if named is None else [await client.get(named.kind, named.name, named.namespace)]
        else:
            wanted = [_typed(one) for one in placed if _is_rollout(one)]
        if not wanted:
            return None
        with error_sentences(CLUSTER):
            return [await _preview(client, one, placed) for one in wanted]

    found = hub.ask(question)
    if found is not None and options.save is not None:
        raise click.UsageError("--save saves a fleet: leave it out for a rollout in batches")
    return None if found is None else RolloutsResult(tuple(found))


def _in_namespace(one: Untyped, options: PreviewOptions, home: str) -> Untyped:
    """The object in the namespace that kubectl would give it. One that has none is no part of a rollout."""
    return {**one, "metadata": {"namespace": options.namespace or home, **one["metadata"]}}


def _check(hub: Hub, placed: Sequence[Untyped]) -> None:
    """Refuse what the cluster would refuse of rollouts and their workloads, but for the rules that a preview tells."""
    if any(map(_is_rollout, placed)):
        tried(hub, [one for one in placed if group_of(one) in _MEANT], CLUSTER, with_rules=False)


def _is_rollout(one: Untyped) -> bool:
    return (group_of(one), one["kind"]) in _GROUPS


def _typed(one: Untyped) -> AnyRollout:
    kind: Kind = _GROUPS[group_of(one), one["kind"]]
    try:
        found: AnyRollout = msgspec.convert({**one, "status": {}}, kind)
    except msgspec.ValidationError as error:
        raise click.ClickException(
            f"the cluster would refuse {one['kind']} {one['metadata']['name']}: {error}"
        ) from error
    return found


async def _preview(client: Client, rollout: AnyRollout, changed: Sequence[Untyped]) -> RolloutPreview:
    meta = rollout.metadata
    which = RolloutName(KIND_WORDS[rollout.resource.kind.lower()], meta.namespace or "", meta.name)
    old = await _existing(client, which)
    problems = rollout_problems(rollout)
    if old is not None:
        rollout = replace(rollout, metadata=old.metadata, status=old.status)
        problems += rollout_update_problems(old, rollout)
    seen = await _observed(_rollouts(client, which), rollout)
    return rollout_preview(_with_changed(seen, changed), target_text(rollout), problems)


async def _existing(client: Client, which: RolloutName) -> AnyRollout | None:
    try:
        found: AnyRollout = await client.get(which.kind, which.name, which.namespace)
    except NotFound:
        return None
    return found


async def _observed(rollouts: Rollouts, rollout: AnyRollout) -> BatchRolloutInput:
    """What its controller would look at; if it is asked for something else than it does, when that begins."""
    seen = await rollouts.observe(rollout)
    status = begun_anew(seen, SystemClock().now())
    if status == seen.status:
        return seen
    return await rollouts.observe(replace(rollout, status=status))


def _rollouts(client: Client, which: RolloutName) -> Rollouts:
    """What would move it. Nothing of it runs: it is only asked what it sees."""
    clock = SystemClock()
    cluster = Cluster("cluster", client, clock=clock, rng=random.Random())
    for one in batch_rollouts(cluster, (which.namespace,), clock=clock, outbound=_Nobody()):
        if one.kind is which.kind:
            return one
    raise click.ClickException(f"nothing moves rollouts of the kind {which.kind.resource.kind} yet")


class _Nobody:
    """Nobody outside is asked in a preview."""

    async def fetch(self, call: Call, *, timeout: float) -> Answer:  # noqa: ARG002
        self._refuse(call)

    async def close(self) -> None:
        """There is nothing to close."""

    def _refuse(self, call: Call) -> NoReturn:
        raise AssertionError(f"{call} is asked in a preview")


# Workloads that are in the file as well


def _with_changed(seen: BatchRolloutInput, changed: Sequence[Untyped]) -> BatchRolloutInput:
    """What would be seen once the workloads of the file are applied."""
    if seen.workloads is None or not changed:
        return seen
    target, *sources = (_changed(one, changed) for one in (seen.workloads.target, *seen.workloads.sources))
    workloads = replace(seen.workloads, target=target, sources=tuple(sources))
    moves = moves_for(workloads)
    return replace(seen, problem=moves) if isinstance(moves, str) else replace(seen, workloads=workloads, moves=moves)


def _changed(workload: Workload, changed: Sequence[Untyped]) -> Workload:
    ref = workload.ref
    for one in changed:
        meta = one["metadata"]
        if (one["apiVersion"], one["kind"], meta["namespace"], meta["name"]) == (
            ref.api_version,
            ref.kind,
            ref.namespace,
            ref.name,
        ):
            return _applied(workload, one)
    return workload


def _applied(workload: Workload, one: Untyped) -> Workload:
    """A workload that does not exist yet is a manifest; of one that does, the spec is as the file has it."""
    if workload.obj is None:
        return replace(workload, manifest=one)
    spec: Mapping[str, Any] = at(one, "spec") or {}
    return replace(workload, obj=merged(workload.obj, {"spec": spec}))

"""Interpreter: the rolling strategy and status of a workload, whatever its kind, by the handler of the kind.

The functions have the names of the proposal's operations. Its `AlignRollingStrategy`, over all members of a binding, is
`plan.aligning.binding.plan_binding`: it needs the ledger as well. A kind without a handler is refused in words.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.karmada.keys import SEQUENCE
from kedge.api.numbers import IntOrPercent
from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.ledger import Report, Spec
from kedge.plan.fields import Object, at, group_of, merged, patched, text
from kedge.plan.workloads import WorkloadHandler, find_handler
from kedge.plan.workloads.handler import ON_DELETE, RECREATE, Strategy
from kedge.plan.workloads.registry import BrokenHandler
from kedge.plan.workloads.template import template_hash


class NotAligned(ValueError):
    """Why a workload cannot be aligned, in words."""


class RollingStrategy(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a workload replaces its pods, as its spec says it."""

    paused: bool | None = None
    partition: int | None = None
    """How many pods stay at older templates."""
    max_unavailable: IntOrPercent | None = None
    max_surge: IntOrPercent | None = None


class UnifiedRollingStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The status of a workload of any kind, as a member reflects it. None: it does not say."""

    generation: int | None = None
    observed_generation: int | None = None
    resource_template_generation: int | None = None
    replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    updated_replicas: int | None = None
    updated_ready_replicas: int | None = None
    updated_available_replicas: int | None = None
    alignment_seq: int | None = None
    """The number of the spec that the member's object has; Kedge's own."""
    spec_replicas: int | None = None
    """How many pods the member's object asks for, if the member decides on that; Kedge's own."""
    current_revision: str = ""
    """The revision of pods that are kept back, if the kind has a name for it."""
    update_revision: str = ""


def calculate_template_hash(obj: Object) -> str:
    """The hash of its pod template."""
    return template_hash(_handler(obj).template(obj))


def get_rolling_strategy(obj: Object) -> RollingStrategy:
    """Its rolling strategy."""
    found = _handler(obj).strategy(obj)
    return RollingStrategy(found.paused, found.partition, found.max_unavailable, found.max_surge)


def revise_rolling_strategy(obj: Object, strategy: RollingStrategy) -> Object:
    """The object with this rolling strategy. A kind that has no partition gets none, and so on."""
    return patched(obj, _strategy_patch(_handler(obj), obj, strategy))


def _strategy_patch(handler: WorkloadHandler, obj: Object, strategy: RollingStrategy) -> Object:
    now = handler.strategy(obj)
    wanted = Strategy(
        now.type,
        max_unavailable=strategy.max_unavailable,
        max_surge=strategy.max_surge,
        partition=strategy.partition,
        paused=bool(strategy.paused),
    )
    patch = handler.with_strategy(wanted)
    if patch is None:
        raise NotAligned(f"{text(obj, 'kind')} has no rolling strategy to set")
    return patch


def interpret_rolling_status(raw: Object) -> UnifiedRollingStatus:
    """The status that a member reflects. The kinds that are known count their pods in fields of the same names."""
    return UnifiedRollingStatus(
        generation=_number(raw, "generation"),
        observed_generation=_number(raw, "observedGeneration"),
        resource_template_generation=_number(raw, "resourceTemplateGeneration"),
        replicas=_number(raw, "replicas"),
        ready_replicas=_number(raw, "readyReplicas"),
        available_replicas=_number(raw, "availableReplicas"),
        updated_replicas=_number(raw, "updatedReplicas"),
        updated_ready_replicas=_number(raw, "updatedReadyReplicas"),
        updated_available_replicas=_number(raw, "updatedAvailableReplicas"),
        alignment_seq=_number(raw, "alignmentSeq"),
        spec_replicas=_number(raw, "specReplicas"),
        current_revision=text(raw, "currentRevision"),
        update_revision=text(raw, "updateRevision"),
    )


def _number(raw: Object, name: str) -> int | None:
    found = raw.get(name)
    return found if type(found) is int else None  # a bool is none


# From and to what alignment reckons with


def aim_of(template: Object, replicas: int) -> Aim:
    """The budget of a workload of so many replicas in all: percentages are of all of them."""
    handler = _handler(template)
    scaled = handler.scale(replicas)
    if scaled is None:
        raise NotAligned(f"{text(template, 'kind')} has no replicas to divide")
    whole_one = patched(template, scaled)
    strategy, limits = handler.strategy(whole_one), handler.limits(whole_one)
    if strategy.type == ON_DELETE:
        raise NotAligned(f"{text(template, 'kind')} replaces no pods by itself: its strategy is {ON_DELETE}")
    return Aim(
        replicas,
        limits.max_unavailable,
        limits.max_surge,
        min(strategy.partition or 0, replicas),
        is_partitioned=handler.with_partition(0) is not None,
        recreates=strategy.type == RECREATE and group_of(template) == "apps",
        is_paused=strategy.paused,
    )


def unpaused(obj: Object) -> Object:
    """The object as it is when it is resumed: a CloneSet that is paused has no surge."""
    return revise_rolling_strategy(obj, replace(get_rolling_strategy(obj), paused=False))


def goes_in_order(template: Object) -> bool:
    """Whether its pods have an order, by which they are replaced and taken away."""
    return (group_of(template), text(template, "kind")) == ("apps", "StatefulSet")


def has_sets(template: Object) -> bool:
    """Whether its pods belong to one ReplicaSet for each pod template."""
    return (group_of(template), text(template, "kind")) == ("apps", "Deployment")


def revised(manifest: Object, spec: Spec, notes: Object | None = None, *, is_paused: bool = False) -> Object:
    """A manifest with the numbers of a spec, perhaps paused, and perhaps with annotations."""
    handler = _handler(manifest)
    strategy = RollingStrategy(is_paused, spec.partition, spec.unavailable, spec.surge)
    patches = [_strategy_patch(handler, manifest, strategy), handler.scale(spec.replicas) or {}]
    return patched(manifest, merged(*patches, {"metadata": {"annotations": notes}} if notes else {}))


def without_replicas(manifest: Object) -> Object:
    """A manifest that has no pods made. What has no replicas, or none that are known here, is as it was."""
    handler = find_handler(group_of(manifest), text(manifest, "kind"))
    if handler is None or isinstance(handler, BrokenHandler):
        return manifest
    return patched(manifest, handler.scale(0) or {})


def report_of(status: UnifiedRollingStatus) -> Report:
    """What a status proves. One of an older generation does not say what its updated pods are of."""
    is_observed = status.generation is not None and status.generation == status.observed_generation
    seq = status.alignment_seq if is_observed and status.alignment_seq is not None else 0
    return Report(
        seq,
        pods=status.replicas or 0,
        updated=status.updated_replicas or 0,
        available=status.available_replicas or 0,
        updated_available=status.updated_available_replicas,
        asked=status.spec_replicas,
        is_back=bool(status.update_revision) and status.current_revision == status.update_revision,
    )


def sequence_of(manifest: Object | None) -> int:
    """The number of the spec that a manifest was made by; 0 if it has none."""
    found = str(at(manifest or {}, "metadata", "annotations", SEQUENCE) or "")
    return int(found) if found.isascii() and found.isdecimal() else 0


def _handler(obj: Object) -> WorkloadHandler:
    found = find_handler(group_of(obj), text(obj, "kind"))
    if found is None:
        kind, version = text(obj, "kind"), text(obj, "apiVersion")
        raise NotAligned(f"{kind} of {version} is not a kind of workload that is known here")
    if isinstance(found, BrokenHandler):
        raise NotAligned(str(found))
    return found

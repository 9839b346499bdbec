"""Binding preview: what a change of an aligned workload would do, before anything is touched.

Reads the hub with the rights of the user, as the controller does. Nothing is written to any cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import click
import msgspec
from msgspec.structs import replace

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.keys import PROPOSED_GROUP
from kedge.api.karmada.proposed import ProposedBinding
from kedge.cli.binding_preview_text import BindingsResult
from kedge.cli.binding_target import BINDING_KINDS, BindingName, BindingReader, binding_named
from kedge.cli.group_target import home_of
from kedge.cli.preview import PreviewOptions, tried
from kedge.cli.targets import Hub
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.aligning.binding import BindingInput
from kedge.plan.aligning.names import binding_name
from kedge.plan.aligning.observed import AnyBinding, resource_of
from kedge.plan.aligning.proposed import NotBound, proposed_spec
from kedge.plan.fields import Object, at, merged
from kedge.plan.previewing.binding_preview import BindingPreview, binding_preview, refused_preview
from kedge.plan.text import listed, object_name
from kedge.simulate.preview.fleet_state import group_of

_GROUPS = {
    **{(kind.resource.group, kind.resource.kind): kind for kind in BINDING_KINDS},
    (PROPOSED_GROUP, ProposedBinding.resource.kind): ResourceBinding,
}
"""The kinds of bindings in a file, and of which kind the binding is that they are or stand for."""


def preview_bindings(hub: Hub, options: PreviewOptions, changed: Sequence[Untyped]) -> BindingsResult | None:
    """What bindings would do. None if neither the file nor the name is about one."""
    if options.source:
        return None
    home = home_of(hub)
    named = binding_named(options.placement, options.namespace, home=home) if options.placement else None
    placed = [_in_namespace(one, options.namespace or home) for one in changed]
    if named is None and not placed:
        return None
    wanted = [named] if named is not None else hub.ask(lambda client: _concerned(client, placed))
    if not wanted:
        return None
    if options.save is not None:
        raise click.UsageError("--save saves a fleet: leave it out for a binding")
    applied = tried(hub, [one for one in placed if named is not None or _belongs(one, wanted, placed)], "the hub")

    async def question(client: Client) -> list[BindingPreview]:
        reader, made = BindingReader(client), [await _made_of(client, one) for one in applied]
        found = [await _observed(reader, one, made) for one in wanted]
        return [await _preview(reader, *one, options.fail) for one in found]

    return BindingsResult(tuple(hub.ask(question)), options.fail)


# Which bindings are meant


def _in_namespace(one: Untyped, namespace: str) -> Untyped:
    """The object in the namespace that kubectl would give it."""
    return {**one, "metadata": {"namespace": namespace, **one["metadata"]}}


def _binding_of(one: Untyped) -> BindingName:
    """The binding that an object of the file is, or stands for, or that it may have."""
    meta, kind = one["metadata"], _GROUPS.get((group_of(one), one["kind"]))
    if kind is not None:
        return BindingName(kind, meta["namespace"] if kind.resource.namespaced else None, meta["name"])
    return BindingName(BINDING_KINDS[0], meta["namespace"], binding_name(one["kind"], meta["name"]))


async def _concerned(client: Client, placed: Iterable[Untyped]) -> list[BindingName]:
    """The bindings in the file, and those that its resources have."""
    found: list[BindingName] = []
    for one in placed:
        which = _binding_of(one)
        if which not in found and (_is_binding(one) or await _exists(client, which)):
            found.append(which)
    return found


async def _exists(client: Client, which: BindingName) -> bool:
    with suppress(NotFound, Forbidden):  # a hub of another kind, or somebody who has nothing to do with bindings
        await client.get(which.kind, which.name, which.namespace)
        return True
    return False


def _is_binding(one: Untyped) -> bool:
    return (group_of(one), one["kind"]) in _GROUPS


def _belongs(one: Untyped, wanted: Sequence[BindingName], placed: Iterable[Untyped]) -> bool:
    """Whether an object of the file is one of these bindings, or what one of them propagates."""
    if _binding_of(one) in wanted:
        return True
    own = (one["kind"], one["metadata"]["name"])
    bound = (at(other, "spec", "resource") for other in placed if _is_binding(other))
    return any((at(resource, "kind"), at(resource, "name")) == own for resource in bound)


# What they would be


async def _made_of(client: Client, one: Untyped) -> Untyped:
    """The object; of a binding in the proposal's form, the binding of Karmada that is made of it."""
    if (group_of(one), one["kind"]) != (PROPOSED_GROUP, ProposedBinding.resource.kind):
        return one
    which = _binding_of(one)
    try:
        spec = proposed_spec(msgspec.convert({**one, "status": {}}, ProposedBinding))
    except (NotBound, msgspec.ValidationError) as error:
        raise click.ClickException(f"{_proposed(which)} is not followed: {error}") from error
    now = await _now(client, which)
    if now is not None and not _is_made_of(now, which):
        raise click.ClickException(
            f"{_proposed(which)} is not followed: {which.name} of {ResourceBinding.resource.group} exists already, and"
            " is the one that counts"
        )
    meta = {"name": which.name, "namespace": which.namespace}
    own = ResourceBinding.resource
    kept: Object = at(now, "spec") or {}
    return {"apiVersion": own.api_version, "kind": own.kind, "metadata": meta, "spec": merged(kept, spec)}


def _proposed(which: BindingName) -> str:
    return f"{which} of {PROPOSED_GROUP}"


async def _now(client: Client, which: BindingName) -> Untyped | None:
    with suppress(NotFound):
        found: Untyped = await client.get(untyped(which.kind.resource), which.name, which.namespace)
        return found
    return None


def _is_made_of(binding: Untyped, which: BindingName) -> bool:
    """Whether the binding of Karmada is the one of the proposal's binding of the same name."""
    own = ProposedBinding.resource
    wanted = (own.api_version, own.kind, which.name)
    owners = binding["metadata"].get("ownerReferences") or ()
    return any((one["apiVersion"], one["kind"], one["name"]) == wanted for one in owners)


async def _observed(
    reader: BindingReader, which: BindingName, changed: Iterable[Untyped]
) -> tuple[AnyBinding, BindingInput]:
    """A binding, with the changes of the file in it and in its resource."""
    own = next((one for one in changed if _is_binding(one) and _binding_of(one) == which), None)
    binding, seen = await (reader.one(which) if own is None else reader.with_spec(which, _typed(own, which)))
    if await reader.is_aligned_beside(binding):
        raise click.ClickException(f"{which} is aligned beside a Karmada, which is not previewed: use kedge status")
    return binding, replace(seen, template=_changed(binding, seen.template, changed))


def _typed(one: Untyped, which: BindingName) -> AnyBinding:
    try:
        found: AnyBinding = msgspec.convert({**one, "status": {}}, which.kind)
    except msgspec.ValidationError as error:
        raise click.ClickException(f"the hub would refuse {which}: {error}") from error
    return found


def _changed(binding: AnyBinding, template: Object | None, changed: Iterable[Untyped]) -> Object | None:
    """The resource of a binding once the file is applied."""
    bound = resource_of(binding)
    wanted = (bound.api_version, bound.kind, bound.namespace or None, bound.name)
    for one in changed:
        meta = one["metadata"]
        if (one["apiVersion"], one["kind"], meta.get("namespace"), meta["name"]) == wanted:
            return {**template, "spec": at(one, "spec") or {}} if template is not None else one
    return template


async def _preview(
    reader: BindingReader, binding: AnyBinding, seen: BindingInput, failing: Sequence[str]
) -> BindingPreview:
    if problem := await reader.refusal(binding) or _missing(binding, seen):
        return refused_preview(binding, problem)
    unknown = [name for name in failing if name not in seen.clusters]
    if unknown:
        known = listed(sorted(seen.clusters)) or "none"
        raise click.ClickException(f"--fail {unknown[0]}: the binding has no such cluster; it has {known}")
    return binding_preview(binding, seen, failing)


def _missing(binding: AnyBinding, seen: BindingInput) -> str:
    """That there is no resource to propagate; empty if there is one."""
    if seen.template is not None or seen.is_deleting:
        return ""
    bound = resource_of(binding)
    return f"there is no {object_name(bound.kind, bound.namespace, bound.name)}"

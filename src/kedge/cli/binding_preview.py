"""Binding preview: what a change of an aligned workload would do, before anything is touched.

Reads the hub with the rights of the user, as the controller does. Nothing is written to any cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from kedge.cli.binding_preview_text import BindingsResult
from kedge.cli.binding_target import BINDING_KINDS, BindingName, BindingReader, binding_named
from kedge.cli.group_target import home_of
from kedge.cli.preview import PreviewOptions
from kedge.cli.targets import Hub
from kedge.kube.client import Client
from kedge.kube.codec import Untyped
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.aligning.binding import BindingInput
from kedge.plan.aligning.names import binding_name
from kedge.plan.aligning.observed import AnyBinding
from kedge.plan.fields import Object, at, merged
from kedge.plan.previewing.binding_preview import BindingPreview, binding_preview
from kedge.plan.text import listed
from kedge.simulate.preview.fleet_state import group_of

_GROUPS = {(kind.resource.group, kind.resource.kind): kind for kind in BINDING_KINDS}


def preview_bindings(hub: Hub, options: PreviewOptions, changed: Sequence[Untyped]) -> BindingsResult | None:
    """What bindings would do. None if neither the file nor the name is about one."""
    if options.source:
        return None
    home = home_of(hub)
    named = binding_named(options.placement, options.namespace, home=home) if options.placement else None
    placed = [_in_namespace(one, options.namespace or home) for one in changed]
    if named is None and not placed:
        return None

    async def question(client: Client) -> list[BindingPreview]:
        reader = BindingReader(client)
        wanted = [named] if named is not None else list(dict.fromkeys(filter(None, map(_binding_of, placed))))
        found = [await _observed(reader, one, placed, must_be=named is not None) for one in wanted]
        return [_preview(*one, options.fail) for one in found if one is not None]

    previews = hub.ask(question)
    if not previews:
        return None
    if options.save is not None:
        raise click.UsageError("--save saves a fleet: leave it out for a binding")
    return BindingsResult(tuple(previews), options.fail)


def _in_namespace(one: Untyped, namespace: str) -> Untyped:
    """The object in the namespace that kubectl would give it."""
    return {**one, "metadata": {"namespace": namespace, **one["metadata"]}}


def _binding_of(one: Untyped) -> BindingName | None:
    """The binding that an object of the file is, or that it may have."""
    meta, kind = one["metadata"], _GROUPS.get((group_of(one), one["kind"]))
    if kind is not None:
        return BindingName(kind, meta["namespace"] if kind.resource.namespaced else None, meta["name"])
    return BindingName(BINDING_KINDS[0], meta["namespace"], binding_name(one["kind"], meta["name"]))


async def _observed(
    reader: BindingReader, which: BindingName, changed: Iterable[Untyped], *, must_be: bool
) -> tuple[AnyBinding, BindingInput] | None:
    """A binding, with the changes of the file in it and in its resource; None if there is no such binding."""
    own = next((one for one in changed if _is(one, which)), None)
    if must_be or own is None:
        found = await _found(reader, which, must_be=must_be)
    else:
        found = await reader.with_spec(which, _typed(own, which))
    if found is None:
        return None
    binding, seen = found
    if await reader.is_aligned_beside(binding):
        raise click.ClickException(f"{which} is aligned beside a Karmada, which is not previewed: use kedge status")
    return binding, replace(seen, template=_changed(binding, seen.template, changed))


async def _found(reader: BindingReader, which: BindingName, *, must_be: bool) -> tuple[AnyBinding, BindingInput] | None:
    if must_be:
        return await reader.one(which)
    with suppress(NotFound, Forbidden):  # a hub of another kind, or somebody who has nothing to do with bindings
        return await reader.there(which)
    return None


def _is(one: Untyped, which: BindingName) -> bool:
    return _GROUPS.get((group_of(one), one["kind"])) is which.kind and _binding_of(one) == which


def _typed(one: Untyped, which: BindingName) -> AnyBinding:
    try:
        found: AnyBinding = msgspec.convert({**one, "status": {}}, which.kind)
    except msgspec.ValidationError as error:
        raise click.ClickException(f"the hub would refuse {which}: {error}") from error
    return found


def _changed(binding: AnyBinding, template: Object | None, changed: Iterable[Untyped]) -> Object | None:
    """The resource of a binding once the file is applied."""
    bound = binding.spec.resource
    for one in changed:
        meta = one["metadata"]
        if (one["apiVersion"], one["kind"], meta["name"]) == (bound.api_version, bound.kind, bound.name) and meta[
            "namespace"
        ] == bound.namespace:
            spec: Mapping[str, Any] = at(one, "spec") or {}
            return merged(template, {"spec": spec}) if template is not None else one
    return template


def _preview(binding: AnyBinding, seen: BindingInput, failing: Sequence[str]) -> BindingPreview:
    unknown = [name for name in failing if name not in seen.clusters]
    if unknown:
        known = listed(sorted(seen.clusters)) or "none"
        raise click.ClickException(f"--fail {unknown[0]}: the binding has no such cluster; it has {known}")
    return binding_preview(binding, seen, failing)

"""Binding target: the binding that a command is about, and what its story is made of.

`binding/NAME` names a ResourceBinding, `clusterbinding/NAME` a ClusterResourceBinding; the names that kubectl knows
(`rb`, `crb` and so on) do as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

import click
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.overrides import ClusterOverridePolicy, OverridePolicy
from kedge.api.karmada.works import Work
from kedge.controllers.align.templates import read_template
from kedge.controllers.gather import gather
from kedge.controllers.kinds import Kinds
from kedge.kube.client import Client
from kedge.kube.errors import NotFound
from kedge.plan.aligning.binding import BindingInput
from kedge.plan.aligning.binding_story import BindingStory, tell_binding
from kedge.plan.aligning.names import work_name
from kedge.plan.aligning.observed import AnyBinding, binding_input, works_of
from kedge.plan.aligning.overriding import AnyOverridePolicy
from kedge.plan.fields import Object
from kedge.plan.text import listed, path_of

Kind: TypeAlias = Any
"""A class of `AnyBinding`: a type checker takes the union of two for none of them."""
NOT_SERVED: Final = "this cluster serves no bindings: is it the hub of an alignment?"
BINDING_KINDS: Final[Sequence[Kind]] = (ResourceBinding, ClusterResourceBinding)
_OWN_WORDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    ResourceBinding: ("binding", "bindings"),
    ClusterResourceBinding: ("clusterbinding", "clusterbindings"),
}


def _words(kind: Kind) -> tuple[str, ...]:
    names = kind.resource.kind.lower(), kind.resource.plural, *kind.definition.short_names
    return tuple(dict.fromkeys((*_OWN_WORDS[kind], *names)))


BINDING_WORDS: Final[Mapping[str, Kind]] = {word: kind for kind in BINDING_KINDS for word in _words(kind)}
"""What a kind of binding may be called by."""


class BindingName(Struct, frozen=True):
    """One binding."""

    kind: Kind
    namespace: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.kind.resource.kind} {path_of(self.namespace, self.name)}"


def binding_named(name: str, namespace: str | None, *, home: str) -> BindingName | None:
    """The binding that a command names; None if it names something else.

    `home` is the namespace of the context, which counts if none is named.
    """
    word, slash, rest = name.partition("/")
    kind = BINDING_WORDS.get(word.lower()) if slash else None
    if kind is None:
        return None
    place, slash, bare = rest.rpartition("/")
    if slash and namespace not in (None, place):
        raise click.UsageError(f"{rest} is in namespace {place}, and --namespace says {namespace}: leave one out")
    if not bare or "/" in place:
        raise click.UsageError(f"{name!r} names no binding: write binding/NAME, or binding/NAMESPACE/NAME")
    return BindingName(kind, (place or namespace or home) if kind.resource.namespaced else None, bare)


class BindingReader:
    """Reads bindings with the rights of the user, and what the controller looks at to decide on them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._kinds = Kinds(client)

    async def one(self, which: BindingName) -> tuple[AnyBinding, BindingInput]:
        """A binding as it is now. If there is none, the error names those that exist."""
        try:
            return await self.there(which)
        except NotFound as error:
            raise click.ClickException(await self._what_there_is(which)) from error

    async def there(self, which: BindingName) -> tuple[AnyBinding, BindingInput]:
        """A binding as it is now. Raises `NotFound` if there is none."""
        return await self._seen(await self._client.get(which.kind, which.name, which.namespace))

    async def with_spec(self, which: BindingName, given: AnyBinding) -> tuple[AnyBinding, BindingInput]:
        """A binding as it would be with the spec of another one."""
        with suppress(NotFound):
            now: AnyBinding = await self._client.get(which.kind, which.name, which.namespace)
            given = replace(now, spec=given.spec)
        return await self._seen(given)

    async def _seen(self, binding: AnyBinding) -> tuple[AnyBinding, BindingInput]:
        bound = binding.spec.resource
        named = {"metadata.name": work_name(bound.kind, bound.name, bound.namespace)}
        works = (await self._client.list(Work, fields=named)).items
        return binding, (await self._observed([binding], works))[0]

    async def story(self, which: BindingName) -> BindingStory:
        return tell_binding(*await self.one(which))

    async def stories(self, kind: Kind, namespace: str | None) -> list[BindingStory]:
        """All bindings of a kind, in a namespace or in all of them."""
        bindings = (await self._client.list(kind, namespace if kind.resource.namespaced else None)).items
        works = (await self._client.list(Work)).items if bindings else ()
        return list(map(tell_binding, bindings, await self._observed(bindings, works)))

    async def _observed(self, bindings: Sequence[AnyBinding], works: Sequence[Work]) -> list[BindingInput]:
        if not bindings:
            return []
        members = {one.metadata.name: one for one in (await self._client.list(Cluster)).items}
        overrides = [*await self._policies(ClusterOverridePolicy), *await self._policies(OverridePolicy)]
        templates = await gather([partial(self.template, one) for one in bindings])
        return [
            binding_input(binding, template, works_of(binding, works), members, overrides)
            for binding, template in zip(bindings, templates, strict=True)
        ]

    async def _policies(self, kind: Kind) -> Sequence[AnyOverridePolicy]:
        with suppress(NotFound):
            found: Sequence[AnyOverridePolicy] = (await self._client.list(kind)).items
            return found
        return ()

    async def template(self, binding: AnyBinding) -> Object | None:
        """The resource that a binding propagates; None if there is none."""
        return await read_template(self._client, self._kinds, binding)

    async def _what_there_is(self, which: BindingName) -> str:
        try:
            known = (await self._client.list(which.kind, which.namespace)).items
        except NotFound:
            return NOT_SERVED
        names = [one.metadata.name for one in known]
        missing = f"there is no {which}"
        return f"{missing}: there is {listed(names)}" if names else f"{missing}, nor any other there"

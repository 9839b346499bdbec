"""Binding target: the binding that a command is about, and what its story is made of.

`binding/NAME` names a ResourceBinding, `clusterbinding/NAME` a ClusterResourceBinding; the names that kubectl knows
(`rb`, `crb` and so on) do as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.overrides import ClusterOverridePolicy, OverridePolicy
from kedge.api.karmada.policies import ClusterPropagationPolicy, PropagationPolicy
from kedge.api.karmada.works import Work
from kedge.controllers.align.templates import kind_of, read_template
from kedge.controllers.gather import gather
from kedge.controllers.kinds import Kinds
from kedge.kube.client import Client
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.aligning.beside import BesideInput, beside_input
from kedge.plan.aligning.beside_policies import Policy, asks_for_alignment, override_name, policy_name, policy_problem
from kedge.plan.aligning.binding import BindingInput
from kedge.plan.aligning.binding_story import BindingStory, tell_beside, tell_binding, tell_refused
from kedge.plan.aligning.observed import AnyBinding, binding_input, works_of
from kedge.plan.aligning.overriding import AnyOverridePolicy
from kedge.plan.aligning.refusing import refusal, work_name_of
from kedge.plan.fields import Object
from kedge.plan.text import listed, path_of

T = TypeVar("T")
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


class _Hub(Struct, frozen=True):
    """What a hub holds beside bindings and their resources."""

    works: Sequence[Work]
    members: Sequence[Cluster]
    overrides: Sequence[AnyOverridePolicy]
    policies: Sequence[Policy] = ()

    def input_of(self, binding: AnyBinding, template: Object | None) -> BindingInput:
        members = {one.metadata.name: one for one in self.members}
        return binding_input(binding, template, works_of(binding, self.works), members, self.overrides)

    def story_of(self, binding: AnyBinding, template: Object | None, refused: str) -> BindingStory:
        """Where a binding stands: as `kedge align` decides, if its policy asks for that, else as a hub does. `refused`:
        why nothing is done about it, if so."""
        if isinstance(binding, ResourceBinding):
            policy = self._policy(binding)
            if policy is not None and asks_for_alignment(policy):
                return self._story_beside(binding, template, policy)
        if refused and binding.metadata.deletion_timestamp is None:
            return tell_refused(binding, works_of(binding, self.works), refused)
        return tell_binding(binding, self.input_of(binding, template))

    def _policy(self, binding: ResourceBinding) -> Policy | None:
        named = policy_name(binding)
        if named is None:
            return None
        alike = (one for one in self.policies if isinstance(one, named.kind) and one.metadata.name == named.name)
        return next((one for one in alike if (one.metadata.namespace or None) == named.namespace), None)

    def _story_beside(self, binding: ResourceBinding, template: Object | None, policy: Policy) -> BindingStory:
        problem = policy_problem(policy.spec.resource_selectors, binding.spec)
        if template is None:
            return tell_beside(binding, None, problem)
        try:
            return tell_beside(binding, self._beside(binding, template), problem)
        except ValueError as error:  # a ledger that cannot be read
            works = works_of(binding, self.works)
            return tell_beside(binding, BesideInput(binding.spec, template, works), str(error))

    def _beside(self, binding: ResourceBinding, template: Object) -> BesideInput:
        where = binding.metadata.namespace, override_name(binding)
        own = (one for one in self.overrides if isinstance(one, OverridePolicy))
        override = next((one for one in own if (one.metadata.namespace, one.metadata.name) == where), None)
        return beside_input(binding.spec, template, works_of(binding, self.works), self.members, override)


def _by_name(found: Iterable[T], name: Callable[[T], str]) -> dict[str, list[T]]:
    grouped: dict[str, list[T]] = {}
    for one in found:
        grouped.setdefault(name(one), []).append(one)
    return grouped


class BindingReader:
    """Reads bindings with the rights of the user, and what the controller looks at to decide on them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._kinds = Kinds(client)

    async def one(self, which: BindingName) -> tuple[AnyBinding, BindingInput]:
        """A binding as it is now. If there is none, the error names those that exist."""
        return await self._seen(await self._named(which))

    async def there(self, which: BindingName) -> tuple[AnyBinding, BindingInput]:
        """A binding as it is now. Raises `NotFound` if there is none."""
        return await self._seen(await self._client.get(which.kind, which.name, which.namespace))

    async def with_spec(self, which: BindingName, given: AnyBinding) -> tuple[AnyBinding, BindingInput]:
        """A binding as it would be with the spec of another one."""
        with suppress(NotFound):
            now: AnyBinding = await self._client.get(which.kind, which.name, which.namespace)
            given = replace(now, spec=given.spec)
        return await self._seen(given)

    async def _named(self, which: BindingName) -> AnyBinding:
        try:
            found: AnyBinding = await self._client.get(which.kind, which.name, which.namespace)
        except NotFound as error:
            raise click.ClickException(await self._what_there_is(which)) from error
        return found

    async def _seen(self, binding: AnyBinding) -> tuple[AnyBinding, BindingInput]:
        hub = await self._hub(await self._works_of(binding))
        return binding, hub.input_of(binding, await self.template(binding))

    async def _works_of(self, binding: AnyBinding) -> Sequence[Work]:
        return (await self._client.list(Work, fields={"metadata.name": work_name_of(binding)})).items

    async def story(self, which: BindingName) -> BindingStory:
        """Where a binding stands. If there is none, the error names those that exist."""
        binding = await self._named(which)
        hub = await self._with_policies(await self._hub(await self._works_of(binding)))
        refused = await self._refusal(binding, await self._beside(binding), hub.works)
        return hub.story_of(binding, await self.template(binding), refused)

    async def stories(self, kind: Kind, namespace: str | None) -> list[BindingStory]:
        """All bindings of a kind, in a namespace or in all of them."""
        bindings = (await self._client.list(kind, namespace if kind.resource.namespaced else None)).items
        if not bindings:
            return []
        hub = await self._with_policies(await self._hub((await self._client.list(Work)).items))
        alike, works = _by_name(bindings, work_name_of), _by_name(hub.works, lambda work: work.metadata.name)
        templates = await gather([partial(self.template, one) for one in bindings])
        names = list(map(work_name_of, bindings))
        refused = [
            await self._refusal(one, alike[name], works.get(name, ()))
            for one, name in zip(bindings, names, strict=True)
        ]
        return list(map(hub.story_of, bindings, templates, refused))

    async def refusal(self, binding: AnyBinding) -> str:
        """Why nothing is done about a binding; empty if something is."""
        return await self._refusal(binding, await self._beside(binding), await self._works_of(binding))

    async def _refusal(self, binding: AnyBinding, others: Iterable[AnyBinding], works: Iterable[Work]) -> str:
        return refusal(binding, await kind_of(self._kinds, binding), others, works)

    async def _beside(self, binding: AnyBinding) -> Sequence[AnyBinding]:
        """The bindings beside it, as far as the user may see them."""
        with suppress(Forbidden):
            kind: Kind = type(binding)
            found: Sequence[AnyBinding] = (await self._client.list(kind, binding.metadata.namespace)).items
            return found
        return ()

    async def is_aligned_beside(self, binding: AnyBinding) -> bool:
        """Whether `kedge align` decides on a binding, beside a Karmada."""
        named = policy_name(binding) if isinstance(binding, ResourceBinding) else None
        if named is None:
            return False
        with suppress(NotFound):
            return asks_for_alignment(await self._client.get(named.kind, named.name, named.namespace))
        return False

    async def _hub(self, works: Sequence[Work]) -> _Hub:
        members = (await self._client.list(Cluster)).items
        overrides = [*await self._all(ClusterOverridePolicy), *await self._all(OverridePolicy)]
        return _Hub(works, members, overrides)

    async def _with_policies(self, hub: _Hub) -> _Hub:
        return replace(hub, policies=[*await self._all(ClusterPropagationPolicy), *await self._all(PropagationPolicy)])

    async def _all(self, kind: Kind) -> Sequence[Any]:
        """All objects of a kind; none if the hub does not serve it."""
        with suppress(NotFound):
            found: Sequence[Any] = (await self._client.list(kind)).items
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

"""Templates: the resources that bindings are about, read from the hub. What is refused is not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.resource import Resource
from kedge.controllers.kinds import Kinds
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.codec import PartialObject, Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.plan.aligning.observed import AnyBinding, resource_of
from kedge.plan.aligning.refusing import refusal
from kedge.plan.fields import Object, text


async def kind_of(kinds: Kinds, binding: AnyBinding) -> Resource | None:
    """The kind of the resource that a binding propagates; None if the hub does not serve it."""
    bound = resource_of(binding)
    return await kinds.find(bound.api_version, bound.kind)


async def read_template(client: Client, kinds: Kinds, binding: AnyBinding) -> Untyped | None:
    """The resource that a binding propagates; None if there is none, or the binding is refused."""
    kind, bound = await kind_of(kinds, binding), resource_of(binding)
    if kind is None or refusal(binding, kind):
        return None
    try:
        return await client.get(untyped(kind), bound.name, bound.namespace or None)
    except NotFound:
        return None


class Templates:
    """The resources of many bindings, each read again only if its metadata, which is watched, says that it changed."""

    def __init__(self, client: Client, kinds: Kinds, metadata: Mapping[tuple[str, str], Cache[PartialObject]]) -> None:
        """`metadata`: by group and kind, of those kinds that are watched."""
        self._client, self._kinds, self._metadata = client, kinds, metadata
        self._known: dict[str | None, Object] = {}
        """Resources as they were read last, by the uid of their binding."""

    async def read(self, binding: ResourceBinding, kind: Resource) -> Object | None:
        """The resource of a binding; None if there is none, or the binding is refused."""
        bound, uid = resource_of(binding), binding.metadata.uid
        cache, known = self._metadata.get((kind.group, kind.kind)), self._known.pop(uid, None)
        seen: Any = cache.get(bound.name, bound.namespace or None) if cache is not None else None
        if seen is None or text(known, "metadata", "resourceVersion") != seen.metadata.resource_version:
            known = await read_template(self._client, self._kinds, binding)
        if known is not None and cache is not None and not binding.metadata.deletion_timestamp:
            self._known[uid] = known
        return known

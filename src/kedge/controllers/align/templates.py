"""Templates: the resources that bindings are about, read from the hub."""

from __future__ import annotations

from kedge.controllers.kinds import Kinds
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.plan.aligning.observed import AnyBinding


async def read_template(client: Client, kinds: Kinds, binding: AnyBinding) -> Untyped | None:
    """The resource that a binding propagates; None if there is none, or the hub does not serve its kind."""
    bound = binding.spec.resource
    resource = await kinds.find(bound.api_version, bound.kind)
    if resource is None:
        return None
    try:
        return await client.get(untyped(resource), bound.name, bound.namespace or None)
    except NotFound:
        return None

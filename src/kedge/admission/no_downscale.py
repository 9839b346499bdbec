"""No-downscale: refuses to lower the replicas of objects with the label `grafana.com/no-downscale: "true"`.

The label is read from the stored object, so it cannot be removed in the same write. A Scale has no labels: the object
behind it is read. Whenever something goes wrong the change is allowed, with a warning: this guards against mistakes and
must not stand in the way of a repair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from kedge.admission import review
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.api.apps import Deployment, ReplicaSet, StatefulSet
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.kube.errors import ApiError, KubeError
from kedge.plan.zoning.downscale import no_downscale
from kedge.plan.zoning.replica_change import UNNAMED, Downscale, RuleVerdict, Unnamed, allowed_with, replica_change

PATH: Final = "/admission/no-downscale"
_PARENTS: Final = {kind.resource.plural: kind.resource for kind in (StatefulSet, Deployment, ReplicaSet)}
_SHARE: Final = 0.9  # of the time that a rule has: the rest is for the answer


class UnknownResource(ValueError):
    """A resource that is not looked up here."""


class NoDownscale:
    """The rule. `deadline` is how many seconds it has."""

    def __init__(self, client: Client, *, deadline: float) -> None:
        self._client = client
        self._timeout = _SHARE * deadline

    async def __call__(self, request: AdmissionRequest) -> AdmissionResponse:
        return answer(request, await self._verdict(request))

    async def _verdict(self, request: AdmissionRequest) -> RuleVerdict:
        change = replica_change(request)
        if isinstance(change, RuleVerdict):
            return change
        try:
            return no_downscale(await self._labels(change), change)
        except (KubeError, TimeoutError, UnknownResource, Unnamed) as error:
            where = f"{change.resource}/{change.name} in namespace {change.namespace}"
            return allowed_with(f"can't get {where}, allowing the change: {in_words(error)}")

    async def _labels(self, downscale: Downscale) -> Mapping[str, str]:
        if not downscale.before.is_scale:
            return downscale.before.labels
        parent = _PARENTS.get(downscale.resource)
        if parent is None:
            raise UnknownResource(f"unsupported resource {downscale.resource}")
        if not downscale.is_named:
            raise Unnamed(UNNAMED)
        async with asyncio.timeout(self._timeout):
            found = await self._client.get(metadata_of(parent), downscale.name, downscale.namespace)
        return found.metadata.labels


def in_words(error: Exception) -> str:
    """An error as users read it in a warning: what the API server said."""
    if isinstance(error, ApiError):
        return error.message
    return "the API server did not answer in time" if isinstance(error, TimeoutError) else str(error)


def answer(request: AdmissionRequest, verdict: RuleVerdict) -> AdmissionResponse:
    """The answer to a request that says this verdict."""
    if verdict.allowed:
        return review.allow(request, warnings=verdict.warnings, message=verdict.message)
    return review.deny(request, verdict.message)

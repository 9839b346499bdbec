"""Writes of Works: makes, changes and removes them, and says in words what a server refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kedge.api.fleet import ON_DELETE, member_of
from kedge.api.rollout import PropagationPolicy
from kedge.api.work import Work
from kedge.kube.client import Client
from kedge.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, ServerError, TooManyRequests, as_conflict
from kedge.kube.patches import without_managed_fields
from kedge.plan.working.desired_works import DesiredWork, WorkChanges
from kedge.plan.working.work_contents import compacted

MANAGER: Final = "kedge-works"


class WorksRefused(Struct, frozen=True):
    """Why Works are not as they should be."""

    problem: str


class WorkWrites:
    """The writes of Works on one hub."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def make(self, changes: WorkChanges) -> list[Work] | WorksRefused:
        """Make the Works what they should be; gives all of them as they are then.

        What is no longer wanted goes last: until then its objects are where they were.
        """
        try:
            made = [await self._create(wanted) for wanted in changes.create]
            changed = [await self._change(work, body) for work, body in changes.patch]
        except _Refusal as refusal:
            return WorksRefused(str(refusal))
        for work in changes.delete:
            await self.remove(work, False)
        return [*changes.same, *made, *changed]

    async def remove(self, work: Work, stays: bool | None) -> None:
        """Delete a Work, as it was looked at: another binding may have taken it over since.

        `stays`: whether its objects stay on the member; None leaves that to what the Work says.
        """
        try:
            if stays is not None and stays != (ON_DELETE in work.metadata.annotations):
                mark = PropagationPolicy.abandon.value if stays else None
                work = await self._patch(work, {"metadata": {"annotations": {ON_DELETE: mark}}})
        except NotFound:
            return
        await self._client.remove(Work, work.metadata)

    async def _create(self, wanted: DesiredWork) -> Work:
        try:
            return compacted(await self._client.create(Work, wanted.body(), wanted.namespace, manager=MANAGER))
        except AlreadyExists as error:
            # Made a moment ago, by us or by somebody: the cache will show whose it is.
            raise as_conflict(error) from error
        except NotFound as error:
            cluster = member_of(wanted.namespace)
            raise _Refusal(
                f"There is no namespace {wanted.namespace} on the hub: {cluster} is not, or no longer, in the fleet"
            ) from error
        except ApiError as error:
            raise _refusal(error, wanted.namespace, wanted.name) from error

    async def _change(self, work: Work, body: Mapping[str, object]) -> Work:
        try:
            return compacted(await self._patch(work, body))
        except ApiError as error:
            raise _refusal(error, work.metadata.namespace or "", work.metadata.name) from error

    async def _patch(self, work: Work, body: Mapping[str, object]) -> Work:
        meta = work.metadata
        return await self._client.amend(Work, meta, without_managed_fields(body), manager=MANAGER)


class _Refusal(Exception):
    """The server said no, and will say so again."""


def _refusal(error: ApiError, namespace: str, name: str) -> Exception:
    """The error to raise for an answer: its own if looking again helps, or what the server said."""
    if isinstance(error, Conflict | TooManyRequests | ServerError):
        return error
    return _Refusal(f"The hub refused Work {namespace}/{name}: {error.message}")

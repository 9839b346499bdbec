"""Writing: brings one object on a member to what a manifest asks for.

Looks at what is there, decides whether it may be written (`plan.applying.ownership`), and writes only if something
differs, for exactly the object and the version that was looked at. Ends in `Written` or in `Refusal`, whatever the
member says about this object; only a member that does not answer is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api import reasons
from kedge.api.fleet import LAST_APPLIED
from kedge.api.rollout import ApplyStrategy, ApplyType
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, ServerError, TooManyRequests
from kedge.kube.patches import JsonPatch, MergePatch, difference
from kedge.plan.applying.apply_configuration import (
    merged_object,
    upgraded_managed_fields,
    with_last_applied,
    with_owner_and_hash,
    without_last_applied,
)
from kedge.plan.applying.manifests import DesiredObject, not_served
from kedge.plan.applying.observed import content_of
from kedge.plan.applying.ownership import Refusal, WorkOwner, refusal

MANAGER: Final = "work-api-agent"
AT_MOST: Final = 8  # requests for one Work at the same time
_TRIES: Final = 5  # others write as well, and each time one looks again


class Written(Struct, frozen=True):
    """The object as it is now, and whether it had to be written for that."""

    obj: Untyped
    changed: bool


class Writer:
    """Writes the objects of one Work, for its AppliedWork."""

    def __init__(self, client: Client, owner: WorkOwner, strategy: ApplyStrategy, *, dry_run: bool = False) -> None:
        """One that does a `dry_run` writes nothing: the member only says what would come of it."""
        self._client = client
        self._owner = owner
        self._strategy = strategy
        self._is_dry_run = dry_run

    async def write(self, placed: DesiredObject, *, expected: bool, known: Untyped | None = None) -> Written | Refusal:
        """Bring the object to what the manifest asks for.

        `expected`: whether it is likely to be there. `known` is what it looks like, if one knows: then the member is
        only asked if it turns out to look otherwise.
        """
        try:
            return await self._write(self._ask(placed), expected, known)
        except ApiError as error:
            # The member's own trouble is not this object's; 500, though, is what a webhook that fails ends in.
            if isinstance(error, TooManyRequests) or error.code > 500:
                raise
            if _is_of_the_path(error):
                return Refusal(reasons.DECODING_ERRED, not_served(placed.identifier))
            unsure = isinstance(error, ServerError)  # it may have failed after the write as well as before
            return Refusal(reasons.MANIFEST_APPLY_FAILED, said_of(placed, error), unsure)

    async def _write(self, asked: _Asked, expected: bool, known: Untyped | None) -> Written | Refusal:
        live = None if asked.server_side else known  # the server's way needs to know who owns which field
        for _ in range(_TRIES):
            if live is None and (expected or asked.server_side):
                live = await self._get(asked.placed)
            try:
                if live is None:
                    return Written(await self._create(asked), changed=True)
                return self._refusal(live) or await self._bring(asked, live)
            except AlreadyExists:
                expected = True
            except NotFound:
                if live is None:
                    raise
                expected = False
            except Conflict as error:
                if any(cause.reason == "FieldManagerConflict" for cause in error.causes):
                    raise
            live = None
        message = f"others changed it each of the {_TRIES} times it was to be written"
        return Refusal(reasons.MANIFEST_APPLY_FAILED, message)

    def _ask(self, placed: DesiredObject) -> _Asked:
        config = with_owner_and_hash(placed, self._owner)
        by_server = self._strategy.type is ApplyType.server_side_apply
        return _Asked(placed, config, None if by_server else with_last_applied(config))

    async def _get(self, placed: DesiredObject) -> Untyped | None:
        try:
            return await self._client.get(untyped(placed.resource), placed.name, placed.namespace)
        except NotFound:
            return None

    def _refusal(self, live: Untyped) -> Refusal | None:
        metadata = live["metadata"]
        if metadata.get("deletionTimestamp"):
            message = "it is being deleted on the member, and will be made again once it is gone"
            return Refusal(reasons.MANIFEST_APPLY_FAILED, message)
        return refusal(metadata.get("ownerReferences") or (), self._owner, self._strategy)

    async def _create(self, asked: _Asked) -> Untyped:
        if asked.wanted is None:
            return await self._apply(asked)
        kind = untyped(asked.placed.resource)
        return await self._client.create(kind, asked.wanted, manager=MANAGER, dry_run=self._is_dry_run)

    async def _bring(self, asked: _Asked, live: Untyped) -> Written:
        if asked.wanted is None:
            ready = await self._migrate_to_server_side(asked, live)
            applied = await self._apply(asked, ready)
            return Written(applied, changed=content_of(applied) != content_of(live))
        patch = difference(live, merged_object(asked.placed.resource, asked.wanted, live, self._owner))
        if not patch:
            return Written(live, changed=False)
        return Written(await self._patch(asked.placed, live, MergePatch(patch)), changed=True)

    async def _migrate_to_server_side(self, asked: _Asked, live: Untyped) -> Untyped:
        """What client-side apply left: what is no longer asked for, its annotation, and the fields it owns."""
        placed = asked.placed
        if self._is_dry_run:
            return live
        if LAST_APPLIED in (live["metadata"].get("annotations") or {}):
            bare = without_last_applied(merged_object(placed.resource, asked.config, live, self._owner))
            live = await self._patch(placed, live, MergePatch(difference(live, bare)))
        fields = upgraded_managed_fields(live["metadata"].get("managedFields") or (), MANAGER)
        if fields is None:
            return live
        operation = {"op": "replace", "path": "/metadata/managedFields", "value": fields}
        return await self._patch(placed, live, JsonPatch([operation]))

    async def _apply(self, asked: _Asked, live: Untyped | None = None) -> Untyped:
        config = self._strategy.server_side_apply_config
        metadata = live["metadata"] if live else {}
        return await self._client.apply(
            untyped(asked.placed.resource),
            asked.config,
            manager=MANAGER,
            uid=metadata.get("uid"),
            resource_version=metadata.get("resourceVersion"),
            # Client-side apply asks nobody either: what is too large for it must not fail where the rest does not.
            force=self._strategy.type is ApplyType.client_side_apply or (config is not None and config.force),
            dry_run=self._is_dry_run,
        )

    async def _patch(self, placed: DesiredObject, live: Untyped, patch: MergePatch | JsonPatch) -> Untyped:
        return await self._client.patch(
            untyped(placed.resource),
            placed.name,
            patch,
            placed.namespace,
            uid=live["metadata"]["uid"],
            resource_version=live["metadata"]["resourceVersion"],
            manager=MANAGER,
            dry_run=self._is_dry_run,
        )


class _Asked(Struct, frozen=True):
    """What is to be written: for the server to apply, or (`wanted`) with the annotation to merge by."""

    placed: DesiredObject
    config: Mapping[str, Any]
    wanted: Mapping[str, Any] | None

    @property
    def server_side(self) -> bool:
        return self.wanted is None


def _is_of_the_path(error: ApiError) -> bool:
    """Whether it is the kind that is not found: of an object, or a namespace, Kubernetes says so in its own words."""
    return isinstance(error, NotFound) and error.reason == "NotKubernetes"


def said_of(placed: DesiredObject, error: ApiError) -> str:
    """What the member said, in a sentence. Of a Secret only where, never what: a value may be quoted there."""
    if placed.resource.kind == "Secret" and not placed.resource.group:
        where = ", ".join(cause.field for cause in error.causes if cause.field)
        return f"the member refused it: {error.reason or error.code}" + (f" at {where}" if where else "")
    return f"the member refused it: {error.message}"

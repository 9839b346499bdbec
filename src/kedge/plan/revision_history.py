"""Revision history: which numbers of revisions are in use, and which revisions a placement keeps no longer.

What a number means never changes, as long as a cluster or a run may go by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.dialect import Dialect
from kedge.api.fleet import PINNED
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import Binding, Placement, Run
from kedge.plan.revisions import resource_index, resource_index_in
from kedge.plan.selecting.snapshots import NumberedSnapshot, surplus_snapshots
from kedge.plan.staging.conditions import has_ended


class LatestRevision(Struct, frozen=True):
    """What is remembered of the newest revision of a placement. All of it can be found out again."""

    uid: str = ""
    digest: str = ""
    """Of what the revision with this uid holds."""
    made: str = ""
    """The name of the snapshot that was made last. A cache may not show it yet."""
    highest: int = -1
    """The highest number that was given by this process."""

    def read(self, uid: str, digest: str) -> LatestRevision:
        """The revision with this uid is the newest, and holds what has this digest."""
        return replace(self, uid=uid, digest=digest)

    def after(self, made: ObjectMeta, digest: str) -> LatestRevision:
        """This snapshot was just made, of what has this digest."""
        return LatestRevision(made.uid, digest, made.name, max(self.highest, resource_index(made) or 0))


class Uses(Struct, frozen=True):
    """Who goes by the revisions of a placement."""

    bindings: Sequence[Binding] = ()
    runs: Sequence[Run] = ()


class Expired(Struct, frozen=True):
    """Revisions that are not kept any longer: numbers of resources, and snapshots of policies."""

    resources: frozenset[int] = frozenset()
    policies: tuple[NumberedSnapshot, ...] = ()


def numbers_in_use(placement: Placement, uses: Uses) -> frozenset[int]:
    """Numbers that clusters or runs go by.

    Somebody may have deleted the newest revision. If its number were given again, every cluster that has it would have
    the new one at once. What is left of an earlier placement of this name does not count.
    """
    name = placement.metadata.name
    held = (one.spec.resource_snapshot_name for one in uses.bindings if _is_of(placement, one.metadata))
    moved = (one.status.resource_snapshot_index_used for one in uses.runs if _is_of(placement, one.metadata))
    found = {index for one in held if (index := resource_index_in(one, name)) is not None}
    return frozenset(found).union(*map(_number, moved))


def expired(
    placement: Placement,
    resources: Sequence[NumberedSnapshot],
    policies: Sequence[NumberedSnapshot],
    uses: Uses,
    dialect: Dialect,
) -> Expired:
    """The oldest revisions beyond the limit, but none that a cluster still has or is to have.

    KubeFleet keeps no more than the limit, whoever has them.
    """
    limit = placement.spec.revision_history_limit
    if not exceeds_limit(placement, resources, policies):
        return Expired()
    bindings = () if dialect is Dialect.kubefleet else uses.bindings
    held = {one.spec.resource_snapshot_name for one in bindings}
    needed = {one.index for one in resources if one.meta.name in held} | _number(
        placement.metadata.annotations.get(PINNED)
    )
    needed = needed.union(*map(_moved_by, uses.runs))
    used = {one.spec.scheduling_policy_snapshot_name for one in bindings}
    return Expired(
        resources=frozenset(one.index for one in surplus_snapshots(resources, limit, needed)),
        policies=surplus_snapshots(policies, limit, {one.index for one in policies if one.meta.name in used}),
    )


def exceeds_limit(placement: Placement, resources: Sequence[NumberedSnapshot], policies: Sequence[object]) -> bool:
    """Whether there are more revisions than a placement is to keep."""
    return max(len(resources), len(policies)) > placement.spec.revision_history_limit


def _moved_by(run: Run) -> frozenset[int]:
    """The revision that a run moves, or is to move, if it has not ended."""
    used = run.status.resource_snapshot_index_used or run.spec.resource_snapshot_index
    return frozenset() if has_ended(run.status) else _number(used)


def _is_of(placement: Placement, meta: ObjectMeta) -> bool:
    """Whether an object stays that was made for this placement, and not for an earlier one."""
    made, since = meta.creation_timestamp, placement.metadata.creation_timestamp
    return meta.deletion_timestamp is None and (made is None or since is None or made >= since)


def _number(text: str | None) -> frozenset[int]:
    return frozenset((int(text),)) if text and text.isascii() and text.isdecimal() else frozenset()


def all_of_index(known: Iterable[ObjectMeta], indexes: frozenset[int]) -> list[ObjectMeta]:
    """All parts of the revisions with these numbers."""
    return [meta for meta in known if resource_index(meta) in indexes]

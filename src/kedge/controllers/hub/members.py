"""Members: gives every MemberCluster its place on the hub, shows what its agent says, and sees it off when it leaves.

Joining: a namespace, a Role and a RoleBinding for its agent's identity, and an InternalMemberCluster to talk through.
What the agent answers there is shown on the MemberCluster whenever the answer changes, and never otherwise: a status
that somebody wrote by hand stays until the agent has something new to say. Times on it are the hub's own.
Leaving: the agent is told, lets go of what was placed (which stays), and answers; then the namespace goes, and with it
the member. An agent that does not answer within `force_delete_after` seconds is not waited for any longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.condition import find_condition
from kedge.api.core import Namespace
from kedge.api.fleet import IS_FLEET_RESOURCE, MEMBER_FINALIZER, ON_DELETE, WORK_CLEANUP, member_namespace, member_of
from kedge.api.meta import Object, ObjectMeta
from kedge.api.rbac import Role, RoleBinding
from kedge.api.rollout import PropagationPolicy
from kedge.api.work import Work
from kedge.controllers.hub import wakes
from kedge.controllers.hub.reachability import Heartbeats
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.controller import Controller
from kedge.kube.errors import AlreadyExists, ApiError, Invalid, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.kube.store import Change
from kedge.plan import membership

MANAGER = "kedge-members"
FORCE_DELETE_AFTER = 900.0
WORKS = metadata_of(Work.resource)
Kind = TypeVar("Kind", bound=Object)


REFUSED: Final = 60.0
"""Seconds until what the server does not take is tried again: a policy of admission may be changed meanwhile."""
_GONE_AFTER: Final = 10.0
"""Seconds until a namespace that is being deleted is asked for again: a cache that lists late never shows it."""


class NotReady(Exception):
    """A member cannot join yet, and why; an event will come when that changes."""


class Members:
    """The MemberClusters of one hub."""

    def __init__(
        self,
        hub: Cluster,
        *,
        clock: Clock,
        force_delete_after: float = FORCE_DELETE_AFTER,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        """`heartbeats` are shared with those who listen for them, if they run in this process."""
        self._heartbeats = heartbeats or Heartbeats(clock)
        self._client = hub.client
        self._events = hub.events.signed("membercluster-controller")
        self._clock = clock
        self._force_delete_after = force_delete_after
        self._members = hub.cache(MemberCluster)
        self._internals = hub.cache(InternalMemberCluster)
        self._namespaces = hub.cache(Namespace, labels={IS_FLEET_RESOURCE: "true"})
        self._roles = hub.cache(Role, transform=_of_members_only)
        self._bindings = hub.cache(RoleBinding, transform=_bound_to_members_only)
        around = (self._internals, self._roles, self._bindings)
        sources: list[Source] = [
            hub.watch(self._members, when=_matters),
            hub.watch(self._namespaces, to=_by_name),
            *(hub.watch(cache, to=wakes.by_namespace) for cache in around),
        ]
        self.controller = Controller("members", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        member = self._members.get(key.name)
        if member is None:
            return Outcome.done
        try:
            return await (self._join(member) if member.metadata.deletion_timestamp is None else self._leave(member))
        except NotFound:
            return Outcome.not_yet  # it went a moment ago, or what belongs to it did: a cache does not show it yet

    # Joining

    async def _join(self, member: MemberCluster) -> Outcome:
        member = await self._mark(member)
        try:
            await self._prepare_hub_for(member)
        except NotReady as error:
            await self._show(member, str(error))
            return Outcome.done
        except Invalid as error:
            await self._show(member, f"spec.identity cannot be let in: {error.message}")
            return Outcome.again(after=REFUSED)
        except AlreadyExists:
            return Outcome.not_yet  # made a moment ago: a cache does not show it yet
        except ApiError as error:
            await self._show(member, f"its place on the hub cannot be made: {error.answer}")
            raise
        await self._show(member)
        return Outcome.done

    async def _mark(self, member: MemberCluster) -> MemberCluster:
        """With its label, and the finalizer that keeps it until it has left."""
        if membership.has_label_and_finalizer(member):
            return member
        finalizers = dict.fromkeys((*member.metadata.finalizers, MEMBER_FINALIZER))
        marks = {"labels": dict(membership.member_labels(member)), "finalizers": list(finalizers)}
        return await self._patch(member, {"metadata": marks})

    async def _prepare_hub_for(self, member: MemberCluster) -> None:
        if problem := membership.member_name_problem(member.metadata.name):
            raise NotReady(problem)
        await self._ensure_namespace(member)
        inside = member_namespace(member.metadata.name)
        role, binding = membership.role(member), membership.role_binding(member)
        await self._have(role, self._roles.get(role.metadata.name, inside), "rules")
        await self._have(binding, self._bindings.get(binding.metadata.name, inside), "subjects")
        internal = membership.internal_member_cluster(member, membership.JOIN)
        await self._have(internal, self._internals.get(internal.metadata.name, inside), "spec")

    async def _ensure_namespace(self, member: MemberCluster) -> None:
        wanted = membership.namespace(member)
        namespace = self._namespaces.get(wanted.metadata.name)
        if namespace is None:
            namespace = await self._create_or_label(wanted)
        if namespace.metadata.deletion_timestamp is not None:
            raise NotReady(f"namespace {wanted.metadata.name} is still being deleted: joining goes on when it is gone")
        await self._own(namespace, wanted)

    async def _create_or_label(self, wanted: Namespace) -> Namespace:
        """The namespace, new; or the one that is there without the label, and so is in no cache of ours."""
        name = wanted.metadata.name
        try:
            return await self._client.create(Namespace, wanted, manager=MANAGER)
        except AlreadyExists:
            namespace = await self._client.get(Namespace, name)
        if namespace.metadata.labels.get(IS_FLEET_RESOURCE) == "true":
            return namespace
        return await self._patch(namespace, {"metadata": {"labels": dict(wanted.metadata.labels)}})

    async def _have(self, wanted: Any, there: Any, part: str) -> None:
        """See to it that an object is there, is the member's, and is as wanted in one part of it."""
        if there is None:
            await self._client.create(type(wanted), wanted, wanted.metadata.namespace, manager=MANAGER)
            return
        there = await self._own(there, wanted)
        is_, should_be = to_builtins(getattr(there, part)), to_builtins(getattr(wanted, part))
        if is_ != should_be:
            await self._patch(there, {part: should_be})

    async def _own(self, there: Kind, wanted: Object) -> Kind:
        before = there.metadata.owner_references
        owners = membership.with_owner(before, wanted.metadata.owner_references[0])
        if owners == before:
            return there
        return await self._patch(there, {"metadata": {"ownerReferences": to_builtins(owners)}})

    # Showing

    async def _show(self, member: MemberCluster, problem: str = "") -> None:
        """Show on the member what its agent has said, and where it stands."""
        said = self._internals.get(member.metadata.name, member_namespace(member.metadata.name))
        last = self._heartbeats.last(member, said)
        heartbeat = last.received_at if last is not None else None
        status = membership.member_status(member, said, self._clock.now(), problem, heartbeat=heartbeat)
        change = difference(to_builtins(member.status), to_builtins(status))
        if change:
            await self._patch(member, {"status": change}, "status")
            self._tell(member, status.conditions)

    def _tell(self, member: MemberCluster, conditions: Iterable[Any]) -> None:
        """An event for each of its own conditions that is not what it was."""
        for kind in (reasons.READY_TO_JOIN, reasons.JOINED):
            before, after = find_condition(member.status.conditions, kind), find_condition(conditions, kind)
            if after is not None and (before is None or before.status != after.status):
                self._events.normal(member, after.reason, after.message)

    # Leaving

    async def _leave(self, member: MemberCluster) -> Outcome:
        if MEMBER_FINALIZER not in member.metadata.finalizers:
            return Outcome.done
        try:
            # Asked for, since what decides here is that there is none: a cache knows it by its label only.
            namespace = await self._client.get(Namespace, member_namespace(member.metadata.name))
        except NotFound:
            await self._let_go(member)
            return Outcome.done
        if namespace.metadata.deletion_timestamp is None:
            wait = await self._ask_to_leave(member)
            if wait > 0:
                return Outcome.again(after=wait)
            # An agent that lives after all must not take their going for an order to remove what they placed.
            await self._free_works(namespace.metadata.name)
            await self._client.remove(Namespace, namespace.metadata)
        # Again, now that nothing new can be made in there.
        await self._free_works(namespace.metadata.name)
        return Outcome.again(after=_GONE_AFTER)  # it wakes us when it is gone, if the cache has ever shown it

    async def _ask_to_leave(self, member: MemberCluster) -> float:
        """Tell the agent, and give the seconds it still has to answer; 0 once there is nothing to wait for."""
        wanted = membership.internal_member_cluster(member, membership.LEAVE)
        meta = wanted.metadata
        said = self._internals.get(meta.name, meta.namespace)
        if said is None:
            return 0.0
        await self._have(wanted, said, "spec")
        await self._show(member)
        if membership.has_left(said) or (
            membership.has_never_reported(said) and not await self._works(meta.namespace or "")
        ):
            return 0.0
        wait = membership.seconds_left_to_leave(member, self._force_delete_after, self._clock.now())
        if wait <= 0:
            text = f"its agent has not answered for {self._force_delete_after:g} s: it leaves without it"
            self._events.warning(member, "MemberClusterForceLeft", text)
        return max(0.0, wait)

    async def _works(self, namespace: str) -> list[ObjectMeta]:
        return [found.metadata for found in (await self._client.list(WORKS, namespace)).items]

    async def _free_works(self, namespace: str) -> None:
        """Let Works go of which no agent will say that they may, and without what they placed."""
        for work in await self._works(namespace):
            if WORK_CLEANUP in work.finalizers:
                kept = [one for one in work.finalizers if one != WORK_CLEANUP]
                mark = {ON_DELETE: PropagationPolicy.abandon.value}
                with suppress(NotFound):
                    await self._free(work, {"finalizers": kept or None, "annotations": mark})

    async def _free(self, work: ObjectMeta, change: Mapping[str, Any]) -> None:
        await self._client.amend(WORKS, work, {"metadata": change}, manager=MANAGER)

    async def _let_go(self, member: MemberCluster) -> None:
        kept = [one for one in member.metadata.finalizers if one != MEMBER_FINALIZER]
        with suppress(NotFound):  # let go of before, and the cache does not know yet that it is gone
            await self._patch(member, {"metadata": {"finalizers": kept or None}})

    async def _patch(self, seen: Kind, body: Mapping[str, Any], subresource: str | None = None) -> Kind:
        """Change what was seen, if it still is that."""
        meta = seen.metadata
        return await self._client.amend(type(seen), meta, body, subresource=subresource, manager=MANAGER)


def _matters(change: Change[MemberCluster]) -> bool:
    """Whether a member is new, gone, leaving or wanted otherwise, or lost its label: its status alone is ours to say.

    Who takes our finalizer off means to let it go, and is not answered by putting it back.
    """
    if change.old is None or change.new is None:
        return True
    old, new = change.old.metadata, change.new.metadata
    is_leaving = old.deletion_timestamp != new.deletion_timestamp
    return is_leaving or old.generation != new.generation or not membership.has_label(change.new)


def _by_name(seen: WatchedObject[Namespace]) -> Iterable[Key]:
    member = member_of(seen.meta.name)
    return (Key(seen.cluster, None, member),) if member else ()


def _of_members_only(found: Role) -> Role:
    """Others' roles are none of our business, and not kept."""
    return found if member_of(found.metadata.namespace or "") else Role(metadata=_name_only(found.metadata))


def _bound_to_members_only(found: RoleBinding) -> RoleBinding:
    if member_of(found.metadata.namespace or ""):
        return found
    return replace(found, metadata=_name_only(found.metadata), subjects=())


def _name_only(meta: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version)

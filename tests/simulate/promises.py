"""What a rollout promises, judged from the servers' own stores, write by write.

* A cluster is added only while fewer than wanted + maxSurge hold resources.
* An available cluster is changed or removed only if wanted - maxUnavailable others are available, and stay so; of those
  wanted, clusters that could not be picked do not count.
* What moves or removes a binding does so to the very version of it that was looked at, and so does what deletes
  anything: every deletion names a uid and a resourceVersion.
* No cluster is picked twice, and of those who write a binding's conditions none undoes what another said.
* A binding says that its resources are available only if the member's own Deployment was, with these resources.
* Bad releases reach no more clusters that worked than may be unavailable; said by the members' Deployments alone, in
  runs in which nothing but releases happens.
* Nothing is deleted on a member that its Work asks for.

The first three are judged by what the hub had heard when it decided (`heard`): what others did at the same moment is
nobody's fault, and nothing else is excused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from kedge.api.apps import Deployment
from kedge.api.binding import BindingState, ClusterResourceBinding
from kedge.api.cluster import MemberCluster
from kedge.api.condition import FALSE, TRUE, Condition, find_condition, is_true
from kedge.api.meta import ObjectMeta
from kedge.api.numbers import IntOrPercent, resolve
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.reasons import AVAILABLE, HEALTHY, JOINED, NOT_ALL_TRACKABLE, ROLLOUT_STARTED, WORK_UNTRACKABLE
from kedge.api.rollout import RollingUpdate
from kedge.api.scheduling import PlacementType
from kedge.api.snapshot import ClusterResourceSnapshot
from kedge.api.work import AppliedWork, Work
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.simulate.clock import START
from kedge.simulate.simulation import Simulation
from kedge.simulate.trace import Entry
from simulate.deployments import MemberDeployments, is_bad, is_there
from simulate.heard import Heard, Known, Sent, Version
from simulate.restores import ONE_LOOK, Restores

Binding = ClusterResourceBinding
Placement = ClusterResourcePlacement
HUBS = ("hub", "hub-2")  # there may be two, of which one leads
_UNTRACKABLE = (WORK_UNTRACKABLE, NOT_ALL_TRACKABLE)
_NOT_KEDGE = ("user ", "trouble ")
_MOVERS = ("kedge-rollout", "kedge-staged-runs")


def _names_a_version(body: bytes) -> bool:
    wanted = msgspec.json.decode(body).get("preconditions") or {}
    return bool(wanted.get("uid") and wanted.get("resourceVersion"))


class View:
    """A placement as the hub saw it when it decided."""

    def __init__(
        self,
        placement: Placement,
        bindings: dict[str, Binding],
        disturbed: Set[str] = frozenset(),
        away: Set[str] = frozenset(),
        moment: datetime = START,
    ) -> None:
        """`disturbed` are bindings the hub itself had moved since; `away` clusters it knew not to reach."""
        self.moment = moment
        self.bindings = bindings
        self._disturbed = disturbed
        self._away = away
        self.target = target_of(placement, bindings.values())
        rolling = (placement.spec.strategy and placement.spec.strategy.rolling_update) or RollingUpdate()
        self.counted = min(self.target, len({one.spec.target_cluster for one in bindings.values()}))
        self.max_unavailable = _at_least_one(rolling.max_unavailable, self.counted)
        self.max_surge = _at_least_one(rolling.max_surge, self.target)
        self.period = timedelta(seconds=rolling.unavailable_period_seconds)

    def others_available(self, key: str, is_available: Callable[[Binding], bool]) -> list[str]:
        cluster = self.bindings[key].spec.target_cluster
        return sorted(
            one.spec.target_cluster
            for name, one in self.bindings.items()
            if name not in self._disturbed
            and one.spec.target_cluster not in (cluster, *self._away)
            and is_available(one)
        )

    def others_holding(self, key: str) -> list[str]:
        cluster = self.bindings[key].spec.target_cluster
        holding = (one for name, one in self.bindings.items() if name in self._disturbed or _holds(one))
        return sorted({one.spec.target_cluster for one in holding} - {cluster})


class Promises:
    """Follows every write, and says at once when one breaks a promise."""

    def __init__(
        self, simulation: Simulation, *, only_releases: bool, true_clocks: bool, by_runs: bool = False
    ) -> None:
        """Moves made `by_runs` keep to other promises than to budgets: `run_promises`."""
        self._simulation = simulation
        self._by_runs = by_runs
        self._only_releases = only_releases
        self._true_clocks = true_clocks
        trace = simulation.trace
        self.placements = Heard(trace, HUBS, "hub", Placement, followers=2)
        self.bindings = Heard(trace, HUBS, "hub", Binding)
        self.members = Heard(trace, HUBS, "hub", MemberCluster)
        self.snapshots: dict[str, tuple[Any, ...]] = {}  # what is in each
        self.works: dict[str, Heard[Work]] = {}  # by member
        self._pointed: dict[str, float] = {}  # when a binding was last given resources
        self._held: dict[str, tuple[str | None, float]] = {}  # by member: the image in its Work, and since when
        self._moves: dict[str, list[Version[Binding]]] = {}  # of each binding by the rollout
        self.deployments = MemberDeployments(simulation.loop.time)
        self._harmed: set[str] = set()  # members that worked when they were given the bad release
        self.on_members: dict[str, dict[str, bytes]] = {}  # ConfigMaps by member
        self._gone: set[str] = set()  # AppliedWorks of the past, by uid
        self._stillborn: set[str] = set()  # objects that came when their AppliedWork was gone, by uid
        self.accident = ""  # a member on which somebody else deletes things
        self.forgotten: set[str] = set()  # members with objects of Works that are gone: one of the two was restored
        self.hostile = ""  # a member whose word is worth nothing
        self.restores = Restores()
        self.last_write = 0.0  # of anything but heartbeats
        self._deletes: dict[int, float] = {}  # when each was first sent
        self._first: dict[tuple[str, str, bytes], float] = {}
        trace.follow(self._note)
        simulation.always("a rollout keeps its promises", self._ask)

    def _note(self, entry: Entry) -> None:
        if entry.what.startswith("DELETE "):
            if not entry.who.startswith(_NOT_KEDGE) and not _names_a_version(entry.body):
                self._simulation.failed(f"{entry.who}: {entry.what} names no uid and resourceVersion")
            self._deletes[entry.number] = self._first.setdefault((entry.who, entry.what, entry.body), entry.at)

    def follow_agent(self, member: str) -> None:
        """Listen to what the agent of this member hears."""
        self.works[member] = Heard(self._simulation.trace, agents_of(member), "hub", Work)

    def asked(self, promise: str, *, tight: bool) -> None:
        """Count that a promise was put to the test; it is tight if one less would have broken it."""
        self._simulation.counts["promise", promise, "tight" if tight else "asked"] += 1

    # Following

    def _ask(self, server: str, kind: Kind, change: Change) -> str:
        plural = kind.resource.plural
        if not plural.endswith("memberclusters") and plural != "leases":
            self.last_write = self._simulation.loop.time()
        carried = self._simulation.trace.carried()
        if server == "hub":
            return self._on_hub(plural, change, carried)
        if plural == AppliedWork.resource.plural and change.type == "DELETED":
            self._gone.add(_meta(change).uid)
        if plural == Deployment.resource.plural:
            return self._of_deployment(server, change, carried)
        if plural == "configmaps" and change.version.namespace == "test-ns":
            return self._of_config_map(server, change, carried)
        return ""

    def _on_hub(self, plural: str, change: Change, carried: tuple[str, int] | None) -> str:
        number = self.bindings.number_of(carried)
        if plural == Binding.resource.plural:
            return self._of_binding(change, number) if is_judged(change.version.key) else ""
        if plural == Placement.resource.plural:
            self.placements.changed(change, number)
        elif plural == MemberCluster.resource.plural:
            self.members.changed(change, number)
        elif plural == ClusterResourceSnapshot.resource.plural and change.type == "ADDED":
            found = msgspec.json.decode(change.version.body, type=ClusterResourceSnapshot)
            self.snapshots[found.metadata.name] = found.spec.selected_resources
        elif plural == Work.resource.plural:
            member = change.version.namespace.removeprefix("fleet-member-")
            if member in self.works:
                self.works[member].changed(change, 0)
                self._note_work(member, change)
        return ""

    def _note_work(self, member: str, change: Change) -> None:
        held = None
        if change.type != "DELETED":
            manifests = msgspec.json.decode(change.version.body, type=Work).spec.workload.manifests
            held = _image(manifests)
        if held is None or held != self._held.get(member, ("", 0.0))[0]:
            self._held[member] = (held, self._simulation.loop.time())

    # Bindings

    def _of_binding(self, change: Change, number: int) -> str:
        key, made = change.version.key, change.version.number
        before, now = self.bindings.changed(change, number)
        if now is None:
            return ""
        if before is None:
            return self._of_picked(key, now, number)
        added = before.spec.state == BindingState.scheduled and now.spec.state == BindingState.bound
        moved = before.spec.resource_snapshot_name != now.spec.resource_snapshot_name
        leaves = before.metadata.deletion_timestamp is None and now.metadata.deletion_timestamp is not None
        if moved:
            self._note_pointed(key, before, now)
        wrong = self._of_move(key, before, added=added) if number and (moved or leaves) else ""
        if number and (moved or leaves):
            self._moves.setdefault(key, []).append(Version(made, now, number))
        return wrong or self._of_words(before, now, number) or (self._of_claim(key, before, now) if number else "")

    def _note_pointed(self, key: str, before: Binding, now: Binding) -> None:
        # What a restored hub points to again may have worked at any time.
        self._pointed[key] = 0.0 if self.restores.is_underway else self._simulation.loop.time()
        self._harmed.discard(now.spec.target_cluster)
        if is_available(before) and is_bad(self.image_in(now.spec.resource_snapshot_name)):
            self._harmed.add(now.spec.target_cluster)

    def _of_picked(self, key: str, picked: Binding, number: int) -> str:
        """Nobody picks a cluster that they know to be picked already."""
        if not number:
            return ""
        cluster, sent = picked.spec.target_cluster, self.bindings.sent[number]
        self.asked("no cluster is picked twice", tight=True)
        own = [name for name in self.bindings.versions if name != key and self._has_made(name, cluster, sent)]
        for known in self.bindings.known_at(sent.first, sent.life):
            # Who picks looks at its cache, which may have been told less than single answers said.
            for seen in (self.bindings.seen_all(known), self.bindings.seen_all(replace(known, single={}))):
                others = [one.object for name, one in seen.items() if name != key and one.object]
                if not own and not any(one.spec.target_cluster == cluster and _is_picked(one) for one in others):
                    return ""
        return f"{cluster} is picked, and was before"

    def _has_made(self, name: str, cluster: str, sent: Sent) -> bool:
        """Whether the hub had picked the cluster itself under this name, and knew so; and has not taken it back."""
        first, last = self.bindings.versions[name][0], self.bindings.versions[name][-1]
        if not first.number or last.object is None or not _is_picked(last.object):
            return False
        taken_back = any(one.object is None or not _is_picked(one.object) for one in self.bindings.versions[name])
        if self.restores and taken_back:
            return False  # a restore may have brought it back: that is for the hub to hear
        ours = self.bindings.sent[first.number]
        known = ours.life == sent.life and ours.first <= sent.first < ours.lost_at
        return known and last.object.spec.target_cluster == cluster

    def _of_move(self, key: str, before: Binding, *, added: bool) -> str:
        """Whether the hub may have decided this, by anything it may have known then."""
        sent = self.bindings.sent[self.bindings.versions[key][-1].number]
        wrongs: list[str] = []
        for known in self.bindings.known_at(sent.first, sent.life):
            found = self._judged(key, before, sent, known, added=added)
            if any(not wrong for wrong in found):
                return ""
            wrongs += found
        return wrongs[0] if wrongs else f"{before.spec.target_cluster} is moved by someone who has heard nothing"

    def _judged(self, key: str, before: Binding, sent: Sent, known: Known, *, added: bool) -> list[str]:
        wrong = self._of_version(key, before, known)
        if wrong or self._by_runs or (not added and self.may_be_gone(before.spec.target_cluster, sent)):
            return [wrong]
        return [
            self._of_added(key, view) if added else self._of_disturbed(key, view) for view in self.views(sent, known)
        ] or ["nothing was known of the placement"]

    def _of_version(self, key: str, before: Binding, known: Known) -> str:
        seen = self.bindings.seen(key, known)
        self.asked("a move is of the version that was looked at", tight=True)
        if seen is not None and str(seen.version) == before.metadata.resource_version:
            return ""
        looked = seen.version if seen is not None else "nothing"
        return (
            f"{before.spec.target_cluster} is moved on grounds of version {looked}, "
            f"and is at {before.metadata.resource_version}"
        )

    def views(self, sent: Sent, known: Known) -> Iterable[View]:
        """The placement in every form that the hub may have seen when it sent this."""
        seen = self.bindings.seen_all(known)
        moved = {key: move for key, one in seen.items() if (move := self._moved_since(key, one.version, sent))}
        bindings = {key: one.object for key, one in seen.items() if one.object is not None} | moved
        away = self._away(sent)
        for placement_known in self.placements.known_at(sent.first, sent.life):
            for placement in self.placements.may_be_seen("crp", placement_known):
                yield View(placement, bindings, moved.keys(), away, START + timedelta(seconds=sent.first))

    def _moved_since(self, key: str, version: int, sent: Sent) -> Binding | None:
        """A binding as the hub had moved it itself, and knew so, though no watch had shown it yet."""
        for move in reversed(self._moves.get(key, ())):
            ours = self.bindings.sent[move.number]
            known = ours.life == sent.life and ours.first <= sent.first < ours.lost_at
            if move.version > version and known:
                return move.object
        return None

    def _away(self, sent: Sent) -> set[str]:
        """Clusters that the hub surely knew not to reach, to be leaving, or to be no members any more."""
        found = [self._lost(known) for known in self.members.known_at(sent.first, sent.life)]
        return set.intersection(*found) if found else set()

    def may_be_away(self, sent: Sent) -> set[str]:
        """Clusters that the hub may have known not to reach."""
        known = self.members.known_at(sent.first, sent.life)
        return set[str]().union(*map(self._lost, known))

    def _lost(self, known: Known) -> set[str]:
        seen = self.members.seen_all(known)
        silent = {name for name, one in seen.items() if one.object is not None and _is_silent(one.object)}
        return silent | (set(self.members.versions) - set(seen))

    def may_have_left(self, sent: Sent) -> set[str]:
        """Clusters that the hub may have known to be leaving the fleet, or to be no members any more."""
        found = [self._left(known) for known in self.members.known_at(sent.first, sent.life)]
        return set[str]().union(*found)

    def _left(self, known: Known) -> set[str]:
        seen = self.members.seen_all(known).items()
        there = {name for name, one in seen if one.object is not None and not _is_leaving(one.object)}
        return set(self.members.versions) - there

    def may_be_gone(self, cluster: str, sent: Sent) -> bool:
        """Whether the hub may have known a cluster to be no member any more: nobody loses anything there."""
        known = self.members.known_at(sent.first, sent.life)
        return any(cluster not in self.members.seen_all(one) for one in known)

    def _of_added(self, key: str, view: View) -> str:
        holding, most = view.others_holding(key), view.target + view.max_surge
        self.asked("added while fewer than wanted + maxSurge hold", tight=len(holding) == most - 1)
        cluster = view.bindings[key].spec.target_cluster
        return "" if len(holding) < most else f"{cluster} is added while {_listed(holding)} hold, and {most} may"

    def _of_disturbed(self, key: str, view: View) -> str:
        def is_available(one: Binding) -> bool:
            return self._is_available(one, view)

        if not is_available(view.bindings[key]):
            return ""
        left, least = view.others_available(key, is_available), view.counted - view.max_unavailable
        self.asked("disturbed only if enough others are available", tight=len(left) == least)
        cluster = view.bindings[key].spec.target_cluster
        if len(left) >= least:
            return ""
        return f"{cluster} is disturbed while only {_listed(left)} are available, and {least} of {view.counted} must be"

    def _is_available(self, binding: Binding, view: View) -> bool:
        said = _available(binding)
        if said is None:
            return False
        if said.reason in _UNTRACKABLE and self._true_clocks:
            return bool(said.last_transition_time + view.period <= view.moment)
        return True

    def _of_words(self, before: Binding, now: Binding, number: int) -> str:
        """Of the two who write a binding's conditions, neither undoes what the other said."""
        what = self.bindings.sent[number].what if number else ""
        if "/status" not in what:
            return ""
        is_rollout = any(f"fieldManager={mover}" in what for mover in _MOVERS)
        self.asked("nobody undoes what another has said", tight=True)
        if _words_of_others(before, is_rollout) == _words_of_others(now, is_rollout):
            return ""
        writer = "the rollout" if is_rollout else "whoever makes Works"
        return f"{writer} undoes what another said of {now.spec.target_cluster}"

    def _of_claim(self, key: str, before: Binding, now: Binding) -> str:
        """A binding says that it is available only if the member's own Deployment was, since it has these resources."""
        if _available(now) is None or _available(before) is not None or not _is_picked(now):
            return ""  # one that is to go has what it has
        if now.spec.target_cluster == self.hostile:
            return ""
        member, image = now.spec.target_cluster, self.image_in(now.spec.resource_snapshot_name)
        if image is None:
            return ""
        moment = self._simulation.loop.time()
        # What a restored Work says was so when the backup was made, until its agent says something else.
        since = 0.0 if self.restores.unaware_since(moment) < moment else self._pointed.get(key, 0.0)
        # What its Work had before it was pointed to, once more or for the first time, has worked there since then.
        held, held_since = self._held.get(member, (None, since))
        since = min(since, held_since) if held == image else since
        self.asked("available only if the member's own Deployment was", tight=True)
        if self.deployments.was_available_since(member, image, since):
            return ""
        return f"{member} is said to be available with {image}, and its Deployment never was"

    def image_in(self, snapshot: str) -> str | None:
        return _image(self.snapshots.get(snapshot, ()))

    # Members

    def _of_deployment(self, member: str, change: Change, carried: tuple[str, int] | None) -> str:
        self._note_birth(change)
        changed = self.deployments.changed(member, change)
        if changed.is_deleted:
            return self._of_deleted(member, ("Deployment", change), carried)
        return self._of_bad(member) if is_there(changed.now) else ""

    def _of_bad(self, member: str) -> str:
        """Bad releases reach no more clusters that worked before than may be unavailable."""
        broken = [name for name in self.deployments.with_image(is_bad) if name in self._harmed - {self.hostile}]
        if not self._only_releases or self.restores or member not in broken:
            return ""
        placement = self.placements.now("crp")
        assert placement is not None, "somebody placed it"
        most = View(placement, self.bindings.all()).max_unavailable
        self.asked("bad releases reach no more than may be unavailable", tight=len(broken) == most)
        return f"{', '.join(broken)} have the bad release, and {most} may" if len(broken) > most else ""

    def _of_config_map(self, member: str, change: Change, carried: tuple[str, int] | None) -> str:
        there = self.on_members.setdefault(member, {})
        name = change.version.name
        self._note_birth(change)
        body = msgspec.json.decode(change.version.body)
        gone = change.type == "DELETED" or "deletionTimestamp" in body["metadata"]
        if not gone:
            there[name] = msgspec.json.encode(body.get("data"))
            return ""
        was_there = there.pop(name, None) is not None
        return self._of_deleted(member, ("ConfigMap", change), carried) if was_there else ""

    def _note_birth(self, change: Change) -> None:
        """Note an object that a request made which arrived so late that nobody owns it: it is collected at once."""
        if change.type == "ADDED":
            meta = _meta(change)
            owners = {owner.uid for owner in meta.owner_references}
            if owners and owners <= self._gone:
                self._stillborn.add(meta.uid)

    def _of_deleted(self, member: str, deleted: tuple[str, Change], carried: tuple[str, int] | None) -> str:
        """Nothing is deleted on a member that its Work asks for, in any form its agent may know."""
        by_user = carried is not None and carried[0].startswith("user")
        if by_user or member not in self.works or member == self.accident:
            return ""
        kind, change = deleted
        what = (kind, change.version.name)
        if carried is None and _meta(change).uid in self._stillborn:
            return ""
        heard = self.works[member]
        sent = self._deletes[carried[1]] if carried is not None else self._simulation.loop.time()
        self.asked("nothing is deleted that is still asked for", tight=True)
        since = heard.surely_known_at(sent - ONE_LOOK)
        for key, versions in heard.versions.items():
            last = max((at for at, one in enumerate(versions) if one.version <= since), default=0)
            if all(_asks_for(one.object, what) for one in versions[last:]):
                return f"{' '.join(what)} is deleted on {member}, and Work {key} asks for it"
        return ""


class _Named(msgspec.Struct):
    metadata: ObjectMeta


def _meta(change: Change) -> ObjectMeta:
    return msgspec.json.decode(change.version.body, type=_Named).metadata


def is_judged(name: str) -> bool:
    """Whether an object is of the placement that is judged: there may be others."""
    return name.startswith("crp-")


def agents_of(member: str) -> tuple[str, ...]:
    """The names of the agents that a member may have."""
    return member, f"{member}-2"


def target_of(placement: Placement, bindings: Iterable[Binding]) -> int:
    """How many clusters are wanted."""
    policy = placement.spec.policy
    if policy is not None and policy.placement_type is PlacementType.pick_fixed:
        return len(policy.cluster_names)
    if policy is not None and policy.placement_type is PlacementType.pick_n and policy.number_of_clusters is not None:
        return policy.number_of_clusters
    return len({one.spec.target_cluster for one in bindings if one.spec.state != BindingState.unscheduled})


def _image(manifests: Iterable[Any]) -> str | None:
    """The image of the Deployment among them."""
    found = (one["spec"]["template"]["spec"] for one in manifests if one["kind"] == "Deployment")
    return next((spec["containers"][0]["image"] for spec in found), None)


def _asks_for(work: Work | None, what: tuple[str, str]) -> bool:
    if work is None or work.metadata.deletion_timestamp is not None:
        return False
    return any((one["kind"], one["metadata"]["name"]) == what for one in work.spec.workload.manifests)


def _at_least_one(value: IntOrPercent, target: int) -> int:
    return max(1, resolve(value, target, round_up=True))


def _available(binding: Binding) -> Any:
    """What says that a binding's resources are available as it is now; None if nothing does."""
    if binding.metadata.deletion_timestamp is not None:
        return None
    said = find_condition(binding.status.conditions, AVAILABLE)
    current = said is not None and said.observed_generation == binding.metadata.generation
    return said if said is not None and current and said.status == TRUE else None


def is_available(binding: Binding) -> bool:
    return _available(binding) is not None


def _holds(binding: Binding) -> bool:
    return binding.metadata.deletion_timestamp is not None or binding.spec.state != BindingState.scheduled


def _is_picked(binding: Binding) -> bool:
    return binding.metadata.deletion_timestamp is None and binding.spec.state != BindingState.unscheduled


def _words_of_others(binding: Binding, is_rollout: bool) -> set[Condition]:
    return {one for one in binding.status.conditions if (one.type == ROLLOUT_STARTED) is not is_rollout}


def has_joined(member: MemberCluster) -> bool:
    return is_true(member.status.conditions, JOINED)


def _is_silent(member: MemberCluster) -> bool:
    said = find_condition(member.status.conditions, HEALTHY)
    return _is_leaving(member) or (said is not None and said.status == FALSE)


def _is_leaving(member: MemberCluster) -> bool:
    return member.metadata.deletion_timestamp is not None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)) or "none"

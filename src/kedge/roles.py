"""Roles: which controllers make up a hub, and which a member.

    async with Manager(component="kedge-hub", leader=election) as manager:
        add_hub(manager, await manager.connect("hub", transport), HubOptions(dialect=Dialect.seed))
        await manager.run()

A process may serve several members; each has a connection to the hub of its own, as its own agent.
"""

from __future__ import annotations

from msgspec import Struct

from kedge.api.dialect import Dialect
from kedge.api.placement_kinds import PLACEMENT_KINDS
from kedge.controllers.align.beside import Beside
from kedge.controllers.align.binding_kinds import BINDING_KINDS
from kedge.controllers.align.bindings import Bindings as AlignedBindings
from kedge.controllers.align.clusters import Clusters
from kedge.controllers.align.detector import Detector
from kedge.controllers.align.execution import Execution
from kedge.controllers.align.heartbeats import Heartbeats as AlignHeartbeats
from kedge.controllers.align.proposed import ProposedBindings
from kedge.controllers.align.scheduler import Scheduler as AlignScheduler
from kedge.controllers.hub.members import FORCE_DELETE_AFTER, Members
from kedge.controllers.hub.metrics import PlacementMetrics, RunMetrics, SchedulingMetrics
from kedge.controllers.hub.mirror import Mirror
from kedge.controllers.hub.orphaned_approvals import OrphanedApprovals
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.controllers.hub.reachability import Heartbeats, Reachability
from kedge.controllers.hub.reserved_namespaces import ReservedNamespaces
from kedge.controllers.hub.resources import Resources
from kedge.controllers.hub.rollout import STARTED_AFTER, Rollout
from kedge.controllers.hub.rollout_delays import MESSAGES_AFTER
from kedge.controllers.hub.scheduler import Scheduler
from kedge.controllers.hub.snapshots import COLLECT, Snapshots
from kedge.controllers.hub.staged import StagedRuns
from kedge.controllers.hub.status import PlacementStatuses
from kedge.controllers.hub.status_delays import REST as STATUS_REST
from kedge.controllers.hub.works import Works
from kedge.controllers.member.applier import Applier
from kedge.controllers.member.apply_metrics import ApplyMetrics
from kedge.controllers.member.joining import Joining
from kedge.controllers.metric_queries import Measures
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.manager import Manager
from kedge.kube.random_sources import branch


class HubOptions(Struct, frozen=True):
    """How a hub behaves."""

    dialect: Dialect = Dialect.seed
    collect: float = COLLECT
    """Seconds in which changes of selected resources are collected into one revision."""
    interval: float = 0.0
    """Seconds between two revisions at least."""
    force_delete_after: float = FORCE_DELETE_AFTER
    """Seconds a leaving member's agent has to answer."""
    messages_after: float = MESSAGES_AFTER
    """Seconds for which messages on many bindings stay the same before they are written, if only they change."""
    started_after: float = STARTED_AFTER
    """Seconds until RolloutStarted is written on a binding whose Works are made without waiting for it."""
    enable_workload: bool = False
    """Whether workloads run on the hub itself: PersistentVolumeClaims are then not placed."""
    status_rest: float = STATUS_REST
    """Seconds between two writes of a placement's status at least."""
    listens: bool = True
    """Whether members without heartbeats are reported as unreachable."""


class MemberOptions(Struct, frozen=True):
    """How a member's agent behaves."""

    workers: int = 5
    """How many Works are applied at once."""
    report_namespaces: bool = False
    """Whether the hub is told which namespaces the member has: ResourcePlacements then go only where theirs is."""


def add_hub(manager: Manager, hub: Cluster, options: HubOptions, measures: Measures | None = None) -> None:
    """Run all that makes a hub, against this cluster. Without `measures`, no metric of a stage passes."""
    for controller in hub_controllers(manager, hub, options, measures):
        manager.add_controller(controller)


def hub_controllers(
    manager: Manager, hub: Cluster, options: HubOptions, measures: Measures | None = None
) -> list[Controller]:
    """What makes a hub: for its members once, for placements twice, as there are two kinds of them."""
    clock, dialect = manager.clock, options.dialect
    resources = Resources(hub, dialect=dialect, runs_workloads=options.enable_workload)
    registry = manager.metrics.registry
    scheduling, placements, runs = SchedulingMetrics(registry), PlacementMetrics(registry), RunMetrics(registry)
    heartbeats = Heartbeats(clock)
    found = [
        Members(hub, clock=clock, force_delete_after=options.force_delete_after, heartbeats=heartbeats).controller,
        *([Reachability(hub, clock=clock, heartbeats=heartbeats).controller] if options.listens else ()),
        resources.controller,
        ReservedNamespaces(hub, clock=clock).controller,
    ]
    for kinds in PLACEMENT_KINDS:
        snapshots = Snapshots(
            hub, kinds, resources, clock=clock, dialect=dialect, collect=options.collect, interval=options.interval
        )
        pointed = PointedBindings(hub.name)
        found += [
            snapshots.controller,
            Scheduler(hub, kinds, clock=clock, rng=branch(manager.rng), metrics=scheduling, dialect=dialect).controller,
            Rollout(
                hub,
                kinds,
                clock=clock,
                dialect=dialect,
                messages_after=options.messages_after,
                started_after=options.started_after,
                pointed=pointed,
            ).controller,
            StagedRuns(
                hub,
                kinds,
                snapshots,
                clock=clock,
                dialect=dialect,
                metrics=runs,
                pointed=pointed,
                measures=measures,
            ).controller,
            OrphanedApprovals(hub, kinds).controller,
            Works(hub, kinds, clock=clock, pointed=pointed).controller,
            PlacementStatuses(
                hub,
                kinds,
                clock=clock,
                dialect=dialect,
                selections=resources,
                metrics=placements,
                rest=options.status_rest,
            ).controller,
            Mirror(hub, kinds, resources).controller,
        ]
    return found


def add_member(manager: Manager, name: str, hub: Cluster, member: Cluster, options: MemberOptions) -> None:
    """Run the agent of this member. `hub` is a connection to the hub as that agent, and nobody else's."""
    clock = manager.clock
    applying = ApplyMetrics.of(manager.metrics.registry)
    applier = Applier(hub, member, name, clock=clock, metrics=applying, workers=options.workers)
    joining = Joining(
        hub,
        member,
        name,
        clock=clock,
        rng=branch(manager.rng),
        applier=applier,
        report_namespaces=options.report_namespaces,
    )
    manager.add_controller(applier.controller)
    manager.add_controller(joining.controller)


def add_align(manager: Manager, karmada: Cluster) -> None:
    """Run what aligns workloads beside a Karmada, against its API server."""
    manager.add_controller(Beside(karmada, clock=manager.clock).controller)


def add_karmada_hub(manager: Manager, hub: Cluster) -> None:
    """Run all that makes a hub of Karmada's kinds, on which clusters share the budgets of workloads."""
    for controller in karmada_hub_controllers(manager, hub):
        manager.add_controller(controller)


def karmada_hub_controllers(manager: Manager, hub: Cluster) -> list[Controller]:
    """What makes a hub of Karmada's kinds: policies become bindings, which are scheduled, and become Works."""
    clock = manager.clock
    found = [
        Clusters(hub, clock=clock).controller,
        Detector(hub, clock=clock).controller,
        ProposedBindings(hub, clock=clock).controller,
    ]
    for kind in BINDING_KINDS:
        found += [AlignScheduler(hub, kind, clock=clock).controller, AlignedBindings(hub, kind, clock=clock).controller]
    return found


def add_karmada_member(manager: Manager, name: str, hub: Cluster, member: Cluster) -> None:
    """Run the agent of this member of a hub of Karmada's kinds."""
    manager.add_controller(AlignHeartbeats(hub, member, name, clock=manager.clock).controller)
    manager.add_controller(Execution(hub, member, name, clock=manager.clock).controller)

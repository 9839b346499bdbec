"""Batch controllers: all controllers of rollouts in batches of one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kedge.api.oam.keys import APP_ROLLOUT_FINALIZER, ROLLOUT_FINALIZER
from kedge.controllers.batch.app_access import AppAccess
from kedge.controllers.batch.app_deployment_kind import AppDeploymentKind
from kedge.controllers.batch.app_rollout_kind import AppRolloutKind
from kedge.controllers.batch.autoscalers import AutoscalerAccess
from kedge.controllers.batch.external_calls import ExternalCalls
from kedge.controllers.batch.hook_calls import HookCalls
from kedge.controllers.batch.located import RolloutKind
from kedge.controllers.batch.revision_kind import RevisionKind
from kedge.controllers.batch.revisions import Revisions
from kedge.controllers.batch.rollouts import Rollouts
from kedge.controllers.batch.routes import Routes
from kedge.controllers.batch.trait_kind import TraitKind
from kedge.controllers.batch.workloads import WorkloadAccess
from kedge.controllers.metric_queries import MetricQueries
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.connect.outbound import Outbound
from kedge.kube.controller import Controller

_FINALIZERS: Final = {
    "RolloutTrait": ROLLOUT_FINALIZER,
    "Rollout": ROLLOUT_FINALIZER,
    "AppRollout": APP_ROLLOUT_FINALIZER,
    "ApplicationDeployment": APP_ROLLOUT_FINALIZER,
}


def batch_controllers(
    cluster: Cluster, namespaces: Sequence[str], *, clock: Clock, outbound: Outbound
) -> Sequence[Controller]:
    """The controllers of every kind of rollout, in some namespaces; in all of them if none is given."""
    return [one.controller for one in batch_rollouts(cluster, namespaces, clock=clock, outbound=outbound)]


def batch_rollouts(
    cluster: Cluster, namespaces: Sequence[str], *, clock: Clock, outbound: Outbound
) -> Sequence[Rollouts]:
    """What moves the rollouts of every kind."""
    workloads = WorkloadAccess(cluster, namespaces)
    client = cluster.client
    calls = ExternalCalls(
        HookCalls(outbound),
        MetricQueries(client, outbound),
        Routes(client),
        AutoscalerAccess(cluster, namespaces),
        clock=clock,
    )
    revisions = Revisions(cluster, workloads, namespaces)
    apps = AppAccess(cluster, workloads, namespaces)
    kinds: list[RolloutKind] = [
        TraitKind(revisions, workloads),
        RevisionKind(revisions),
        AppRolloutKind(apps, revisions),
        AppDeploymentKind(apps, revisions),
    ]
    return [
        Rollouts(
            cluster,
            kind,
            workloads,
            calls,
            clock=clock,
            finalizer=_FINALIZERS[kind.kind.resource.kind],
            namespaces=namespaces,
        )
        for kind in kinds
    ]

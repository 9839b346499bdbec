"""Everything: the controllers of Components, Applications and ApplicationConfigurations, over the caches they share."""

from __future__ import annotations

from collections.abc import Sequence

from kedge.controllers.application.applications import Applications
from kedge.controllers.application.caches import ApplicationCaches
from kedge.controllers.application.components import Components
from kedge.controllers.application.configurations import Configurations
from kedge.controllers.application.object_writes import ObjectWrites
from kedge.controllers.kinds import Kinds
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller


def application_controllers(
    cluster: Cluster, namespaces: Sequence[str] = (), *, clock: Clock
) -> tuple[Controller, ...]:
    """The controllers that make workloads of Applications, in some namespaces; in all of them if none is given."""
    caches = ApplicationCaches(cluster, namespaces)
    objects = ObjectWrites(cluster.client, Kinds(cluster.client))
    return (
        Components(caches, clock=clock).controller,
        Applications(caches, clock=clock).controller,
        Configurations(caches, objects, clock=clock).controller,
    )

"""Pod hosts: the names under which pods of a StatefulSet are called, and how many are called at once."""

from __future__ import annotations

from typing import Final

from kedge.api.apps import StatefulSet

CLUSTER_DOMAIN: Final = "cluster.local."
"""The end of pods' names in DNS, unless told otherwise. The dot at its end saves the search through other domains."""
MOST_PODS: Final = 10_000
"""How many pods of a StatefulSet are called. Nobody runs more in a zone; a typing error asks for millions."""
CALLS_AT_ONCE: Final = 32
CALL_TIMEOUT: Final = 5.0
"""Seconds that a call to a pod may take, unless told otherwise."""


def pod_name(stateful_set: StatefulSet, ordinal: int) -> str:
    """The name of its pod so many after the first."""
    start = stateful_set.spec.ordinals.start if stateful_set.spec.ordinals is not None else 0
    return f"{stateful_set.metadata.name}-{start + ordinal}"


def pod_host(stateful_set: StatefulSet, ordinal: int, cluster_domain: str = CLUSTER_DOMAIN) -> str:
    """The name under which the cluster's DNS knows a pod."""
    namespace, service = stateful_set.metadata.namespace, stateful_set.spec.service_name
    return f"{pod_name(stateful_set, ordinal)}.{service}.{namespace}.svc.{cluster_domain}"

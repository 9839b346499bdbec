"""Claims: lets a PersistentVolumeClaim that is to be deleted go once no pod on a node uses it.

The server puts a finalizer on every claim; taking it away is all that is done here. Nothing binds a claim to a volume:
pods run without.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from kedge.embedded.workloads.kinds import Pod
from kedge.embedded.workloads.owned import NAMESPACE
from kedge.embedded.workloads.sets import VolumeClaim
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Seen, Source
from kedge.kube.store import Change

PROTECTION = "kubernetes.io/pvc-protection"


class ClaimGuard:
    """The claims of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._claims = view.of(VolumeClaim)

    def sources(self) -> Iterable[Source]:
        return [self._view.itself(VolumeClaim), self._view.cluster.watch(self._view.pods, to=_used, when=_lets_go)]

    async def reconcile(self, key: Key) -> Outcome:
        found = self._claims.get(key.name, key.namespace)
        if found is None or found.metadata.deletion_timestamp is None or PROTECTION not in found.metadata.finalizers:
            return Outcome.done
        if not any(key.name in claims_of(pod) for pod in self._around(key)):
            await self._let_go(found)
        return Outcome.done

    def _around(self, key: Key) -> Iterable[Pod]:
        """Pods that may use it. One without a node does not: no kubelet would start it with a claim on its way out."""
        return (pod for pod in self._view.pods.by(NAMESPACE, key.namespace or "") if pod.spec.node_name)

    async def _let_go(self, found: VolumeClaim) -> None:
        meta = found.metadata
        left = [one for one in meta.finalizers if one != PROTECTION]
        with suppress(NotFound):
            await self._view.client.amend(
                VolumeClaim, meta, {"metadata": {"finalizers": left or None}}, manager=MANAGER
            )


def claims_of(pod: Pod) -> list[str]:
    """The names of the claims a pod uses."""
    used = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return [claim["claimName"] for claim in used if claim is not None]


def _used(seen: Seen[Pod]) -> Iterable[Key]:
    return [Key(seen.cluster, seen.meta.namespace, name) for name in claims_of(seen.object)]


def _lets_go(change: Change[Pod]) -> bool:
    return change.new is None

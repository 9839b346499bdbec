"""Wait text: what a zone or a pod of a rollout group waits for, in a sentence with the numbers and the pods.

ingester-zone-b waits: all pods of the other zones have to be ready, and ingester-zone-a-1 is not: CrashLoopBackOff

Nothing is decided on these sentences: events, logs and commands show them, and programs read the wait itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kedge.api.pods import Pod
from kedge.api.zones import PAUSED
from kedge.plan.moving.gate import GateCode
from kedge.plan.moving.unit import Proof
from kedge.plan.moving.wait import Blocker, Code, Wait
from kedge.plan.text import counted, listed, of_all
from kedge.plan.workloads.handler import ON_DELETE
from kedge.plan.workloads.pods import why_not_ready
from kedge.plan.zoning.group import ZoneCode
from kedge.plan.zoning.zone import Zone

_NAMED: Final = 3


class Sentences:
    """Writes the waits of one group."""

    def __init__(self, zones: Iterable[Zone]) -> None:
        self._zones = {zone.name: zone for zone in zones}
        self._pods = {pod.metadata.name: pod for zone in self._zones.values() for pod in zone.pods}

    def zone_waits(self, wait: Wait) -> str:
        """`NAME waits: …`, or for what is not a zone's own rollout the sentence alone."""
        return f"{wait.unit} waits: {self.reason(wait)}"

    def reason(self, wait: Wait) -> str:
        """What is waited for."""
        match wait.code:
            case ZoneCode.not_on_delete:
                return strategy_problem(wait)
            case ZoneCode.paused:
                return f"it is paused; removing its annotation {PAUSED} lets it go on"
            case ZoneCode.not_observed:
                return "its status does not speak of its spec yet"
            case ZoneCode.leaving:
                return "the StatefulSet is being deleted"
            case ZoneCode.other_zone:
                return self._turn(wait)
            case ZoneCode.disruption_budget:
                kept = wait.blockers[0]
                return f"a ZoneAwarePodDisruptionBudget keeps {kept.key}: {kept.reported}"
            case ZoneCode.not_ready:
                return f"all its pods are updated, and {self._not_ready(wait.blockers)}"
            case GateCode.proof_lost:
                return f"all pods of the other zones have to be ready, and {self._not_ready(wait.blockers)}"
            case Code.revision_unproven:
                return f"no pod has become ready with the new revision yet: {self._not_ready(wait.blockers)}"
            case _:
                return self._budget(wait)

    def not_ready_because(self, pod: Pod) -> str:
        """`is not ready (REASON)`."""
        return f"is not ready ({_state(pod, Blocker(pod.metadata.name))})"

    def _turn(self, wait: Wait) -> str:
        first = wait.blockers[0].key
        return (
            f"{first} is rolled out first, with {of_all(wait.numbers['updated'], wait.numbers['pods'], 'pod')} updated"
        )

    def _budget(self, wait: Wait) -> str:
        numbers = wait.numbers
        most = f"at most {of_all(numbers['maxUnavailable'], numbers['desired'], 'pod')} may be unavailable"
        missing = f"{counted(numbers['missing'], 'pod')} missing" if numbers["missing"] else ""
        pods = self._not_ready(wait.blockers) if wait.blockers else ""
        return f"{most}, and {'; '.join(part for part in (pods, missing) if part) or 'its status counts fewer ready'}"

    def _not_ready(self, blockers: Iterable[Blocker]) -> str:
        found = [f"{one.key}{self._why(one)}" for one in blockers]
        return f"{listed(found, _NAMED)} {'is' if len(found) == 1 else 'are'} not ready"

    def _why(self, blocker: Blocker) -> str:
        pod = self._pods.get(blocker.key)
        if pod is None:
            return " (by its status)" if blocker.key in self._zones else " (missing)"
        return f" ({_state(pod, blocker)})"


def _state(pod: Pod, blocker: Blocker) -> str:
    """In a word or two why a pod is not ready."""
    if pod.metadata.deletion_timestamp is not None:
        return "terminating"
    found = why_not_ready(pod.metadata, pod.status)
    if found is None:
        return "being deleted" if blocker.proof in (Proof.pending, Proof.unknown) else pod.status.phase or "unknown"
    return found.reason


def strategy_problem(wait: Wait) -> str:
    """The sentence of a group that is left alone, for its first StatefulSet that is not OnDelete."""
    first = wait.blockers[0]
    return (
        f"StatefulSet {first.key} has {first.reported} update strategy while {ON_DELETE} is expected, "
        "skipping reconcile"
    )

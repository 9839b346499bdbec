"""Seen: what runs in all members of an aligned workload, and what its users ask for."""

from __future__ import annotations

from collections.abc import Sequence

from simulate.align_facts import Limits, PodFacts, WorkloadFacts


class Seen:
    """The pods, ReplicaSets and workloads of all members, and all limits that there ever were."""

    def __init__(self, kind: str, members: Sequence[str]) -> None:
        self.kind = kind
        self.members = members
        self.pods: dict[str, dict[str, PodFacts]] = {name: {} for name in members}
        self.sets: dict[str, dict[str, int]] = {name: {} for name in members}  # pods of each ReplicaSet, as asked for
        self.workloads: dict[str, WorkloadFacts] = {}
        self.limits: list[Limits] = []

    @property
    def number(self) -> int:
        """But for pods that their ReplicaSets are to delete: a Deployment counts those that these are asked for."""
        return sum(len(pods) - self._to_be_deleted(name) for name, pods in self.pods.items())

    def _to_be_deleted(self, member: str) -> int:
        pods = self.pods[member]
        asked = self.sets[member].items()
        return sum(max(0, sum(pod.startswith(f"{name}-") for pod in pods) - number) for name, number in asked)

    @property
    def available(self) -> int:
        return sum(map(self.available_in, self.members))

    def available_in(self, member: str) -> int:
        return sum(pod.is_available for pod in self.pods[member].values())

    @property
    def updated(self) -> int:
        """Pods of the template that is wanted now."""
        return sum(map(self.updated_in, self.members))

    def updated_in(self, member: str) -> int:
        wanted = self.limits[-1].template(member)
        return sum(pod.template == wanted for pod in self.pods[member].values())

    def has_let_go(self, member: str) -> bool:
        """Whether nothing follows any more of what a member was asked for before.

        When a Deployment has observed what is asked now, its ReplicaSets may still create what it asked of them before.
        """
        workload = self.workloads.get(member)
        is_settled = sum(self.sets[member].values()) == len(self.pods[member])
        return workload is None or (workload.is_observed and (self.kind != "Deployment" or is_settled))

    def is_done(self, member: str, workload: WorkloadFacts) -> bool:
        pods = self.pods[member].values()
        old = sum(pod.template != workload.template for pod in pods)
        is_settled = self.kind != "Deployment" or sum(self.sets[member].values()) == workload.replicas
        return workload.is_observed and old <= workload.partition and len(pods) == workload.replicas and is_settled

    def knows_wanted(self, now: Limits) -> bool:
        """Whether something of the template that is wanted now is under way from before."""
        works = any(now.template(name) == one.template for name, one in self.workloads.items())
        pods = any(pod.template == now.template(name) for name, pods in self.pods.items() for pod in pods.values())
        return works or pods or now.image in {one.image for one in self.limits[:-1]}

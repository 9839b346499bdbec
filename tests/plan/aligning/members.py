"""Members: clusters with a workload of one kind, in a few lines each, which act on what reaches them, late.

What is asked of a cluster reaches its API server some time later; its controller observes it some time after that, and
what it reports is under way for as long as the test likes.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from msgspec.structs import replace

from kedge.plan.aligning.ledger import NOTHING, Report, Spec

Pod = tuple[str, bool]  # its template, and whether it is available


class DeploymentMember:
    """A cluster whose pods belong to ReplicaSets, one for each template."""

    is_partitioned = False
    is_ordered = False
    has_sets = True

    def __init__(self, name: str, replicas: int, template: str) -> None:
        self.name = name
        first = Spec(1, template, replicas, 1)
        self.asked = self.stored = self.observed = first
        self.sets = {template: replicas}
        self._scaled_to = replicas
        self.pods: list[Pod] = [(template, True)] * replicas
        self.under_way: list[Report] = []
        self.report = self.status() if replicas else NOTHING
        self.specs: tuple[Spec, ...] = (first,) if replicas else ()

    def write(self, spec: Spec) -> None:
        """The ledger first; the cluster learns of it some time later."""
        kept = [one for one in self.specs if one.seq >= self.report.seq] or list(self.specs[-1:])
        self.specs = (*kept, spec)
        self.asked = spec

    def store(self) -> None:
        self.stored = self.asked

    def observe(self) -> None:
        """One look of the cluster's own controller."""
        self.observed = spec = self.stored
        total, own = sum(self.sets.values()), self.sets.get(spec.template, 0)
        if spec.replicas != self._scaled_to:
            self._scaled_to = spec.replicas
            if sum(count > 0 for count in self.sets.values()) > 1 and own < spec.replicas:
                self._scale_all(spec.replicas + spec.surge - total)
                return
        self.sets.setdefault(spec.template, 0)
        if sum(count > 0 for count in self.sets.values()) <= 1 and own and own != spec.replicas:
            self.sets[spec.template] = spec.replicas
            return
        if own < spec.replicas and total < spec.replicas + spec.surge:
            self.sets[spec.template] += min(spec.replicas + spec.surge - total, spec.replicas - own)
            return
        if own > spec.replicas:
            self.sets[spec.template] = spec.replicas
            return
        self._take_down(spec, total)

    def _scale_all(self, number: int) -> None:
        """Every ReplicaSet gets its part of what is added or taken away: one pod after the other, the largest first."""
        for _ in range(abs(number)):
            largest = max(self.sets, key=lambda name: self.sets[name])
            self.sets[largest] += 1 if number > 0 else -1

    def _take_down(self, spec: Spec, total: int) -> None:
        fewest = spec.replicas - spec.unavailable
        room = total - fewest - (self.sets[spec.template] - self.available(spec.template))
        old = [name for name, count in self.sets.items() if name != spec.template and count]
        spent = 0
        for name in old:  # those that do not work first
            number = max(0, min(room - spent, self.sets[name] - self.available(name)))
            self.sets[name] -= number
            spent += number
        spare = sum(min(self.available(name), count) for name, count in self.sets.items()) - fewest
        for name in old:
            number = max(0, min(self.sets[name], spare, room - spent))
            self.sets[name] -= number
            spare, spent = spare - number, spent + number

    def available(self, template: str) -> int:
        return sum(pod == (template, True) for pod in self.pods)

    def work(self) -> None:
        """One pod is deleted or created as its ReplicaSet asks. One that is to go does not count: it goes first."""
        counts = Counter(name for name, _ in self.pods)
        for name, count in self.sets.items():
            if counts[name] > count:
                self.pods.remove(min((pod for pod in self.pods if pod[0] == name), key=lambda pod: pod[1]))
                return
        for name, count in self.sets.items():
            if counts[name] < count:
                self.pods.append((name, False))
                return

    def become_available(self, random: Random) -> None:
        waiting = [place for place, pod in enumerate(self.pods) if not pod[1]]
        if waiting:
            place = random.choice(waiting)
            self.pods[place] = (self.pods[place][0], True)

    def status(self) -> Report:
        template = self.observed.template
        return Report(
            self.observed.seq,
            len(self.pods),
            sum(name == template for name, _ in self.pods),
            sum(is_available for _, is_available in self.pods),
        )

    def send(self) -> None:
        if self.specs:
            self.under_way.append(self.status())

    def deliver(self) -> None:
        if self.under_way:
            self.report = self.under_way.pop(0)


class CloneSetMember(DeploymentMember):
    """A cluster whose pods belong to one CloneSet, which replaces them one by one up to its partition."""

    is_partitioned = True
    has_sets = False

    def observe(self) -> None:
        self.observed = spec = self.stored
        new = [pod for pod in self.pods if pod[0] == spec.template]
        old = [pod for pod in self.pods if pod[0] != spec.template]
        over, missing = max(0, len(old) - spec.partition), max(0, spec.moved - len(new))
        surge = min(spec.surge, over, missing)
        if len(self.pods) < spec.replicas + surge:
            is_old = bool(old) and len(old) < spec.partition
            self.pods.append((old[0][0] if is_old else spec.template, False))
            return
        down = sum(not is_available for _, is_available in self.pods)
        spare = spec.unavailable + len(self.pods) - spec.replicas
        if len(self.pods) > spec.replicas + surge:
            first = min(old if over else self.pods, key=lambda pod: pod[1], default=None)
            if first is not None and (not first[1] or spare > down or len(self.pods) > spec.replicas + spec.surge):
                self.pods.remove(first)
            return
        if not over or not missing:
            return
        first = min(old, key=lambda pod: pod[1])
        if sum(not is_available for _, is_available in new) < spare and (not first[1] or down < spare):
            self.pods.remove(first)
            self.pods.append((spec.template, False))

    def work(self) -> None:
        """The CloneSet itself creates and deletes its pods."""

    def status(self) -> Report:
        found = super().status()
        return replace(found, updated_available=self.available(self.observed.template))


class StatefulSetMember(DeploymentMember):
    """A cluster whose pods belong to one StatefulSet, which replaces them from the last one down to its partition."""

    is_partitioned = True
    is_ordered = True
    has_sets = False

    def __init__(self, name: str, replicas: int, template: str) -> None:
        self._current = template
        super().__init__(name, replicas, template)

    def observe(self) -> None:
        self.observed = spec = self.stored
        if all(pod == (spec.template, True) for pod in self.pods):
            self._current = spec.template
        number = len(self.pods)
        if number < spec.replicas:
            self.pods.append((self._current if number < spec.partition else spec.template, False))
        elif number > spec.replicas:
            self.pods.pop()
        else:
            self._replace_last(spec)

    def _replace_last(self, spec: Spec) -> None:
        down = 0
        for place in reversed(range(spec.partition, len(self.pods))):
            name, is_available = self.pods[place]
            if name != spec.template:
                self.pods[place] = (spec.template, False)
                return
            down += not is_available
            if down >= spec.unavailable:
                return

    def work(self) -> None:
        """The StatefulSet itself creates and deletes its pods."""

    def status(self) -> Report:
        return replace(super().status(), is_back=self._current == self.observed.template)

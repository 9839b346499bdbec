"""Writes: how often a cluster is written to before it has acknowledged what was written last."""

from __future__ import annotations

from kedge.api.karmada.works import Work
from kedge.kube.store import Change
from kedge.plan.aligning.binding import report_in
from kedge.plan.aligning.interpreter import sequence_of
from kedge.plan.aligning.work_spec import was_sent


class Writes:
    """Watches Works: their generation counts writes, and the status says what is acknowledged."""

    def __init__(self) -> None:
        self._generations: dict[str, int] = {}
        self._pending: dict[str, int] = {}
        self.most_pending = 0
        """The most writes to one cluster that it had not acknowledged."""
        self.total = 0

    def see(self, change: Change[Work]) -> None:
        work = change.new
        if work is None:
            return
        where, generation = work.metadata.namespace or "", work.metadata.generation
        if not was_sent(work):
            return  # it is only being created: its cluster gets nothing yet
        written = generation - self._generations.get(where, generation - 1)
        self._generations[where] = generation
        self.total += written
        pending = self._pending.get(where, 0) + written
        manifest = next(iter(work.spec.workload.manifests), None)
        self.most_pending = max(self.most_pending, pending)
        self._pending[where] = 0 if report_in(work).seq >= sequence_of(manifest) else pending

"""Planted bugs in alignment: the same workloads with a part of their safety taken out, which the promises must notice.

PYTHONPATH=tests python -m kedge.simulate simulate.planted_in_alignment:by_reports_alone --seed 1 --seeds 40
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kedge.api.karmada.works import Work
from kedge.controllers.align.bindings import Bindings
from kedge.plan.aligning import alignment, binding, bounds, checks, goals, offers
from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.binding import plan_binding, report_in
from kedge.plan.aligning.bounds import Bounds
from kedge.plan.aligning.interpreter import UnifiedRollingStatus, report_of, sequence_of
from kedge.plan.aligning.ledger import Member, Report, Spec
from kedge.simulate.simulation import Simulation
from simulate.aligning import aligning, comebacks

_observed = Bindings._observed


def without(*names: str) -> Any:
    """Promises that nobody looks at before a cluster is written to."""
    gone = [getattr(checks, name) for name in names]
    return patch.object(checks, "_CHECKS", [one for one in checks._CHECKS if one[0] not in gone])


async def by_reports_alone(simulation: Simulation) -> None:
    """The budget is split by what clusters report, and nobody remembers what they were asked for."""

    def reported(member: Member, also: Iterable[Spec] = ()) -> Bounds:
        report, specs = member.report, (*member.specs[-1:], *also)
        replicas = max((one.replicas for one in specs), default=0)
        return Bounds(
            unavailable=max(0, replicas - report.available, *(one.unavailable for one in also)),
            surge=max(0, report.pods - replicas, *(one.surge for one in also)),
            fewest=report.available,
            steady=report.available,
            most=max(report.pods, *(one.replicas + one.surge for one in also), replicas),
            updated=max(member.updated, *(one.moved for one in also), 0),
        )

    with (
        patch.object(alignment, "bounds", reported),
        patch.object(goals, "bounds", reported),
        patch.object(checks, "bounds_with", lambda _, member, spec: reported(member, (spec,))),
        without("_is_within", "_keeps_others_back"),
        patch.object(Member, "is_acknowledged", property(lambda _: True)),
    ):
        await aligning(simulation)


async def acts_before_it_notes(simulation: Simulation) -> None:
    """Works are written before the ledger is."""

    async def acting(self: Bindings, bound: Any, resource: Any, works: Any) -> Any:
        seen = await _observed(self, bound, resource, works)
        await self._writes.write(bound, plan_binding(seen), works, bound.metadata.uid)
        return seen

    with patch.object(Bindings, "_observed", acting):
        await aligning(simulation)


async def any_report_is_proof(simulation: Simulation) -> None:
    """What a cluster reports is taken for what became of the last spec, whichever it was about."""

    def newest(work: Work | None) -> Report:
        manifests = work.spec.workload.manifests if work is not None else ()
        return replace(report_in(work), seq=sequence_of(manifests[0]) if manifests else 0)

    with patch.object(binding, "report_in", newest):
        await aligning(simulation)


async def applied_is_proof(simulation: Simulation) -> None:
    """A spec counts as acknowledged once the object has it, whether or not its controller has seen that."""

    def applied(status: UnifiedRollingStatus) -> Report:
        return replace(report_of(status), seq=status.alignment_seq or 0)

    with patch.object(binding, "report_of", applied):
        await aligning(simulation)


async def down_before_up(simulation: Simulation) -> None:
    """Replicas that move are taken away at once."""
    with (
        patch.object(offers, "_sizes", lambda headroom: [headroom.member.wanted]),
        without("_is_within", "_keeps_others_back"),
    ):
        await aligning(simulation)


async def a_bad_release_creeps(simulation: Simulation) -> None:
    """Pods that were all replaced hold no budget any more, whether or not they have ever been available."""
    with (
        patch.object(bounds, "_on_trial", lambda *_: 0),
        without("_is_proven_enough"),
    ):
        await comebacks(simulation)


async def broken_pods_stay_broken(simulation: Simulation) -> None:
    """What is reported as broken is given up as if it could not work again."""
    with without("_is_steady"), patch.object(alignment, "is_lasting", lambda _: True):
        await comebacks(simulation)


async def without_partition(simulation: Simulation) -> None:
    """Nobody looks at how many pods are to be kept back."""
    with (
        patch.object(Aim, "most_updated", property(lambda self: self.most)),
        patch.object(Aim, "moved", property(lambda self: self.replicas)),
    ):
        await aligning(simulation)

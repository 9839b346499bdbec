"""Adopting: what clusters are asked for that no ledger tells of.

Each of them had a copy until now, or another control plane wrote its Work, or the ledger was lost, or replaced by an
older one. What such a cluster acts on is not known until it acknowledges something: it is asked once more for what its
Work says, under a number of its own. Until then it may take away every pod it has, and create as many as there may be
of the whole workload: what it was asked for before that may be under way still.

The Work may be newer than the one that was looked at. Nothing is written over it then, since a Work is written in the
version that was looked at; and what is asked once more is what it says now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.interpreter import NotAligned, aim_of, calculate_template_hash, sequence_of, unpaused
from kedge.plan.aligning.ledger import NOTHING, UNKNOWN, Report, Spec
from kedge.plan.aligning.ledger_text import Ledger
from kedge.plan.fields import Object, whole

UNSEEN: Final = 1_000
"""Numbers that are left out: a ledger that was lost may have given those to what no Work shows yet."""


def adopted(ledger: Ledger, asked: Mapping[str, Object], reports: Mapping[str, Report], most: int) -> Ledger:
    """The ledger, with all that clusters are asked for by their Works. `most`: how many pods there may be in all."""
    known = max([0, *(spec.seq for specs in ledger.specs.values() for spec in specs)])
    seen = max([0, *map(sequence_of, asked.values()), *(one.seq for one in reports.values())])
    if seen > known:  # it is an older one: a cluster without a Work may have left since
        ledger = Ledger({name: specs for name, specs in ledger.specs.items() if name in asked})
    following = max(known, seen) + UNSEEN
    for name, manifest in sorted(asked.items()):
        specs, report = ledger.specs.get(name, ()), reports.get(name, NOTHING)
        if _tells_of(specs, manifest, report):
            continue
        is_unwritten = _is_unwritten(specs, manifest, report)
        entry = _entry(manifest, specs[0].seq if is_unwritten else following + 1, most)
        ledger = Ledger({**ledger.specs, name: entry})
        following += 2
    return ledger


def _tells_of(specs: tuple[Spec, ...], manifest: Object, report: Report) -> bool:
    """Whether a ledger tells of what a cluster is asked for, and reports about."""
    if not specs or report.seq > specs[-1].seq:
        return False
    found = next((one for one in specs if one.seq == sequence_of(manifest)), None)
    return found is not None and found.template == calculate_template_hash(manifest)


def _is_unwritten(specs: tuple[Spec, ...], manifest: Object, report: Report) -> bool:
    """Whether a cluster is to be asked once more, and its Work does not say so yet."""
    is_adopted = len(specs) == 2 and specs[0].template == UNKNOWN
    return is_adopted and max(sequence_of(manifest), report.seq) < specs[0].seq


def _entry(manifest: Object, first: int, most: int) -> tuple[Spec, Spec]:
    replicas = whole(manifest, "spec", "replicas")
    replicas = 1 if replicas is None else replicas
    try:
        asked = aim_of(unpaused(manifest), replicas)
    except NotAligned:
        asked = Aim(replicas, replicas)
    unavailable = asked.unavailable if asked.unavailable or asked.surge else 1  # both must not be 0
    spec = Spec(first + 1, calculate_template_hash(manifest), replicas, unavailable, asked.surge, asked.partition)
    before = max(replicas, most)
    return Spec(first, UNKNOWN, before, before, before), spec

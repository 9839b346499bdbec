"""Adopting: what clusters were asked for by somebody who kept no ledger, or a later one than there is now.

Each of them had a copy until now, or another control plane wrote its Work, or the ledger was lost or restored. What
such a cluster acts on is not known until it acknowledges something: it is asked once more for what its Work says, under
a number of its own. Until then it may take away and create as many pods as it has.
"""

from __future__ import annotations

from collections.abc import Mapping

from kedge.plan.aligning.alignment import Aim
from kedge.plan.aligning.interpreter import NotAligned, aim_of, calculate_template_hash, sequence_of
from kedge.plan.aligning.ledger import NOTHING, Report, Spec
from kedge.plan.aligning.ledger_text import Ledger
from kedge.plan.fields import Object, whole

NOT_KNOWN = "?"
"""The template of what is not known."""


def adopted(ledger: Ledger, asked: Mapping[str, Object], reports: Mapping[str, Report]) -> Ledger:
    """The ledger, with all that clusters are asked for by their Works."""
    known = [spec.seq for specs in ledger.specs.values() for spec in specs]
    last = max([0, *known, *map(sequence_of, asked.values()), *(one.seq for one in reports.values())])
    for name, manifest in sorted(asked.items()):
        specs = ledger.specs.get(name, ())
        if specs and reports.get(name, NOTHING).seq <= specs[-1].seq:
            continue
        ledger = Ledger({**ledger.specs, name: _entry(manifest, last)})
        last += 2
    return ledger


def _entry(manifest: Object, last: int) -> tuple[Spec, Spec]:
    replicas = whole(manifest, "spec", "replicas")
    replicas = 1 if replicas is None else replicas
    try:
        asked = aim_of(manifest, replicas)
    except NotAligned:
        asked = Aim(replicas, replicas)
    unavailable = asked.unavailable if asked.unavailable or asked.surge else 1  # both must not be 0
    spec = Spec(last + 2, calculate_template_hash(manifest), replicas, unavailable, asked.surge, asked.partition)
    return Spec(last + 1, NOT_KNOWN, replicas, replicas, replicas), spec

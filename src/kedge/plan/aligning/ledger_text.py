"""Ledger text: the ledger of a binding as it is kept in its annotation.

Written before any cluster is: whoever decides next, after a crash or as another leader, knows of everything that may
have reached a cluster. A ledger that cannot be read stops the binding; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from kedge.plan.aligning.ledger import Spec


class Ledger(Struct, frozen=True):
    """What every cluster was asked for and may be acting on, by name."""

    specs: Mapping[str, tuple[Spec, ...]] = {}

    def with_spec(self, cluster: str, spec: Spec, acknowledged: int) -> Ledger:
        """With one spec more. Of those before it, what may still be in effect stays: the last one acknowledged, too."""
        before = self.specs.get(cluster, ())
        kept = tuple(one for one in before if one.seq >= acknowledged) or before[-1:]
        return Ledger({**self.specs, cluster: (*kept, spec)})

    def without(self, cluster: str) -> Ledger:
        return Ledger({name: specs for name, specs in self.specs.items() if name != cluster})


class BadLedger(ValueError):
    """A ledger that cannot be read."""


def read_ledger(text: str) -> Ledger:
    """The ledger of an annotation; an empty one if there is none."""
    if not text:
        return Ledger()
    try:
        found = msgspec.json.decode(text, type=dict[str, list[tuple[int, str, int, int, int, int]]])
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise BadLedger(f"the ledger of the alignment cannot be read: {error}") from None
    return Ledger({name: tuple(Spec(*one) for one in specs) for name, specs in found.items() if specs})


def ledger_text(ledger: Ledger) -> str:
    """The annotation: numbers in a fixed order, clusters by name."""
    plain = {
        name: [(one.seq, one.template, one.replicas, one.unavailable, one.surge, one.partition) for one in specs]
        for name, specs in sorted(ledger.specs.items())
    }
    return msgspec.json.encode(plain).decode()

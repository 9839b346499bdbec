"""Dialect: which of two readings of the fleet's API holds where they disagree.

The seeds' documents and today's KubeFleet differ in a few defaults, columns and patterns. Everything else is the same.
"""

from __future__ import annotations

from enum import StrEnum


class Dialect(StrEnum):
    """`seed` is what the seeds describe, and the default; `kubefleet` is what KubeFleet does today."""

    seed = "seed"
    kubefleet = "kubefleet"

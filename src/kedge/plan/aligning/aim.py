"""Aim: the budget of the whole workload, and what a cluster waits for until it may have a part of it.

Promises the arithmetic of all clusters together: how few pods may be available, how many there may be, and how many of
those may have the wanted template.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Aim(Struct, frozen=True):
    """The budget of the whole workload, in pods."""

    replicas: int
    unavailable: int
    surge: int = 0
    partition: int = 0
    is_partitioned: bool = False
    """Whether the kind has a partition, which says pod by pod how far it goes."""
    recreates: bool = False
    """Whether the kind takes all its pods away before it creates new ones."""
    is_paused: bool = False

    @property
    def fewest(self) -> int:
        return max(0, self.replicas - self.unavailable)

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def moved(self) -> int:
        """How many pods are to have the wanted template in the end."""
        return max(0, self.replicas - self.partition)

    @property
    def most_updated(self) -> int:
        """How many pods of the wanted template there may be: all, if none are to be kept back."""
        return self.moved if self.partition else self.most


class AlignCode(StrEnum):
    """What a cluster waits for."""

    unacknowledged = "Unacknowledged"
    """It has not reported yet that it acts on what was written last."""
    unreachable = "Unreachable"
    """It is not heard from."""
    suspended = "Suspended"
    """Nothing is written to it for now, as somebody said."""
    overridden = "Overridden"
    """Its strategy is decided on by somebody else."""
    paused = "Paused"
    """The template is paused."""
    rolling = "Rolling"
    """It replaces its pods, with what it holds of the budget."""
    creating = "Creating"
    """Its pods are being created."""
    budget_spent = "BudgetSpent"
    """As many pods as may be unavailable are, or may yet be; and as many as there may be too many are."""
    broken = "BrokenPods"
    """Too few pods would be left if those that do not work now work again by then."""
    unproven = "Unproven"
    """As many pods as may have the template unproven do, or may yet."""
    no_room = "NoRoom"
    """As many pods as there may be are there, or may yet be."""
    starting = "StartingPods"
    """Pods that do not work would be given up if others did not perhaps only start: time will tell."""
    too_few = "TooFew"
    """Its pods are needed until others are available."""
    kept_back = "Partition"
    """As many pods as the partition lets through have the template, or may yet have it."""
    recreates = "Recreates"
    """It would take all its pods away at once, and that is more than may be unavailable."""

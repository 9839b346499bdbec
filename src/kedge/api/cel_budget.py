"""Budget: how much one evaluation of an expression may cost, and how large what it makes may become.

    budget = Budget()
    budget.spend(1)                 # a step
    budget.spend_on_text(len(text)) # what reads or makes a text

Everything an evaluation does is paid for before it is done, so that no expression takes longer, or more memory, than
the budget buys, whatever it is applied to. As in kube-apiserver what costs too much has no value: `TooCostly` is no
error that `||` could pass over.
"""

from __future__ import annotations

from typing import Final

STEPS: Final = 100_000
LONGEST_TEXT: Final = 2_000_000  # characters: more than any object of Kubernetes has
MOST_ITEMS: Final = 100_000
CHARACTERS_PER_STEP: Final = 100
WORK_PER_STEP: Final = 500  # characters times instructions of a regular expression


class Failed(Exception):
    """An expression that cannot be worked out for these values."""


class TooCostly(Exception):
    """An evaluation that needs more than it may have, and what of."""


class Budget:
    """What is left to one evaluation."""

    def __init__(self, steps: int = STEPS) -> None:
        self._all = self._left = steps

    @property
    def spent(self) -> int:
        return self._all - self._left

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooCostly(f"it takes more than {self._all} steps")

    def spend_on_text(self, length: int) -> None:
        """Read or make a text of this length."""
        if length > LONGEST_TEXT:
            raise TooCostly(f"it makes a text of more than {LONGEST_TEXT} characters")
        self.spend(1 + length // CHARACTERS_PER_STEP)

    def spend_on_items(self, count: int) -> None:
        """Read or make a list of this length."""
        if count > MOST_ITEMS:
            raise TooCostly(f"it makes a list of more than {MOST_ITEMS} items")
        self.spend(1 + count)

    def spend_on_match(self, length: int, instructions: int) -> None:
        """Match a text of this length with a regular expression of that size: linear in both."""
        self.spend(1 + length * instructions // WORK_PER_STEP)

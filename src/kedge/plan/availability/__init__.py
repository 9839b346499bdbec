"""Availability: does what was applied do its work? Judged from the object alone, as its cluster shows it."""

from kedge.plan.availability.kinds import judge
from kedge.plan.availability.rule import rule_problem
from kedge.plan.availability.verdict import Verdict

__all__ = ["Verdict", "judge", "rule_problem"]

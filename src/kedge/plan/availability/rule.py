"""Rule: when an object is available, as its owner says it in CEL.

    metadata:
      annotations:
        kedge.dev/available-when: self.status.phase == 'Ready'

The rule takes the place of what is built in for the kind, if anything is. It sees the object as `self` and comes to
true or false. One that does not compile, or cannot be worked out, leaves the object not available and says so. Whoever
may edit a placed object may write one: it is worked out within a budget, and what needs more cannot be evaluated. A
rule that reads the status reads none that is behind: where the object has an observedGeneration, it must be of this
generation, unless the rule looks at observedGeneration itself.
"""

from __future__ import annotations

from functools import lru_cache

from kedge.api.cel import BadExpression
from kedge.api.cel_budget import Failed, TooCostly
from kedge.api.cel_metered import MeteredProgram, metered
from kedge.api.fleet import AVAILABLE_WHEN
from kedge.plan.availability.verdict import Verdict, available, because, not_available, not_observed
from kedge.plan.fields import Object, at, is_observed, name_of, text

LONGEST = 5_000
_LONGEST_SHOWN = 200
_MARK = "ERROR: <input>:"


def judge(obj: Object, rule: str) -> Verdict:
    """Whether an object is what its rule asks for."""
    program = _program(rule)
    if isinstance(program, str):
        return not_available(f"{name_of(obj)} has a rule that cannot be used, {_called(rule)}{because(program)}")
    if _reads_the_past(obj, rule):
        return not_available(not_observed(obj))
    try:
        found = program.value({"self": obj})
    except TooCostly as error:
        why = f"{name_of(obj)} has a rule that cannot be evaluated, {_called(rule)}"
        return not_available(f"{why}{because(f'{error}: make it shorter, or look at less')}")
    except Failed as error:
        return not_available(f"{name_of(obj)} does not meet its rule, {_called(rule)}{_words(obj, error)}")
    return _decided(obj, rule, found)


def rule_problem(rule: str) -> str | None:
    """What is wrong with a rule; None if nothing is."""
    program = _program(rule)
    return program if isinstance(program, str) else None


def _decided(obj: Object, rule: str, found: object) -> Verdict:
    if found is True:
        return available(f"{name_of(obj)} meets its rule, {_called(rule)}")
    if found is False:
        return not_available(f"{name_of(obj)} does not meet its rule, {_called(rule)}")
    return not_available(f"{name_of(obj)} has a rule that came to neither true nor false, {_called(rule)}")


def _reads_the_past(obj: Object, rule: str) -> bool:
    if "status" not in rule or "observedGeneration" in rule:
        return False
    return at(obj, "status", "observedGeneration") is not None and not is_observed(obj)


@lru_cache(maxsize=64)
def _program(rule: str) -> MeteredProgram | str:
    """The rule, ready to be used; or what is wrong with it."""
    if len(rule) > LONGEST:
        return f"it has {len(rule)} characters, and may have {LONGEST}"
    try:
        program = metered(rule, {"self": "DYN"})
    except BadExpression as error:
        return f"it does not compile: {_in_one_line(str(error))}"
    if program.type not in ("BOOL", "DYN"):
        return f"it comes to {program.type.lower()}, and must come to true or false"
    return program


def _in_one_line(said: str) -> str:
    """The compiler's complaints, without the lines that draw where they are."""
    marked = [line.removeprefix(_MARK) for line in said.split("\n") if line.startswith(_MARK)]
    return "; ".join(f"at {line}" for line in marked) or said


def _words(obj: Object, error: Failed) -> str:
    """What went wrong; not of Secrets, since it may quote a value."""
    return ": it cannot be worked out" if text(obj, "kind") == "Secret" else because(str(error))


def _called(rule: str) -> str:
    shown = rule if len(rule) <= _LONGEST_SHOWN else f"{rule[:_LONGEST_SHOWN]}…"
    return f"{AVAILABLE_WHEN}: {shown}"

"""Rules of one's own, in CEL: `kedge.dev/available-when`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kedge.plan.availability import judge, rule_problem
from plan.availability.objects import condition, deployment, ruled

PHASE = "self.status.phase == 'Ready'"
READY = "self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"

MET = {
    "a phase": ruled(PHASE, {"phase": "Ready"}),
    "a condition": ruled(READY, {"conditions": [condition("Ready", "True")]}),
    "numbers of spec and status": ruled("self.status.ready >= self.spec.wanted", {"ready": 3}),
    "something that need not be there": ruled("!has(self.status) || self.status.phase == 'Ready'"),
    "Kubernetes' own functions": ruled("quantity(self.status.size).isGreaterThan(quantity('1Gi'))", {"size": "2Gi"}),
    "an optional member": ruled("self.?status.?phase.orValue('Ready') == 'Ready'"),
    "nothing": ruled("true"),
    "nothing, with a status that is behind": ruled("true", {"observedGeneration": 1}),
    "a status of this generation": ruled(PHASE, {"phase": "Ready", "observedGeneration": 2}),
    "a rule that takes care of generations": ruled(
        "self.status.observedGeneration <= self.metadata.generation", {"observedGeneration": 1}
    ),
}

UNMET = {
    "another phase": (
        ruled(PHASE, {"phase": "Pending"}),
        f"Widget shop/web does not meet its rule, kedge.dev/available-when: {PHASE}",
    ),
    "no status": (
        ruled(PHASE),
        f"Widget shop/web does not meet its rule, kedge.dev/available-when: {PHASE}: no such key: status",
    ),
    "never": (ruled("false"), "Widget shop/web does not meet its rule, kedge.dev/available-when: false"),
    "a status that is behind": (
        ruled(PHASE, {"phase": "Ready", "observedGeneration": 1}),
        "Widget shop/web has a status that is behind: it is of generation 1, not of 2",
    ),
    "a text compared with a number": (
        ruled("self.status.phase > 3", {"phase": "Ready"}),
        "Widget shop/web does not meet its rule, kedge.dev/available-when: self.status.phase > 3: no such overload",
    ),
    "what turns out to be no truth": (
        ruled("self.status.phase", {"phase": "Ready"}),
        "Widget shop/web has a rule that came to neither true nor false, kedge.dev/available-when: self.status.phase",
    ),
    "what is known to be no truth": (
        ruled("'yes'"),
        (
            "Widget shop/web has a rule that cannot be used, kedge.dev/available-when: 'yes': "
            "it comes to string, and must come to true or false"
        ),
    ),
    "what never ends": (
        ruled("self.l.all(x, self.l.all(y, self.l.all(z, x + y + z >= 0)))", l=[]) | {"l": list(range(300))},
        (
            "Widget shop/web has a rule that cannot be evaluated, kedge.dev/available-when: "
            "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z >= 0))): "
            "it takes more than 100000 steps: make it shorter, or look at less"
        ),
    ),
}

HOSTILE = {
    "a pattern that backtracks": ("self.data.a.find('^(a+)+$') == 'b'", ""),
    "what is replaced in what was replaced": (
        "self.data.a" + ".replace('a', 'aaaaaaaaaa')" * 12 + ".size() > 0",
        "it makes a text of more than 2000000 characters",
    ),
    "a long list": ("lists.range(1000000000).size() > 0", "it makes a list of more than 100000 items"),
    "copies": ("lists.range(9000).map(x, self.data.a + 'b').size() > 0", "it takes more than 100000 steps"),
    "what || would hide": ("lists.range(1000000000).size() > 0 || true", "it makes a list of more than 100000 items"),
}

BROKEN = {
    "": "Syntax error",
    "self.status.": "Syntax error",
    "self.status.phase = 'Ready'": "Syntax error",
    "self.status.phase == 'Ready": "Syntax error",
    "object.status.phase == 'Ready'": "it does not compile: at 1:14: undeclared reference to 'object.status.phase'",
    "self.status.phase.ends('y')": "undeclared reference to 'ends'",
    "1 + 'a' == 2": "found no matching overload",
    "size(self.spec)": "it comes to int, and must come to true or false",
    "true" + " && true" * 2000: "it has 16004 characters, and may have 5000",
    "["
    + ",".join(["self.?a.optMap(v, v).optMap(v, v).optMap(v, v)"] * 60)
    + "].size() > 0": "too large once its macros are expanded",
    "'%s'.format([self.a]) == 'x'": "format is not known here",
    "google.protobuf.Int64Value{value: 1} == 1": "does not compile",
    "(" * 400 + "true" + ")" * 400: "does not compile",
}


@pytest.mark.parametrize("row", MET)
def test_an_object_that_meets_its_rule_is_available(row: str) -> None:
    verdict = judge(MET[row])
    assert (verdict.available, verdict.trackable) == (True, True), verdict.message


@pytest.mark.parametrize("row", UNMET)
def test_an_object_that_does_not_is_not_available_and_names_the_rule(row: str) -> None:
    obj, message = UNMET[row]
    verdict = judge(obj)
    assert (verdict.available, verdict.trackable, verdict.message) == (False, True, message)


@pytest.mark.parametrize("row", HOSTILE)
def test_a_hostile_rule_is_not_evaluated_and_stops_nobody(row: str) -> None:
    rule, reason = HOSTILE[row]
    verdict = judge({**ruled(rule), "data": {"a": "a" * 500_000 + "!"}})
    assert not verdict.available
    assert ("has a rule that cannot be evaluated" in verdict.message) == bool(reason)
    assert reason in verdict.message


@pytest.mark.parametrize("rule", BROKEN)
def test_a_rule_that_cannot_be_used_is_never_skipped(rule: str) -> None:
    problem = rule_problem(rule)
    assert problem is not None
    assert BROKEN[rule] in problem
    verdict = judge(ruled(rule, {"phase": "Ready"}))
    assert not verdict.available
    assert "has a rule that cannot be used, kedge.dev/available-when: " in verdict.message
    assert problem[:500] in verdict.message


@pytest.mark.parametrize("rule", ["true", PHASE, READY, "self.spec.anything"])
def test_a_rule_that_can_be_used_has_no_problem(rule: str) -> None:
    assert rule_problem(rule) is None


def test_a_rule_takes_the_place_of_what_is_built_in() -> None:
    half = deployment(updatedReplicas=1)
    half["metadata"]["annotations"] = {"kedge.dev/available-when": "self.status.updatedReplicas >= 1"}
    assert judge(half).available


def test_nobody_loads_the_engine_without_a_rule() -> None:
    program = (
        "import sys; from kedge.plan.availability import judge; "
        "judge({'apiVersion': 'example.com/v1', 'kind': 'Widget'}); "
        "assert not [name for name in sys.modules if name.startswith('cel_expr_python')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_value_of_a_secret_is_never_repeated() -> None:
    annotations = {"kedge.dev/available-when": "int(self.data.password) > 0"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "annotations": annotations}}
    assert "hunter2" not in judge({**secret, "data": {"password": "hunter2"}}).message


def test_of_a_long_complaint_the_beginning_is_repeated() -> None:
    verdict = judge(ruled(" || ".join(f"nobody{number}" for number in range(200))))
    assert not verdict.available
    assert len(verdict.message) < 1000

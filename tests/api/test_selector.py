"""Label selectors, held against Go's rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.selector import InvalidSelector, LabelSelector, LabelSelectorRequirement, selects


def expressions(*parts: tuple[str, str, tuple[str, ...]]) -> LabelSelector:
    requirements = (
        LabelSelectorRequirement(key=key, operator=operator, values=values) for key, operator, values in parts
    )
    return LabelSelector(match_expressions=tuple(requirements))


LABELS = {"env": "prod", "tier": "", "example.com/zone": "a"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (LabelSelector(), True),
        (LabelSelector(match_labels={"env": "prod"}), True),
        (LabelSelector(match_labels={"env": "prod", "tier": ""}), True),
        (LabelSelector(match_labels={"env": "test"}), False),
        (LabelSelector(match_labels={"absent": ""}), False),
        (expressions(("env", "In", ("test", "prod"))), True),
        (expressions(("env", "In", ("test",))), False),
        (expressions(("absent", "In", ("",))), False),
        (expressions(("env", "NotIn", ("test",))), True),
        (expressions(("env", "NotIn", ("prod",))), False),
        (expressions(("absent", "NotIn", ("prod",))), True),
        (expressions(("tier", "Exists", ())), True),
        (expressions(("absent", "Exists", ())), False),
        (expressions(("absent", "DoesNotExist", ())), True),
        (expressions(("tier", "DoesNotExist", ())), False),
        (expressions(("env", "Exists", ()), ("example.com/zone", "In", ("a",))), True),
        (expressions(("env", "Exists", ()), ("example.com/zone", "In", ("b",))), False),
    ],
)
def test_a_selector_matches_what_kubernetes_matches(selector: LabelSelector, expected: bool) -> None:
    assert selector.matches(LABELS) is expected


def test_labels_and_expressions_must_both_hold() -> None:
    requirement = LabelSelectorRequirement(key="tier", operator="Exists")
    assert LabelSelector(match_labels={"env": "prod"}, match_expressions=(requirement,)).matches(LABELS)
    assert not LabelSelector(match_labels={"env": "test"}, match_expressions=(requirement,)).matches(LABELS)


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not selects(None, LABELS)
    assert selects(LabelSelector(), LABELS)
    assert selects(LabelSelector(), {})


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (expressions(("env", "Like", ("p",))), "'Like' is none of In, NotIn, Exists, DoesNotExist"),
        (expressions(("env", "In", ())), "In on 'env' takes some values"),
        (expressions(("env", "NotIn", ())), "NotIn on 'env' takes some values"),
        (expressions(("env", "Exists", ("x",))), "Exists on 'env' takes no values"),
        (expressions(("env", "DoesNotExist", ("x",))), "DoesNotExist on 'env' takes no values"),
        (expressions(("", "Exists", ())), "'' cannot be a label's key"),
        (expressions(("-env", "Exists", ())), "'-env' cannot be a label's key"),
        (expressions(("Example.com/env", "Exists", ())), "'Example.com/env' cannot be a label's key"),
        (expressions(("/env", "Exists", ())), "'/env' cannot be a label's key"),
        (expressions(("a/b/c", "Exists", ())), "'a/b/c' cannot be a label's key"),
        (expressions(("x" * 64, "Exists", ())), "cannot be a label's key"),
        (expressions(("env", "In", ("no spaces",))), "'no spaces' cannot be a label's value"),
        (LabelSelector(match_labels={"env": "x" * 64}), "cannot be a label's value"),
        (LabelSelector(match_labels={"no spaces": "x"}), "'no spaces' cannot be a label's key"),
    ],
)
def test_an_invalid_selector_says_what_is_wrong_whatever_the_labels(selector: LabelSelector, words: str) -> None:
    for labels in ({}, LABELS):
        with pytest.raises(InvalidSelector, match=words.replace("(", r"\(")):
            selector.matches(labels)


def test_an_invalid_part_is_found_also_behind_one_that_does_not_match() -> None:
    with pytest.raises(InvalidSelector):
        expressions(("absent", "Exists", ()), ("env", "Like", ())).matches(LABELS)


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "x", "y"])


@given(st.dictionaries(KEYS, VALUES), KEYS, st.lists(VALUES, min_size=1).map(tuple))
def test_not_in_is_the_opposite_of_in_and_does_not_exist_of_exists(
    labels: dict[str, str], key: str, values: tuple[str, ...]
) -> None:
    assert expressions((key, "NotIn", values)).matches(labels) != expressions((key, "In", values)).matches(labels)
    assert expressions((key, "DoesNotExist", ())).matches(labels) != expressions((key, "Exists", ())).matches(labels)

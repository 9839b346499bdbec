"""Selectors: the grammar of kube-apiserver v1.36, and its words for what it cannot read."""

import pytest

from kedge.embedded import selectors
from kedge.embedded.ownership.field_owners import NO_OWNERS
from kedge.embedded.selectors import Selection
from kedge.embedded.statuses import Refused
from kedge.embedded.store import Version

UNREAD = "unable to parse requirement: "


def labelled(**labels: str) -> Version:
    return Version("shop/web", 1, b"", labels, {"status.phase": "Running"}, NO_OWNERS)


@pytest.mark.parametrize(
    ("selector", "yes", "no"),
    [
        ("", [{}, {"a": "b"}], []),
        ("a", [{"a": ""}, {"a": "b"}], [{}]),
        ("!a", [{}, {"b": ""}], [{"a": ""}]),
        ("! a", [{}], [{"a": "b"}]),
        ("a=b", [{"a": "b"}], [{}, {"a": "c"}, {"a": ""}]),
        ("a==b", [{"a": "b"}], [{}]),
        ("a=", [{"a": ""}], [{}, {"a": "b"}]),
        ("a!=b", [{}, {"a": "c"}], [{"a": "b"}]),
        ("a in (b,c)", [{"a": "b"}, {"a": "c"}], [{}, {"a": "d"}]),
        ("a in(b)", [{"a": "b"}], [{}]),
        ("a in ()", [{"a": ""}], [{}, {"a": "b"}]),
        ("a in (b,,c)", [{"a": ""}, {"a": "c"}], [{}]),
        ("a notin (b,c)", [{}, {"a": "d"}], [{"a": "b"}]),
        ("a>1", [{"a": "2"}, {"a": "10"}], [{}, {"a": "1"}, {"a": "x"}, {"a": ""}]),
        ("a<1", [{"a": "0"}, {"a": "-7"}], [{}, {"a": "1"}, {"a": "x"}]),
        ("a,b", [{"a": "", "b": ""}], [{"a": ""}, {"b": ""}]),
        ("  a  =  b  , !c", [{"a": "b"}], [{"a": "b", "c": ""}]),
        ("x.io/a=b", [{"x.io/a": "b"}], [{"a": "b"}]),
        ("in in (in)", [{"in": "in"}], [{}]),
        ("notin", [{"notin": ""}], [{}]),
    ],
)
def test_label_selectors_want(selector: str, yes: list[dict[str, str]], no: list[dict[str, str]]) -> None:
    wanted = Selection("", selectors.parse_label_selector(selector))
    assert [wanted.matches(labelled(**labels)) for labels in yes] == [True] * len(yes)
    assert [wanted.matches(labelled(**labels)) for labels in no] == [False] * len(no)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("a,", "found '', expected: identifier after ','"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", UNREAD + "found '', expected: identifier"),
        ("a b", UNREAD + "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a gt 1", UNREAD + "found 'gt', expected: in, notin, =, ==, !=, gt, lt"),
        ("a!b", UNREAD + "found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("a===b", UNREAD + "found '=', expected: identifier"),
        ("a=>", UNREAD + "found '>', expected: identifier"),
        ("a notin", UNREAD + "found '' expected: '('"),
        ("a in b", UNREAD + "found 'b' expected: '('"),
        ("a in (b", UNREAD + "found '', expected: ',' or ')'"),
        ("a<x", UNREAD + "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
)
def test_a_label_selector_that_cannot_be_read_is_refused(selector: str, message: str) -> None:
    with pytest.raises(Refused) as refused:
        selectors.parse_label_selector(selector)
    assert (refused.value.code, str(refused.value)) == (400, message)


@pytest.mark.parametrize(
    ("selector", "beginning"),
    [
        ("x/y/z=1", UNREAD + '<nil>: Invalid value: "x/y/z": a valid label key must consist of'),
        ("-a=b", UNREAD + '<nil>: Invalid value: "-a": name part must consist of'),
        ("a=-b", UNREAD + 'values[0][a]: Invalid value: "-b": a valid label must be an empty string or'),
    ],
)
def test_a_label_selector_that_no_label_can_match_is_refused(selector: str, beginning: str) -> None:
    with pytest.raises(Refused) as refused:
        selectors.parse_label_selector(selector)
    assert str(refused.value).startswith(beginning)


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("", True),
        (",", True),
        ("metadata.name=web", True),
        ("metadata.name==web", True),
        ("metadata.name=web,", True),
        ("metadata.name!=web", False),
        ("metadata.name=", False),
        ("metadata.name=web,metadata.namespace=shop", True),
        ("metadata.name=web,metadata.namespace!=shop", False),
        ("metadata.name=web\\,x", False),
        ("status.phase=Running", True),
        ("status.phase!=Running", False),
    ],
)
def test_field_selectors_want(selector: str, wanted: bool) -> None:
    fields = selectors.parse_field_selector(selector, {"status.phase": ""})
    assert Selection("", (), fields).matches(labelled()) is wanted


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("=a", '"" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("spec.x=a", '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        ("metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"),
        ("metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_field_selector_that_cannot_be_read_is_refused(selector: str, message: str) -> None:
    with pytest.raises(Refused) as refused:
        selectors.parse_field_selector(selector, {})
    assert (refused.value.code, str(refused.value)) == (400, message)


@pytest.mark.parametrize(
    ("namespace", "matches"), [("", True), ("shop", True), ("sho", False), ("shop2", False), ("other", False)]
)
def test_a_namespace_is_wanted_whole(namespace: str, matches: bool) -> None:
    assert Selection(namespace).matches(labelled()) is matches

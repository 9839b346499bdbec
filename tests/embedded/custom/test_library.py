"""Kubernetes' own functions in rules, and what rules may not be."""

from typing import Any

import pytest

from kedge.embedded.custom.cel_rules import BadExpression, Failed, compile_expression
from kedge.embedded.custom.cel_types import DYN


def value(source: str, **variables: Any) -> Any:
    return compile_expression(source, dict.fromkeys(variables, DYN)).value(variables)


@pytest.mark.parametrize(
    "source",
    [
        "[1, 2, 2].isSorted() && ![2, 1].isSorted()",
        "[1, 2, 3].sum() == 6 && [1.5, 1.0].sum() == 2.5",
        "[3, 1].min() == 1 && ['a', 'c', 'b'].max() == 'c'",
        "['a', 'b', 'a'].indexOf('a') == 0 && ['a', 'b', 'a'].lastIndexOf('a') == 2 && ['a'].indexOf('x') == -1",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2]].flatten() == [1, 2]",
        "[2, 1, 2].distinct() == [2, 1] && [2, 1].sort() == [1, 2] && [1, 2].reverse() == [2, 1]",
        "sets.contains([1, 2], [1]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 2], [2, 1, 1])",
        "'abc123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "'a1b2'.findAll('[0-9]', 1) == ['1'] && 'ab'.find('[0-9]') == ''",
        "url('https://a.b:8080/x/y?k=v').getHost() == 'a.b:8080' && url('https://a.b:8080/x').getHostname() == 'a.b'",
        "url('https://a.b:8080/x?k=v').getPort() == '8080' && url('https://a.b/x?k=v').getQuery() == {'k': ['v']}",
        "isURL('/path') && !isURL('not a url') && url('https://a.b/x%20y').getEscapedPath() == '/x%20y'",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1000m') == quantity('1')",
        "quantity('1').add(quantity('500m')).compareTo(quantity('1500m')) == 0",
        "quantity('3').sub(1).asInteger() == 2",
        "quantity('2k').asInteger() == 2000 && !quantity('1500m').isInteger() && quantity('-1').sign() == -1",
        "isQuantity('10Mi') && !isQuantity('ten') && quantity('1500m').asApproximateFloat() == 1.5",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('x') && ip('127.0.0.1').isLoopback()",
        "cidr('10.0.0.0/8').containsIP('10.2.3.4') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.0.0.0/8').prefixLength() == 8 && isCIDR('::/0') && !isCIDR('10.0.0.0')",
        "'a,b'.split(',') == ['a', 'b'] && ' x '.trim() == 'x' && 'ab'.upperAscii() == 'AB'",
        "'%s'.format(['x']) == 'x' && optional.of(1).orValue(0) == 1",
    ],
)
def test_a_function_does_what_it_does_in_kubernetes(source: str) -> None:
    assert value(source) is True


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("quantity('x').isInteger()", "quantities must match the regular expression"),
        ("[].min() == 1", "min called on empty list"),
        ("ip('x').family() == 4", "'x' does not appear to be an IPv4 or IPv6 address"),
        ("[1, 2].slice(1, 9) == []", "cannot slice(1, 9)"),
        ("[dyn(1), dyn('a')].isSorted()", "no such overload"),
        ("a.b == 1", "no such key: b"),
        ("[1][3] == 1", "index out of bounds: 3"),
        ("1 / (1 - 1) == 1", "division by zero"),
    ],
)
def test_what_cannot_be_worked_out_says_why(source: str, said: str) -> None:
    with pytest.raises(Failed, match=r".*") as failed:
        value(source, a={})
    assert str(failed.value).startswith(said)


@pytest.mark.parametrize(
    "source",
    [
        "[1].all(i, v, v > 0)",
        "semver('1.2.3').major() == 1",
        "authorizer.path('/x').check('get').allowed()",
        "cel.bind(x, 1, x == 1)",
        "math.greatest(1, 2) == 2",
    ],
)
def test_what_is_not_spoken_here_is_refused_and_not_skipped(source: str) -> None:
    with pytest.raises(BadExpression):
        compile_expression(source, {})

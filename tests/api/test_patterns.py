"""Patterns mean here what they mean to RE2."""

import pytest

from kedge.api.patterns import BadPattern, bounded, compiled


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^a+$", "aaa", True),
        ("^a+$", "aaa\n", False),
        ("a", "xay", True),
        (r"^\d$", "٣", False),
        (r"^\w$", "é", False),
        (r"^a\z", "a", True),
        (r"^[[:alpha:]_]+$", "ab_", True),
        (r"^[[:digit:]]$", "a", False),
        (r"^[$]$", "$", True),
        (r"^[]a]$", "]", True),
        (r"^[^]a]$", "]", False),
        (r"^\$$", "$", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        ("(?i)^abc$", "ABC", True),
        (r"^[\]x]$", "]", True),
        (r"^[a[b]$", "[", True),
    ],
)
def test_a_pattern_fits_as_it_does_in_kubernetes(pattern: str, text: str, fits: bool) -> None:
    assert bool(compiled(pattern).search(text)) is fits


def test_a_pattern_takes_time_by_the_length_of_the_text_alone() -> None:
    assert compiled("^(a+)+$").search("a" * 1_000_000 + "!") is None


@pytest.mark.parametrize("pattern", ["(", "[", "a**", "(?=a)", r"\Z", "(a{1000}){1000}"])
def test_what_cannot_be_carried_out_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        compiled(pattern)


def test_a_pattern_of_a_user_must_be_smaller() -> None:
    large = "a{1000}" * 100
    assert compiled(large).search("a") is None
    with pytest.raises(BadPattern):
        bounded(large)


def test_the_groups_of_a_pattern_are_told() -> None:
    pattern = bounded("^(a)?(b)$")
    found = pattern.search("b")
    assert found is not None
    assert (pattern.groups, found.groups()) == (2, (None, "b"))

"""Numbers, names, times and lists as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kedge.plan.text import age, cut, first, listed, moment, natural, object_name, path_of


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], 3, ""),
        (["a"], 3, "a"),
        (["a", "b"], 3, "a and b"),
        (["a", "b", "c"], 3, "a, b and c"),
        (["a", "b", "c", "d"], 3, "a, b, c and 1 more"),
    ],
)
def test_a_list_names_at_most_so_many(names: list[str], most: int, text: str) -> None:
    assert listed(names, most) == text


def test_a_list_names_five_by_default() -> None:
    assert listed("abcde") == "a, b, c, d and e"
    assert listed("abcdef") == "a, b, c, d, e and 1 more"


def test_the_first_three_of_many_sentences_are_given_and_the_rest_is_counted() -> None:
    assert first(["a", "b", "c"]) == "a; b; c"
    assert first(["a", "b", "c", "d"]) == "a; b; c; and 1 more"


@pytest.mark.parametrize(("message", "text"), [("abc", "abc"), ("abcd", "abcd"), ("abcde", "abc…")])
def test_a_message_longer_than_the_limit_is_cut_to_it(message: str, text: str) -> None:
    assert cut(message, 4) == text


def test_an_object_is_named_by_kind_and_path() -> None:
    assert (path_of(None, "web"), path_of("shop", "web")) == ("web", "shop/web")
    assert object_name("Deployment", "shop", "web") == "Deployment shop/web"
    assert object_name("Namespace", None, "shop") == object_name("Namespace", "", "shop") == "Namespace shop"


def test_a_time_is_in_utc_and_whole_seconds() -> None:
    at = datetime(2030, 1, 1, 1, 30, 5, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert moment(at) == "2029-12-31T23:30:05Z"
    assert moment(at.astimezone(UTC)) == moment(at)


def test_names_are_sorted_by_the_numbers_in_them() -> None:
    assert sorted(["c-10", "c-2", "c", "2", "10"], key=natural) == ["c", "c-2", "c-10", "2", "10"]
    assert natural("c-0") < natural("c-1")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7199, "119m"),
        (7200, "2h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (86_399 * 3, "2d"),
    ],
)
def test_an_age_is_in_the_largest_unit_of_which_there_are_two(seconds: int, text: str) -> None:
    assert age(timedelta(seconds=seconds)) == text

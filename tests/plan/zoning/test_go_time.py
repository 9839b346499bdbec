"""Times as annotations carry them, and as Go prints them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.text import moment
from kedge.plan.zoning.go_time import parse_rfc3339, print_moment


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2024-05-01T10:00:00Z", "2024-05-01 10:00:00 +0000 UTC"),
        ("2024-05-01T10:00:00+00:00", "2024-05-01 10:00:00 +0000 UTC"),
        ("2024-05-01T10:00:00+02:00", "2024-05-01 10:00:00 +0200 +0200"),
        ("2024-05-01T10:00:00-03:30", "2024-05-01 10:00:00 -0330 -0330"),
        ("2024-05-01T10:00:00.5Z", "2024-05-01 10:00:00.5 +0000 UTC"),
        ("2024-05-01T10:00:00.000001Z", "2024-05-01 10:00:00.000001 +0000 UTC"),
        ("2024-05-01T10:00:00.123456789Z", "2024-05-01 10:00:00.123456 +0000 UTC"),
        ("0001-01-01T00:00:00Z", "0001-01-01 00:00:00 +0000 UTC"),
    ],
)
def test_a_time_is_printed_as_Go_does(text: str, printed: str) -> None:
    assert print_moment(parse_rfc3339(text)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-05-01",
        "2024-05-01T10:00:00",
        "2024-05-01 10:00:00Z",
        "2024-05-01t10:00:00z",
        "20240501T100000Z",
        "2024-W18-3T10:00:00Z",
        "2024-05-32T10:00:00Z",
        "2024-13-01T10:00:00Z",
        "2024-05-01T24:00:01Z",
        "0000-01-01T00:00:00Z",
        "2024-05-01T10:00:00+25:00",
        "1714557600",
        "٢٠٢٤-05-01T10:00:00Z",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_rfc3339(text)


ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 1), timezones=ZONES)  # noqa: DTZ001  # the zone is added


@given(MOMENTS)
def test_what_is_written_can_be_read_again_to_the_second(at: datetime) -> None:
    assert parse_rfc3339(moment(at)) == at.astimezone(UTC).replace(microsecond=0)


@given(MOMENTS)
def test_a_time_keeps_its_zone(at: datetime) -> None:
    assert parse_rfc3339(at.isoformat()) == at
    assert print_moment(at).endswith("UTC") == (at.utcoffset() == timedelta())

"""Moments with six digits after the second."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given

from api.properties import MOMENTS
from kedge.api.times import format_micro_time, parse_micro_time


def test_a_full_second_keeps_its_six_digits() -> None:
    assert format_micro_time(datetime(2025, 3, 12, 6, 15, 21, tzinfo=UTC)) == "2025-03-12T06:15:21.000000Z"


def test_other_time_zones_are_written_in_utc() -> None:
    moment = datetime(2025, 3, 12, 8, 15, 21, tzinfo=timezone(timedelta(hours=2)))
    assert format_micro_time(moment) == "2025-03-12T06:15:21.000000Z"


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        parse_micro_time("2025-03-12T06:15:21.000000")


@given(MOMENTS)
def test_what_is_written_reads_back_the_same(moment: datetime) -> None:
    assert parse_micro_time(format_micro_time(moment)) == moment

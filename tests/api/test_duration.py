"""Durations, as Go reads and prints them, and as Prometheus reads them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.times import format_duration, parse_duration, parse_prometheus_duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h", timedelta(hours=1)),
        ("1.5h", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("300ms", timedelta(milliseconds=300)),
        ("1h0m0s", timedelta(hours=1)),
        ("0", timedelta()),
        ("-0", timedelta()),
        ("0s", timedelta()),
        (".5s", timedelta(milliseconds=500)),
        ("1.s", timedelta(seconds=1)),
        ("-1m", timedelta(minutes=-1)),
        ("+1m", timedelta(minutes=1)),
        ("2us", timedelta(microseconds=2)),
        ("2µs", timedelta(microseconds=2)),
        ("2μs", timedelta(microseconds=2)),
        ("1999ns", timedelta(microseconds=1)),
        ("1s1s", timedelta(seconds=2)),
        ("0.000001s", timedelta(microseconds=1)),
        ("2562047h", timedelta(hours=2562047)),
    ],
)
def test_a_text_means_a_length(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "1", "h", "1d", "1h ", " 1h", "1 h", "--1h", "1h-30m", "1e3s", ".s", "00", "+", "2562048h", "1H"]
)
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (timedelta(), "0s"),
        (timedelta(hours=1), "1h0m0s"),
        (timedelta(minutes=90), "1h30m0s"),
        (timedelta(days=2, seconds=1), "48h0m1s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(minutes=1, microseconds=1), "1m0.000001s"),
        (timedelta(milliseconds=300), "300ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=7), "7µs"),
        (timedelta(seconds=-10), "-10s"),
    ],
)
def test_a_length_prints_as_go_prints_it(length: timedelta, expected: str) -> None:
    assert format_duration(length) == expected


@given(st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)))
def test_what_is_printed_reads_back_the_same(length: timedelta) -> None:
    assert parse_duration(format_duration(length)) == length


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", timedelta()),
        ("0s", timedelta()),
        ("1h", timedelta(hours=1)),
        ("1d", timedelta(days=1)),
        ("1w", timedelta(days=7)),
        ("1y", timedelta(days=365)),
        ("1h30m", timedelta(minutes=90)),
        ("20m", timedelta(minutes=20)),
        ("90m", timedelta(minutes=90)),
        ("1s500ms", timedelta(seconds=1.5)),
        ("1y2w3d4h5m6s7ms", timedelta(days=382, hours=4, minutes=5, seconds=6, milliseconds=7)),
        ("292y", timedelta(days=292 * 365)),
        ("0" * 30 + "1d", timedelta(days=1)),
    ],
)
def test_a_text_means_a_length_to_prometheus(text: str, expected: timedelta) -> None:
    assert parse_prometheus_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "h", "1.5h", "-5m", "+5m", "1h ", " 1h", "30m1h", "1h1h", "1us", "1H", "notaduration", "1h\n"),
        *("293y", "99999999999999999999y", "9" * 5000 + "y", "١h"),
    ],
)
def test_what_prometheus_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_prometheus_duration(text)

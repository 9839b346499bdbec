"""What the property tests of this room share."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(0, 2**57).map(lambda microseconds: EPOCH + timedelta(microseconds=microseconds))

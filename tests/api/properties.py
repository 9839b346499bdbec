"""What the property tests of this room share."""

from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(0, 2**57).map(lambda microseconds: EPOCH + timedelta(microseconds=microseconds))

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For a busy machine: how long an example takes says nothing here."""

"""Which AppliedWork may own what a Work places."""

from datetime import UTC, datetime

import pytest

from kedge.api.meta import ObjectMeta
from kedge.api.reasons import MANIFEST_APPLY_FAILED
from kedge.api.work import AppliedWork, AppliedWorkSpec
from kedge.plan.applying.ownership import cannot_own

OURS = "fleet-member-cluster-1"
DELETED = datetime(2026, 3, 1, tzinfo=UTC)


def applied(namespace: str = OURS, deleted: datetime | None = None) -> AppliedWork:
    return AppliedWork(
        spec=AppliedWorkSpec(work_name="web", work_namespace=namespace),
        metadata=ObjectMeta(name="web", deletion_timestamp=deleted),
    )


def test_an_applied_work_of_the_same_hub_owns_what_its_work_places() -> None:
    assert cannot_own(applied(), OURS) is None


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (applied("fleet-member-other"), "AppliedWork web on the member is that of another hub's fleet-member-other"),
        (
            applied(deleted=DELETED),
            "AppliedWork web is being deleted on the member with all it owns: it starts anew after that",
        ),
    ],
    ids=["of another hub", "being deleted"],
)
def test_an_applied_work_that_cannot_own_says_why(found: AppliedWork, message: str) -> None:
    refusal = cannot_own(found, OURS)
    assert refusal is not None
    assert (refusal.reason, refusal.message) == (MANIFEST_APPLY_FAILED, message)

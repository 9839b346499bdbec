"""Which objects belong to a workload."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from embedded.workloads.making import NOW, pod, replica_set
from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.embedded.workloads.owned import claims, reference_to

SET = replica_set()
LEAVING = replace(SET, metadata=replace(SET.metadata, deletion_timestamp=NOW))
OURS = msgspec.to_builtins(reference_to(SET))
THEIRS = {**OURS, "name": "other", "uid": "other"}
SELECTED, OTHER = {"app": "web"}, {"app": "api"}


@pytest.mark.parametrize(
    ("found", "of_a_leaving_one", "expected"),
    [
        pytest.param(pod(labels=SELECTED, ownerReferences=[OURS]), False, "own", id="ours and selected"),
        pytest.param(pod(labels=OTHER, ownerReferences=[OURS]), False, "release", id="ours, no longer selected"),
        pytest.param(pod(labels=SELECTED), False, "adopt", id="nobody's, and selected"),
        pytest.param(pod(labels=OTHER), False, "", id="nobody's, not selected"),
        pytest.param(pod(labels=SELECTED, ownerReferences=[THEIRS]), False, "", id="somebody else's"),
        pytest.param(pod(labels=SELECTED, deletionTimestamp=NOW), False, "", id="nobody's, on its way out"),
        pytest.param(pod(labels=SELECTED, ownerReferences=[OURS]), True, "own", id="ours, while we leave"),
        pytest.param(pod(labels=OTHER, ownerReferences=[OURS]), True, "", id="not released while we leave"),
        pytest.param(pod(labels=SELECTED), True, "", id="not adopted while we leave"),
    ],
)
def test_who_owns_what(found: Pod, of_a_leaving_one: bool, expected: str) -> None:
    result = claims(LEAVING if of_a_leaving_one else SET, [found])
    assert [name for name in ("own", "adopt", "release") if getattr(result, name)] == ([expected] if expected else [])


def test_an_owner_that_does_not_control_is_no_controller() -> None:
    assert controller_of(pod(ownerReferences=[{**OURS, "controller": False}]).metadata) is None

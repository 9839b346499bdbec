"""Rollout validation: refuses a rollout in batches that cannot work, and changes of one that it may not make.

Serves `/validate-oam-rollouts`. The CRDs refuse most of it already; here are all rules, with the field and the reason
of each problem. A write that leaves the spec as it is passes: whoever only sets a finalizer is not asked to mend it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kedge.admission.review import allow, deny, deny_unreadable
from kedge.api import wire
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.api.oam.rollouts import ROLLOUT_KINDS, AnyRollout
from kedge.plan.batching.rollout_rules import rollout_problems, rollout_update_problems
from kedge.plan.text import first_few

PATH: Final = "/validate-oam-rollouts"
DELETE: Final = "DELETE"
UNPROCESSABLE: Final = 422
_MOST: Final = 10
_KINDS: Final[Mapping[str, type[AnyRollout]]] = {kind.resource.kind: kind for kind in ROLLOUT_KINDS}


async def validate_rollout(request: AdmissionRequest) -> AdmissionResponse:
    """Whether the rollout of this request is valid. It asks nobody."""
    if denied := deny_unreadable(request):
        return denied
    found, old = request.object or {}, request.old_object
    if request.operation == DELETE or _is_going(found) or (old is not None and old.get("spec") == found.get("spec")):
        return allow(request)
    kind = _KINDS.get(str(found.get("kind")))
    if kind is None:
        return deny(request, f"{found.get('kind')!r} is not a kind of rollout", code=UNPROCESSABLE)
    try:
        new = wire.read_plain(found, kind)
    except msgspec.ValidationError as error:
        return deny(request, _readable(error), code=UNPROCESSABLE)
    problems = [str(problem) for problem in (*rollout_problems(new), *_update_problems(new, old, kind))]
    return deny(request, first_few(problems, _MOST), code=UNPROCESSABLE) if problems else allow(request)


def _is_going(found: Mapping[str, Any]) -> bool:
    return bool((found.get("metadata") or {}).get("deletionTimestamp"))


def _update_problems(new: AnyRollout, old: Mapping[str, Any] | None, kind: type[AnyRollout]) -> list[Any]:
    if old is None:
        return []
    try:
        before = wire.read_plain(old, kind)
    except msgspec.ValidationError:  # it was let in without this webhook, and never began
        return []
    return rollout_update_problems(before, new)


def _readable(error: msgspec.ValidationError) -> str:
    """`spec.rolloutPlan.targetSize: Expected ...` from `Expected ... - at `$.spec...``."""
    what, found, path = str(error).rpartition(" - at `$.")
    return f"{path.rstrip('`')}: {what}" if found else str(error)

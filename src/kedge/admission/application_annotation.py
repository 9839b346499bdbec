"""Application annotation: who brings an Application in is said when it is created, and never again.

Serves `/validate-oam-applications`. The annotation `app.oam.dev/rollout-template` keeps the controller of Applications
away until a rollout hands the Application over by removing it. Were it added back, nobody would look after what runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kedge.admission.review import allow, deny, deny_unreadable
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.api.oam.keys import ROLLOUT_TEMPLATE

PATH: Final = "/validate-oam-applications"
CREATE: Final = "CREATE"
DELETE: Final = "DELETE"
TRUE: Final = "true"
UNPROCESSABLE: Final = 422


async def validate_application(request: AdmissionRequest) -> AdmissionResponse:
    """Whether the annotations of this Application are allowed. It asks nobody."""
    if request.operation == DELETE:
        return allow(request)
    if denied := deny_unreadable(request):
        return denied
    old = None if request.operation == CREATE else _annotation(request.old_object)
    if why := annotation_problem(_annotation(request.object), old, is_new=request.operation == CREATE):
        return deny(request, f"metadata.annotations[{ROLLOUT_TEMPLATE}]: {why}", code=UNPROCESSABLE)
    return allow(request)


def annotation_problem(value: Any, old: Any, *, is_new: bool) -> str:
    """What is wrong with the annotation, or nothing. None: it is not there."""
    if value is None or (not is_new and value == old):
        return ""
    if value != TRUE:
        return f"can only be {TRUE!r}, not {value!r}"
    return "" if is_new or old is not None else "cannot be added back: only an Application that is created may carry it"


def _annotation(found: Mapping[str, Any] | None) -> Any:
    metadata = (found or {}).get("metadata") or {}
    return (metadata.get("annotations") or {}).get(ROLLOUT_TEMPLATE)

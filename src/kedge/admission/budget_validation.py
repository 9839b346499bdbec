"""Budget validation: refuses a ZoneAwarePodDisruptionBudget that means nothing (`/admission/zpdb-validation`).

The message is the first thing that is wrong; if there is more, it comes as warnings.
"""

from __future__ import annotations

from typing import Final

from kedge.admission.review import BAD_REQUEST, allow, deny, deny_unreadable
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.plan.zoning.budget_spec import InvalidBudget, read_budget

PATH: Final = "/admission/zpdb-validation"
DELETE: Final = "DELETE"


async def validate_budget(request: AdmissionRequest) -> AdmissionResponse:
    """Whether the budget of this request is valid. It asks nobody."""
    if request.operation == DELETE:  # a configuration that asks for it has no new object to show
        return allow(request)
    if denied := deny_unreadable(request):
        return denied
    found = read_budget(request.object or {})
    if isinstance(found, InvalidBudget):
        return deny(request, found.message, code=BAD_REQUEST, warnings=found.problems[1:])
    return allow(request)

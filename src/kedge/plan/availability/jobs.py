"""Jobs: available when complete. One that failed says why; one that is suspended waits until it is let run."""

from __future__ import annotations

from kedge.plan.availability.reading import Object, at, because, condition, count, many, name_of, says, text, whole
from kedge.plan.availability.verdict import Verdict, available, not_available


def judge(obj: Object) -> Verdict:
    if says(obj, "Failed", "True"):
        return not_available(f"{name_of(obj)} failed{_why(condition(obj, 'Failed'))}")
    if says(obj, "Complete", "True"):
        return available(f"{name_of(obj)} is complete")
    if at(obj, "spec", "suspend") is True:
        return not_available(f"{name_of(obj)} is suspended: it completes only after spec.suspend is set to false")
    return not_available(f"{name_of(obj)} is not complete: {_so_far(obj)}")


def _why(found: Object | None) -> str:
    return because(text(found, "reason")) + because(text(found, "message"))


def _so_far(obj: Object) -> str:
    succeeded, failed = count(obj, "status", "succeeded"), count(obj, "status", "failed")
    wanted = whole(obj, "spec", "completions")
    done = f"{many(succeeded, 'pod')} succeeded" if wanted is None else f"{succeeded} of {wanted} pods succeeded"
    return f"{done}, {failed} failed" if failed else done

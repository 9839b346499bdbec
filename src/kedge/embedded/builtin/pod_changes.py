"""Pod changes: what may be changed of a pod that is there: its images, and little else.

A change of anything else is refused; Kubernetes adds a picture of what differs, we do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kedge.embedded.builtin.causes import forbidden, wrong
from kedge.embedded.rules import Untyped
from kedge.kube.errors import Cause

_MAY_CHANGE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_LONGEST_DEADLINE = 2**31 - 1
_FREE = ("activeDeadlineSeconds", "schedulingGates", "tolerations")


def pod_changed(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """What is wrong with a change of a pod."""
    before, after = old["spec"], new["spec"]
    if before == after:
        return
    for part in ("containers", "initContainers"):
        if len(before.get(part) or ()) != len(after.get(part) or ()):
            yield forbidden(f"spec.{part}", "pod updates may not add or remove containers")
            return
    if problems := list(_deadline(before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds"))):
        yield from problems
        return
    yield from _tolerations(before.get("tolerations", []), after.get("tolerations", []))
    yield from _gates(before.get("schedulingGates", []), after.get("schedulingGates", []))
    yield from _rest(before, after)


def _deadline(before: int | None, after: int | None) -> Iterator[Cause]:
    at = "spec.activeDeadlineSeconds"
    if after is None:
        if before is not None:
            yield wrong(at, None, "must not update from a positive integer to nil value")
    elif not 0 <= after <= _LONGEST_DEADLINE:
        yield wrong(at, after, f"must be between 0 and {_LONGEST_DEADLINE}, inclusive")
    elif before is not None and before < after:
        yield wrong(at, after, "must be less than or equal to previous value")


def _tolerations(before: list[Untyped], after: list[Untyped]) -> Iterator[Cause]:
    kept = [_timeless(one) for one in after]
    if any(_timeless(one) not in kept for one in before):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _timeless(toleration: Untyped) -> Untyped:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gates(before: list[Untyped], after: list[Untyped]) -> Iterator[Cause]:
    known = [gate["name"] for gate in before]
    for index, gate in enumerate(after):
        if gate.get("name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", why)


def _rest(before: Untyped, after: Untyped) -> Iterator[Cause]:
    gated = bool(before.get("schedulingGates"))
    if gated and not before.get("nodeSelector", {}).items() <= after.get("nodeSelector", {}).items():
        yield wrong(
            "spec.nodeSelector", after.get("nodeSelector"), "only additions are allowed (no mutations or deletions)"
        )
    if _fixed(before, before, gated=gated) != _fixed(before, after, gated=gated):
        yield forbidden("spec", f"pod updates may not change fields other than {','.join(_MAY_CHANGE)}")


def _fixed(before: Untyped, spec: Untyped, *, gated: bool) -> Untyped:
    """What may not change of a pod. One that still waits at a gate may be told more about where to run."""
    free = (*_FREE, "nodeSelector", "affinity") if gated else _FREE
    fixed = {key: value for key, value in spec.items() if key not in free}
    if before["terminationGracePeriodSeconds"] < 0 and spec["terminationGracePeriodSeconds"] == 1:
        fixed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if gated:
        fixed["affinity"] = _beyond_nodes(spec.get("affinity", {}))
    for part in ("containers", "initContainers"):
        fixed[part] = [_imageless(container) for container in spec.get(part) or ()]
    return fixed


def _beyond_nodes(affinity: Untyped) -> Any:
    return {key: value for key, value in affinity.items() if key != "nodeAffinity"}


def _imageless(container: Untyped) -> Untyped:
    return {key: value for key, value in container.items() if key != "image"}

"""Masks: what two recordings of the same fleet may differ in, made equal.

Times, uids, resourceVersions, hashes, messages, and the suffixes of bindings. Of generations that count writes of the
fleet's own (bindings, Works, AppliedWorks) only one thing matters: whether what is said of an object is said of it as
it is now. `observedGeneration` therefore becomes `current`, or by how many it lags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fleet.traces import Found, Table, Untyped

COUNTED = {"ClusterResourceBinding", "Work", "AppliedWork"}
_LEFT_OUT = {
    *("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "message", "lastTransitionTime"),
    *("lastReceivedHeartbeat", "observationTime", "startTime", "endTime", "lastAppliedTime"),
    "kubectl.kubernetes.io/last-applied-configuration",
}
_WORDS = [
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "SHA256"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
]
_BINDING = re.compile(r"-[0-9a-f]{8}$")
_BINDING_LABEL = "kubernetes-fleet.io/parent-resource-binding"
_PLACEMENT_GENERATION = "kubernetes-fleet.io/CRP-generation"
_AGE = re.compile(r"<invalid>|(\d+[smhdy]){1,2}")
_AGES = {"AGE", "MEMBER-AGENT-LAST-SEEN"}


def masked(found: Found, placements: Mapping[str, int]) -> Untyped:
    """The object with all that may differ made equal; `placements` are the generations of the placements beside it."""
    obj = _without(found.obj)
    meta = obj["metadata"]
    own = meta.get("generation", 0)
    if found.kind in COUNTED:
        meta.pop("generation", None)
    meta["name"] = masked_name(found.kind, meta["name"])
    if _BINDING_LABEL in meta.get("labels", {}):
        meta["labels"][_BINDING_LABEL] = masked_name("ClusterResourceBinding", meta["labels"][_BINDING_LABEL])
    _say_of_which_generation(obj, own)
    _say_of_which_placement(obj, placements)
    _mask_decisions(obj)
    if found.kind == "Deployment":
        obj.pop("status", None)  # how far its pods have got is not the fleet's
    return {key: value for key, value in obj.items() if value not in ({}, [], None)}


def masked_name(kind: str, name: str) -> str:
    return _BINDING.sub("-SUFFIX", name) if kind == "ClusterResourceBinding" else name


def masked_table(command: str, printed: Table) -> Table:
    """The table with ages made equal: what is no age stays as it is."""
    ages = [column in _AGES for column in printed.columns]
    rows = (
        tuple("AGE" if age and _AGE.fullmatch(cell) else cell for age, cell in zip(ages, row, strict=True))
        for row in printed.rows
    )
    if command == "clusterresourcebindings":
        rows = ((masked_name("ClusterResourceBinding", name), *rest) for name, *rest in rows)
    return Table(printed.columns, tuple(rows))


def _without(value: Any) -> Any:
    """A copy without what is left out, or empty where that says the same."""
    if isinstance(value, dict):
        kept = {key: _without(one) for key, one in value.items() if key not in _LEFT_OUT}
        return {key: one for key, one in kept.items() if not (key in {"annotations", "labels"} and not one)}
    if isinstance(value, list):
        return [_without(one) for one in value]
    return _word(value) if isinstance(value, str) else value


def _word(text: str) -> str:
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return text


def _say_of_which_generation(obj: Untyped, own: int) -> None:
    status = obj.get("status") or {}
    for holder in (status, *status.get("placementStatuses", ()), *status.get("agentStatus", ()), *_of_stages(status)):
        for condition in holder.get("conditions", ()):
            if "observedGeneration" in condition:
                condition["observedGeneration"] = _against(condition["observedGeneration"], own)


def _of_stages(status: Untyped) -> Iterator[Untyped]:
    """Whatever a run says something of: its stages, their clusters and tasks."""
    stages = [*status.get("stagesStatus", ()), *filter(None, [status.get("deletionStageStatus")])]
    parts = ("clusters", "beforeStageTaskStatus", "afterStageTaskStatus")
    yield from stages
    yield from (one for stage in stages for part in parts for one in stage.get(part, ()))


def _say_of_which_placement(obj: Untyped, placements: Mapping[str, int]) -> None:
    meta = obj["metadata"]
    own = placements.get(meta.get("labels", {}).get("kubernetes-fleet.io/parent-CRP", ""))
    if own is None:
        return
    if _PLACEMENT_GENERATION in meta.get("annotations", {}):
        meta["annotations"][_PLACEMENT_GENERATION] = _against(int(meta["annotations"][_PLACEMENT_GENERATION]), own)
    if "observedCRPGeneration" in obj.get("status", {}):
        obj["status"]["observedCRPGeneration"] = _against(obj["status"]["observedCRPGeneration"], own)


def _against(seen: int, own: int) -> str:
    return "current" if seen == own else f"{seen - own:+}"


def _mask_decisions(obj: Untyped) -> None:
    """Why a cluster was picked is text for people; the recording kept only why one was not."""
    decisions = [*obj.get("status", {}).get("targetClusters", ())]
    if "clusterDecision" in obj.get("spec", {}):
        decisions.append(obj["spec"]["clusterDecision"])
    for decision in decisions:
        if decision.get("selected") or decision.get("clusterScore") is not None:
            decision["reason"] = "TEXT" if decision.get("reason") else ""
    if "policyHash" in obj.get("spec", {}):
        obj["spec"]["policyHash"] = "HASH"

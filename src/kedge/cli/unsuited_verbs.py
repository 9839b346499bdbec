"""Unsuited verbs: what to do instead, where a verb is not for the kind of thing that is named as KIND/NAME."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kedge.api.zones import PAUSED
from kedge.cli.batch_target import KIND_WORDS
from kedge.cli.binding_target import BINDING_WORDS

_BINDING, _GROUP, _POD, _ROLLOUT = "a binding", "a rollout group", "a pod", "a rollout in batches"
_MEANT_FOR: Final[Mapping[str, str]] = {
    "history": "placements",
    "pause": "placements and rollouts in batches",
    "resume": "placements, staged update runs and rollouts in batches",
    "rollback": "placements, staged update runs and rollouts in batches",
    "unpin": "placements",
    "approve": "staged update runs",
    "stop": "staged update runs",
    "abort": "rollouts in batches",
    "retry": "staged update runs and rollouts in batches",
}
_FOR_ROLLOUTS: Final = frozenset(verb for verb, kinds in _MEANT_FOR.items() if "rollouts in batches" in kinds)
_PAUSE_FIELD: Final = "spec.paused of its resource (spec.updateStrategy.paused of a CloneSet)"
_INSTEAD: Final[Mapping[tuple[str, str], str]] = {
    ("pause", _BINDING): f"set {_PAUSE_FIELD} to true, and all its clusters stop",
    ("stop", _BINDING): f"set {_PAUSE_FIELD} to true, and all its clusters stop",
    ("resume", _BINDING): f"set {_PAUSE_FIELD} to false",
    ("rollback", _BINDING): "apply its resource as it was before, and its clusters go back under the same budget",
    ("pause", _GROUP): f"`kubectl annotate statefulset NAME {PAUSED}=true` pauses one of its StatefulSets",
    ("resume", _GROUP): f"`kubectl annotate statefulset NAME {PAUSED}-` resumes one of its StatefulSets",
    ("rollback", _GROUP): "apply its StatefulSets as they were before, and its pods go back in the same order",
    ("stop", _ROLLOUT): "`kedge pause` lets it wait, `kedge abort` ends it",
}


def unsuited(verb: str, name: str) -> str:
    """Why a verb is not for what is named, and what to do instead; empty if it may be."""
    what = _what(name)
    if not what or verb not in _MEANT_FOR or (what == _ROLLOUT and verb in _FOR_ROLLOUTS):
        return ""
    shown = "explain" if what == _POD else "status"
    instead = _INSTEAD.get((verb, what), f"`kedge {shown} {name}` says where it stands")
    return f"{name} is {what}, and `kedge {verb}` is for {_MEANT_FOR[verb]}: {instead}"


def _what(name: str) -> str:
    """What a name says that it is; empty for a placement, a run, or a name that does not say so."""
    word, slash, _ = name.partition("/")
    if not slash:
        return ""
    if word.lower() in BINDING_WORDS:
        return _BINDING
    if word.lower() in KIND_WORDS:
        return _ROLLOUT
    return {"group": _GROUP, "pod": _POD}.get(word, "")

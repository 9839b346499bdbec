"""What pods, workloads, bindings and their templates say of themselves, as far as promises of alignment go by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from kedge.api.karmada.keys import LEDGER, SEQUENCE

NAMESPACE, NAME = "shop", "web"
KINDS = ("Deployment", "CloneSet", "StatefulSet")
OWN = "own"
"""An annotation of pods that overrides give one cluster."""

Template = tuple[str, str]
"""What tells the pods of two templates apart: the image, and what is overridden."""


class PodFacts(Struct, frozen=True, gc=False):
    """One pod that is not on its way out."""

    template: Template
    is_available: bool


class WorkloadFacts(Struct, frozen=True, gc=False):
    """What the workload of a member asks for, and whether its controller has seen that."""

    seq: int
    template: Template
    replicas: int
    unavailable: int
    surge: int
    partition: int
    is_observed: bool
    is_paused: bool


class Limits(Struct, frozen=True):
    """What the users ask for: on the binding, on the template, and by overrides."""

    at: float
    image: str
    own: Mapping[str, str]
    """What is overridden, by member."""
    replicas: Mapping[str, int]
    unavailable: int
    surge: int
    partition: int
    is_paused: bool

    @property
    def total(self) -> int:
        return sum(self.replicas.values())

    @property
    def fewest(self) -> int:
        return max(0, self.total - self.unavailable)

    @property
    def most(self) -> int:
        return self.total + self.surge

    @property
    def most_updated(self) -> int:
        return self.total - self.partition if self.partition else self.most

    def template(self, member: str) -> Template:
        return self.image, self.own.get(member, "")


class Spec(Struct, frozen=True, gc=False):
    """One entry of a ledger."""

    seq: int
    template: str
    replicas: int
    unavailable: int
    surge: int
    partition: int

    def is_more_than(self, other: Spec) -> bool:
        """Whether it has another template, or more of the budget."""
        is_other = self.template != other.template
        return is_other or self.unavailable > other.unavailable or self.surge > other.surge


def template_of(pod: Mapping[str, Any]) -> Template:
    """Of a pod, or of the template of one."""
    own = (pod["metadata"].get("annotations") or {}).get(OWN, "")
    return pod["spec"]["containers"][0]["image"], own


def pod_facts(found: Mapping[str, Any] | None) -> PodFacts | None:
    """None also of one that is on its way out."""
    if found is None or "deletionTimestamp" in found["metadata"]:
        return None
    conditions = {one["type"]: one["status"] for one in found.get("status", {}).get("conditions", ())}
    return PodFacts(template_of(found), conditions.get("Ready") == "True")


def rolling_of(kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    if kind == "CloneSet":
        return spec.get("updateStrategy") or {}
    return (spec.get("strategy" if kind == "Deployment" else "updateStrategy") or {}).get("rollingUpdate") or {}


def workload_facts(kind: str, found: Mapping[str, Any] | None) -> WorkloadFacts | None:
    if found is None:
        return None
    meta, spec = found["metadata"], found["spec"]
    rolling = rolling_of(kind, spec)
    return WorkloadFacts(
        int(meta.get("annotations", {}).get(SEQUENCE, 0)),
        template_of(spec["template"]),
        spec.get("replicas", 1),
        rolling.get("maxUnavailable", 1 if kind == "StatefulSet" else 0),
        rolling.get("maxSurge", 0),
        rolling.get("partition", 0),
        found.get("status", {}).get("observedGeneration", 0) == meta["generation"],
        _is_paused(spec, rolling),
    )


def _is_paused(spec: Mapping[str, Any], rolling: Mapping[str, Any]) -> bool:
    return bool(spec.get("paused") or rolling.get("paused"))


def resolved(given: int | str, total: int, *, round_up: bool) -> int:
    """So many pods, or so many percent of all of them."""
    if isinstance(given, int):
        return given
    number, rest = divmod(int(given.removesuffix("%")) * total, 100)
    return number + (1 if rest and round_up else 0)


def limits_of(
    at: float, kind: str, template: Mapping[str, Any], binding: Mapping[str, Any], own: Mapping[str, str]
) -> Limits:
    spec = template["spec"]
    rolling = rolling_of(kind, spec)
    replicas = {one["name"]: one.get("replicas", 0) for one in binding["spec"].get("clusters", ())}
    total = sum(replicas.values())
    is_paused = _is_paused(spec, rolling)
    has_surge = not (is_paused and kind == "CloneSet")  # a CloneSet that is paused has none
    surge = resolved(rolling.get("maxSurge", 0), total, round_up=True) if has_surge else 0
    unavailable = resolved(rolling.get("maxUnavailable", 1), total, round_up=kind == "CloneSet" and surge == 0)
    if kind == "StatefulSet":
        unavailable, surge = 1, 0
    return Limits(
        at,
        template_of(spec["template"])[0],
        dict(own),
        replicas,
        unavailable if unavailable or surge else 1,
        surge,
        min(rolling.get("partition", 0), total),
        is_paused,
    )


def ledger_of(binding: Mapping[str, Any]) -> dict[str, list[Spec]]:
    text = binding["metadata"].get("annotations", {}).get(LEDGER, "{}")
    found = msgspec.json.decode(text, type=dict[str, list[tuple[int, str, int, int, int, int]]])
    return {name: [Spec(*one) for one in specs] for name, specs in found.items()}

"""Replica change: what a write that an API server asks about does to the number of replicas.

Knows StatefulSets, Deployments, ReplicaSets (apps/v1) and the Scale of any of them (autoscaling/v1). Whatever else
comes, or cannot be read, is allowed with a warning: a webhook that guards against downscales must not stand in the way
of other changes. Warnings are word for word those of Grafana's rollout-operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

from kedge.api import wire
from kedge.api.admission import AdmissionRequest
from kedge.api.meta import Value

STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
SCALE: Final = ("autoscaling/v1", "Scale")
_WORKLOADS: Final = (STATEFUL_SET, ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"))
_WITHOUT_REPLICAS: Final = (("apps/v1", "DaemonSet"), ("apps/v1", "ControllerRevision"))
_DNS: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
UNNAMED: Final = "the request did not include both a namespace and a name"
NIL_REPLICAS: Final = "old/new replicas is nil, allowing the change"

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class RuleVerdict(Struct, frozen=True):
    """What a rule answers, without the uid of the request."""

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()


ALLOWED: Final = RuleVerdict(True)


def allowed_with(warning: str) -> RuleVerdict:
    return RuleVerdict(True, warnings=(warning,))


class CannotDecode(ValueError):
    """This is no object of a kind that is known here."""


class Unnamed(ValueError):
    """The request does not say which object it is about."""


class HasNoReplicas(ValueError):
    """The kind is known, but its objects have no replicas."""


class _Meta(Value, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


class _Spec(Value, frozen=True, gc=False):
    replicas: Int32 | None = None


class _Scalable(Value, frozen=True, gc=False):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


class Scaled(Struct, frozen=True):
    """An object of a request: its kind, its labels, how many replicas it wants, and its names, as far as it says."""

    kind: tuple[str, str]
    replicas: int | None
    labels: Mapping[str, str]
    name: str = ""
    namespace: str = ""

    @property
    def is_scale(self) -> bool:
        """Whether it is the Scale of an object, which has none of the object's labels."""
        return self.kind == SCALE


class Downscale(Struct, frozen=True):
    """A write that lowers the number of replicas of an object."""

    resource: str
    name: str
    namespace: str
    old: int
    new: int
    before: Scaled
    """The object as it is stored now."""

    @property
    def is_named(self) -> bool:
        """Whether its names may become parts of paths and URLs.

        An API server sends nothing else; others can reach a webhook too.
        """
        return bool(_DNS.fullmatch(self.name) and _DNS.fullmatch(self.namespace))

    @property
    def text(self) -> str:
        """What it does, as the beginning of a sentence."""
        return f"downscale of {self.resource}/{self.name} in {self.namespace} from {self.old} to {self.new} replicas"

    def denied(self, why: str) -> RuleVerdict:
        return RuleVerdict(False, f"{self.text} is not allowed because {why}")


def scaled(obj: Any) -> Scaled:
    """An object of a request, whatever it is. Raises `CannotDecode` or `HasNoReplicas`."""
    if obj is None:
        raise CannotDecode("there is no object")
    if not isinstance(obj, Mapping):
        raise CannotDecode("it is not a JSON object")
    kind = _kind(obj)
    if kind in _WITHOUT_REPLICAS:
        raise HasNoReplicas(f"unsupported type {kind[0]}, Kind={kind[1]} (go type *v1.{kind[1]})")
    if kind not in (*_WORKLOADS, SCALE):
        raise CannotDecode(f'no kind "{kind[1]}" is registered for version "{kind[0]}"')
    found = read(obj, _Scalable)
    replicas, meta = found.spec.replicas, found.metadata
    # Go leaves out the zero of a Scale; a workload without replicas has none yet.
    wanted = 0 if replicas is None and kind == SCALE else replicas
    return Scaled(kind, wanted, meta.labels, meta.name, meta.namespace)


def _kind(obj: Mapping[str, Any]) -> tuple[str, str]:
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(kind, str) or not kind:
        raise CannotDecode("Object 'Kind' is missing")
    if not isinstance(version, str) or not version:
        raise CannotDecode("Object 'apiVersion' is missing")
    return version, kind


def read(obj: Mapping[str, Any], kind: type[wire.T]) -> wire.T:
    """An object of a request as this type. Raises `CannotDecode` if it does not fit."""
    try:
        return wire.read_plain(obj, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise CannotDecode(str(error)) from error


def replica_change(request: AdmissionRequest, *, decode_says_it_all: bool = False) -> Downscale | RuleVerdict:
    """The downscale that a request is; or why it is allowed, which it is if it is none.

    `decode_says_it_all` tells of a kind without replicas that it cannot be decoded, as prepare-downscale does.
    """
    found: list[Scaled] = []
    for which, obj in (("old", request.old_object), ("new", request.object)):
        try:
            found.append(scaled(obj))
        except CannotDecode as error:
            return allowed_with(f"can't decode {which} object, allowing the change, err: {error}")
        except HasNoReplicas as error:
            failed = f"decode {which} object" if decode_says_it_all else f"get {which} replicas"
            return allowed_with(f"can't {failed}, allowing the change, err: {error}")
    return _compared(request, *found)


def _compared(request: AdmissionRequest, before: Scaled, after: Scaled) -> Downscale | RuleVerdict:
    old, new = before.replicas, after.replicas
    if old is None and new is None:
        return ALLOWED
    if old is None or new is None:
        return allowed_with(NIL_REPLICAS)
    if new >= old:
        return ALLOWED
    name = request.name or before.name or after.name
    namespace = request.namespace or before.namespace or after.namespace
    return Downscale(request.resource.resource, name, namespace, old, new, before)

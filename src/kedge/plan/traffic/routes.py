"""Routes: what one provider can tell of its kind of route, and what a rollout may wait for there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from kedge.plan.fields import Object
from kedge.plan.moving.wait import Wait
from kedge.plan.traffic.split import Pair, Splits, Unreadable

MANAGER: Final = "kedge-traffic"
"""The field manager of every write to a route: what tools that keep routes as in Git have to ignore."""

Weights: TypeAlias = tuple[int | None, int | None]
"""Of the source and of the target, as they are written. None: not set."""


class TrafficCode(StrEnum):
    """What traffic waits for."""

    route_missing = "RouteMissing"
    route_unread = "RouteUnread"
    """The route could not be read or written: not served, forbidden, refused."""
    route_unreadable = "RouteUnreadable"
    """The route does not divide traffic between the two Services."""
    recording = "RecordingWeights"
    """The weights of before have to be in the rollout's status first."""
    not_accepted = "RouteNotAccepted"
    contested = "WeightsContested"
    """Somebody else sets the weights, too."""


class RouteProblem(Struct, frozen=True):
    """Why a route could not be read or written. `is_final` if only a change of the rollout helps."""

    text: str
    is_final: bool = False


ObservedRoute: TypeAlias = Object | RouteProblem | None
"""A route as it was read; None: there is none."""


class RouteKind(Struct, frozen=True):
    """Where routes of one provider live. `versions` that it is served in, the newest first."""

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...]


class TrafficRoutes(Protocol):
    """One provider."""

    @property
    def kind(self) -> RouteKind: ...

    def splits(self, route: Object, pair: Pair) -> Splits | Unreadable:
        """How the route divides the traffic of the two."""
        ...

    def patch(self, route: Object, pair: Pair, weights: Mapping[int, Weights], /) -> dict[str, Any]:
        """The merge patch that sets the weights of the two in these rules, and changes nothing else."""
        ...

    def accepted(self, route: Object, /) -> Wait | None:
        """What is missing until the route as it is now can be trusted to be in effect."""
        ...

"""Asking: one request, as the server has understood it."""

from __future__ import annotations

from msgspec import Struct

from kedge.embedded.callers import Caller
from kedge.embedded.kind import Kind
from kedge.embedded.paths import Place
from kedge.kube.transport import Request


class Order(Struct, frozen=True):
    """What is asked, of which kind and where, and by whom."""

    kind: Kind
    place: Place
    request: Request
    caller: Caller

    @property
    def of_the_whole(self) -> Order:
        """The same of the object whose subresource this is about."""
        return Order(self.kind, self.place.of_the_whole, self.request, self.caller)

    def about(self, kind: Kind) -> Order:
        """The same, to be answered as another kind: a `Scale`."""
        return Order(kind, self.place, self.request, self.caller)

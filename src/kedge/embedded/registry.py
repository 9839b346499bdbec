"""Registry: which kinds a server serves. Built-in ones to begin with; custom ones come and go."""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.resource import Resource
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.kind import Kind


class Registry:
    """The kinds of one server. Built-in ones to begin with; more can be added while it runs."""

    def __init__(self, kinds: Iterable[Kind] | None = None) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self.revision = 0  # changes whenever they do
        for kind in BUILT_IN if kinds is None else kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve this kind, or serve it this way from now on."""
        resource = kind.resource
        self.revision += 1
        self._kinds[resource.group, resource.version, resource.plural] = kind

    def remove(self, kind: Kind) -> None:
        """Serve this kind no more."""
        resource = kind.resource
        self.revision += 1
        del self._kinds[resource.group, resource.version, resource.plural]

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def served(self, api_version: str, kind: str) -> Resource | None:
        """Where objects of this version and kind are, if they are served."""
        found = (one.resource for one in self._kinds.values())
        return next((one for one in found if (one.api_version, one.kind) == (api_version, kind)), None)

    def has_group(self, group: str) -> bool:
        return any(known == group for known, _, _ in self._kinds)

    def kinds(self) -> tuple[Kind, ...]:
        return tuple(self._kinds.values())

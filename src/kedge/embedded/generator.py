"""Generator: what the server generates: uids, name suffixes, timestamps, watch timeouts.

`StoreContext` is the `AdmissionContext` of a server: other objects, generated names and the time, for kind rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, timedelta
from random import Random
from uuid import UUID

from kedge.api.resource import Resource
from kedge.embedded.kind import Kind
from kedge.embedded.store import Store, key_of
from kedge.kube.clock import Clock
from kedge.kube.codec import Untyped

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as Kubernetes': no vowels, so no words
_MAX_PREFIX = 58


class Generator:
    """All that is random or depends on the time in a server, from one random generator and one clock."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng

    def uid(self) -> str:
        return str(UUID(int=self._rng.getrandbits(128), version=4))

    def name(self, prefix: str) -> str:
        """A name for `generateName`: the prefix and five random characters."""
        return prefix[:_MAX_PREFIX] + "".join(self._rng.choices(_NAME_LETTERS, k=5))

    def now(self, *, plus: int = 0) -> str:
        """The time, plus so many seconds, as a timestamp of Kubernetes."""
        moment = self._clock.now().astimezone(UTC) + timedelta(seconds=plus)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def watch_seconds(self) -> float:
        """The timeout of a watch that sets none; random, so that they do not all end together."""
        return self._rng.uniform(1800.0, 3600.0)


class StoreContext:
    """The objects, generated names and time of one server."""

    def __init__(self, store: Store, generator: Generator) -> None:
        self._store = store
        self._generator = generator

    def find(self, resource: Resource, namespace: str, name: str) -> Untyped | None:
        found = self._store.all(Kind(resource)).get(key_of(namespace, name))
        return found.decode() if found else None

    def each(self, resource: Resource, namespace: str = "") -> Iterator[Untyped]:
        snapshot = self._store.all(Kind(resource)).at(self._store.number)
        return (version.decode() for version in snapshot.within(f"{namespace}/" if namespace else ""))

    def name(self, prefix: str) -> str:
        return self._generator.name(prefix)

    def now(self) -> str:
        return self._generator.now()

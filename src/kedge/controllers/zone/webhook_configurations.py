"""Webhook configurations: those of one kind that belong to a namespace, by their label.

They are watched where that is allowed. Where only `list` is granted, they are listed at an interval; where not even
that is, nothing is known of them. Either is logged once, with what to grant, and holds until the next start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from kedge.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.api.zones import INJECT_CA, INJECT_NAMESPACE
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.errors import Forbidden

Configuration: TypeAlias = ValidatingWebhookConfiguration | MutatingWebhookConfiguration
C = TypeVar("C", ValidatingWebhookConfiguration, MutatingWebhookConfiguration)

LIST_EVERY: Final = 10.0
"""Seconds between two lists, where watching is not allowed."""
_REFUSED: Final = "403 "
log = logging.getLogger(__name__)


def wants_bundle(configuration: Configuration) -> bool:
    """Whether the authorities of the webhook server are to be written into it."""
    return configuration.metadata.labels.get(INJECT_CA) == "true"


def of_namespaces(namespaces: Sequence[str]) -> str:
    """The selector of those that belong to one of these namespaces; none given: to any."""
    if len(namespaces) == 1:
        return f"{INJECT_NAMESPACE}={namespaces[0]}"
    return f"{INJECT_NAMESPACE} in ({','.join(sorted(namespaces))})" if namespaces else INJECT_NAMESPACE


class WebhookConfigurations(Generic[C]):
    """All of one kind that a label selector means."""

    def __init__(self, cluster: Cluster, kind: type[C], labels: str, changed: Callable[[], None]) -> None:
        """`changed` is called when one of them has changed."""
        self.kind: type[C] = kind
        self._cluster = cluster
        self._labels = labels
        self._logged = ""
        self._cache: Cache[C] | None = cluster.cache(kind, labels=self._labels, optional=True)
        self._cache.on_change(lambda _: changed())
        self._cache.on_problem(lambda _: changed())

    @property
    def are_watched(self) -> bool:
        """Whether changes of them are noticed at once."""
        return self._cache is not None and self._cache.is_synced

    async def read(self) -> tuple[C, ...] | None:
        """All of them, by name; None if they may not be read."""
        if self._cache is not None and (self._cache.problem or "").startswith(_REFUSED):
            self._stop_watching(self._cache)
        if self._cache is not None and self._cache.is_synced:
            return _by_name(self._cache.all())
        try:
            found = await self._cluster.client.list(self.kind, labels=self._labels)
        except Forbidden as error:
            self._log_forbidden(error)
            return None
        self._log_listed()
        return _by_name(found.items)

    def _stop_watching(self, cache: Cache[C]) -> None:
        self._cache = None
        self._cluster.drop(cache)

    def _log_listed(self) -> None:
        if self._cache is None:
            advice = "grant the verb watch to have changes noticed at once"
            self._log_once(f"{self.kind.resource} may not be watched, and are listed every {LIST_EVERY:g} s: {advice}")

    def _log_forbidden(self, error: Forbidden) -> None:
        advice = "grant the verbs list, watch and patch if there are any for this operator"
        self._log_once(f"{self.kind.resource} may not be listed, and get no CA bundle: {advice} ({error.message})")

    def _log_once(self, text: str) -> None:
        if text != self._logged:
            log.warning("%s", text)
        self._logged = text


def _by_name(found: tuple[C, ...]) -> tuple[C, ...]:
    return tuple(sorted(found, key=lambda one: one.metadata.name))

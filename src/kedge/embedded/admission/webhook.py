"""Webhook: one webhook of a configuration, and all webhooks of a server in the order in which they are asked.

Configurations are in the order of their names, the webhooks of each in the order written. The list is read anew after
one of them has changed; a server without any pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct, field

from kedge.api.admission import MutatingWebhookConfiguration, ServiceReference, ValidatingWebhookConfiguration
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change, Store


class Rule(Struct, frozen=True, rename="camel"):
    """Which writes are meant."""

    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str = "*"


class MatchCondition(Struct, frozen=True):
    """A CEL expression that must hold of a write."""

    name: str = ""
    expression: str = ""


class ClientConfig(Struct, frozen=True, rename="camel"):
    """Where a webhook is; `ca_bundle` (PEM) is whom to trust."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: bytes | None = None


class Webhook(Struct, frozen=True, rename="camel"):
    """One webhook."""

    name: str
    client_config: ClientConfig = field(default_factory=ClientConfig)
    rules: tuple[Rule, ...] = ()
    failure_policy: str = "Fail"
    match_policy: str = "Equivalent"
    namespace_selector: LabelSelector = field(default_factory=LabelSelector)
    object_selector: LabelSelector = field(default_factory=LabelSelector)
    match_conditions: tuple[MatchCondition, ...] = ()
    side_effects: str = "None"
    timeout_seconds: int = 10
    admission_review_versions: tuple[str, ...] = ("v1",)
    reinvocation_policy: str = "Never"

    @property
    def ignores_failures(self) -> bool:
        return self.failure_policy == "Ignore"

    @property
    def supports_dry_run(self) -> bool:
        return self.side_effects in ("None", "NoneOnDryRun")

    @property
    def may_be_asked_again(self) -> bool:
        return self.reinvocation_policy == "IfNeeded"


class _Configuration(Struct, frozen=True):
    webhooks: tuple[Webhook, ...] = ()


class ConfiguredWebhooks:
    """The webhooks of one server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._validating: tuple[Webhook, ...] | None = ()
        self._mutating: tuple[Webhook, ...] | None = ()
        store.subscribe(self._on_change)

    def __bool__(self) -> bool:
        return bool(self.mutating or self.validating)

    @property
    def mutating(self) -> tuple[Webhook, ...]:
        if self._mutating is None:
            self._mutating = tuple(self._read(MutatingWebhookConfiguration.resource))
        return self._mutating

    @property
    def validating(self) -> tuple[Webhook, ...]:
        if self._validating is None:
            self._validating = tuple(self._read(ValidatingWebhookConfiguration.resource))
        return self._validating

    def _on_change(self, kind: Kind, _: Change) -> None:
        if kind.resource == MutatingWebhookConfiguration.resource:
            self._mutating = None
        elif kind.resource == ValidatingWebhookConfiguration.resource:
            self._validating = None

    def _read(self, resource: Resource) -> Iterator[Webhook]:
        for version in self._store.all(Kind(resource)).at(self._store.number).within(""):
            yield from msgspec.json.decode(version.body, type=_Configuration).webhooks

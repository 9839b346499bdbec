"""CA bundles: writes the authorities of the webhook server into the webhook configurations that call it.

    bundles = CaBundles(cluster, namespaces=["shop"], secret=secret, registry=registry)
    manager.add_controller(bundles.controller)

Which ones: Validating- and MutatingWebhookConfigurations with the labels `grafana.com/inject-rollout-operator-ca:
"true"` and `grafana.com/namespace` of this operator's, also those that are created or changed later. Only `caBundle`
of each webhook is written, only where it differs, and only if the configuration is still the one that was read.

Replicas do not undo each other's writes: before one writes, it reads the Secret again, and if the authorities there are
others than those it knows, it learns them first. Without a `secret`, nothing is written, and only the gauge of failure
policies is kept.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry

from kedge.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.controllers.throttle import Throttle
from kedge.controllers.zone.certificate_secret import MANAGER, CertificateSecret
from kedge.controllers.zone.failure_policies import FailurePolicies
from kedge.controllers.zone.webhook_configurations import (
    LIST_EVERY,
    Configuration,
    WebhookConfigurations,
    of_namespaces,
    wants_bundle,
)
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import Conflict, Forbidden, KubeError, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import JsonPatch
from kedge.kube.queue import Key
from kedge.kube.source import Signal
from kedge.plan.zoning.certificate import CA

KINDS: Final = (ValidatingWebhookConfiguration, MutatingWebhookConfiguration)
LOOK_EVERY: Final = 300.0
"""Seconds between two looks where every change is noticed anyway."""
WRITE_AGAIN_AFTER: Final = 1.0
"""Seconds between two writes of the same configuration: somebody else may write it as well, again and again."""
log = logging.getLogger(__name__)


class CaBundles:
    """The webhook configurations of one operator. Keys are kinds."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespaces: Sequence[str],
        registry: CollectorRegistry,
        secret: CertificateSecret | None = None,
    ) -> None:
        """`namespaces` are this operator's; without any, every one is."""
        self._cluster = cluster
        self._client = cluster.client
        self._secret = secret
        self._policies = FailurePolicies(registry)
        self._bundle: bytes | None = None
        self._held: dict[str, bytes | None] = {}  # by plural: what all of the kind have; None if it cannot be known
        self._outdated: list[Callable[[], None]] = []
        self._written = Throttle(WRITE_AGAIN_AFTER)
        self._refusals: set[str] = set()
        self._wakes = Signal(cluster.name, at_start=[self._key(kind.resource.plural) for kind in KINDS])
        self._kinds = {kind.resource.plural: self._followed(kind, of_namespaces(namespaces)) for kind in KINDS}
        self.controller = Controller("CA bundles", self.reconcile, [self._wakes], workers=2, per_cluster=2)

    # For whoever keeps the certificate

    def publish(self, bundle: bytes) -> None:
        """From now on, this is whom to trust."""
        if bundle != self._bundle:
            self._bundle = bundle
            for plural in self._kinds:
                self._changed(plural)

    def holds(self, bundle: bytes) -> bool | None:
        """Whether all configurations had exactly these when last looked at; None if some may not be read."""
        if any(self._held.get(plural, b"") not in (bundle, None) for plural in self._kinds):
            return False
        return None if None in self._held.values() else True

    def on_outdated(self, handler: Callable[[], None]) -> None:
        """Tell this handler if the Secret holds other authorities than those that were published."""
        self._outdated.append(handler)

    # Reconciling

    def _followed(self, kind: type[Any], labels: str) -> WebhookConfigurations[Any]:
        return WebhookConfigurations(self._cluster, kind, labels, lambda: self._changed(kind.resource.plural))

    def _key(self, plural: str) -> Key:
        return Key(self._cluster.name, None, plural)

    def _changed(self, plural: str) -> None:
        self._wakes.wake(self._key(plural))

    async def reconcile(self, key: Key) -> Outcome:
        kind = self._kinds[key.name]
        found = await kind.read()
        if found is None:
            self._held[key.name] = None
            return Outcome.again(after=LOOK_EVERY)
        self._policies.seen(key.name, found)
        bundle = self._bundle
        if bundle is None or self._secret is None:
            return Outcome.again(after=LOOK_EVERY if kind.are_watched else LIST_EVERY)
        lacking = [one for one in found if lacks_bundle(one, bundle)]
        if not lacking:
            self._held[key.name] = bundle
            return Outcome.again(after=LOOK_EVERY if kind.are_watched else LIST_EVERY)
        self._held[key.name] = b""
        return await self._inject(kind, lacking, bundle, self._secret)

    async def _inject(
        self, kind: WebhookConfigurations[Any], lacking: list[Configuration], bundle: bytes, secret: CertificateSecret
    ) -> Outcome:
        newest = await secret.read()
        if newest is None or newest.data.get(CA) != bundle:
            for handler in self._outdated:
                handler()
            return Outcome.not_yet
        waits = [await self._write(kind, one, bundle) for one in lacking]
        # Once more, even if watched: only a look without a difference proves that all have it.
        return Outcome.again(after=max(*waits, 0.05))

    async def _write(self, kind: WebhookConfigurations[Any], one: Configuration, bundle: bytes) -> float:
        """Write the bundle into one configuration; returns how many seconds to wait before the next try."""
        name = one.metadata.name
        if wait := self._written.remaining(one.metadata.uid):
            return wait
        try:
            await self._client.patch(
                kind.kind,
                name,
                bundle_patch(one, bundle),
                uid=one.metadata.uid,
                resource_version=one.metadata.resource_version,
                manager=MANAGER,
            )
        except (Conflict, NotFound):
            return WRITE_AGAIN_AFTER  # changed or gone meanwhile: another look shows which
        except Forbidden as error:
            return self._refused(f"{kind.kind.resource.kind} {name}", error)
        except KubeError as error:
            log.warning("the CA bundle of %s %s was not written: %s", kind.kind.resource.kind, name, error)
            return LIST_EVERY
        self._written.restart(one.metadata.uid)
        log.info("wrote the CA bundle of %s %s", kind.kind.resource.kind, name)
        return 0.0

    def _refused(self, which: str, error: Forbidden) -> float:
        if which not in self._refusals:
            self._refusals.add(which)
            log.warning("the CA bundle of %s may not be written: grant the verb patch (%s)", which, error.message)
        return LIST_EVERY


def lacks_bundle(configuration: Configuration, bundle: bytes) -> bool:
    """Whether some webhook of it is to get this bundle and has another."""
    wanted = b64encode(bundle).decode()
    return wants_bundle(configuration) and any(one.client_config.ca_bundle != wanted for one in configuration.webhooks)


def bundle_patch(configuration: Configuration, bundle: bytes) -> JsonPatch:
    """The change that gives every webhook of it this bundle, and nothing else."""
    wanted = b64encode(bundle).decode()
    return JsonPatch(
        [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": wanted}
            for index, one in enumerate(configuration.webhooks)
            if one.client_config.ca_bundle != wanted
        ]
    )

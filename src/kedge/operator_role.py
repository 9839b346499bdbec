"""Operator: what makes up the operator of one cluster: rollout groups, and the admission webhooks beside them.

    operator = Operator(cluster, options, clock=manager.clock, rng=manager.rng, registry=registry, outbound=outbound)
    for controller in operator.acting:
        manager.add_controller(controller)

Of several replicas one acts on rollout groups, if there is a lease. All of them serve webhooks, and so keep the
certificate: those controllers are in `serving`, and run without a lease.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from aiohttp.typedefs import Middleware
from msgspec import Struct
from prometheus_client import CollectorRegistry

from kedge.admission import application_annotation, rollout_validation
from kedge.admission.certificate import CertificateRequest, generate
from kedge.admission.certificate_files import CertificateFiles
from kedge.admission.downscale_rules import downscale_rules
from kedge.admission.pod_eviction import eviction_rules
from kedge.admission.prepare_downscale import PrepareDownscale
from kedge.admission.server import Rule, WebhookServer
from kedge.admission.tls_server import ShownCertificate, serve
from kedge.controllers.application.everything import application_controllers
from kedge.controllers.batch.batch_controllers import batch_controllers
from kedge.controllers.zone.budget_guard import BudgetGuard
from kedge.controllers.zone.budget_metrics import BudgetMetrics
from kedge.controllers.zone.ca_bundles import CaBundles
from kedge.controllers.zone.certificate_secret import CertificateSecret
from kedge.controllers.zone.certificates import Certificates, MadeCertificate
from kedge.controllers.zone.disruption_budgets import DisruptionBudgets
from kedge.controllers.zone.group import Groups
from kedge.controllers.zone.metrics import GroupMetrics
from kedge.controllers.zone.observed import GroupCaches
from kedge.controllers.zone.pod_calls import PodCalls
from kedge.controllers.zone.ready_times import ReadyTimes
from kedge.controllers.zone.recent_evictions import RecentEvictions
from kedge.controllers.zone.scaling import GroupScaling
from kedge.controllers.zone.selected_zones import BudgetTurns, SelectedZones
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.cluster_validation import ClusterValidation
from kedge.kube.connect.outbound import Outbound
from kedge.kube.controller import Controller
from kedge.kube.health import Address
from kedge.kube.random_sources import branch
from kedge.plan.text import listed
from kedge.plan.zoning.pod_hosts import CALL_TIMEOUT, CLUSTER_DOMAIN

log = logging.getLogger(__name__)
SERVICE = "rollout-operator"
"""The Service that leads to the webhooks, unless other names are given."""


_OAM_RULES: Mapping[str, Rule] = {
    rollout_validation.PATH: rollout_validation.validate_rollout,
    application_annotation.PATH: application_annotation.validate_application,
}


class WebhookOptions(Struct, frozen=True):
    """How an operator serves its admission webhooks, and where its certificate comes from."""

    host: str = ""
    """Where to listen; empty is every network."""
    port: int = 8443
    request_timeout: float = 10.0
    """Seconds that a request may take."""
    cert_file: Path | None = None
    """The certificate, and `key_file` its key, where it is not self-signed. Both are read again when they change."""
    key_file: Path | None = None
    self_signed: bool = True
    """Whether the operator makes its certificate itself, and keeps it in a Secret."""
    secret_name: str = "rollout-operator-self-signed-certificate"  # noqa: S105  # its name
    dns_names: tuple[str, ...] = ()
    """The names the certificate is for; none: `rollout-operator.NAMESPACE.svc`."""
    organization: str = "Grafana Labs"
    expiration: timedelta = timedelta(days=365)
    update_ca_bundle: bool = True
    """Whether labelled webhook configurations are given the certificate's authority."""


class OperatorOptions(Struct, frozen=True):
    """How the operator of one cluster behaves."""

    namespace: str
    """Where its own objects are: the Secret of its certificate, the ConfigMap of the zone tracker."""
    namespaces: tuple[str, ...] = ()
    """The namespaces whose rollout groups it manages; none: all of the cluster."""
    cluster_domain: str = CLUSTER_DOMAIN
    """The end of pods' names in DNS."""
    reconcile_interval: float = 0.0
    """Seconds between two reconciles of one group at least; 0: whenever something changes."""
    pods_timeout: float = CALL_TIMEOUT
    """Seconds that a call to a pod may take."""
    use_zone_tracker: bool = False
    """Whether times of downscales are kept in a ConfigMap, and not in an annotation."""
    zone_tracker_name: str = "rollout-operator-zone-tracker"
    ready_time_timeout: float = 5.0
    """Seconds that writing a pod's ready-time annotation may take."""
    batches: bool = False
    """Whether workloads are rolled out in batches as well, and Applications and Components looked after."""
    webhooks: WebhookOptions | None = None
    """None: no webhooks are served."""
    cluster_validation: ClusterValidation | None = None
    """Which requests to its HTTP servers are refused as meant for others; None: none."""


class Operator:
    """All parts of one operator."""

    def __init__(
        self,
        cluster: Cluster,
        options: OperatorOptions,
        *,
        clock: Clock,
        rng: random.Random,
        registry: CollectorRegistry,
        outbound: Outbound,
        to_serve: Cluster | None = None,
    ) -> None:
        """`to_serve` is a connection that is used without a lease; the same one, if there is no lease."""
        self._serving = to_serve or cluster
        self._options = options
        self._clock = clock
        self._rng = rng
        self._registry = registry
        self._outbound = outbound
        self._budget_metrics = BudgetMetrics(registry)
        self._recent = RecentEvictions(asyncio.get_running_loop().time)
        self._turns = BudgetTurns()
        self._budgets = DisruptionBudgets(self._serving, options.namespaces, metrics=self._budget_metrics)
        self.acting = self._acting_controllers(cluster)
        self.rules = self._all_rules()
        self.webhooks: Webhooks | None = None
        if options.webhooks is not None:
            self.webhooks = Webhooks(self._serving, options, self.rules, clock, rng, registry)

    @property
    def serving(self) -> Sequence[Controller]:
        """The controllers that run on every replica."""
        return self.webhooks.controllers if self.webhooks is not None else ()

    async def close(self) -> None:
        """Let rules end what they still do."""
        for rule in self.rules.values():
            if isinstance(rule, PrepareDownscale):
                await rule.close()

    def _acting_controllers(self, cluster: Cluster) -> Sequence[Controller]:
        options, clock = self._options, self._clock
        observed = GroupCaches(cluster, options.namespaces)
        for cache in observed.pod_caches:
            self._recent.follow(cache)
        calls = PodCalls(self._outbound, timeout=options.pods_timeout, cluster_domain=options.cluster_domain)
        groups = Groups(
            cluster,
            observed,
            clock=clock,
            metrics=GroupMetrics(self._registry),
            scaling=GroupScaling(cluster.client, calls, cluster.events, clock=clock, rng=branch(self._rng)),
            guard=self._guard(cluster),
            budgets=self._budgets,
            interval=options.reconcile_interval,
        )
        ready_times = ReadyTimes(
            cluster, observed.pod_caches, self._budgets, clock=clock, patch_timeout=options.ready_time_timeout
        )
        batches: Sequence[Controller] = ()
        if options.batches:
            batches = (
                *application_controllers(cluster, options.namespaces, clock=clock),
                *batch_controllers(cluster, options.namespaces, clock=clock, outbound=self._outbound),
            )
        return groups.controller, ready_times.controller, self._budgets.controller, *batches

    def _guard(self, cluster: Cluster) -> BudgetGuard:
        # A read that fails is not repeated: the group that was read before it would be old by then.
        selected = SelectedZones(cluster.client.without_retry())
        recent, metrics = self._recent, self._budget_metrics
        return BudgetGuard(self._budgets, selected, recent, self._clock, turns=self._turns, metrics=metrics)

    def _all_rules(self) -> Mapping[str, Rule]:
        """The rules of all webhooks, by path."""
        options, client = self._options, self._serving.client
        timeout = (options.webhooks or WebhookOptions()).request_timeout
        downscaling = downscale_rules(
            client,
            self._outbound,
            self._clock,
            cluster_domain=options.cluster_domain,
            zone_tracker=options.zone_tracker_name if options.use_zone_tracker else "",
            pod_timeout=options.pods_timeout,
            request_timeout=timeout,
        )
        evicting = eviction_rules(
            client,
            self._budgets,
            SelectedZones(client),
            self._recent,
            self._clock,
            turns=self._turns,
            metrics=self._budget_metrics,
        )
        return {**downscaling, **evicting, **_OAM_RULES}


class Webhooks:
    """The server of an operator's webhooks, and its certificate."""

    def __init__(
        self,
        cluster: Cluster,
        options: OperatorOptions,
        rules: Mapping[str, Rule],
        clock: Clock,
        rng: random.Random,
        registry: CollectorRegistry,
    ) -> None:
        assert options.webhooks is not None
        self._told = options.webhooks
        self._rules = rules
        self._shown = ShownCertificate(registry)
        self._files: CertificateFiles | None = None
        self.controllers: Sequence[Controller] = ()
        if self._told.self_signed:
            _warn_of_unused_files(self._told)
            self.controllers = self._self_signed(cluster, options, clock, rng, registry)
        elif self._told.cert_file is not None and self._told.key_file is not None:
            files = (self._told.cert_file, self._told.key_file)
            self._files = CertificateFiles(*files, show=self._shown.show, clock=clock, registry=registry)
            self.controllers = [CaBundles(cluster, namespaces=options.namespaces, registry=registry).controller]

    def _self_signed(
        self, cluster: Cluster, options: OperatorOptions, clock: Clock, rng: random.Random, registry: CollectorRegistry
    ) -> Sequence[Controller]:
        told = self._told
        secret = CertificateSecret(cluster.client, options.namespace, told.secret_name)
        given = secret if told.update_ca_bundle else None  # without it, configurations are only looked at
        bundles = CaBundles(cluster, namespaces=options.namespaces, registry=registry, secret=given)
        certificates = Certificates(
            cluster,
            secret,
            names=told.dns_names or (f"{SERVICE}.{options.namespace}.svc",),
            clock=clock,
            rng=branch(rng),
            generate=partial(_generated, told),
            show=self._shown.show,
            bundles=bundles if told.update_ca_bundle else None,
        )
        return certificates.controller, bundles.controller

    @property
    def is_ready(self) -> bool:
        """Whether there is a certificate to serve with."""
        return self._shown.is_ready

    async def serve(
        self, middlewares: Sequence[Middleware] = (), listening: Callable[[str], None] | None = None
    ) -> None:
        """Serve until cancelled. Waits for a first certificate; `listening` is then told the URL."""
        app = WebhookServer(self._rules, request_timeout=self._told.request_timeout).application(middlewares)
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            if self._files is not None:
                tasks.create_task(self._files.run(), name="certificate files")
            address = Address(self._told.host, self._told.port)
            url = await stack.enter_async_context(serve(app, address, self._shown))
            if listening is not None:
                listening(url)
            await asyncio.Event().wait()


def _warn_of_unused_files(told: WebhookOptions) -> None:
    given = [str(path) for path in (told.cert_file, told.key_file) if path is not None]
    if given:
        text = (
            "the certificate is self-signed, so %s will not be read: switch the self-signed certificate off to use %s"
        )
        log.warning(text, listed(given), "it" if len(given) == 1 else "them")


async def _generated(told: WebhookOptions, names: tuple[str, ...], now: datetime) -> MadeCertificate:
    """A new certificate, made in a thread: its keys take a while."""
    wanted = CertificateRequest(names, told.organization, told.expiration)
    return await asyncio.to_thread(generate, wanted, now)

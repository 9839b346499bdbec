"""Zone services: what answers beside the API server in a preview: pods, and the operator's webhooks of downscales.

StatefulSets with the labels of these webhooks are taken to be protected by them, as on a cluster that has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from yarl import URL

from kedge.admission import no_downscale, prepare_downscale, review
from kedge.admission.downscale_rules import downscale_rules
from kedge.admission.server import Rule
from kedge.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.codec import Untyped
from kedge.kube.connect.outbound import Answer, Call
from kedge.kube.errors import KubeError

_HOST: Final = "https://operator"


class PreparedPods:
    """Answers for all pods: each is prepared for its shutdown when it is first asked to be."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, int] = {}

    async def fetch(self, call: Call, *, timeout: float) -> Answer:  # noqa: ARG002  # it answers at once
        if call.method == "DELETE":
            self._since.pop(call.url, None)
            return Answer(200)
        since = self._since.setdefault(call.url, int(self._clock.now().timestamp()))
        return Answer(200, msgspec.json.encode({"timestamp": since}))

    async def close(self) -> None:
        """There is nothing to close."""


class DownscaleWebhooks:
    """Leads an API server's calls to the rules of the operator."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: Mapping[str, Rule] = {}

    async def install(self, client: Client) -> None:
        """From now on they are asked about every change of replicas."""
        self._rules = downscale_rules(client, PreparedPods(self._clock), self._clock)
        await client.create(ValidatingWebhookConfiguration, _configuration(no_downscale.PATH, "None"))
        await client.create(MutatingWebhookConfiguration, _configuration(prepare_downscale.PATH, "NoneOnDryRun"))

    async def fetch(self, call: Call, *, timeout: float) -> Answer:  # noqa: ARG002  # no rule waits for anybody
        question = review.decode(review.JSON, call.body)
        try:
            response = await self._rules[URL(call.url).path](question.request)
        except KubeError as error:  # as the webhook server does
            return Answer(500, str(error).encode())
        return Answer(200, review.encode(question, response))

    async def close(self) -> None:
        """There is nothing to close."""


def _configuration(path: str, side_effects: str) -> Untyped:
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["statefulsets", "statefulsets/scale"],
        "scope": "Namespaced",
    }
    name = path.rpartition("/")[2]
    hook = {
        "name": f"{name}.grafana.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"{_HOST}{path}"},
        "rules": [rule],
        "sideEffects": side_effects,
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
    }
    return {"metadata": {"name": name}, "webhooks": [hook]}

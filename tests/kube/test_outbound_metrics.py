"""What is measured of calls to pods."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from kedge.kube.connect.outbound import Answer, Call, OutboundFailed
from kedge.kube.outbound_metrics import MeasuredOutbound


class Pods:
    """Answers by the path of the URL: a status, or nothing at all."""

    def __init__(self) -> None:
        self.closed = False

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        status = call.url.rpartition("/")[2].partition("?")[0]
        if status == "none":
            raise OutboundFailed("nobody there")
        return Answer(int(status))

    async def close(self) -> None:
        self.closed = True


def count(registry: CollectorRegistry, **labels: str) -> float | None:
    name = "rollout_operator_pod_http_client_request_duration_seconds_count"
    return registry.get_sample_value(name, labels)


async def test_calls_are_measured_by_path_method_and_status() -> None:
    registry = CollectorRegistry()
    outbound = MeasuredOutbound(Pods(), registry)
    for host in ("a", "b"):
        assert (await outbound.fetch(Call("POST", f"http://{host}:80/204?x=1"), timeout=1)).status == 204
    assert (await outbound.fetch(Call("DELETE", "http://a/500"), timeout=1)).status == 500
    with pytest.raises(OutboundFailed):
        await outbound.fetch(Call("POST", "http://a/none"), timeout=1)
    assert count(registry, path="/204", method="POST", status_code="204") == 2
    assert count(registry, path="/500", method="DELETE", status_code="500") == 1
    assert count(registry, path="/none", method="POST", status_code="error") == 1


async def test_what_is_no_URL_is_measured_without_a_path() -> None:
    registry = CollectorRegistry()
    with pytest.raises(ValueError, match=r".+"):
        await MeasuredOutbound(Pods(), registry).fetch(Call("POST", "http://a:b"), timeout=1)
    assert count(registry, path="", method="POST", status_code="error") == 1


async def test_closing_it_closes_what_it_calls_through() -> None:
    pods = Pods()
    await MeasuredOutbound(pods, CollectorRegistry()).close()
    assert pods.closed

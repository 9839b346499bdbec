"""Which pods are behind a service: tables for both forms."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kedge.api.core import Service, ServicePort, ServiceSpec
from kedge.api.meta import ObjectMeta
from kedge.api.pods import Container, ContainerPort, Node, Pod, PodCondition, PodSpec, PodStatus
from kedge.api.policy import EndpointSlice
from kedge.embedded.workloads.endpoint_plan import (
    MOST,
    Slice,
    behind,
    endpoints_labels,
    match,
    slice_labels,
    slices,
    subsets,
)

NODES = {"n": Node(metadata=ObjectMeta(name="n", labels={"topology.kubernetes.io/zone": "east"}))}
NAMED = Container(name="main", ports=(ContainerPort(container_port=8080, name="web"),))


def pod(name: str, ip: str = "10.0.0.1", *, ready: bool = True, leaving: bool = False, **fields: Any) -> Pod:
    gone = datetime(2030, 1, 1, tzinfo=UTC) if leaving else None
    return Pod(
        metadata=ObjectMeta(name=name, namespace="shop", uid=f"uid-{name}", deletion_timestamp=gone),
        spec=PodSpec(**{"node_name": "n", "containers": (NAMED,), **fields}),
        status=PodStatus(
            phase="Running",
            pod_ip=ip,
            conditions=(PodCondition(type="Ready", status="True" if ready else "False"),),
        ),
    )


def service(*ports: ServicePort, **spec: Any) -> Service:
    given = {"cluster_ip": "10.96.0.1", "selector": {"app": "web"}, "ports": ports or (ServicePort(port=80),), **spec}
    return Service(
        metadata=ObjectMeta(name="web", namespace="shop", labels={"tier": "front"}), spec=ServiceSpec(**given)
    )


@pytest.mark.parametrize(
    ("ready", "leaving", "publish", "conditions"),
    [
        (True, False, False, (True, True, False)),
        (False, False, False, (False, False, False)),
        (True, True, False, (False, True, True)),
        (False, True, False, (False, False, True)),
        (False, False, True, (True, False, False)),
        (True, True, True, (True, True, True)),
    ],
)
def test_a_pod_on_its_way_out_serves_but_is_not_ready(
    ready: bool, leaving: bool, publish: bool, conditions: tuple[bool, bool, bool]
) -> None:
    wanted = service(publish_not_ready_addresses=publish)
    [one] = slices(wanted, behind(wanted, [pod("a", ready=ready, leaving=leaving)], NODES))
    found = one.endpoints[0]["conditions"]
    assert (found["ready"], found["serving"], found["terminating"]) == conditions


def test_an_endpoint_says_where_its_pod_is() -> None:
    wanted = service()
    [one] = slices(wanted, behind(wanted, [pod("a", hostname="a", subdomain="web")], NODES))
    assert one.endpoints[0] == {
        "addresses": ["10.0.0.1"],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "targetRef": {"kind": "Pod", "namespace": "shop", "name": "a", "uid": "uid-a"},
        "hostname": "a",
        "nodeName": "n",
        "zone": "east",
    }


def test_pods_without_address_or_node_are_not_there() -> None:
    found = [pod("a", ip=""), pod("b", node_name=""), pod("c", node_name="unknown")]
    assert slices(service(), behind(service(), found, NODES)) == [Slice("IPv4")]
    published = service(publish_not_ready_addresses=True)
    assert [one.pod.metadata.name for one in behind(published, found, NODES)] == ["b", "c"]


def test_pods_that_lack_a_named_port_have_a_slice_of_their_own() -> None:
    wanted = service(
        ServicePort(port=80, name="http", target_port="web"), ServicePort(port=81, name="raw", target_port=9)
    )
    there = [pod("a"), pod("b", "10.0.0.2", containers=(Container(name="main"),))]
    first, second = slices(wanted, behind(wanted, there, NODES))
    assert [port["name"] for port in first.ports] == ["http", "raw"]
    assert [port["name"] for port in second.ports] == ["raw"]
    assert first.ports[0] == {"name": "http", "port": 8080, "protocol": "TCP"}


def test_a_slice_holds_a_hundred() -> None:
    there = [pod(f"p{n:03}", f"10.0.0.{n}") for n in range(250)]
    made = slices(service(), behind(service(), there, NODES))
    assert [len(one.endpoints) for one in made] == [MOST, MOST, 50]


def test_slices_are_kept_where_they_can_be() -> None:
    ports = ({"name": "", "port": 80, "protocol": "TCP"},)
    same = EndpointSlice(metadata=ObjectMeta(name="web-b"), address_type="IPv4", ports=ports)
    empty = EndpointSlice(metadata=ObjectMeta(name="web-a"), address_type="IPv4")
    other = EndpointSlice(metadata=ObjectMeta(name="web-c"), address_type="IPv6")
    wanted = Slice("IPv4", ports)
    assert match([wanted], [empty, same, other]) == [(wanted, same), (None, empty), (None, other)]
    assert match([wanted], [empty]) == [(wanted, empty)]
    assert match([wanted], []) == [(wanted, None)]


def test_labels_are_those_of_the_service_and_whose_they_are() -> None:
    assert slice_labels(service()) == {
        "tier": "front",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert endpoints_labels(service(cluster_ip="None")) == {
        "tier": "front",
        "service.kubernetes.io/headless": "",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    }


def test_the_older_form_tells_ready_from_not_ready_and_leaves_out_those_on_their_way_out() -> None:
    there = [pod("b", "10.0.0.2", ready=False), pod("a"), pod("c", "10.0.0.3", leaving=True)]
    [found] = subsets(service(), there)
    assert [one["ip"] for one in found["addresses"]] == ["10.0.0.1"]
    assert [one["ip"] for one in found["notReadyAddresses"]] == ["10.0.0.2"]
    assert found["ports"] == [{"port": 80, "protocol": "TCP"}]

"""The addresses and ports of Services: given once, each to one, kept as long as the type has a use for them."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_address
from typing import Any

import pytest

from contract.backend import Api
from kedge.kube.codec import Untyped

RANGE = IPv4Network("10.0.0.0/24")
IN_RANGE = "must be between 1 and 65535, inclusive"
NODE_PORTS = range(30000, 32768)


@pytest.fixture
def services(api: Api) -> str:
    return f"/api/v1/namespaces/{api.namespace}/services"


async def made(api: Api, services: str, name: str = "a", /, **spec: Any) -> Untyped:
    body = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}
    answer = await api.ask("POST", services, body)
    assert answer.code == 201, answer.body
    found: Untyped = answer.body["spec"]
    return found


async def test_the_least_service_has_an_address_inside_the_cluster(api: Api, services: str) -> None:
    spec = await made(api, services)
    assert ip_address(spec["clusterIP"]) in RANGE
    assert spec == {
        "clusterIP": spec["clusterIP"],
        "clusterIPs": [spec["clusterIP"]],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }


async def test_no_two_services_have_one_address(api: Api, services: str) -> None:
    given = [(await made(api, services, f"s{number}"))["clusterIP"] for number in range(5)]
    assert len(set(given)) == 5


async def test_an_address_may_be_asked_for_if_it_is_free(api: Api, services: str) -> None:
    first = await made(api, services)
    body = {"metadata": {"name": "b"}, "spec": {"clusterIP": first["clusterIP"], "ports": [{"port": 80}]}}
    answer = await api.ask("POST", services, body)
    address = first["clusterIP"]
    why = f'Invalid value: ["{address}"]: failed to allocate IP {address}: provided IP is already allocated'
    assert answer.refusal == (422, "Invalid", f'Service "b" is invalid: spec.clusterIPs: {why}')
    await api.ask("DELETE", f"{services}/a")
    assert (await api.ask("POST", services, body)).body["spec"]["clusterIP"] == address


async def test_an_address_must_be_in_the_range(api: Api, services: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"clusterIP": "192.0.2.1", "ports": [{"port": 80}]}}
    answer = await api.ask("POST", services, body)
    assert answer.refusal[:2] == (422, "Invalid")
    why = "failed to allocate IP 192.0.2.1: the provided network does not match the current range"
    assert answer.refusal[2].endswith(why)


async def test_a_headless_service_has_no_address(api: Api, services: str) -> None:
    spec = await made(api, services, clusterIP="None", selector={"app": "a"})
    assert (spec["clusterIP"], spec["clusterIPs"], spec["ipFamilies"]) == ("None", ["None"], ["IPv4"])


async def test_an_external_name_has_neither_address_nor_family(api: Api, services: str) -> None:
    spec = await made(api, services, type="ExternalName", externalName="example.com")
    assert not spec.keys() & {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"}


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
async def test_a_service_for_the_outside_has_a_port_on_every_node(api: Api, services: str, kind: str) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    spec = await made(api, services, type=kind, ports=ports)
    given = [port["nodePort"] for port in spec["ports"]]
    assert all(port in NODE_PORTS for port in given)
    assert len(set(given)) == 2
    assert spec["externalTrafficPolicy"] == "Cluster"
    assert spec.get("allocateLoadBalancerNodePorts") == (True if kind == "LoadBalancer" else None)


async def test_ports_of_one_number_share_the_port_on_the_nodes(api: Api, services: str) -> None:
    ports = [{"name": "a", "port": 53, "protocol": "TCP"}, {"name": "b", "port": 53, "protocol": "UDP"}]
    spec = await made(api, services, type="NodePort", ports=ports)
    assert spec["ports"][0]["nodePort"] == spec["ports"][1]["nodePort"]


async def test_a_port_of_the_nodes_belongs_to_one_service(api: Api, services: str) -> None:
    number = (await made(api, services, type="NodePort"))["ports"][0]["nodePort"]
    body = {"metadata": {"name": "b"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": number}]}}
    answer = await api.ask("POST", services, body)
    why = f"spec.ports[0].nodePort: Invalid value: {number}: provided port is already allocated"
    assert answer.refusal == (422, "Invalid", f'Service "b" is invalid: {why}')


async def test_a_local_load_balancer_has_a_port_for_health_checks(api: Api, services: str) -> None:
    spec = await made(api, services, type="LoadBalancer", externalTrafficPolicy="Local")
    assert spec["healthCheckNodePort"] in NODE_PORTS
    assert spec["healthCheckNodePort"] != spec["ports"][0]["nodePort"]


async def test_a_put_that_leaves_them_out_changes_neither_address_nor_ports(api: Api, services: str) -> None:
    old = await made(api, services, type="NodePort")
    body = {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 90}]}}
    spec = (await api.ask("PUT", f"{services}/a", body)).body["spec"]
    assert spec["clusterIP"] == old["clusterIP"]
    assert spec["ports"] == [{**old["ports"][0], "port": 90, "targetPort": 90}]


async def test_an_address_never_changes(api: Api, services: str) -> None:
    await made(api, services)
    answer = await api.merge(f"{services}/a", {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}})
    why = 'spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set'
    assert answer.refusal == (422, "Invalid", f'Service "a" is invalid: {why}')


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
async def test_a_new_type_gets_what_it_needs_and_keeps_the_address(api: Api, services: str, kind: str) -> None:
    old = await made(api, services)
    spec = (await api.merge(f"{services}/a", {"spec": {"type": kind}})).body["spec"]
    assert spec["clusterIP"] == old["clusterIP"]
    assert spec["ports"][0]["nodePort"] in NODE_PORTS


async def test_a_new_type_gives_up_what_it_has_no_use_for(api: Api, services: str) -> None:
    balanced = await made(api, services, type="LoadBalancer", externalTrafficPolicy="Local")
    plain = (await api.merge(f"{services}/a", {"spec": {"type": "ClusterIP"}})).body["spec"]
    assert plain["clusterIP"] == balanced["clusterIP"]
    assert plain["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    gone = {"externalTrafficPolicy", "healthCheckNodePort", "allocateLoadBalancerNodePorts"}
    assert not plain.keys() & gone
    named = (await api.merge(f"{services}/a", {"spec": {"type": "ExternalName", "externalName": "a.b"}})).body["spec"]
    assert not named.keys() & {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}
    again = (await api.merge(f"{services}/a", {"spec": {"type": "ClusterIP", "externalName": None}})).body["spec"]
    assert ip_address(again["clusterIP"]) in RANGE


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"ports": []}, "spec.ports", "Required value"),
        (
            {"ports": [{"port": 70000}]},
            "spec.ports[0].port",
            "Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        ({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}, "spec.ports[1].name", 'Duplicate value: "a"'),
        (
            {"type": "Magic"},
            "spec.type",
            'Unsupported value: "Magic": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
        ),
        ({"type": "ExternalName"}, "spec.externalName", "Required value"),
        (
            {"externalTrafficPolicy": "Local"},
            "spec.externalTrafficPolicy",
            'Invalid value: "Local": may only be set for externally-accessible services',
        ),
        (
            {"ipFamilyPolicy": "RequireDualStack"},
            "spec.ipFamilyPolicy",
            'Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
        ),
    ],
)
async def test_a_service_that_breaks_a_rule_is_refused(
    api: Api, services: str, spec: Untyped, field: str, message: str
) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80, "targetPort": 1}], **spec}}
    answer = await api.ask("POST", services, body)
    assert answer.refusal[:2] == (422, "Invalid")
    found = [(one["field"], one["message"]) for one in answer.body["details"]["causes"]]
    assert (field, message) in found

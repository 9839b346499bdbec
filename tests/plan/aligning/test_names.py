"""Names of bindings and Works, as Karmada gives them."""

from __future__ import annotations

from kedge.plan.aligning.names import binding_name, work_name, work_namespace


def test_a_work_is_called_by_its_resource_in_every_cluster() -> None:
    assert work_name("Deployment", "nginx", "default") == "nginx-687f7fb96f"


def test_a_resource_of_no_namespace_has_another_work_than_one_of_a_namespace() -> None:
    assert work_name("ClusterRole", "system:view") == work_name("clusterrole", "System.View")
    assert work_name("ClusterRole", "view") != work_name("ClusterRole", "view", "default")


def test_a_binding_is_called_by_name_and_kind() -> None:
    assert binding_name("Deployment", "demo") == "demo-deployment"
    assert binding_name("ClusterRole", "system:view") == "system.view-clusterrole"


def test_works_are_in_the_namespace_of_their_cluster() -> None:
    assert work_namespace("member-1") == "karmada-es-member-1"

"""Names of bindings and Works, as Karmada gives them."""

from __future__ import annotations

import pytest

from kedge.plan.aligning.names import _fnv, binding_name, work_name, work_namespace


def test_a_work_is_called_by_its_resource_in_every_cluster() -> None:
    assert work_name("Deployment", "nginx", "default") == "nginx-687f7fb96f"


def test_a_resource_of_no_namespace_has_another_work_than_one_of_a_namespace() -> None:
    assert work_name("ClusterRole", "system:view") == work_name("clusterrole", "System.View")
    assert work_name("ClusterRole", "view") != work_name("ClusterRole", "view", "default")


def test_the_parts_of_a_work_name_that_there_are_follow_each_other() -> None:
    without, within = work_name("Role", "shop-view"), work_name("Role", "view", "shop")
    assert without.removeprefix("shop-view-") == within.removeprefix("view-")


@pytest.mark.parametrize(
    ("text", "hashed"),
    [("", 0x811C9DC5), ("a", 0xE40C292C), ("b", 0xE70C2DE5), ("foobar", 0xBF9CF968), ("foo", 0xA9F37ED7)],
)
def test_names_are_hashed_by_fnv_1a_of_32_bits(text: str, hashed: int) -> None:
    assert _fnv(text.encode()) == hashed


def test_a_binding_is_called_by_name_and_kind() -> None:
    assert binding_name("Deployment", "demo") == "demo-deployment"
    assert binding_name("ClusterRole", "system:view") == "system.view-clusterrole"


def test_works_are_in_the_namespace_of_their_cluster() -> None:
    assert work_namespace("member-1") == "karmada-es-member-1"

"""What a placement's selectors mean, and what is said of those that mean nothing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.placement import SelectionScope, StatusReportingScope
from kedge.api.placement_kinds import Placement
from kedge.api.placement_status import ResourceIdentifier
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector, LabelSelectorRequirement
from kedge.plan.selecting.kinds import Catalogue, Kind
from kedge.plan.selecting.selectors import (
    index_keys_of,
    name_problem,
    resolve_selectors,
    status_namespace,
    status_namespace_problem,
)
from plan.selecting.test_selection import (
    CATALOGUE,
    ENDPOINTS,
    MAPS,
    NAMESPACES,
    OLD_SCALERS,
    ROLES,
    SERVICES,
    Hub,
    names,
    placement,
    selected,
    selector,
)

PODS = Resource("", "v1", "Pod", "pods")
REVIEWS = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
EVERYTHING = Catalogue(
    [*(Kind(each) for each in (NAMESPACES, MAPS, ROLES, PODS)), Kind(OLD_SCALERS), Kind(REVIEWS, watchable=False)],
    unavailable=["quiet.example.com/v1"],
)
ONE_BY_ONE = {"selection_scope": SelectionScope.namespace_with_resource_selectors}
LABELLED = LabelSelector(match_labels={"app": "web"})
NONSENSE = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
ANYTHING = LabelSelector()


def problem(*selectors: Any, namespace: str | None = None) -> str:
    return "; ".join(resolve_selectors(placement(*selectors, namespace=namespace), EVERYTHING).problems)


def unknown(group: str, version: str, kind: str) -> Any:
    return replace(selector(MAPS), group=group, version=version, kind=kind)


@pytest.mark.parametrize(
    ("selectors", "namespace", "told"),
    [
        ([selector(NAMESPACES, "shop")], None, ""),
        ([selector(ROLES, label_selector=LABELLED)], None, ""),
        ([selector(MAPS)], "shop", ""),
        ([selector(NAMESPACES, "shop", **ONE_BY_ONE), selector(MAPS)], None, ""),
        (
            [selector(MAPS)],
            None,
            "[0] selects ConfigMap, which is in namespaces, but a ClusterResourcePlacement places cluster-wide objects",
        ),
        (
            [selector(NAMESPACES, "shop"), selector(MAPS)],
            None,
            "[1] selects ConfigMap, which is in namespaces, but a ClusterResourcePlacement places cluster-wide objects",
        ),
        (
            [selector(ROLES)],
            "shop",
            "[0] selects ClusterRole, which is cluster-wide, but a ResourcePlacement places objects of its own",
        ),
        ([selector(PODS)], "shop", "[0] selects Pod, a kind that belongs to the hub and is never placed: remove it"),
        ([selector(REVIEWS)], None, "[0] selects TokenReview, which the hub can neither list nor watch: remove it"),
        (
            [unknown("autoscaling", "v3", "HorizontalPodAutoscaler")],
            None,
            "[0] selects HorizontalPodAutoscaler of autoscaling/v3, which the hub serves as v1: correct version",
        ),
        (
            [unknown("", "v2", "ConfigMap")],
            None,
            "[0] selects ConfigMap of v2, which the hub serves as v1: correct version",
        ),
        (
            [unknown("example.com", "v1", "Thing")],
            None,
            "[0] selects Thing of example.com/v1, which the hub does not serve: install its CustomResourceDefinition",
        ),
        (
            [unknown("quiet.example.com", "v1", "Thing")],
            None,
            "[0] selects Thing of quiet.example.com/v1, but the server behind quiet.example.com/v1 does not answer",
        ),
        ([selector(ROLES, "r", label_selector=LABELLED)], None, "[0] gives both name and labelSelector: remove one"),
        (
            [selector(ROLES, label_selector=NONSENSE)],
            None,
            "[0] has a labelSelector that means nothing: operator 'Near'",
        ),
        (
            [selector(NAMESPACES, **ONE_BY_ONE)],
            None,
            "[0] has selectionScope NamespaceWithResourceSelectors, which is for one namespace: give its name",
        ),
        ([selector(NAMESPACES)], None, ""),
        ([selector(NAMESPACES, "kube-system")], None, "[0] selects namespace kube-system, which is reserved"),
        ([selector(ROLES, "kube-system")], None, ""),
    ],
)
def test_a_selector_is_resolved_or_has_a_problem(selectors: list[Any], namespace: str | None, told: str) -> None:
    found = problem(*selectors, namespace=namespace)
    assert (told in found) if told else (found == "")


@pytest.mark.parametrize(("length", "fits"), [(1, True), (63, True), (64, False)])
def test_a_placement_name_must_fit_into_a_label(length: int, fits: bool) -> None:
    long = placement(selector(ROLES))
    long = replace(long, metadata=replace(long.metadata, name="p" * length))
    assert (name_problem(long) == "") is fits
    assert fits or name_problem(long).startswith(f"metadata.name has {length} characters")


# Objects of one namespace, one by one


def test_with_NamespaceWithResourceSelectors_objects_are_selected_one_by_one() -> None:
    hub = Hub("namespaces shop", "configmaps other/a", "configmaps shop/a", "configmaps shop/b", "services shop/s")
    found = selected(hub, selector(NAMESPACES, "shop", **ONE_BY_ONE), selector(MAPS, "a"))
    assert names(found) == ["Namespace shop", "ConfigMap shop/a"]


def test_with_NamespaceOnly_only_the_namespace_is_selected() -> None:
    hub = Hub("namespaces shop", "configmaps shop/a")
    alone = selector(NAMESPACES, "shop", selection_scope=SelectionScope.namespace_only)
    assert names(selected(hub, alone)) == ["Namespace shop"]


def test_objects_are_selected_by_name_or_by_labels_or_all() -> None:
    hub = Hub("clusterroles a", "clusterroles b", app="web")
    other = LabelSelector(match_labels={"app": "db"})
    for wanted, chosen in (
        (selector(ROLES), ["ClusterRole a", "ClusterRole b"]),
        (selector(ROLES, "b"), ["ClusterRole b"]),
        (selector(ROLES, label_selector=LABELLED), ["ClusterRole a", "ClusterRole b"]),
        (selector(ROLES, label_selector=other), []),
    ):
        assert names(selected(hub, wanted)) == chosen
        [pick] = resolve_selectors(placement(wanted), CATALOGUE).selectors
        assert [f"ClusterRole {each.metadata.name}" for _, each in hub.objects if pick.matches(each)] == chosen


def test_hub_objects_are_selected_neither_by_name_nor_with_their_namespace() -> None:
    hub = Hub("namespaces shop", "configmaps shop/kube-root-ca.crt", "configmaps shop/a")
    assert names(selected(hub, selector(NAMESPACES, "shop"))) == ["Namespace shop", "ConfigMap shop/a"]
    assert names(selected(hub, selector(MAPS), namespace="shop")) == ["ConfigMap shop/a"]


# Which kinds and objects matter


def kinds(*selectors: Any, namespace: str | None = None) -> list[str]:
    found = resolve_selectors(placement(*selectors, namespace=namespace), CATALOGUE).resources(CATALOGUE)
    return [each.kind for each in found]


def test_selecting_endpoints_also_reads_services() -> None:
    assert kinds(selector(MAPS), namespace="shop") == ["ConfigMap"]
    assert kinds(selector(MAPS), selector(ENDPOINTS), namespace="shop") == ["ConfigMap", "Endpoints", "Service"]
    without = Catalogue([Kind(ENDPOINTS)])
    assert resolve_selectors(placement(selector(ENDPOINTS), namespace="shop"), without).resources(without) == (
        ENDPOINTS,
    )


def test_selecting_whole_namespaces_reads_every_placeable_kind() -> None:
    whole, alone = selector(NAMESPACES), selector(NAMESPACES, selection_scope=SelectionScope.namespace_only)
    assert kinds(alone) == ["Namespace"]
    assert kinds(whole) == [
        "Namespace", "ConfigMap", "Service", "Endpoints", "Deployment", "HorizontalPodAutoscaler", "Widget",
    ]  # fmt: skip


ALONE = {"selection_scope": SelectionScope.namespace_only}


@pytest.mark.parametrize(
    ("wanted", "namespace", "tokens"),
    [
        (selector(ROLES), None, [("all", ROLES.group, "ClusterRole", "")]),
        (selector(ROLES, "r"), None, [("one", ROLES.group, "ClusterRole", "", "r")]),
        (selector(NAMESPACES, "shop"), None, [("one", "", "Namespace", "", "shop"), ("in", "shop")]),
        (selector(NAMESPACES), None, [("all", "", "Namespace", ""), ("anywhere",)]),
        (selector(NAMESPACES, "shop", **ALONE), None, [("one", "", "Namespace", "", "shop")]),
        (selector(MAPS, "a"), "shop", [("one", "", "ConfigMap", "shop", "a")]),
        (selector(ENDPOINTS), "shop", [("all", "", "Endpoints", "shop"), ("all", "", "Service", "shop")]),
    ],
)
def test_a_placement_has_the_index_keys_of_what_it_selects(
    wanted: Any, namespace: str | None, tokens: list[Any]
) -> None:
    assert list(resolve_selectors(placement(wanted, namespace=namespace), CATALOGUE).index_keys()) == tokens


def test_an_object_has_the_index_keys_of_all_who_may_select_it() -> None:
    hub = Hub("services shop/s", "clusterroles r")
    assert [list(index_keys_of(*each)) for each in hub.objects] == [
        [("one", "", "Service", "shop", "s"), ("all", "", "Service", "shop"), ("in", "shop"), ("anywhere",)],
        [("one", ROLES.group, "ClusterRole", "", "r"), ("all", ROLES.group, "ClusterRole", "")],
    ]
    assert hub.objects[0][0] == SERVICES


# The namespace that shows the status


def shown(*selectors: Any, was: tuple[tuple[str, str], ...] = (), accessible: bool = True) -> Placement:
    found = placement(*selectors)
    scope = StatusReportingScope.namespace_accessible if accessible else StatusReportingScope.cluster_scope_only
    before = tuple(ResourceIdentifier(group="", version="v1", kind=kind, name=name) for kind, name in was)
    return replace(
        found,
        spec=replace(found.spec, status_reporting_scope=scope),
        status=replace(found.status, selected_resources=before),
    )


SHOP, ROLE = selector(NAMESPACES, "shop"), selector(ROLES, "r")


@pytest.mark.parametrize(
    ("found", "home"),
    [
        (shown(ROLE, SHOP), "shop"),
        (shown(ROLE, SHOP, accessible=False), ""),
        (shown(ROLE), ""),
        (shown(selector(NAMESPACES), SHOP), "shop"),
    ],
)
def test_the_status_namespace_is_the_first_that_is_named(found: Placement, home: str) -> None:
    assert status_namespace(found) == home


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (shown(SHOP), ""),
        (shown(SHOP, was=(("Namespace", "shop"),)), ""),
        (shown(SHOP, was=(("ConfigMap", "other"),)), ""),
        (shown(ROLE, was=(("Namespace", "other"),)), ""),
        (shown(SHOP, was=(("Namespace", "other"),), accessible=False), ""),
        (shown(SHOP, was=(("ConfigMap", "shop"), ("Namespace", "other"))), "cannot change from other to shop"),
    ],
)
def test_the_status_namespace_cannot_change(found: Placement, told: str) -> None:
    assert (told in status_namespace_problem(found)) if told else (status_namespace_problem(found) == "")

"""Which objects a placement selects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.apiextensions import (
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
    CustomResourceDefinitionVersion,
)
from kedge.api.condition import Observed
from kedge.api.dialect import Dialect
from kedge.api.meta import ObjectMeta
from kedge.api.placement import (
    ClusterResourcePlacement,
    PlacementSpec,
    ResourcePlacement,
    ResourceSelector,
    SelectionScope,
)
from kedge.api.placement_kinds import Placement
from kedge.api.resource import Resource
from kedge.plan.digest import digest
from kedge.plan.selecting.candidates import Candidate, candidate
from kedge.plan.selecting.kinds import Catalogue, Kind, by_version_priority, kinds_of_crd
from kedge.plan.selecting.selection import Selection, contents_digest, manifests_digest, select_objects
from kedge.plan.selecting.selectors import index_keys_of, resolve_selectors

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
MAPS = Resource("", "v1", "ConfigMap", "configmaps")
SERVICES = Resource("", "v1", "Service", "services")
ENDPOINTS = Resource("", "v1", "Endpoints", "endpoints")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
SCALERS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
OLD_SCALERS = Resource("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
WIDGETS = Resource("example.com", "v1", "Widget", "widgets")
ALL = (NAMESPACES, MAPS, SERVICES, ENDPOINTS, DEPLOYMENTS, SCALERS, ROLES, WIDGETS)
CATALOGUE = Catalogue([*(Kind(each) for each in ALL), Kind(OLD_SCALERS, preferred=False)])


class Hub:
    """A hub with these objects, `kind namespace/name` each; kinds in `hidden` cannot be read, in `late` not yet."""

    def __init__(
        self, *objects: str, hidden: Mapping[str, str] | None = None, late: Iterable[str] = (), **labels: str
    ) -> None:
        self._hidden = hidden or {}
        self._late = tuple(late)
        self.objects = [self._made(each, labels) for each in objects]

    def _made(self, text: str, labels: Mapping[str, str]) -> tuple[Resource, Candidate]:
        plural, name = text.split()
        namespace, _, name = name.rpartition("/")
        kind = next(each for each in (*ALL, OLD_SCALERS) if each.plural == plural)
        meta = {"name": name, "namespace": namespace or None, "uid": text, "labels": labels}
        return kind, candidate(kind, {"metadata": meta})

    def problem(self, resource: Resource) -> str:
        return self._hidden.get(resource.plural, "")

    def is_ready(self, resource: Resource) -> bool:
        return resource.plural not in self._late

    def all(self, resource: Resource, namespace: str | None = None) -> Iterable[Candidate]:
        return [
            found
            for kind, found in self.objects
            if kind.plural == resource.plural and namespace in (None, found.metadata.namespace)
        ]

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Candidate | None:
        return next((found for found in self.all(resource, namespace) if found.metadata.name == name), None)


def selector(resource: Resource, name: str = "", **rest: Any) -> ResourceSelector:
    return ResourceSelector(group=resource.group, version=resource.version, kind=resource.kind, name=name, **rest)


def placement(*selectors: ResourceSelector, namespace: str | None = None) -> Placement:
    meta, spec = ObjectMeta(name="p", namespace=namespace), PlacementSpec(resource_selectors=selectors)
    return (
        ResourcePlacement(metadata=meta, spec=spec) if namespace else ClusterResourcePlacement(metadata=meta, spec=spec)
    )


def selected(hub: Hub, *selectors: ResourceSelector, namespace: str | None = None) -> Selection:
    return select_objects(resolve_selectors(placement(*selectors, namespace=namespace), CATALOGUE), CATALOGUE, hub)


def names(selection: Selection) -> list[str]:
    assert selection.is_known, (selection.problem, selection.pending)
    return [str(each) for each in selection.objects]


def test_a_namespace_is_selected_with_its_contents_in_snapshot_order() -> None:
    hub = Hub(
        "widgets shop/w",
        "deployments shop/b",
        "deployments shop/a",
        "deployments other/c",
        "services shop/s",
        "configmaps shop/m",
        "namespaces shop",
        "namespaces other",
        "horizontalpodautoscalers shop/h",
    )
    assert names(selected(hub, selector(NAMESPACES, "shop"))) == [
        "Namespace shop",
        "ConfigMap shop/m",
        "Service shop/s",
        "Deployment shop/a",
        "Deployment shop/b",
        "HorizontalPodAutoscaler shop/h",
        "Widget shop/w",
    ]


def test_objects_in_a_missing_namespace_are_not_selected() -> None:
    assert names(selected(Hub("configmaps shop/m"), selector(NAMESPACES, "shop"))) == []


def test_endpoints_are_selected_only_without_a_service_of_their_name() -> None:
    hub = Hub("endpoints shop/web", "services shop/web", "endpoints shop/outside")
    assert names(selected(hub, selector(ENDPOINTS), namespace="shop")) == ["Endpoints shop/outside"]


def test_a_resource_placement_selects_only_in_its_namespace() -> None:
    hub = Hub("configmaps shop/a", "configmaps other/a")
    assert names(selected(hub, selector(MAPS), namespace="shop")) == ["ConfigMap shop/a"]
    assert names(selected(hub, selector(MAPS, "a"), namespace="shop")) == ["ConfigMap shop/a"]


def test_an_object_in_two_versions_is_the_same_object() -> None:
    hub = Hub("horizontalpodautoscalers shop/h")
    found = selected(hub, selector(SCALERS), selector(OLD_SCALERS, "h"), namespace="shop")
    assert "both select HorizontalPodAutoscaler shop/h" in found.problem


def test_a_problem_names_a_few_objects_and_counts_the_rest() -> None:
    hub = Hub(*(f"configmaps shop/m{number}" for number in range(10)))
    found = selected(hub, selector(MAPS), selector(MAPS), namespace="shop")
    assert found.problem.count("both select") == 3
    assert ", and 7 more: an object may be selected once" in found.problem
    assert not found.objects


@pytest.mark.parametrize(
    ("count", "end"), [(1, "shop/m0: an object"), (3, "shop/m2: an object"), (4, "shop/m2, and 1 more: an object")]
)
def test_a_problem_counts_only_what_it_does_not_name(count: int, end: str) -> None:
    hub = Hub(*(f"configmaps shop/m{number}" for number in range(count)))
    assert end in selected(hub, selector(MAPS), selector(MAPS), namespace="shop").problem


@pytest.mark.parametrize(
    ("idle", "remark"),
    [
        ((), ""),
        (("[0]",), "[0] selects nothing on the hub: correct it, or make what is meant"),
        (("[0]", "[1]"), "[0], [1] select nothing on the hub: correct them, or make what is meant"),
        (("[0]", "[1]", "[2]"), "[0], [1], [2] select nothing on the hub: correct them, or make what is meant"),
        (tuple("abcde"), "a, b, c and 2 more select nothing on the hub: correct them, or make what is meant"),
    ],
)
def test_selectors_that_select_nothing_give_a_warning(idle: tuple[str, ...], remark: str) -> None:
    assert Selection(unmatched=idle).warning == remark


def test_a_selector_that_selects_nothing_is_named_by_its_field() -> None:
    found = selected(Hub("configmaps shop/a"), selector(MAPS), selector(SERVICES), namespace="shop")
    assert found.unmatched == ("spec.resourceSelectors[1]",)


def test_a_selection_has_identifiers_and_a_digest_of_its_content() -> None:
    one, other = Hub("configmaps shop/a", "configmaps shop/b"), Hub("configmaps shop/a")
    found, less = (selected(hub, selector(MAPS), namespace="shop") for hub in (one, other))
    identifiers = [each.identifier for each in found.objects]
    assert [(each.group, each.version, each.kind, each.namespace, each.name) for each in identifiers] == [
        ("", "v1", "ConfigMap", "shop", "a"),
        ("", "v1", "ConfigMap", "shop", "b"),
    ]
    assert found.digest != less.digest
    sent: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
        for name in ("a", "b")
    ]
    assert manifests_digest([{**each, "metadata": {**each["metadata"], "labels": {}}} for each in sent]) != less.digest
    assert manifests_digest(sent) == contents_digest(
        (identifier, digest(each)) for identifier, each in zip(identifiers, sent, strict=True)
    )


def test_an_unavailable_group_is_a_problem_only_for_those_who_select_whole_namespaces() -> None:
    silent = Catalogue([Kind(each) for each in ALL], unavailable=["aggregated.example.com/v1"])
    for selectors, waits in (
        ([selector(ROLES)], False),
        ([selector(ROLES), selector(NAMESPACES, "shop")], True),
    ):
        found = select_objects(
            resolve_selectors(placement(*selectors), silent), silent, Hub("clusterroles r", "namespaces shop")
        )
        assert bool(found.problem) is waits


def test_catalogues_that_serve_the_same_are_equal() -> None:
    assert Catalogue([Kind(MAPS)]) == Catalogue([Kind(MAPS)])
    assert Catalogue([Kind(MAPS)]) != Catalogue([Kind(MAPS)], unavailable=["a/v1"])
    assert Catalogue([Kind(MAPS)]) != Catalogue([Kind(ROLES)])
    assert Catalogue([Kind(MAPS)]) != "ConfigMap"
    assert CATALOGUE.versions("autoscaling", "HorizontalPodAutoscaler") == ("v2", "v1")


def test_a_preferred_version_is_taken_and_else_the_first() -> None:
    both = [Kind(OLD_SCALERS, preferred=False), Kind(SCALERS)]
    key = ("autoscaling", "HorizontalPodAutoscaler")
    assert Catalogue(both).preferred(key) == both[1]
    assert Catalogue(both[:1]).preferred(key) == both[0]
    assert Catalogue([]).preferred(key) is None


def test_kinds_placed_with_a_namespace_are_namespaced_and_placeable() -> None:
    pods = Resource("", "v1", "Pod", "pods")
    found = Catalogue([Kind(MAPS), Kind(ROLES), Kind(pods), Kind(WIDGETS, watchable=False)]).placeable_namespaced
    assert [each.resource for each in found] == [MAPS]


def test_a_kind_that_cannot_be_read_is_a_problem_for_those_who_select_it() -> None:
    hub = Hub("namespaces shop", hidden={"widgets": "403 Forbidden"})
    found = selected(hub, selector(NAMESPACES, "shop"))
    assert found.problem == "objects of kind widgets.example.com cannot be read on the hub: 403 Forbidden"
    assert names(selected(hub, selector(ROLES))) == []


def test_a_kind_that_is_not_listed_yet_makes_the_selection_pending() -> None:
    found = selected(Hub("namespaces shop", late=["widgets"]), selector(NAMESPACES, "shop"))
    assert found.pending == "the hub has not told yet of all widgets.example.com"
    assert not found.is_known
    assert not found.problem


def test_with_an_unavailable_group_the_contents_of_namespaces_are_unknown() -> None:
    silent = Catalogue([Kind(each) for each in ALL], unavailable=["aggregated.example.com/v1"])
    meant = resolve_selectors(placement(selector(NAMESPACES, "shop")), silent)
    assert "aggregated.example.com/v1 do not answer" in select_objects(meant, silent, Hub("namespaces shop")).problem
    asked = ResourceSelector(group="aggregated.example.com", version="v1", kind="Thing")
    [problem] = resolve_selectors(placement(asked), silent).problems
    assert problem.endswith("does not answer: see to its APIService on the hub")


def test_a_resource_placement_in_a_reserved_namespace_places_nothing() -> None:
    found = selected(Hub(), selector(MAPS), namespace="kube-system")
    assert found.problem.startswith("metadata.namespace is kube-system, which is reserved")
    assert names(selected(Hub("configmaps default/a"), selector(MAPS), namespace="default")) == ["ConfigMap default/a"]


def test_every_problem_is_reported() -> None:
    unknown = ResourceSelector(group="x", version="v1", kind="Y")
    found = selected(Hub(), unknown, selector(NAMESPACES, "kube-system"))
    assert found.problem.count("spec.resourceSelectors[") == 2


OBJECTS = [
    "namespaces shop",
    "namespaces other",
    "configmaps shop/a",
    "configmaps other/a",
    "services shop/a",
    "endpoints shop/a",
    "deployments shop/b",
    "widgets other/w",
    "clusterroles r",
]
SELECTORS = st.sampled_from(
    [
        selector(NAMESPACES, "shop"),
        selector(NAMESPACES, "other"),
        selector(NAMESPACES),
        selector(ROLES),
        selector(ROLES, "r"),
    ]
)


@given(
    st.sets(st.sampled_from(OBJECTS)), st.lists(SELECTORS, min_size=1, max_size=3), st.randoms(use_true_random=False)
)
def test_the_order_in_which_objects_are_listed_does_not_matter(
    objects: set[str], selectors: list[ResourceSelector], rng: Random
) -> None:
    told = sorted(objects)
    first = selected(Hub(*told), *selectors)
    rng.shuffle(told)
    assert selected(Hub(*told), *selectors) == first
    assert not (first.problem and first.objects)


@given(st.sets(st.sampled_from(OBJECTS)), st.sampled_from(OBJECTS), st.lists(SELECTORS, min_size=1, max_size=2))
def test_the_index_keys_of_an_object_reach_every_placement_that_selects_it(
    objects: set[str], one: str, selectors: list[ResourceSelector]
) -> None:
    """If an object makes a difference to a selection, a token of the placement names it."""
    with_it, without = Hub(*sorted(objects | {one})), Hub(*sorted(objects - {one}))
    meant = resolve_selectors(placement(*selectors), CATALOGUE)
    if select_objects(meant, CATALOGUE, with_it) != select_objects(meant, CATALOGUE, without):
        kind, found = Hub(one).objects[0]
        assert set(index_keys_of(kind, found)) & set(meant.index_keys())
        assert kind in meant.resources(CATALOGUE)


def crd(*versions: str, established: str = "True", scope: str = "Namespaced") -> CustomResourceDefinition:
    served = tuple(CustomResourceDefinitionVersion(name=each.strip("-"), served="-" not in each) for each in versions)
    names = CustomResourceDefinitionNames(kind="Widget", plural="widgets")
    return CustomResourceDefinition(
        spec=CustomResourceDefinitionSpec(group="example.com", scope=scope, names=names, versions=served),
        status=CustomResourceDefinitionStatus(conditions=(Observed(type="Established", status=established),)),
    )


def test_a_crd_is_established_whatever_its_other_conditions() -> None:
    found = crd("v1")
    other = Observed(type="NonStructuralSchema", status="True")
    told = CustomResourceDefinitionStatus(conditions=(other, *(found.status.conditions or ())))
    assert kinds_of_crd(replace(found, status=told))


def test_a_crd_gives_its_kind_in_each_served_version() -> None:
    found = kinds_of_crd(crd("v1beta1", "-v3", "v2"))
    assert [(each.resource.version, each.preferred) for each in found] == [("v2", True), ("v1beta1", False)]
    assert all(each.resource.namespaced for each in found)
    assert kinds_of_crd(crd("v1", established="False")) == ()
    assert not kinds_of_crd(crd("v1", scope="Cluster"))[0].resource.namespaced


@pytest.mark.parametrize(
    ("given_versions", "wanted"), [(["v1alpha1", "v1", "foo", "v10", "v2", "v1beta2", "v1beta10"],) * 2]
)
def test_versions_are_sorted_by_kubernetes_version_priority(given_versions: list[str], wanted: list[str]) -> None:
    wanted = ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "bar", "foo"]
    assert list(by_version_priority([*given_versions, "bar"])) == wanted


def test_a_kind_that_only_an_older_version_of_its_group_has_is_found_there() -> None:
    catalogue = Catalogue([Kind(WIDGETS, preferred=False)])
    assert [each.resource for each in catalogue.placeable_namespaced] == [WIDGETS]


PICKY = selector(NAMESPACES, "shop", selection_scope=SelectionScope.namespace_with_resource_selectors)


@pytest.mark.parametrize(
    ("dialect", "objects", "problem"),
    [
        (Dialect.seed, ["configmaps shop/a"], ""),
        (Dialect.kubefleet, ["namespaces shop", "configmaps shop/a"], ""),
        (
            Dialect.kubefleet,
            ["namespaces other", "configmaps shop/a"],
            (
                "NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected: "
                "spec.resourceSelectors[0] names shop; make that namespace on the hub, or correct the name"
            ),
        ),
    ],
)
def test_in_the_kubefleet_dialect_a_namespace_with_resource_selectors_must_exist(
    dialect: Dialect, objects: list[str], problem: str
) -> None:
    meant = resolve_selectors(placement(PICKY, selector(MAPS)), CATALOGUE)
    assert select_objects(meant, CATALOGUE, Hub(*objects), dialect).problem == problem


def test_in_the_kubefleet_dialect_other_selectors_may_select_nothing() -> None:
    meant = resolve_selectors(placement(selector(NAMESPACES, "gone")), CATALOGUE)
    found = select_objects(meant, CATALOGUE, Hub("namespaces shop"), Dialect.kubefleet)
    assert (found.problem, found.unmatched) == ("", ("spec.resourceSelectors[0]",))


def test_an_excluded_kind_is_selected_neither_by_name_nor_with_its_namespace() -> None:
    catalogue = Catalogue([Kind(each) for each in ALL], excluded=[("", "ConfigMap")])
    hub = Hub("namespaces shop", "configmaps shop/a", "services shop/a")
    assert catalogue != Catalogue([Kind(each) for each in ALL])
    assert names(
        select_objects(resolve_selectors(placement(selector(NAMESPACES, "shop")), catalogue), catalogue, hub)
    ) == [
        "Namespace shop",
        "Service shop/a",
    ]
    named = resolve_selectors(placement(selector(MAPS, "a"), namespace="shop"), catalogue)
    assert names(select_objects(named, catalogue, hub)) == []

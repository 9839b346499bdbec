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
from kedge.api.resource import Resource
from kedge.api.twins import Placement
from kedge.plan.digest import digest
from kedge.plan.selecting.candidates import Candidate, candidate
from kedge.plan.selecting.choosing import Selection, choose, contents_digest, manifests_digest
from kedge.plan.selecting.custom import by_preference, custom_kinds
from kedge.plan.selecting.kinds import Catalogue, Kind
from kedge.plan.selecting.selectors import meaning, tokens_of

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
    return choose(meaning(placement(*selectors, namespace=namespace), CATALOGUE), CATALOGUE, hub)


def names(selection: Selection) -> list[str]:
    assert selection.is_known, (selection.problem, selection.pending)
    return [str(each) for each in selection.chosen]


def test_a_namespace_comes_with_what_is_in_it_in_the_order_of_a_snapshot() -> None:
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


def test_what_is_in_a_namespace_that_is_not_there_is_not_selected() -> None:
    assert names(selected(Hub("configmaps shop/m"), selector(NAMESPACES, "shop"))) == []


def test_endpoints_of_a_service_are_its_controllers_and_others_are_the_users() -> None:
    hub = Hub("endpoints shop/web", "services shop/web", "endpoints shop/outside")
    assert names(selected(hub, selector(ENDPOINTS), namespace="shop")) == ["Endpoints shop/outside"]


def test_a_resource_placement_stays_in_its_namespace() -> None:
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
    assert not found.chosen


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
def test_selectors_that_select_nothing_are_remarked_upon(idle: tuple[str, ...], remark: str) -> None:
    assert Selection(idle=idle).remark == remark


def test_a_selector_that_selects_nothing_is_named_by_where_it_is() -> None:
    found = selected(Hub("configmaps shop/a"), selector(MAPS), selector(SERVICES), namespace="shop")
    assert found.idle == ("spec.resourceSelectors[1]",)


def test_what_is_selected_is_named_as_statuses_name_it_and_told_from_the_rest_by_a_digest() -> None:
    one, other = Hub("configmaps shop/a", "configmaps shop/b"), Hub("configmaps shop/a")
    found, less = (selected(hub, selector(MAPS), namespace="shop") for hub in (one, other))
    assert [(each.group, each.version, each.kind, each.namespace, each.name) for each in found.identifiers] == [
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
        (identifier, digest(each)) for identifier, each in zip(found.identifiers, sent, strict=True)
    )


def test_where_a_server_is_silent_only_those_who_select_whole_namespaces_have_to_wait() -> None:
    silent = Catalogue([Kind(each) for each in ALL], silent=["aggregated.example.com/v1"])
    for selectors, waits in (
        ([selector(ROLES)], False),
        ([selector(ROLES), selector(NAMESPACES, "shop")], True),
    ):
        found = choose(meaning(placement(*selectors), silent), silent, Hub("clusterroles r", "namespaces shop"))
        assert bool(found.problem) is waits


def test_a_catalogue_is_what_it_serves() -> None:
    assert Catalogue([Kind(MAPS)]) == Catalogue([Kind(MAPS)])
    assert Catalogue([Kind(MAPS)]) != Catalogue([Kind(MAPS)], silent=["a/v1"])
    assert Catalogue([Kind(MAPS)]) != Catalogue([Kind(ROLES)])
    assert Catalogue([Kind(MAPS)]) != "ConfigMap"
    assert CATALOGUE.versions("autoscaling", "HorizontalPodAutoscaler") == ("v2", "v1")


def test_a_preferred_version_is_taken_and_else_the_first() -> None:
    both = [Kind(OLD_SCALERS, preferred=False), Kind(SCALERS)]
    key = ("autoscaling", "HorizontalPodAutoscaler")
    assert Catalogue(both).preferred(key) == both[1]
    assert Catalogue(both[:1]).preferred(key) == both[0]
    assert Catalogue([]).preferred(key) is None


def test_what_goes_along_with_a_namespace_is_namespaced_and_can_be_placed() -> None:
    pods = Resource("", "v1", "Pod", "pods")
    found = Catalogue([Kind(MAPS), Kind(ROLES), Kind(pods), Kind(WIDGETS, followed=False)]).of_namespaces
    assert [each.resource for each in found] == [MAPS]


def test_what_cannot_be_read_stops_those_who_need_it() -> None:
    hub = Hub("namespaces shop", hidden={"widgets": "403 Forbidden"})
    found = selected(hub, selector(NAMESPACES, "shop"))
    assert found.problem == "objects of kind widgets.example.com cannot be read on the hub: 403 Forbidden"
    assert names(selected(hub, selector(ROLES))) == []


def test_what_is_not_known_yet_is_waited_for() -> None:
    found = selected(Hub("namespaces shop", late=["widgets"]), selector(NAMESPACES, "shop"))
    assert found.pending == "the hub has not told yet of all widgets.example.com"
    assert not found.is_known
    assert not found.problem


def test_where_a_server_is_silent_nobody_knows_what_is_in_a_namespace() -> None:
    silent = Catalogue([Kind(each) for each in ALL], silent=["aggregated.example.com/v1"])
    meant = meaning(placement(selector(NAMESPACES, "shop")), silent)
    assert "aggregated.example.com/v1 do not answer" in choose(meant, silent, Hub("namespaces shop")).problem
    asked = ResourceSelector(group="aggregated.example.com", version="v1", kind="Thing")
    [problem] = meaning(placement(asked), silent).problems
    assert problem.endswith("does not answer: see to its APIService on the hub")


def test_a_resource_placement_in_a_reserved_namespace_places_nothing() -> None:
    found = selected(Hub(), selector(MAPS), namespace="kube-system")
    assert found.problem.startswith("metadata.namespace is kube-system, which is reserved")
    assert names(selected(Hub("configmaps default/a"), selector(MAPS), namespace="default")) == ["ConfigMap default/a"]


def test_every_problem_is_told() -> None:
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
def test_the_same_hub_is_selected_the_same_whatever_order_it_tells(
    objects: set[str], selectors: list[ResourceSelector], rng: Random
) -> None:
    told = sorted(objects)
    first = selected(Hub(*told), *selectors)
    rng.shuffle(told)
    assert selected(Hub(*told), *selectors) == first
    assert not (first.problem and first.chosen)


@given(st.sets(st.sampled_from(OBJECTS)), st.sampled_from(OBJECTS), st.lists(SELECTORS, min_size=1, max_size=2))
def test_whoever_selects_an_object_is_woken_by_it(
    objects: set[str], one: str, selectors: list[ResourceSelector]
) -> None:
    """If an object makes a difference to a selection, a token of the placement names it."""
    with_it, without = Hub(*sorted(objects | {one})), Hub(*sorted(objects - {one}))
    meant = meaning(placement(*selectors), CATALOGUE)
    if choose(meant, CATALOGUE, with_it) != choose(meant, CATALOGUE, without):
        kind, found = Hub(one).objects[0]
        assert set(tokens_of(kind, found)) & set(meant.tokens())
        assert kind in meant.resources(CATALOGUE)


def crd(*versions: str, established: str = "True", scope: str = "Namespaced") -> CustomResourceDefinition:
    served = tuple(CustomResourceDefinitionVersion(name=each.strip("-"), served="-" not in each) for each in versions)
    names = CustomResourceDefinitionNames(kind="Widget", plural="widgets")
    return CustomResourceDefinition(
        spec=CustomResourceDefinitionSpec(group="example.com", scope=scope, names=names, versions=served),
        status=CustomResourceDefinitionStatus(conditions=(Observed(type="Established", status=established),)),
    )


def test_a_crd_is_established_whatever_else_is_said_of_it() -> None:
    found = crd("v1")
    other = Observed(type="NonStructuralSchema", status="True")
    told = CustomResourceDefinitionStatus(conditions=(other, *(found.status.conditions or ())))
    assert custom_kinds(replace(found, status=told))


def test_a_crd_tells_which_kind_is_served_in_which_versions() -> None:
    found = custom_kinds(crd("v1beta1", "-v3", "v2"))
    assert [(each.resource.version, each.preferred) for each in found] == [("v2", True), ("v1beta1", False)]
    assert all(each.resource.namespaced for each in found)
    assert custom_kinds(crd("v1", established="False")) == ()
    assert not custom_kinds(crd("v1", scope="Cluster"))[0].resource.namespaced


@pytest.mark.parametrize(
    ("given_versions", "wanted"), [(["v1alpha1", "v1", "foo", "v10", "v2", "v1beta2", "v1beta10"],) * 2]
)
def test_versions_are_preferred_as_kubernetes_does(given_versions: list[str], wanted: list[str]) -> None:
    wanted = ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "bar", "foo"]
    assert list(by_preference([*given_versions, "bar"])) == wanted


def test_a_kind_that_only_an_older_version_of_its_group_has_is_found_there() -> None:
    catalogue = Catalogue([Kind(WIDGETS, preferred=False)])
    assert [each.resource for each in catalogue.of_namespaces] == [WIDGETS]


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
def test_for_kubefleet_a_namespace_of_which_some_is_selected_must_be_there(
    dialect: Dialect, objects: list[str], problem: str
) -> None:
    meant = meaning(placement(PICKY, selector(MAPS)), CATALOGUE)
    assert choose(meant, CATALOGUE, Hub(*objects), dialect).problem == problem


def test_for_kubefleet_too_other_selectors_may_select_nothing() -> None:
    meant = meaning(placement(selector(NAMESPACES, "gone")), CATALOGUE)
    found = choose(meant, CATALOGUE, Hub("namespaces shop"), Dialect.kubefleet)
    assert (found.problem, found.idle) == ("", ("spec.resourceSelectors[0]",))


def test_what_is_left_out_is_not_selected_by_name_nor_with_its_namespace() -> None:
    catalogue = Catalogue([Kind(each) for each in ALL], left_out=[("", "ConfigMap")])
    hub = Hub("namespaces shop", "configmaps shop/a", "services shop/a")
    assert catalogue != Catalogue([Kind(each) for each in ALL])
    assert names(choose(meaning(placement(selector(NAMESPACES, "shop")), catalogue), catalogue, hub)) == [
        "Namespace shop",
        "Service shop/a",
    ]
    named = meaning(placement(selector(MAPS, "a"), namespace="shop"), catalogue)
    assert names(choose(named, catalogue, hub)) == []

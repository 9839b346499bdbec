"""What is different in one cluster: values, images, and whose word counts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.overrides import ClusterOverridePolicy, OverridePolicy
from kedge.plan.aligning.overriding import AnyOverridePolicy, NotOverridden, Overridden, overridden
from kedge.plan.aligning.scheduling import CandidateCluster

HERE = CandidateCluster("asia", {"tier": "prod"})
OBJECT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {
        "replicas": 3,
        "strategy": {"rollingUpdate": {"maxSurge": 1}},
        "template": {"spec": {"containers": [{"name": "app", "image": "registry.test:5000/shop/web:v1"}]}},
    },
}
NAMED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
DIGEST = f"sha256:{'0f' * 32}"


def policy(name: str, overriders: dict[str, Any], *, cluster: bool = False, **spec: Any) -> AnyOverridePolicy:
    rule = {"overriders": overriders, "targetCluster": spec.pop("where", None)}
    given = {"metadata": {"name": name}, "spec": {"overrideRules": [rule], **spec}}
    return msgspec.convert(given, ClusterOverridePolicy) if cluster else msgspec.convert(given, OverridePolicy)


def value(path: str, operator: str, value: Any = None) -> dict[str, Any]:
    return {"plaintext": [{"path": path, "operator": operator, "value": value}]}


def image(component: str, operator: str, value: str = "", path: str = "") -> dict[str, Any]:
    given = {"component": component, "operator": operator, "value": value}
    return {"imageOverrider": [given | ({"predicate": {"path": path}} if path else {})]}


def applied(*policies: AnyOverridePolicy) -> Overridden:
    return overridden(OBJECT, HERE, policies)


def applied_to(obj: dict[str, Any], overriders: dict[str, Any]) -> Any:
    return overridden(obj, HERE, [policy("one", overriders)]).obj


def image_of(found: Overridden) -> str:
    return str(found.obj["spec"]["template"]["spec"]["containers"][0]["image"])


@pytest.mark.parametrize(
    ("overriders", "path", "expected"),
    [
        (value("/spec/replicas", "replace", 7), ("spec", "replicas"), 7),
        (value("/metadata/labels/zone", "add", "a"), ("metadata", "labels"), {"app": "web", "zone": "a"}),
        (value("/metadata/labels/app", "remove"), ("metadata", "labels"), {}),
        (value("/metadata/labels/x~1y", "add", "1"), ("metadata", "labels"), {"app": "web", "x/y": "1"}),
    ],
)
def test_a_value_is_added_replaced_or_removed(overriders: dict[str, Any], path: tuple[str, ...], expected: Any) -> None:
    found: Any = applied(policy("one", overriders)).obj
    for part in path:
        found = found[part]
    assert found == expected


def test_a_list_grows_at_any_place() -> None:
    where = "/spec/template/spec/containers"
    found = applied(
        policy("a", value(f"{where}/-", "add", {"name": "last"})),
        policy("b", value(f"{where}/0", "add", {"name": "x"})),
    )
    names = [one["name"] for one in found.obj["spec"]["template"]["spec"]["containers"]]
    assert names == ["x", "app", "last"]
    assert len(OBJECT["spec"]["template"]["spec"]["containers"]) == 1


@pytest.mark.parametrize(
    "overriders",
    [
        value("/spec/nothing", "replace", 1),
        value("/spec/nothing", "remove"),
        value("/spec/nothing/deeper", "add", 1),
        value("/spec/template/spec/containers/9", "add", {}),
        value("/spec/template/spec/containers/x", "add", {}),
        value("/spec/replicas/deeper", "add", 1),
    ],
)
def test_what_has_no_place_is_refused_by_the_policys_name(overriders: dict[str, Any]) -> None:
    with pytest.raises(NotOverridden, match=r"^one cannot "):
        applied(policy("one", overriders))


@pytest.mark.parametrize(
    ("overriders", "expected"),
    [
        (image("Tag", "replace", "v2"), "registry.test:5000/shop/web:v2"),
        (image("Tag", "add", "-debug"), "registry.test:5000/shop/web:v1-debug"),
        (image("Tag", "remove"), "registry.test:5000/shop/web"),
        (image("Tag", "replace", "sha256:abc"), "registry.test:5000/shop/web@sha256:abc"),
        (image("Registry", "replace", "mirror.test"), "mirror.test/shop/web:v1"),
        (image("Registry", "remove"), "shop/web:v1"),
        (image("Repository", "add", "-slim"), "registry.test:5000/shop/web-slim:v1"),
        (image("Tag", "replace", "v3", "/spec/template/spec/containers/0/image"), "registry.test:5000/shop/web:v3"),
        (image("Tag", "add", DIGEST), "registry.test:5000/shop/web:v1"),
        (image("Tag", "replace", "no tag"), "registry.test:5000/shop/web:v1"),
        (image("Tag", "replace", ""), "registry.test:5000/shop/web:v1"),
        (image("Tag", "replace", DIGEST), f"registry.test:5000/shop/web@{DIGEST}"),
        (image("Repository", "remove"), "registry.test:5000/:v1"),
    ],
)
def test_a_part_of_an_image_is_changed(overriders: dict[str, Any], expected: str) -> None:
    assert image_of(applied(policy("one", overriders))) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/spec/template/spec/containers/9/image",
        "/spec/template/spec/containers/x/image",
        "/spec/template/spec/containers/0/name/image",
        "/spec/nothing/image",
        "/spec/replicas",
        "/spec/template",
    ],
)
def test_an_image_that_is_not_there_is_refused_by_the_policys_name(path: str) -> None:
    with pytest.raises(NotOverridden, match=rf"^one cannot change the image at {path}: the object has none there$"):
        applied(policy("one", image("Tag", "replace", "v2", path)))


@pytest.mark.parametrize(
    ("where", "is_meant"),
    [({"clusterNames": ["asia"]}, True), ({"clusterNames": ["europe"]}, False), ({"exclude": ["asia"]}, False)],
)
def test_a_rule_is_for_the_clusters_it_means(where: dict[str, Any], is_meant: bool) -> None:
    found = applied(policy("one", value("/spec/replicas", "replace", 9), where=where))
    assert found.obj["spec"]["replicas"] == (9 if is_meant else 3)
    assert found.policies == (("one",) if is_meant else ())


@pytest.mark.parametrize(
    ("selector", "is_meant"),
    [
        (NAMED, True),
        ({**NAMED, "name": "other"}, False),
        ({**NAMED, "namespace": "shop"}, True),
        ({**NAMED, "namespace": "other"}, False),
        ({**NAMED, "kind": "StatefulSet"}, False),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "x"}}}, False),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, True),
    ],
)
def test_a_policy_is_for_the_resources_it_means(selector: dict[str, Any], is_meant: bool) -> None:
    found = applied(policy("one", value("/spec/replicas", "replace", 9), resourceSelectors=[selector]))
    assert found.obj["spec"]["replicas"] == (9 if is_meant else 3)


def test_who_means_a_resource_more_exactly_has_the_last_word_and_a_namespace_the_very_last() -> None:
    by_name = policy("a", value("/spec/replicas", "replace", 1), resourceSelectors=[NAMED])
    by_kind = policy("b", value("/spec/replicas", "replace", 2))
    of_cluster = policy("c", value("/spec/replicas", "replace", 3), cluster=True, resourceSelectors=[NAMED])
    found = applied(by_name, of_cluster, by_kind)
    assert found.obj["spec"]["replicas"] == 1
    assert (found.policies, found.cluster_policies) == (("b", "a"), ("c",))
    assert applied(by_kind, of_cluster).obj["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("path", "sets"),
    [
        ("/spec/strategy/rollingUpdate/maxSurge", True),
        ("/spec/strategy", True),
        ("/spec/updateStrategy", True),
        ("/spec", True),
        ("/spec/replicas", False),
        ("/metadata/labels/strategy", False),
    ],
)
def test_who_decides_on_the_strategy_is_known(path: str, sets: bool) -> None:
    found = applied(policy("one", value(path, "add", {})))
    assert found.sets_strategy is sets


def test_only_what_all_that_is_said_leaves_alone_is_aligned() -> None:
    several = {"plaintext": [{"path": path, "operator": "replace", "value": 1} for path in ("/spec/replicas", "/spec")]}
    assert applied(policy("one", several)).sets_strategy
    first, second = value("/spec/strategy", "remove"), value("/spec/replicas", "replace", 2)
    assert applied(policy("a", first), policy("b", second)).sets_strategy
    assert not applied(policy("one", image("Tag", "replace", "v2"))).sets_strategy


def test_of_several_selectors_the_most_exact_counts_and_of_the_same_the_later_name() -> None:
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    by_labels = {**kind, "labelSelector": {"matchLabels": {"app": "web"}}}
    both = policy("a", value("/spec/replicas", "replace", 1), resourceSelectors=[kind, NAMED])
    labels = policy("b", value("/spec/replicas", "replace", 2), resourceSelectors=[by_labels])
    assert applied(both, labels).policies == ("b", "a")
    one = policy("a", value("/spec/replicas", "replace", 1), resourceSelectors=[kind])
    other = policy("b", value("/spec/replicas", "replace", 2))
    assert applied(other, one).policies == ("a", "b")


@pytest.mark.parametrize(
    "overriders",
    [
        *(
            value(path, "replace", "other")
            for path in ("", "/kind", "/apiVersion", "/metadata", "/metadata/name", "/metadata/namespace")
        ),
        value("x/metadata/namespace", "replace", "other"),
        value("/metadata/namespace/x", "add", "other"),
        value("/metadata/namespace", "remove"),
        image("Repository", "replace", "other", path="/metadata/namespace"),
    ],
)
def test_no_policy_says_which_object_it_is(overriders: dict[str, Any]) -> None:
    """Whoever may write one in a namespace would else write into any other."""
    with pytest.raises(NotOverridden, match=r"one must not .* it says which object this is"):
        applied(policy("one", overriders))


@pytest.mark.parametrize(
    ("before", "overriders", "after"),
    [
        ("nginx:1.25", image("Tag", "replace", "2"), "nginx:2"),
        ("nginx", image("Tag", "replace", "2"), "nginx:2"),
        ("shop/web:v1", image("Registry", "replace", "mirror.test"), "mirror.test/shop/web:v1"),
        ("localhost/web:v1", image("Registry", "replace", "mirror.test"), "mirror.test/web:v1"),
        ("registry.test/web", image("Registry", "remove"), "web"),
        ("hub:5000/web", image("Registry", "remove"), "web"),
        ("web@sha256:abc", image("Registry", "replace", "mirror.test"), "mirror.test/web@sha256:abc"),
        ("web:v1@sha256:abc", image("Tag", "replace", "v2"), "web:v2"),
        ("web:v1@sha256:abc", image("Tag", "add", "-slim"), "web:v1-slim"),
        ("web:v1@sha256:abc", image("Tag", "remove"), "web"),
        ("web:v1@sha256:abc", image("Registry", "add", "mirror.test"), "mirror.test/web:v1@sha256:abc"),
        ("hub:5000/web:v1@sha256:abc", image("Repository", "replace", "shop"), "hub:5000/shop:v1@sha256:abc"),
        ("web@sha256:abc", image("Tag", "add", "0"), "web@sha256:abc0"),
    ],
)
def test_an_image_has_a_registry_if_its_first_part_looks_like_a_host(
    before: str, overriders: dict[str, Any], after: str
) -> None:
    pod = {"kind": "Pod", "spec": {"containers": [{"image": before}]}}
    assert applied_to(pod, overriders)["spec"]["containers"] == [{"image": after}]


def test_all_containers_that_have_an_image_get_it_unless_one_is_named() -> None:
    spec = {
        "initContainers": [{"image": "init:v1"}],
        "containers": [{"image": "a:v1"}, {"name": "without"}, {"image": "b:v1"}],
    }
    workload = {"kind": "Deployment", "spec": {"template": {"spec": spec}}}
    found = applied_to(workload, image("Tag", "replace", "v2"))["spec"]["template"]["spec"]
    assert found["initContainers"] == [{"image": "init:v2"}]
    assert found["containers"] == [{"image": "a:v2"}, {"name": "without"}, {"image": "b:v2"}]
    named = image("Tag", "replace", "v2", "/spec/template/spec/containers/2/image")
    found = applied_to(workload, named)["spec"]["template"]["spec"]
    assert [one.get("image") for one in found["containers"]] == ["a:v1", None, "b:v2"]


@pytest.mark.parametrize(
    "spec",
    [
        {"overrideRules": [{"overriders": {"commandOverrider": [{}]}}]},
        {"overriders": {"plaintext": []}},
    ],
)
def test_a_policy_that_is_not_known_here_is_refused_where_it_means_something(spec: dict[str, Any]) -> None:
    def of(selector: dict[str, Any]) -> AnyOverridePolicy:
        given = {"metadata": {"name": "odd"}, "spec": {**spec, "resourceSelectors": [selector]}}
        return msgspec.convert(given, OverridePolicy)

    with pytest.raises(NotOverridden, match=r"^odd: "):
        applied(of(NAMED))
    assert applied(of({**NAMED, "name": "other"})).obj == OBJECT

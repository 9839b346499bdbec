"""What is equal in many objects is kept once, and nobody can tell."""

from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, field

from kedge.api import apps
from kedge.api.apps import DeploymentStatus, UpdateStrategy
from kedge.api.meta import ObjectMeta, Value
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector
from kedge.kube import memory
from kedge.kube.codec import codec
from kedge.kube.memory import share


class Container(Value, frozen=True, gc=False):
    name: str
    image: str = ""


class TemplateSpec(Value, frozen=True, gc=False):
    containers: tuple[Container, ...] | None = None


class Template(Value, frozen=True, gc=False):
    spec: TemplateSpec = TemplateSpec()


class Spec(Value, frozen=True, gc=False):
    selector: LabelSelector | None = None
    template: Template = Template()
    strategy: UpdateStrategy = UpdateStrategy()


class Deployment(Value, frozen=True, gc=False):
    """A Deployment, with as much of its template as a cache would keep."""

    resource: ClassVar[Resource] = apps.Deployment.resource
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: Spec = Spec()
    status: DeploymentStatus = DeploymentStatus()


WEB = b"""{"metadata": {"name": "web", "namespace": "shop", "uid": "%s", "resourceVersion": "%s",
  "labels": {"app.kubernetes.io/part-of-something-long": "web"}, "annotations": {"note": "the same in all of them"}},
 "spec": {"selector": {"matchLabels": {"app": "web"}}, "strategy": {"rollingUpdate": {"maxSurge": "25%%"}},
  "template": {"spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}},
 "status": {"conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
  "message": "of %s", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}"""


def web(number: int) -> Deployment:
    told = str(number).encode()
    return codec(Deployment).one(WEB % (told, told, told))


def shared(number: int, before: Deployment | None = None) -> Deployment:
    made = web(number)
    share(made, before)
    return made


def test_what_is_shared_is_equal_to_what_was_there() -> None:
    assert shared(1) == web(1)
    assert shared(2, shared(1)) == web(2)


def test_strings_and_parts_that_come_again_are_held_once() -> None:
    one, two = shared(1), shared(2)
    assert one.metadata.name is two.metadata.name
    assert one.metadata.name is one.metadata.labels["app.kubernetes.io/part-of-something-long"]
    assert next(iter(one.metadata.labels)) is next(iter(two.metadata.labels))
    assert one.metadata.annotations["note"] is two.metadata.annotations["note"]
    assert one.spec.strategy is two.spec.strategy
    assert one.spec.template.spec is two.spec.template.spec
    assert one.status.conditions[0].reason is two.status.conditions[0].reason
    assert one.status.conditions[0] is not two.status.conditions[0]


def test_an_object_that_changed_holds_on_to_what_did_not() -> None:
    before = shared(1)
    after = shared(2, before)
    assert after.spec is before.spec
    assert after.metadata.labels is before.metadata.labels
    assert after.metadata.resource_version == "2"
    assert after.status.conditions[0].message == "of 2"
    assert before == web(1)


def test_the_parts_that_are_remembered_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_KNOWN", 3)
    memory._known_values(TemplateSpec).known.clear()
    for number in range(20):
        image = f'{{"spec":{{"template":{{"spec":{{"containers":[{{"name":"a","image":"{number}"}}]}}}}}}}}'
        share(codec(Deployment).one(image.encode()))
        assert len(memory._known_values(TemplateSpec).known) == number % 3 + 1


@pytest.mark.parametrize("plain", [{"metadata": {"name": "a"}}, None, "text", 3])
def test_what_is_no_frozen_struct_is_left_as_it_is(plain: object) -> None:
    before = deepcopy(plain)
    share(plain)
    assert plain == before


class Open(Struct):
    """May be changed by whoever holds it."""

    name: str = ""


class Part(Struct, frozen=True):
    text: str = ""
    number: int | None = None
    either: int | str = 0


class Odd(Struct, frozen=True):
    """Every form a field may have."""

    text: str = ""
    maybe: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    deeper: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    part: Part | None = None
    parts: tuple[Part, ...] = ()
    pair: tuple[str, int] = ("", 0)
    texts: tuple[str, ...] = ()
    when: datetime | None = None
    anything: Any = None
    number: float = 0
    open: Open = field(default_factory=Open)
    opens: tuple[Open, ...] = ()
    more: tuple["Odd", ...] = ()


TEXT = st.text(max_size=3)
PARTS = st.builds(Part, TEXT, st.none() | st.integers(), st.integers() | TEXT)
ODD = st.recursive(
    st.builds(
        Odd,
        TEXT,
        st.none() | TEXT,
        st.dictionaries(TEXT, TEXT, max_size=2),
        st.dictionaries(TEXT, st.dictionaries(TEXT, TEXT, max_size=1), max_size=1),
        st.none() | PARTS,
        st.lists(PARTS, max_size=2).map(tuple),
        st.tuples(TEXT, st.integers()),
        st.lists(TEXT, max_size=2).map(tuple),
        st.none() | st.just(datetime(2026, 1, 1, tzinfo=UTC)),
        st.sampled_from([None, 0, False, 1, True, 1.0, {"a": 1}, {"a": True}]),
        st.sampled_from([0, 0.0, 1, 1.0]),
        st.builds(Open, TEXT),
        st.lists(st.builds(Open, TEXT), max_size=1).map(tuple),
    ),
    lambda inner: st.builds(Odd, TEXT, more=st.lists(inner, max_size=2).map(tuple)),
    max_leaves=4,
)


@given(ODD, st.none() | ODD)
def test_sharing_never_changes_what_an_object_says(odd: Odd, before: Odd | None) -> None:
    said, said_before = repr(odd), repr(before)  # equality would take True for 1
    mine = odd.open
    share(odd, before)
    assert repr(odd) == said
    assert repr(before) == said_before
    assert odd.open is mine


class Nested(Struct, frozen=True):
    odd: Odd


@given(ODD, ODD)
def test_a_change_is_never_taken_for_none(odd: Odd, before: Odd) -> None:
    nested, said = Nested(odd), repr(Nested(odd))
    share(nested, Nested(before))
    assert repr(nested) == said


class Tree(Struct, frozen=True):
    name: str = ""
    leaves: tuple["Tree", ...] = ()


def test_a_type_may_hold_itself() -> None:
    one, two = (Tree("root", (Tree("leaf"), Tree("branch", (Tree("leaf"),)))) for _ in range(2))
    share(one)
    share(two)
    assert two == Tree("root", (Tree("leaf"), Tree("branch", (Tree("leaf"),))))
    assert one.leaves is two.leaves


class Alike(Struct, frozen=True):
    numbers: tuple[int, ...] = ()
    flags: tuple[bool, ...] = ()


def test_what_is_equal_but_of_another_type_is_not_shared() -> None:
    alike = Alike((1, 0), (True, False))
    share(alike)
    assert repr(alike) == "Alike(numbers=(1, 0), flags=(True, False))"


def test_open_values_are_not_shared() -> None:
    one, two = Odd(open=Open("a"), opens=(Open("b"),)), Odd(open=Open("a"), opens=(Open("b"),))
    share(one)
    share(two)
    assert one.open is not two.open
    assert one.opens[0] is not two.opens[0]


def test_every_kind_that_kedge_reads_can_be_shared() -> None:
    pod = codec(Pod).one(b'{"metadata": {"name": "a"}, "status": {"phase": "Running"}}')
    share(pod)
    assert pod.metadata.name == "a"

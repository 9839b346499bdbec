"""Taking in what is sent: strays are told of, refused or passed over, for built-in kinds and custom ones alike."""

from typing import Any

import msgspec
import pytest

from embedded.schema.sending import deployment, odd
from embedded.schema.test_pruning import SCHEMA, pod, widget
from kedge.api.openapi.builtin import schema_of
from kedge.api.resource import Resource
from kedge.embedded import statuses
from kedge.embedded.go_text import go_print
from kedge.embedded.schema import strict_decoding, unknown_fields
from kedge.embedded.statuses import Refused

DEPLOYMENT = schema_of("apps", "v1", "Deployment")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
WIDGETS = Resource("a.io", "v1", "Widget", "widgets")
NOT_HANDLED = 'Deployment in version "v1" cannot be handled as a Deployment: '
C = "spec.template.spec.containers.0"


def sent(body: Any, validation: strict_decoding.FieldValidation = "Warn") -> strict_decoding.DecodedObject:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return strict_decoding.decode_sent(DEPLOYMENT, DEPLOYMENTS, msgspec.json.decode(raw), raw, validation)


def custom(body: Any, validation: strict_decoding.FieldValidation = "Warn") -> strict_decoding.DecodedObject:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return strict_decoding.decode_sent(SCHEMA, WIDGETS, msgspec.json.decode(raw), raw, validation, custom=True)


def text(obj: Any, old: str, new: str) -> bytes:
    found = msgspec.json.encode(obj).decode()
    assert old in found
    return found.replace(old, new).encode()


@pytest.mark.parametrize(
    ("body", "strays"),
    [
        (deployment(), []),
        (odd("spec.foo", 1), ['unknown field "spec.foo"']),
        (odd("spec.foo", 1, odd(f"{C}.baz", 1)), [f'unknown field "{C[:-2]}[0].baz"', 'unknown field "spec.foo"']),
        (odd("spec.Replicas", 1), ['unknown field "spec.Replicas"']),
        (odd('spec.foo"x', 1), ['unknown field "spec.foo\\"x"']),
        (text(deployment(), '"replicas":2', '"replicas":2,"replicas":3'), ['duplicate field "spec.replicas"']),
        (text(deployment(), '"replicas":2', '"replicas":2,"foo":{"a":1,"a":2},"foo":3'), ['unknown field "spec.foo"']),
        (
            text(odd("bar", 1), '"replicas":2', '"replicas":2,"replicas":3'),
            ['duplicate field "spec.replicas"', 'unknown field "bar"'],
        ),
        (b' {"metadata" : {"name": "a", "annotations": {"x": "\\":\\u003c"}}}', []),
        (b'{"metadata":{"labels":{"a":"b","a":"c"}}}', ['duplicate field "metadata.labels.a"']),
    ],
)
def test_strays_of_a_built_in_kind_are_told_of(body: Any, strays: list[str]) -> None:
    assert list(sent(body).warnings) == strays
    assert sent(body, "Ignore").warnings == ()
    assert sent(body, "Ignore").obj == sent(body).obj


def test_strays_are_refused_if_asked() -> None:
    with pytest.raises(Refused) as caught:
        sent(odd("spec.foo", 1), "Strict")
    assert caught.value.code == 400
    assert str(caught.value) == f'{NOT_HANDLED}strict decoding error: unknown field "spec.foo"'


def test_an_object_without_strays_is_taken_strictly() -> None:
    assert sent(deployment(), "Strict") == strict_decoding.DecodedObject(deployment())


def test_a_hundred_are_told_of_at_most() -> None:
    assert len(sent({f"u{index}": 1 for index in range(120)}).warnings) == 100


def test_a_wrong_type_is_a_bad_request() -> None:
    with pytest.raises(Refused) as caught:
        sent(odd("spec.replicas", "x"), "Ignore")
    why = "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    assert (caught.value.code, str(caught.value)) == (400, NOT_HANDLED + why)


def test_strays_of_a_custom_kind_come_by_path_and_metadata_apart() -> None:
    body = {**widget(foo=1, bare={"q": 1}, tags=[{"y": 1}], whole=pod(metadata={"zed": 1})), "bar": 1}
    body = {**body, "metadata": {"name": "w", "zed": 1}}
    found = ["metadata.zed", "bar", "spec.bare.q", "spec.foo", "spec.tags[0].y", "spec.whole.metadata.zed"]
    assert list(custom(body).warnings) == [f'unknown field "{path}"' for path in found]


def test_duplicates_of_a_custom_kind_come_first() -> None:
    body = text(widget(size=1, foo=1), '"size":1', '"size":1,"size":2')
    assert custom(body).warnings == ('duplicate field "spec.size"', 'unknown field "spec.foo"')
    assert custom(body).obj["spec"] == {"size": 2}


def patched(
    obj: Any, validation: strict_decoding.FieldValidation = "Warn", **more: Any
) -> strict_decoding.DecodedObject:
    return strict_decoding.decode_patched(DEPLOYMENT, obj, validation, known=deployment(), **more)


def test_a_patched_object_is_told_of_in_the_order_of_names() -> None:
    found = patched(odd("spec.foo", 1, odd("bar", 1)))
    assert found.warnings == ('unknown field "bar"', 'unknown field "spec.foo"')
    assert found.obj == deployment()


def test_a_strict_patch_is_invalid_and_shows_the_object() -> None:
    obj = {"spec": {"foo": 1}, "kind": "Deployment"}
    with pytest.raises(Refused) as caught:
        patched(obj, "Strict")
    shown = '{\\"kind\\":\\"Deployment\\",\\"spec\\":{\\"foo\\":1}}'
    why = 'strict decoding error: unknown field "spec.foo"'
    assert (caught.value.code, str(caught.value)) == (422, f' "" is invalid: patch: Invalid value: "{shown}": {why}')


@pytest.mark.parametrize(
    ("patch", "path", "value", "why"),
    [
        ({"spec": {"replicas": "x"}}, "spec.replicas", "x", '"map[spec:map[replicas:x]]": unrecognized type: int32'),
        ({"a": 1.5}, "spec.replicas", 1.5, '"map[a:1.5]": cannot convert float64 to int32'),
        ({"spec": "x"}, "spec", "x", '"map[spec:x]": cannot restore struct from: string'),
        ({"a": []}, "metadata.labels", [], '"map[a:[]]": cannot restore map from slice'),
        ({"a": {}}, "metadata.finalizers", {}, '"map[a:map[]]": cannot restore slice from map'),
        ({"a": 1}, "spec.paused", 1, '"map[a:1]": unrecognized type: bool'),
        (
            {"a": 1},
            "spec.strategy.rollingUpdate.maxSurge",
            True,
            '"map[a:1]": json: cannot unmarshal bool into Go value of type int32',
        ),
    ],
)
def test_a_strategic_patch_to_the_wrong_type_shows_the_patch(patch: Any, path: str, value: Any, why: str) -> None:
    with pytest.raises(Refused) as caught:
        patched(odd(path, value), strategic=patch)
    assert str(caught.value) == f' "" is invalid: patch: Invalid value: {why}'


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{"spec":{"replicas":3,"replicas":4}}', ('duplicate field "spec.replicas"',)),
        (b'[{"op":"add","op":"add"},{"value":{"a":1,"a":2}}]', ("[0].op", "[1].value.a")),
        (b'{"spec": {"replicas": 3}}', ()),
    ],
)
def test_what_a_patch_says_twice_is_found_in_its_text(raw: bytes, words: tuple[str, ...]) -> None:
    expected = tuple(word if word.startswith("dup") else f'json patch duplicate field "{word}"' for word in words)
    decoded = msgspec.json.decode(raw)
    assert strict_decoding.duplicates_in_patch(raw, decoded, "Warn") == expected
    assert strict_decoding.duplicates_in_patch(raw, decoded, "Ignore") == ()


@pytest.mark.parametrize(("query", "asked"), [({}, "Warn"), ({"fieldValidation": ""}, "Warn")])
def test_strays_are_warned_of_unless_asked_otherwise(query: dict[str, str], asked: str) -> None:
    assert strict_decoding.field_validation(query, "CreateOptions") == asked


def test_another_field_validation_is_refused() -> None:
    with pytest.raises(Refused, match="fieldValidation: Unsupported value"):
        strict_decoding.field_validation({"fieldValidation": "Foo"}, "CreateOptions")


def test_a_warning_is_written_as_a_header() -> None:
    assert statuses.json_headers(('unknown field "spec.foo"',))["warning"] == '299 - "unknown field \\"spec.foo\\""'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"b": [1, None], "a": {"c": True}}, "map[a:map[c:true] b:[1 <nil>]]"),
        ("x", "x"),
        (1.5, "1.5"),
        (2.0, "2"),
        ([], "[]"),
    ],
)
def test_go_prints_values_its_own_way(value: Any, shown: str) -> None:
    assert go_print(value) == shown


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"a":1}', False),
        (b'{ "a" : 1.0 }', False),
        (b'{"a":1,"a":1}', True),
        (b'{"a":[{"b":1,"b":2}]}', True),
        (b'{"a":{"b":1},"b":1}', False),
        (b'{"a":"\\"b\\":1,\\"b\\":1"}', False),
    ],
)
def test_a_text_has_duplicates_or_not(raw: bytes, found: bool) -> None:
    assert unknown_fields.has_duplicates(raw, msgspec.json.decode(raw)) is found

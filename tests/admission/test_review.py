"""AdmissionReviews: what is read, what is refused and how, and what is answered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.admission.review import BadReview, Question, allow, decode, deny, deny_unreadable, encode
from kedge.api.admission import AdmissionRequest

JSON = "application/json"


def asked(version: str = "admission.k8s.io/v1", **request: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "AdmissionReview", "request": {"uid": "u-1", **request}}


def read(body: Any, content_type: str = JSON) -> Question:
    return decode(content_type, body if isinstance(body, bytes) else msgspec.json.encode(body))


WHOLE = asked(
    kind={"group": "apps", "version": "v1", "kind": "StatefulSet"},
    resource={"group": "apps", "version": "v1", "resource": "statefulsets"},
    subResource="scale",
    requestKind={"group": "apps", "version": "v1", "kind": "StatefulSet"},
    name="web",
    namespace="shop",
    operation="UPDATE",
    userInfo={"username": "jane", "groups": ["a"], "extra": {"x": ["y"]}},
    object={"kind": "Scale", "spec": {"replicas": None}},
    oldObject=None,
    dryRun=False,
    options={"kind": "UpdateOptions"},
)


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_a_review_is_answered_in_its_own_version(version: str) -> None:
    question = read({**WHOLE, "apiVersion": version})
    answer = msgspec.json.decode(encode(question, allow(question.request, warnings=["mind the gap"])))
    assert answer == {
        "apiVersion": version,
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True, "warnings": ["mind the gap"]},
    }


def test_everything_a_rule_needs_is_read() -> None:
    request = read(WHOLE).request
    assert (request.name, request.namespace, request.operation) == ("web", "shop", "UPDATE")
    assert (request.resource.resource, request.sub_resource) == ("statefulsets", "scale")
    assert (request.dry_run, request.user_info.username) == (False, "jane")
    assert request.old_object is None
    assert request.object is not None


def test_nulls_are_nothing() -> None:
    request = read(asked(name=None, namespace=None, dryRun=None, object=None, options=None, userInfo=None)).request
    assert request == AdmissionRequest(uid="u-1")


def test_a_refusal_says_why_and_leaves_the_code_to_the_server() -> None:
    question = read(asked())
    answer = msgspec.json.decode(encode(question, deny(question.request, "no")))
    assert answer["response"] == {"uid": "u-1", "allowed": False, "status": {"message": "no"}}


def test_a_refusal_may_have_a_code() -> None:
    question = read(asked())
    answer = msgspec.json.decode(encode(question, deny(question.request, "later", code=429)))
    assert answer["response"]["status"] == {"message": "later", "code": 429}


def test_an_allowed_write_may_have_a_message() -> None:
    question = read(asked())
    answer = msgspec.json.decode(encode(question, allow(question.request, message="well done")))
    assert answer["response"] == {"uid": "u-1", "allowed": True, "status": {"message": "well done"}}


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/json; charset=utf-8", "APPLICATION/JSON"])
def test_only_one_content_type_is_accepted(content_type: str) -> None:
    with pytest.raises(BadReview, match=r"^wrong content type$"):
        read(WHOLE, content_type)


@pytest.mark.parametrize(
    ("version", "kind", "said"),
    [
        ("apps/v1", "Deployment", "apps/v1, Kind=Deployment"),
        ("v1", "Pod", "/v1, Kind=Pod"),
        ("admission.k8s.io/v1", "AdmissionResponse", "admission.k8s.io/v1, Kind=AdmissionResponse"),
        ("admission.k8s.io/v2", "AdmissionReview", "admission.k8s.io/v2, Kind=AdmissionReview"),
    ],
)
def test_other_kinds_are_refused(version: str, kind: str, said: str) -> None:
    with pytest.raises(BadReview) as refused:
        read({"apiVersion": version, "kind": kind})
    assert str(refused.value) == f"Unsupported group version kind: {said}"


DEEP = b'{"a":' * 200_000
NAMES = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="half"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'"AdmissionReview"', id="a text"),
        pytest.param(b"\xff\xfe{}", id="no UTF-8"),
        pytest.param(b'{"kind":"\xff"}', id="no UTF-8 inside"),
        pytest.param(DEEP, id="deep"),
        pytest.param(
            b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":' + DEEP,
            id="deep inside",
        ),
        pytest.param({}, id="no kind"),
        pytest.param({"kind": 1}, id="a kind that is a number"),
        pytest.param(NAMES, id="no request"),
        pytest.param({**NAMES, "request": None}, id="a request that is null"),
        pytest.param({**NAMES, "request": []}, id="a request that is a list"),
        pytest.param(asked(uid=1), id="uid"),
        pytest.param(asked(name=1), id="name"),
        pytest.param(asked(namespace=[]), id="namespace"),
        pytest.param(asked(operation={}), id="operation"),
        pytest.param(asked(kind="StatefulSet"), id="kind"),
        pytest.param(asked(resource={"resource": 1}), id="resource"),
        pytest.param(asked(subResource=False), id="subResource"),
        pytest.param(asked(userInfo={"groups": "a"}), id="userInfo"),
        pytest.param(asked(dryRun="yes"), id="dryRun"),
    ],
)
def test_what_is_no_review_is_refused_with_a_reason(body: Any) -> None:
    with pytest.raises(BadReview, match=r"^Request could not be decoded: .+"):
        read(body)


def test_a_request_without_a_uid_is_answered_with_an_empty_one() -> None:
    question = read({**NAMES, "request": {}})
    answer = msgspec.json.decode(encode(question, allow(question.request)))
    assert answer["response"] == {"uid": "", "allowed": True}


@pytest.mark.parametrize("odd", ["x", [], [1], 3, True])
def test_what_stands_in_the_place_of_an_object_is_for_the_rule_to_judge(odd: object) -> None:
    request = read(asked(object=odd, oldObject=odd, options=odd)).request
    assert (request.object, request.old_object) == (odd, odd)
    assert deny_unreadable(request) == deny(request, "object is not a JSON object", code=400)
    assert deny_unreadable(read(asked(object={}, oldObject=None)).request) is None


@given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode))
def test_no_bytes_break_it(body: bytes) -> None:
    with pytest.raises(BadReview):
        decode(JSON, body)


VALUES: Any = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just({}) | st.just([])
FIELDS = ("uid", "kind", "resource", "name", "namespace", "object", "oldObject", "dryRun", "options", "userInfo")


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_any_request_is_read_or_refused(request: dict[str, Any]) -> None:
    try:
        question = read({**NAMES, "request": request})
    except BadReview:
        return
    assert question.request.uid == (request.get("uid") or "")

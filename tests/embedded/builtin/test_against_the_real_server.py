"""The rules of built-in kinds against a real kube-apiserver, which is asked every time.

`good.yaml`: what it makes of a manifest is what our rules make of it, key for key. `bad.yaml`: what it refuses, we
refuse, for the same causes. `changes.yaml`: the same of changes. `warned.yaml`: what it warns of.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controlplane.pytest_plugin import run_apart
from controlplane.rest import Response
from embedded.builtin.world import Context, changed, documents, kind_of, made, merged, problems, rules_of
from kedge.embedded.builtin.initial_objects import initial_objects, namespace_objects
from kedge.embedded.statuses import Refused
from kedge.kube.codec import Untyped
from kedge.kube.transport import JSON, Request, Transport
from support.recording.api import RealApi
from support.waiting import until_so

GOOD = {f"{doc['kind']}/{doc['metadata']['name']}": doc for doc in documents("good.yaml")}
BAD = documents("bad.yaml")[0]
CHANGES = documents("changes.yaml")[0]
WARNED = documents("warned.yaml")[0]
MERGE = "application/merge-patch+json"
SERVICES = "/api/v1/services"

# What differs from server to server, and from one object to the next.
_RANDOM = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "u"),
    (re.compile(r"kube-api-access-\w{5}"), "kube-api-access-xxxxx"),
    (re.compile(r'("last\w*Time": ?)"[^"]+"'), r'\1"now"'),
    (re.compile(r'"10\.0\.0\.\d+"'), '"10.0.0.n"'),
    (re.compile(r'((?:nodePort|healthCheckNodePort)": ?)3\d{4}'), r"\g<1>30000"),
)
_OF_THE_STORE = ("creationTimestamp", "generation", "managedFields", "namespace", "resourceVersion", "uid")
# Who asked: rules do not know.
_OF_THE_CALLER = {"CertificateSigningRequest": ("extra", "groups", "username")}
# A value that Kubernetes shows as Go has it, with every field it could have: only the words behind it are held equal.
_GO_VALUES = re.compile(r'Invalid value: \{(?="metadata"|"labels":.*"Spec").*\}: ')

Causes = list[tuple[str, str, str]]


@pytest.fixture(scope="module")
def namespace(bare_api: RealApi) -> str:
    """One namespace, with the account that every pod needs."""

    async def prepare() -> str:
        name = await bare_api.fresh_namespace("rules")
        if not bare_api.is_live:
            return name
        answer = await bare_api.request(
            "POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}
        )
        assert answer.status == 201, answer.text
        return name

    return run_apart(prepare())


@pytest.mark.parametrize("which", GOOD)
async def test_a_manifest_becomes_what_the_real_server_makes_of_it(
    bare_api: RealApi, namespace: str, which: str
) -> None:
    doc = placed(GOOD[which], namespace)
    answer = await bare_api.request("POST", f"{path_of(doc)}?dryRun=All", doc)
    assert answer.status == 201, answer.text
    assert masked(made(doc, context(namespace))) == masked(answer.json())


@pytest.mark.parametrize("case", BAD, ids=lambda case: f"{case['of']}: {case['with']}"[:90])
async def test_a_bad_manifest_is_refused_for_the_same_causes(
    bare_api: RealApi, namespace: str, case: Mapping[str, Any]
) -> None:
    doc = placed(merged(GOOD[_named(case["of"])], case["with"]), namespace)
    answer = await bare_api.request("POST", path_of(doc) + ("" if "kept" in case else "?dryRun=All"), doc)
    assert answer.status >= 400
    assert refusal_of(lambda: made(doc, context(namespace)), doc) == refusal_in(answer)


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: f"{case['of']}: {case['change']}"[:90])
async def test_a_change_ends_as_it_does_on_the_real_server(
    bare_api: RealApi, namespace: str, case: Mapping[str, Any]
) -> None:
    doc = placed(GOOD[_named(case["of"])], namespace)
    at = f"{path_of(doc)}/{doc['metadata']['name']}"
    old = await there(bare_api, doc, case.get("status"))
    try:
        services = (await bare_api.request("GET", SERVICES)).json()["items"] if doc["kind"] == "Service" else []
        answer = await bare_api.request("PATCH", f"{at}?dryRun=All", case["change"], content_type=MERGE)
    finally:
        await gone(bare_api, at)
    others = Context(*({**one, "apiVersion": "v1", "kind": "Service"} for one in services))
    new = merged(old, case["change"])
    if answer.status != 200:
        assert refusal_of(lambda: changed(old, new, others), old) == refusal_in(answer)
        return
    result = changed(old, new, others)
    assert problems(result, old) == []
    assert masked(result) == masked(answer.json())


@pytest.mark.parametrize("case", WARNED, ids=lambda case: f"{case['of']}: {case['with']}"[:90])
async def test_a_server_warns_of_the_same(
    bare_api: RealApi, https: Transport, namespace: str, case: Mapping[str, Any]
) -> None:
    doc = placed(merged(GOOD[_named(case["of"])], case["with"]), namespace)
    query = (("dryRun", "All"),)
    answer = await https.send(Request("POST", path_of(doc), query, msgspec.json.encode(doc), JSON, JSON), timeout=120.0)
    assert answer.status == 201, answer.body
    assert sorted(rules_of(doc).warnings(made(doc, context(namespace)))) == sorted(answer.warnings)


@pytest.fixture
async def https(bare_api: RealApi) -> AsyncIterator[Transport]:
    transport = await bare_api.transport()
    yield transport
    await transport.close()


async def test_a_real_server_starts_with_the_same_objects(bare_api: RealApi) -> None:
    url = bare_api.told("its address", lambda: bare_api.cluster.url)
    for doc in initial_objects(int(url.rpartition(":")[2])):
        answer = await bare_api.request("GET", f"{path_of(doc)}/{doc['metadata']['name']}")
        assert masked(made(doc, Context())) == masked(answer.json())


async def test_a_real_namespace_gets_the_same_objects(full_api: RealApi) -> None:
    namespace = await full_api.fresh_namespace()
    ca = full_api.told("its authority", lambda: Path.read_text(full_api.cluster.ca_file))
    for doc in namespace_objects(namespace, ca):
        at = f"{path_of(doc)}/{doc['metadata']['name']}"
        await until_so(partial(_is_there, full_api, at))  # somebody else makes it
        answer = await full_api.request("GET", at)
        assert masked(made(doc, Context())) == masked(answer.json())


async def _is_there(api: RealApi, at: str) -> bool:
    return (await api.request("GET", at)).status == 200


async def there(api: RealApi, doc: Untyped, status: Untyped | None) -> Untyped:
    """The object, made on the real server, with this status."""
    answer = await api.request("POST", path_of(doc), doc)
    assert answer.status == 201, answer.text
    if status:
        at = f"{path_of(doc)}/{doc['metadata']['name']}/status"
        answer = await api.request("PATCH", at, {"status": status}, content_type=MERGE)
        assert answer.status == 200, answer.text
    found: Untyped = answer.json()
    found["metadata"].pop("managedFields", None)
    return found


async def gone(api: RealApi, at: str) -> None:
    await api.request("DELETE", f"{at}?gracePeriodSeconds=0&propagationPolicy=Background")
    await api.request("PATCH", at, {"metadata": {"finalizers": None}}, content_type=MERGE)


def context(namespace: str) -> Context:
    """What the real server has from the start, and what the test made."""
    return Context(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}},
        *(made(doc, Context()) for doc in initial_objects()),
    )


def placed(doc: Untyped, namespace: str) -> Untyped:
    """A manifest of that namespace, if its kind has one."""
    text = msgspec.json.encode(doc).replace(b'"HERE"', f'"{namespace}"'.encode())
    found: Untyped = msgspec.json.decode(text)
    if kind_of(doc).resource.namespaced:
        found["metadata"]["namespace"] = namespace
    return found


def path_of(doc: Untyped) -> str:
    return kind_of(doc).resource.path(doc["metadata"].get("namespace", ""))


def masked(obj: Untyped) -> Untyped:
    """The object without what no two servers could agree on."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _OF_THE_STORE}
    shown = {**obj, "metadata": metadata}
    if hidden := _OF_THE_CALLER.get(obj["kind"]):
        shown["spec"] = {key: value for key, value in obj["spec"].items() if key not in hidden}
    text = msgspec.json.encode(shown).decode()
    uid = obj["metadata"].get("uid", "u")
    found: Untyped = msgspec.json.decode(_calm(text.replace(f'"{uid}"', '"u"')))
    return found


def refusal_of(make: Any, obj: Untyped) -> tuple[int, str, Causes]:
    """Code, message if there are no causes, and causes, of what our rules say."""
    try:
        found = problems(make(), obj if "uid" in obj["metadata"] else None)
        return 422, "", _causes({"reason": one.reason, "field": one.field, "message": one.message} for one in found)
    except Refused as refused:
        return refusal_in(Response(refused.code, refused.body().decode()))


def refusal_in(answer: Response) -> tuple[int, str, Causes]:
    body = answer.json()
    causes = body.get("details", {}).get("causes", [])
    return answer.status, "" if causes else body["message"], _causes(causes)


def _causes(found: Any) -> Causes:
    # Kubernetes says some things twice, and in another order; a picture of what differs follows on further lines.
    return sorted({(one["reason"], one["field"], _words(one["message"].split("\n")[0])) for one in found})


def _words(message: str) -> str:
    return _calm(_GO_VALUES.sub("Invalid value: ...: ", message))


def _calm(text: str) -> str:
    for pattern, instead in _RANDOM:
        text = pattern.sub(instead, text)
    return text


def _named(of: str) -> str:
    return of if "/" in of else f"{of}/least"

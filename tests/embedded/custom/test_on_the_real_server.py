"""What this room says of CRDs and of their objects is what a real kube-apiserver says: same causes, same objects."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from api.apiserver import Answer, ApiServer
from embedded.custom.definitions import CRDS, GROUP, REFUSED, Object, definition, served_by
from embedded.custom.everything import BAD, DEFINITION, GOOD, LAX, UPDATES, Update, whole
from kedge.embedded.custom import crd as definitions
from kedge.embedded.custom.served_versions import served_kinds
from kedge.kube.errors import Cause
from kedge.kube.transport import Request
from support.recording.api import RealApi

CRD = f"{CRDS}/widgets.{GROUP}"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
PATIENCE = 30.0
WORDS_OF_GO = re.compile(
    r"(but isn't: ).*|^(Invalid value: )\{\"ID\".*?\}(: only)|^(Invalid value: )\{\"enum\".*?\}(: only)"
)
"""What Go's own parser says of a pattern, and how a whole schema looks as a struct: ours is worded otherwise."""
OWN_TYPE = re.compile(r"selfType\d+(\.[\w.@]+)?")
"""What Kubernetes calls the type of an object in a rule: a name that is another one every time."""

CUSTOM = served_by(served_kinds(definitions.with_defaults(DEFINITION))[0]).custom


@pytest.fixture(scope="module")
def server(bare_api: RealApi) -> Iterator[ApiServer]:
    found = ApiServer(bare_api, with_owners=False)
    yield found
    found.close()


@pytest.fixture(scope="module")
def served(server: ApiServer) -> Iterator[ApiServer]:
    """With the kind served, and objects there that its schema would not let in today."""
    if not server.is_live:
        yield server
        return
    assert server.ask("POST", CRDS, definition(LAX, subresources={"status": {}})).accepted
    _until(lambda: definitions.has_condition(server.ask("GET", CRD).body, "Established"))
    for name, update in UPDATES.items():
        _until_accepted(server, whole(_named(name), update.old))
    _make_strict(server)
    yield server
    server.live.ask(Request("DELETE", CRD))
    _until(lambda: server.live.ask(Request("GET", CRD)).status == 404)


def _make_strict(server: ApiServer) -> None:
    there = server.ask("GET", CRD).body
    assert server.ask(
        "PUT", CRD, {**there, "spec": {**there["spec"], "versions": DEFINITION["spec"]["versions"]}}
    ).accepted
    bad = whole("probe", {"size": 0})
    _until(lambda: not server.ask("POST", f"{WIDGETS}?dryRun=All", bad).accepted)


def _until_accepted(server: ApiServer, obj: Object) -> None:
    _until(lambda: server.ask("POST", WIDGETS, obj).status in (201, 409))


def _until(there: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _named(text: str) -> str:
    return re.sub(r"[^a-z]+", "-", text)


def _theirs(answer: Answer) -> list[tuple[str, str, str]]:
    found = answer.body.get("details", {}).get("causes", []) if not answer.accepted else []
    return sorted((one.get("field", ""), one["reason"], _ours_or_gos(one["message"])) for one in found)


def _ours(causes: list[Cause]) -> list[tuple[str, str, str]]:
    return sorted((cause.field, cause.reason, _ours_or_gos(cause.message)) for cause in causes)


def _ours_or_gos(message: str) -> str:
    return OWN_TYPE.sub("object", WORDS_OF_GO.sub("…", message))


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_definition_is_refused_for_the_same_causes(server: ApiServer, name: str) -> None:
    crd = REFUSED[name]
    answer = server.ask("POST", f"{CRDS}?dryRun=All", crd)
    assert answer.status == 422, answer.body
    assert _ours(definitions.problems(definitions.prepared_for_create(definitions.with_defaults(crd)))) == _theirs(
        answer
    )


@pytest.mark.parametrize("name", GOOD)
def test_a_good_object_is_completed_in_the_same_way(served: ApiServer, name: str) -> None:
    answer = served.ask("POST", f"{WIDGETS}?dryRun=All", whole("offered", GOOD[name]))
    assert answer.accepted, answer.said
    made = CUSTOM.with_defaults(CUSTOM.pruned(whole("offered", GOOD[name])))
    assert CUSTOM.problems(made) == []
    assert json.dumps(made["spec"], sort_keys=True) == json.dumps(answer.body["spec"], sort_keys=True)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_object_is_refused_for_the_same_causes(served: ApiServer, name: str) -> None:
    answer = served.ask("POST", f"{WIDGETS}?dryRun=All", whole("offered", BAD[name]))
    assert answer.status == 422, answer.body
    assert _ours(CUSTOM.problems(CUSTOM.with_defaults(CUSTOM.pruned(whole("offered", BAD[name]))))) == _theirs(answer)


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_is_taken_or_refused_for_the_same_causes(served: ApiServer, name: str) -> None:
    there = served.ask("GET", f"{WIDGETS}/{_named(name)}").body
    answer = served.ask("PUT", f"{WIDGETS}/{_named(name)}?dryRun=All", {**there, "spec": UPDATES[name].new})
    assert answer.status in (200, 422), answer.body
    assert _ours(_update_problems(UPDATES[name])) == _theirs(answer)


def _update_problems(update: Update) -> list[Cause]:
    old, new = (CUSTOM.with_defaults(CUSTOM.pruned(whole("moving", spec))) for spec in update)
    return CUSTOM.problems(new, old)


@pytest.mark.parametrize(
    "status",
    [{"ready": 1}, {"ready": -1}, {"ready": "x"}, {"phase": "Down"}, {}, "up", None, {"phase": "Up", "unknown": 1}],
)
def test_a_status_is_taken_or_refused_for_the_same_causes(served: ApiServer, status: Any) -> None:
    name = _named("steady stays")
    there = served.ask("GET", f"{WIDGETS}/{name}").body
    answer = served.ask("PUT", f"{WIDGETS}/{name}/status?dryRun=All", {**there, "status": status})
    assert answer.status in (200, 422), answer.body
    old = CUSTOM.with_defaults(CUSTOM.pruned(whole(name, UPDATES["steady stays"].old)))
    new = CUSTOM.with_defaults(CUSTOM.pruned({**old, "status": status}))
    assert _ours(CUSTOM.status_problems(new, old)) == _theirs(answer)

"""Generated CRDs on a real kube-apiserver: all they demand is demanded, and no more.

Everything is tried in both dialects in the stored version, and in each other version what it does not share with that.
All are dry runs, except where an update needs an object to start from. What is tried comes from `cases` and
`rule_cases`; that nothing is missing there, `test_cases` says.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from api.apiserver import Answer, ApiServer, Connection
from api.cases import NOTHING_SAID, Case, Node, Object, cases, comes_back, found_at, server_path, walk
from api.editions import CRDS, EDITIONS, PATIENCE, Edition, kept, offered, reported, updated
from api.rule_cases import Move, completed, rule_case
from kedge.api.dialect import Dialect

every_edition = pytest.mark.parametrize("edition", EDITIONS, ids=str)


@every_edition
def test_the_server_keeps_a_crd_as_it_was_sent(servers: Mapping[Dialect, ApiServer], edition: Edition) -> None:
    path, name = f"{CRDS}/{edition.crd['metadata']['name']}", edition.version["name"]

    def there(server: Connection) -> Object:
        body = server.get(path)
        versions = {version["name"]: version for version in body["spec"]["versions"]}
        conditions = sorted(condition["type"] for condition in body["status"]["conditions"])
        return {"schema": digest(versions[name]["schema"]), "conditions": conditions}

    kept = servers[edition.dialect].told(f"{path} has", there)
    assert kept == {"schema": digest(edition.version["schema"]), "conditions": ["Established", "NamesAccepted"]}


def digest(schema: Object) -> str:
    """A schema in short: the whole is in the repository already."""
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize("dialect", Dialect)
def test_kubectl_explain_has_our_words_to_show(servers: Mapping[Dialect, ApiServer], dialect: Dialect) -> None:
    path = "/openapi/v3/apis/placement.kubernetes-fleet.io/v1beta1"
    words = "How changes reach the clusters."

    def are_there(server: Connection) -> bool:
        published_by = time.monotonic() + PATIENCE  # the server publishes some time after it serves
        while words not in str(server.get(path)) and time.monotonic() < published_by:
            time.sleep(0.1)
        return words in str(server.get(path))

    assert servers[dialect].told(f"{path} has our words", are_there)


@every_edition
def test_every_demand_is_met_by_one_object_and_missed_by_another(
    servers: Mapping[Dialect, ApiServer], edition: Edition
) -> None:
    server = servers[edition.dialect]
    own = {(path, word) for path, word, _ in edition.own_demands}
    tried = [case for case in cases(edition.root) if (case.path, case.word) in own]
    with kept(server, edition, edition.minimal("there")):
        problems = [problem for case in tried for problem in try_case(server, edition, case)]
    assert problems == []


def try_case(server: ApiServer, edition: Edition, case: Case) -> Iterator[str]:
    """What is wrong with a case, if anything."""
    what = f"{case.word} of {case.path}"
    first = sent(server, edition, case.path, case.accepted)
    if case.rule:
        if [rule_of(message) for _, message in first.causes] != [case.rule]:
            yield f"{what}: not refused by its rule alone: {first.said}"
    elif not first.accepted:
        yield f"{what}: refused {case.accepted}: {first.said}"
    elif comes_back(edition.root, case) not in (NOTHING_SAID, found_at(first.body, case.path)):
        yield f"{what}: came back as {found_at(first.body, case.path)!r}"
    if case.refused is not None:
        second = sent(server, edition, case.path, case.refused)
        if not second.causes:
            yield f"{what}: did not refuse {case.refused}: {second.said}"
        elif not all(is_about(case, *cause) for cause in second.causes):
            yield f"{what}: refused for another reason: {second.said}"


def sent(server: ApiServer, edition: Edition, path: str, content: Object) -> Answer:
    """Offer an object for what it has at a path: its status to the object that is there."""
    if path.startswith("status"):
        return reported(server, edition, "there", content.get("status", {}))
    return offered(server, edition, content)


def is_about(case: Case, field: str, message: str) -> bool:
    """Whether a cause speaks of the place of a case. Formats of numbers are reported at the top, naming the path."""
    place = server_path(case.path)
    by_its_rule = bool(case.rule) and rule_of(message) == case.rule
    return by_its_rule or field.startswith(place) or message.endswith(f" in {place.removeprefix('status.')}")


def rule_of(message: str) -> str:
    """A rule's own message; the server puts what it is about before it, and for scalars the value too."""
    return message.removeprefix("Invalid value: ")


@every_edition
def test_every_rule_accepts_and_refuses(servers: Mapping[Dialect, ApiServer], edition: Edition) -> None:
    server = servers[edition.dialect]
    with kept(server, edition, edition.minimal("there")):
        problems = [
            problem
            for path, node in [("", edition.root), *walk(edition.root)]
            for rule in node.get("x-kubernetes-validations", ())
            if (path, "x-kubernetes-validations", f"{rule['rule']}: {rule['message']}") in edition.own_demands
            for problem in try_rule(server, edition, path, node, rule["message"])
        ]
    assert problems == []


def try_rule(server: ApiServer, edition: Edition, path: str, node: Node, message: str) -> Iterator[str]:
    """What is wrong with a rule, if anything."""
    case = rule_case(edition.kind, message)
    for value in case.accepted:
        answer = tried(server, edition, path, node, value)
        if not answer.accepted:
            yield f"{path}: {message}: refused {value}: {answer.said}"
    for value in case.refused:
        answer = tried(server, edition, path, node, value)
        place = server_path(path) or "<nil>"
        if not any(field == place and said.endswith(f": {message}") for field, said in answer.causes):
            yield f"{path}: {message}: did not refuse {value}: {answer.said}"


def tried(server: ApiServer, edition: Edition, path: str, node: Node, value: Any) -> Answer:
    """Offer an object with this value at a rule's node, or for a `Move` an update."""
    if isinstance(value, Move):
        old, new = (edition.whole(completed(edition.root, path, node, end), "moving") for end in value)
        return updated(server, edition, old, new)
    return sent(server, edition, path, completed(edition.root, path, node, value))

"""The CRDs Kedge generates, checked by this room: the cases that hold on a real API server hold here too."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest

from api.cases import NOTHING_SAID, Case, Node, Object, cases, comes_back, found_at, server_path, walk
from api.editions import EDITIONS, Edition
from api.rule_cases import Move, completed, rule_case
from embedded.custom.definitions import served_by
from kedge.embedded.custom import crd
from kedge.embedded.custom.served_versions import served_kinds
from kedge.embedded.custom.version_schema import VersionSchema
from kedge.kube.errors import Cause

UNCHECKED = "some validation rules were not checked"
RULES = "x-kubernetes-validations"

every_edition = pytest.mark.parametrize("edition", EDITIONS, ids=str)


class Taken(NamedTuple):
    """What became of an object."""

    obj: Object
    causes: list[Cause]


@cache
def custom_of(edition: str) -> VersionSchema:
    found = next(one for one in EDITIONS if str(one) == edition)
    name = found.version["name"]
    kinds = served_kinds(crd.with_defaults(found.crd))
    return next(served_by(one).custom for one in kinds if one.resource.version == name)


def offered(edition: Edition, path: str, content: Object) -> Taken:
    """An object offered for what it has at a path: its status to one that is there."""
    custom = custom_of(str(edition))
    if path.startswith("status"):
        there = custom.with_defaults(edition.minimal("there"))
        obj = custom.with_defaults({**there, "status": content.get("status", {})})
        return Taken(obj, custom.status_problems(obj, there))
    whole = {key: value for key, value in edition.whole(content, "offered").items() if key != "status"}
    obj = custom.with_defaults(custom.pruned(whole))
    return Taken(obj, custom.problems(obj))


def moved(edition: Edition, old: Object, new: Object) -> Taken:
    custom = custom_of(str(edition))
    before, after = (custom.with_defaults(custom.pruned(edition.whole(one, "moving"))) for one in (old, new))
    return Taken(after, custom.problems(after, before))


@every_edition
def test_the_definition_is_a_good_one(edition: Edition) -> None:
    made = crd.prepared_for_create(crd.with_defaults(edition.crd))
    assert crd.problems(made) == []
    assert crd.with_defaults(made) is made


@every_edition
def test_every_demand_is_met_by_one_object_and_missed_by_another(edition: Edition) -> None:
    own = {(path, word) for path, word, _ in edition.own_demands}
    tried = [case for case in cases(edition.root) if (case.path, case.word) in own]
    assert [problem for case in tried for problem in try_case(edition, case)] == []


def try_case(edition: Edition, case: Case) -> Iterator[str]:
    what = f"{case.word} of {case.path}"
    first = offered(edition, case.path, case.accepted)
    if case.rule:
        if [cause.message for cause in first.causes] != [f"Invalid value: {case.rule}"]:
            yield f"{what}: not refused by its rule alone: {first.causes}"
    elif first.causes:
        yield f"{what}: refused {case.accepted}: {first.causes}"
    elif comes_back(edition.root, case) not in (NOTHING_SAID, found_at(first.obj, case.path)):
        yield f"{what}: came back as {found_at(first.obj, case.path)!r}"
    if case.refused is not None:
        second = offered(edition, case.path, case.refused).causes
        if not second or not all(is_about(case, cause) for cause in second):
            yield f"{what}: not refused for what it is: {second}"


def is_about(case: Case, cause: Cause) -> bool:
    place = server_path(case.path)
    if UNCHECKED in cause.message or cause.message == f"Invalid value: {case.rule}":
        return True
    return cause.field.startswith(place) or cause.message.endswith(f" in {place.removeprefix('status.')}")


@every_edition
def test_every_rule_accepts_and_refuses(edition: Edition) -> None:
    assert [
        problem
        for path, node in [("", edition.root), *walk(edition.root)]
        for rule in node.get(RULES, ())
        if (path, RULES, f"{rule['rule']}: {rule['message']}") in edition.own_demands
        for problem in try_rule(edition, path, node, rule["message"])
    ] == []


def try_rule(edition: Edition, path: str, node: Node, message: str) -> Iterator[str]:
    case = rule_case(edition.kind, message)
    place = server_path(path) or "<nil>"
    for value in case.accepted:
        if causes := tried(edition, path, node, value).causes:
            yield f"{path}: {message}: refused {value}: {causes}"
    for value in case.refused:
        causes = tried(edition, path, node, value).causes
        if not any(cause.field == place and cause.message.endswith(f": {message}") for cause in causes):
            yield f"{path}: {message}: did not refuse {value}: {causes}"


def tried(edition: Edition, path: str, node: Node, value: Any) -> Taken:
    if isinstance(value, Move):
        return moved(edition, *(completed(edition.root, path, node, end) for end in value))
    return offered(edition, path, completed(edition.root, path, node, value))

"""The same random writes to a real server and to ours: the same objects, the same owners.

What a plain write made of an object, defaults and all, is taken from the real server, so that only field ownership is
compared. What an apply makes of it is ours, sent back as a dry run to have the defaults filled in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from api.apiserver import Answer, ApiServer
from controlplane.pytest_plugin import run_apart
from embedded.ownership import sequences, things
from embedded.ownership.samples import SAMPLES, Sample
from embedded.ownership.sequences import Dice
from embedded.ownership.things import built_in
from kedge.embedded.ownership import field_owners
from kedge.embedded.ownership.apply import ApplyRequest
from kedge.embedded.ownership.field_owners import NO_OWNERS, AppliedObject, FieldOwners
from kedge.embedded.ownership.kind_ownership import KindOwnership
from kedge.embedded.statuses import Refused
from support.recording.api import RealApi

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
FROM_THE_SERVER = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")  # given after ownership is settled
WRITES = 8


@dataclass(frozen=True)
class Subject:
    """A kind to write objects of."""

    ownership: KindOwnership
    content: Callable[[Dice, bool], Json]
    status: Callable[[Dice], Json] | None = None


SUBJECTS = {
    "ConfigMap": Subject(things.MAP, sequences.config_map),
    "Deployment": Subject(things.DEPLOYMENT, sequences.deployment, sequences.deployment_status),
    "Service": Subject(things.SERVICE, sequences.service),
    "Thing": Subject(things.THING, sequences.thing, sequences.thing_status),
}


@dataclass
class PlacementKinds:
    """One object on the real server, and who we think owns what of it."""

    server: ApiServer
    subject: Subject
    namespace: str
    dice: Dice
    live: Json | None = None
    owners: FieldOwners = NO_OWNERS
    done: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"{self.subject.ownership.resource.path(self.namespace)}/a"

    def write(self) -> None:
        """One more write of some kind."""
        options = [self.apply, self.create]
        if self.live is not None:
            options = [self.apply, self.apply, self.apply, self.merge, self.put, self.relabel]
            options += [self.apply_status, self.merge_status] if self.subject.status else []
        self.dice.one(options)()

    def apply(self) -> None:
        self._apply(self._object(whole=self.live is None), "")

    def apply_status(self) -> None:
        assert self.subject.status
        self._apply({**self._head(), **self.subject.status(self.dice)}, "status")

    def create(self) -> None:
        manager, obj = self._manager(), self._object(whole=True)
        answer = self._ask("POST", self.path.removesuffix("/a"), obj, manager=manager)
        if answer.status == 201:
            sent = _without(_plain(answer.body), *FROM_THE_SERVER)
            self._compare(
                answer, field_owners.after_create(self.subject.ownership, sent, manager=manager, time=things.NOW)
            )

    def merge(self) -> None:
        patch = sequences.with_nulls(self.dice, self.live, _without_head(self._object(whole=False)))
        self._update("PATCH", patch, MERGE)

    def merge_status(self) -> None:
        assert self.subject.status
        self._update(
            "PATCH", sequences.with_nulls(self.dice, self.live, self.subject.status(self.dice)), MERGE, "status"
        )

    def put(self) -> None:
        assert self.live
        obj = self._object(whole=True)
        version = {"resourceVersion": self.live["metadata"]["resourceVersion"]}
        given = {name: self.live["spec"][name] for name in FROM_THE_SERVER if name in self.live.get("spec", {})}
        spec = {"spec": {**obj["spec"], **given}} if "spec" in obj else {}
        self._update("PUT", {**obj, **spec, "metadata": {**obj["metadata"], **version}})

    def relabel(self) -> None:
        value = {"j": self.dice.one("12")}
        self._update("PATCH", [{"op": "add", "path": "/metadata/labels", "value": value}], JSON_PATCH)

    def _apply(self, config: Json, subresource: str) -> None:
        manager, force = self.dice.one(["a", "b", "kubectl"]), self.dice.chance(0.4)
        ownership, asked = self.subject.ownership, ApplyRequest(config, manager, things.NOW, force, subresource)
        forced = {"force": str(force).lower()}
        answer = self._ask("PATCH", self.path, config, APPLY, manager=manager, subresource=subresource, query=forced)
        if answer.status == 422:
            return  # nobody's business here
        applied = self._applied(ownership, asked)
        if isinstance(applied, Refused):
            assert _said(json.loads(applied.body())) == _said(answer.body), self.done
            return
        if self.live is not None:
            self._compare_object(answer, applied.object, subresource)
        self._compare(answer, applied.owners)

    def _applied(self, ownership: KindOwnership, asked: ApplyRequest) -> AppliedObject | Refused:
        try:
            return self.owners.after_apply(ownership, self.live, asked)
        except Refused as refusal:
            return refusal

    def _update(self, method: str, body: object, kind: str = "application/json", subresource: str = "") -> None:
        manager = self._manager()
        answer = self._ask(method, self.path, body, kind, manager=manager, subresource=subresource)
        if answer.status != 200:
            return
        assert self.live is not None
        new, who = _plain(answer.body), {"manager": manager, "time": things.NOW, "subresource": subresource}
        self._compare(answer, self.owners.after_update(self.subject.ownership, self.live, new, **who))

    def _compare(self, answer: Answer, ours: FieldOwners) -> None:
        theirs = answer.body
        assert answer.status < 300, (answer.said, self.done)
        assert _timeless(FieldOwners(*_parts(ours)).entries()) == _timeless(_entries(theirs)), self.done
        self.live, self.owners = _plain(theirs), ours

    def _compare_object(self, answer: Answer, ours: Json, subresource: str) -> None:
        """Have the defaults filled in, and see whether it is the same then."""
        theirs = answer.body
        metadata = {name: ours["metadata"][name] for name in _WRITABLE if name in ours["metadata"]}
        now = {"name": "a", "resourceVersion": theirs["metadata"]["resourceVersion"]}
        sent = {**ours, "metadata": {**metadata, **now}}
        filled = self._ask("PUT", self.path, sent, subresource=subresource, query={"dryRun": "All"})
        assert filled.status == 200, (filled.said, self.done)
        assert _content(filled.body) == _content(theirs), self.done

    def _ask(
        self,
        method: str,
        path: str,
        body: object,
        kind: str = "application/json",
        *,
        manager: str = "",
        subresource: str = "",
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        options = {**({"fieldManager": manager} if manager else {}), **(query or {})}
        asked = "&".join(f"{name}={value}" for name, value in options.items())
        self.done.append(f"{method} {subresource} {asked} {json.dumps(body)}")
        place = f"{path}/{subresource}" if subresource else path
        return self.server.ask(method, f"{place}?{asked}", body, kind)

    def _manager(self) -> str:
        return self.dice.one(["a", "u", "v"])

    def _head(self) -> Json:
        resource = self.subject.ownership.resource
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}}

    def _object(self, *, whole: bool) -> Json:
        metadata = {"name": "a", **sequences.metadata(self.dice)}
        return {**self._head(), "metadata": metadata, **self.subject.content(self.dice, whole)}


@pytest.fixture(scope="module")
def server(bare_api: RealApi) -> Iterator[ApiServer]:
    """A real one that serves the custom kind."""
    found = ApiServer(bare_api)
    if found.is_live:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert found.ask("POST", path, things.crd()).status in (201, 409)
        run_apart(bare_api.kubectl("wait", "--for=condition=Established", "crd/things.ownership.kedge.dev"))
    yield found
    found.close()


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("seed", range(8))
def test_the_same_writes_leave_the_same_owners(server: ApiServer, bare_api: RealApi, kind: str, seed: int) -> None:
    namespace = run_apart(bare_api.fresh_namespace())
    kinds = PlacementKinds(server, SUBJECTS[kind], namespace, Dice(Random(seed)))
    for _ in range(WRITES):
        kinds.write()
    assert kinds.live is not None
    assert len(kinds.done) >= WRITES


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.resource.kind)
def test_whoever_makes_an_object_owns_the_same_of_it(server: ApiServer, bare_api: RealApi, sample: Sample) -> None:
    resource = sample.resource
    namespace = run_apart(bare_api.fresh_namespace()) if resource.namespaced else ""
    metadata = {"name": sample.name, "labels": {"a": "b"}}
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **sample.content}
    answer = server.ask("POST", f"{resource.path(namespace)}?fieldManager=me", _placed(obj, namespace))
    assert answer.status == 201, answer.said
    found = answer.body
    server.ask("DELETE", f"{resource.path(namespace)}/{sample.name}")
    ours = field_owners.after_create(
        built_in(resource, status=sample.status), _plain(found), manager="me", time=things.NOW
    )
    theirs = [entry for entry in _entries(found) if entry["manager"] == "me"]
    assert _timeless(ours.entries()) == _timeless(theirs)


def _placed(obj: Json, namespace: str) -> Json:
    """An Event says where what it is about is, and has to be there itself."""
    if obj["kind"] != "Event":
        return obj
    return {**obj, "involvedObject": {**obj["involvedObject"], "namespace": namespace}}


_WRITABLE = ("labels", "annotations", "finalizers")


def _plain(obj: Json) -> Json:
    """Without its owners."""
    return {**obj, "metadata": {name: part for name, part in obj["metadata"].items() if name != "managedFields"}}


def _content(obj: Json) -> Json:
    return {**obj, "metadata": {name: obj["metadata"][name] for name in _WRITABLE if name in obj["metadata"]}}


def _without(obj: Json, *names: str) -> Json:
    if "spec" not in obj:
        return obj
    return {**obj, "spec": {name: part for name, part in obj["spec"].items() if name not in names}}


def _without_head(obj: Json) -> Json:
    metadata = {name: part for name, part in obj["metadata"].items() if name != "name"}
    return {**{name: part for name, part in obj.items() if name not in ("apiVersion", "kind")}, "metadata": metadata}


def _entries(obj: Json) -> list[Json]:
    found: list[Json] = obj["metadata"].get("managedFields", [])
    return found


def _parts(ours: FieldOwners) -> tuple[Any, ...]:
    """What they consist of: asking a copy leaves the original unresolved, to be resolved later."""
    return ours._settled, ours._pending


def _timeless(entries: list[Json]) -> list[Json]:
    """Whether it has a time matters, which one does not."""
    shown = [{**entry, "time": "time" in entry} for entry in entries]
    return sorted(shown, key=lambda entry: json.dumps(entry, sort_keys=True))


def _said(status: Json) -> Any:
    causes = status.get("details", {}).get("causes", [])  # of several managers in no order there
    return status["code"], status["message"], sorted(causes, key=lambda cause: json.dumps(cause, sort_keys=True))

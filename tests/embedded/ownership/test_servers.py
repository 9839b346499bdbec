"""The same random writes to a real server and to the embedded one: the same answers, objects and owners."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from contract.backend import JSON_PATCH, MERGE, NAMESPACES, Answer, Api
from embedded.ownership import sequences, things
from embedded.ownership.sequences import Dice
from kedge.api.resource import Resource
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.limits import Limiter, Retry
from kedge.kube.transport import JSON, Transport
from support.recording.api import RealApi

Object = dict[str, Any]
APPLY = "application/apply-patch+yaml"
WRITES = 8
_MANAGERS = ("a", "b", "u")
_ADDRESSES = ("clusterIP", "clusterIPs")  # each server gives its own
_GIVEN = (*_ADDRESSES, "ipFamilies", "ipFamilyPolicy")


@dataclass(frozen=True)
class Subject:
    """A kind to write objects of."""

    resource: Resource
    content: Callable[[Dice, bool], Object]
    status: Callable[[Dice], Object] | None = None


SUBJECTS = {
    "ConfigMap": Subject(things.MAPS, sequences.config_map),
    "Deployment": Subject(things.DEPLOYMENTS, sequences.deployment, sequences.deployment_status),
    "Service": Subject(things.SERVICES, sequences.service),
}


@dataclass
class Side:
    """One of the two servers, and the object as it is there."""

    api: Api
    resource: Resource
    live: Object | None = None

    async def send(self, method: str, part: str, body: object, kind: str, query: dict[str, str]) -> Answer:
        place = self.resource.path(self.api.namespace)
        path = place if method == "POST" else f"{place}/a{part}"
        return await self.api.ask(method, path, self._as_read(body) if method == "PUT" else body, kind, **query)

    def _as_read(self, body: Any) -> Object:
        """What is put in place of an object has its version and addresses."""
        assert self.live is not None
        version = {"resourceVersion": self.live["metadata"]["resourceVersion"]}
        given = {name: self.live["spec"][name] for name in _GIVEN if name in self.live.get("spec", {})}
        spec = {"spec": {**body["spec"], **given}} if given else {}
        return {**body, **spec, "metadata": {**body["metadata"], **version}}


@dataclass
class Pair:
    """An object on both."""

    real: Side
    embedded: Side
    subject: Subject
    dice: Dice
    done: list[str] = field(default_factory=list)

    async def write(self) -> bool:
        """One more write to both; whether they are still the same."""
        method, part, body, kind, query = self._next()
        self.done.append(f"{method} {part} {kind} {query} {json.dumps(body)}")
        theirs = await self.real.send(method, part, body, kind, query)
        ours = await self.embedded.send(method, part, body, kind, query)
        if theirs.code == 422:  # what is valid is not the question here, but they must agree to go on
            return ours.code == 422
        assert ours.code == theirs.code, (theirs.body, ours.body, self.done)
        if theirs.code >= 400:
            assert _refusal(ours) == _refusal(theirs), self.done
            return True
        assert _content(ours.body) == _content(theirs.body), self.done
        assert _owners(ours.body) == _owners(theirs.body), self.done
        self.real.live, self.embedded.live = theirs.body, ours.body
        return True

    def _next(self) -> tuple[str, str, object, str, dict[str, str]]:
        query = {"fieldManager": self.dice.one(_MANAGERS)}
        forced = {**query, "force": self.dice.one(["true", "false", "false"])}
        live = self.real.live
        if live is None:
            made = self._object(whole=True)
            return ("POST", "", made, JSON, query) if self.dice.chance(0.5) else ("PATCH", "", made, APPLY, forced)
        match self.dice.one(["apply", "apply", "merge", "put", "relabel", "status", "apply status"]):
            case "merge":
                patch = sequences.with_nulls(self.dice, live, _body_of(self._object(whole=False)))
                return "PATCH", "", patch, MERGE, query
            case "put":
                return "PUT", "", self._object(whole=True), JSON, query
            case "relabel":
                labels = {"op": "add", "path": "/metadata/labels", "value": {"j": self.dice.one("12")}}
                return "PATCH", "", [labels], JSON_PATCH, query
            case "status" if self.subject.status:
                return "PATCH", "/status", self.subject.status(self.dice), MERGE, query
            case "apply status" if self.subject.status:
                return "PATCH", "/status", {**self._head(), **self.subject.status(self.dice)}, APPLY, forced
        return "PATCH", "", self._object(whole=False), APPLY, forced

    def _head(self) -> Object:
        resource = self.subject.resource
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}}

    def _object(self, *, whole: bool) -> Object:
        metadata = {"name": "a", **sequences.metadata(self.dice)}
        return {**self._head(), "metadata": metadata, **self.subject.content(self.dice, whole)}


@pytest.fixture
async def real(bare_api: RealApi) -> AsyncIterator[Api]:
    client = _client(await bare_api.transport())
    yield Api(client, await bare_api.fresh_namespace())
    await client.close()


@pytest.fixture
async def embedded() -> AsyncIterator[Api]:
    server = Server(clock=SystemClock(), rng=Random(1))
    client = _client(InProcessTransport(server, rng=Random(2), caller=Caller()))
    made = await client.create(NAMESPACES, {"metadata": {"name": "writes"}})
    yield Api(client, made["metadata"]["name"])
    await client.close()


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("seed", range(6))
async def test_the_same_writes_are_answered_the_same(real: Api, embedded: Api, kind: str, seed: int) -> None:
    subject = SUBJECTS[kind]
    pair = Pair(Side(real, subject.resource), Side(embedded, subject.resource), subject, Dice(Random(seed)))
    for _ in range(WRITES):
        if not await pair.write():
            break
    assert pair.done


def _client(transport: Transport) -> Client:
    return Client(transport, limiter=Limiter(rate=0), retry=Retry(attempts=1))


def _body_of(obj: Object) -> Object:
    metadata = {name: part for name, part in obj["metadata"].items() if name != "name"}
    return {**{name: part for name, part in obj.items() if name not in ("apiVersion", "kind")}, "metadata": metadata}


def _content(obj: Object) -> Object:
    metadata = {name: obj["metadata"].get(name) for name in ("labels", "annotations", "finalizers", "generation")}
    spec = {name: part for name, part in obj.get("spec", {}).items() if name not in _ADDRESSES}
    return {**obj, "spec": spec, "metadata": metadata}


def _owners(obj: Object) -> list[str]:
    """Whether an entry has a time matters, which one does not."""
    entries = [{**entry, "time": "time" in entry} for entry in obj["metadata"].get("managedFields", [])]
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


def _refusal(answer: Answer) -> Any:
    causes = answer.body.get("details", {}).get("causes", [])  # of several managers in no order
    return answer.refusal, sorted(json.dumps(cause, sort_keys=True) for cause in causes)

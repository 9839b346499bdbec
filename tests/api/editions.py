"""Editions: every version of every generated CRD in both dialects, and how its objects are offered to a server."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from api.apiserver import Answer, ApiServer
from api.cases import Node, Object, demands, sample
from kedge.api.crds import crds
from kedge.api.dialect import Dialect

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRICT = "fieldValidation=Strict"
MERGE_PATCH = "application/merge-patch+json"
PATIENCE = 30.0


class Edition(NamedTuple):
    """One version of one kind in one dialect."""

    dialect: Dialect
    crd: Node
    version: Node

    @property
    def kind(self) -> str:
        return str(self.crd["spec"]["names"]["kind"])

    @property
    def root(self) -> Node:
        root: Node = self.version["schema"]["openAPIV3Schema"]
        return root

    @property
    def api_version(self) -> str:
        return f"{self.crd['spec']['group']}/{self.version['name']}"

    @property
    def path(self) -> str:
        room = "/namespaces/default" if self.crd["spec"]["scope"] == "Namespaced" else ""
        return f"/apis/{self.api_version}{room}/{self.crd['spec']['names']['plural']}"

    @property
    def stored(self) -> "Edition":
        """The stored version of the same kind and dialect."""
        return self._replace(version=next(version for version in self.crd["spec"]["versions"] if version["storage"]))

    @property
    def own_demands(self) -> set[tuple[str, str, str]]:
        """What this version demands; of a version that is not stored, only what the stored one does not demand too."""
        mine = demands(self.root)
        return mine if self.version["storage"] else mine - demands(self.stored.root)

    def whole(self, content: Object, name: str) -> Object:
        """An object ready to be sent. A name of its own is kept."""
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}} | content

    def minimal(self, name: str) -> Object:
        """The smallest valid object."""
        return self.whole(sample("", self.root), name)

    def __str__(self) -> str:
        return f"{self.dialect}-{self.kind}-{self.version['name']}"


EDITIONS = [
    Edition(dialect, crd, version)
    for dialect in Dialect
    for crd in crds(dialect)
    for version in crd["spec"]["versions"]
]


def edition_of(dialect: Dialect, manifest: Object) -> Edition:
    """The edition an object is written in."""
    wanted = (dialect, manifest["apiVersion"], manifest["kind"])
    return next(edition for edition in EDITIONS if (edition.dialect, edition.api_version, edition.kind) == wanted)


def install(server: ApiServer, dialect: Dialect) -> None:
    """Create the CRDs of a dialect, and come back when they are served."""
    for crd in crds(dialect):
        answer = server.ask("POST", f"{CRDS}?{STRICT}", crd)
        assert answer.accepted or answer.status == 409, answer.body["message"]  # another module has made it
        assert answer.warnings == []
    for edition in EDITIONS:
        if edition.dialect is dialect:
            _until_served(server, edition)


def _until_served(server: ApiServer, edition: Edition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not server.ask("POST", f"{edition.path}?dryRun=All", edition.minimal("probe")).accepted:
        assert time.monotonic() < deadline, f"{edition} is not served after {PATIENCE} s"
        time.sleep(0.02)


@contextmanager
def kept(server: ApiServer, edition: Edition, whole: Object) -> Iterator[Object]:
    """An object that is there for a while."""
    answer = server.ask("POST", f"{edition.path}?{STRICT}", whole)
    assert answer.accepted, answer.said
    try:
        yield answer.body
    finally:
        server.ask("DELETE", f"{edition.path}/{whole['metadata']['name']}")


def offered(server: ApiServer, edition: Edition, content: Object) -> Answer:
    """What a server says to a new object, as a dry run."""
    return server.ask("POST", f"{edition.path}?dryRun=All&{STRICT}", edition.whole(content, "offered"))


def updated(server: ApiServer, edition: Edition, old: Object, new: Object) -> Answer:
    """What a server says to an update, as a dry run."""
    with kept(server, edition, old) as there:
        update = {**new, "metadata": there["metadata"]}
        return server.ask("PUT", f"{edition.path}/{old['metadata']['name']}?dryRun=All&{STRICT}", update)


def reported(server: ApiServer, edition: Edition, name: str, status: Object) -> Answer:
    """What a server says to a status of an object that is there, as a dry run."""
    path = f"{edition.path}/{name}/status?dryRun=All&{STRICT}"
    return server.ask("PATCH", path, {"status": status}, MERGE_PATCH)

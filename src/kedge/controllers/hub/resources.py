"""Resources: what each placement selects on the hub, known as it changes.

    resources = Resources(hub)
    manager.add_controller(resources.controller)
    resources.selected(placement)           # what it selects, or what is wrong, or what is not known yet
    resources.source(kinds)                 # wakes a placement's key whenever the answer may be another

Only kinds that some placement needs are watched. Which kinds there are comes from the server when the hub connects,
and from its CustomResourceDefinitions as they come and go: a kind can be selected as soon as its CRD is established.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Set
from typing import Final, TypeVar

from msgspec.structs import replace

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.dialect import Dialect
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, ResourceSelector
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PLACEMENT_KINDS, PlacementKinds
from kedge.api.resource import Resource
from kedge.controllers.hub.caches import placements_without_status
from kedge.controllers.hub.candidate_caches import CandidateCaches
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.discovery import Discovery, discover
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.reachability import State
from kedge.kube.source import Signal, Source
from kedge.kube.store import Change
from kedge.plan.selecting.candidates import Candidate
from kedge.plan.selecting.kinds import KEPT_WHERE_WORKLOADS_RUN, Catalogue, Kind, kinds_of_crd
from kedge.plan.selecting.selection import Selection, select_objects
from kedge.plan.selecting.selectors import IndexKey, ResolvedSelectors, index_keys_of, resolve_selectors

T = TypeVar("T")

SILENCE: Final = 15.0
"""How often to ask again, in seconds, while a server behind the hub's does not answer: nothing tells when it will."""

_NOT_SEEN: Final = Selection(pending="the placement came or went a moment ago")
_NOT_SAID_YET: Final = Selection(pending="the hub has not said yet which kinds it serves")


class _Watched:
    """One placement, and what is known of what it selects."""

    def __init__(self, selectors: tuple[ResourceSelector, ...], catalogue: Catalogue, meant: ResolvedSelectors) -> None:
        self.selectors = selectors
        self.catalogue = catalogue
        self.meant = meant
        self.resources = meant.resources(catalogue)
        self.tokens = meant.index_keys()
        self.selection: Selection | None = None
        self.refused: tuple[str, str] | None = None


class Resources:
    """What the placements of one hub select."""

    def __init__(self, hub: Cluster, *, dialect: Dialect = Dialect.seed, runs_workloads: bool = False) -> None:
        """`runs_workloads`: workloads run on the hub itself, and what is made for them there stays there."""
        self._hub = hub
        self._dialect = dialect
        self._left_out = KEPT_WHERE_WORKLOADS_RUN if runs_workloads else ()
        self._crds = hub.cache(CustomResourceDefinition)
        self._placements = {kinds: placements_without_status(hub, kinds) for kinds in PLACEMENT_KINDS}
        self._signals = {kinds: Signal(hub.name) for kinds in PLACEMENT_KINDS}
        self._connected = Signal(hub.name)
        self._candidates = CandidateCaches(hub, changed=self._changed, troubled=self._troubled)
        self._discovery: Discovery | None = None
        self._custom: set[tuple[str, str]] = set()
        self._catalogue: Catalogue | None = None
        self._watched: dict[Key, _Watched] = {}
        self._waiting: dict[Key, None] = {}
        self._by_token: dict[IndexKey, dict[Key, None]] = defaultdict(dict)
        self._by_resource: dict[Resource, dict[Key, None]] = defaultdict(dict)
        self._itself = Key(hub.name, None, "kinds")
        definitions = hub.watch(self._crds, to=lambda _: (self._itself,))
        self.controller = Controller("resources", self.reconcile, [definitions, self._connected], workers=1)
        hub.on_state(self._on_state)
        for cache in self._placements.values():
            cache.on_change(self._placement_changed)

    # What others ask

    @property
    def catalogue(self) -> Catalogue | None:
        """Every kind the hub serves; None as long as it has not said."""
        return self._catalogue

    def selected(self, placement: ClusterResourcePlacement) -> Selection:
        """What this placement selects now."""
        key = self._key(placement.metadata)
        if not self._is_there(placement):
            return _NOT_SEEN
        if self._catalogue is None:
            self._waiting[key] = None
            return _NOT_SAID_YET
        watched = self._watch(key, placement, self._catalogue)
        if watched.selection is None:
            watched.selection = select_objects(watched.meant, watched.catalogue, self._candidates, self._dialect)
        if watched.refused and watched.refused[0] == watched.selection.digest:
            return replace(watched.selection, problem=watched.refused[1])
        return watched.selection

    def source(self, kinds: PlacementKinds) -> Source:
        """Wakes the keys of placements whose selection may have changed."""
        return self._signals[kinds]

    def refuse(self, placement: ClusterResourcePlacement, selection: Selection, problem: str) -> None:
        """The server does not take a snapshot of this selection: that is wrong with it till it is another, or taken."""
        key = self._key(placement.metadata)
        if watched := self._watched.get(key):
            watched.refused = (selection.digest, problem)
            self._wake([key])

    def is_refused(self, placement: ClusterResourcePlacement, selection: Selection) -> bool:
        """Whether this selection is known, but for that the server did not take a snapshot of it."""
        watched = self._watched.get(self._key(placement.metadata))
        refused = watched.refused if watched is not None else None
        return refused == (selection.digest, selection.problem) and not selection.pending

    def accept(self, placement: ClusterResourcePlacement) -> None:
        """The server takes what this placement selects, whatever it said before."""
        key = self._key(placement.metadata)
        if (watched := self._watched.get(key)) and watched.refused is not None:
            watched.refused = None
            self._wake([key])

    # Which kinds there are

    async def reconcile(self, _: Key) -> Outcome:
        """Learn which kinds there are, and have every placement looked at again if that is news."""
        if self._discovery is None or self._discovery.unavailable:
            self._discovery = await discover(self._hub.client)
        known = self._known_kinds(self._discovery)
        if known != self._catalogue:
            self._catalogue = known
            keys, self._waiting = [*self._watched, *self._waiting], {}
            self._wake(keys)
        return Outcome.again(after=SILENCE) if known.unavailable else Outcome.done

    def _known_kinds(self, discovery: Discovery) -> Catalogue:
        crds = self._crds.all()
        self._custom |= custom_names(crds)
        return served_kinds(discovery, crds, self._custom, self._left_out)

    def _on_state(self, state: State) -> None:
        """The hub is there, again perhaps: it may be another version of itself."""
        if state.phase == "connected":
            self._ask_again()

    def _ask_again(self) -> None:
        self._discovery = None
        self._connected.wake(self._itself)

    # Which objects matter to whom

    def _watch(self, key: Key, placement: ClusterResourcePlacement, catalogue: Catalogue) -> _Watched:
        selectors = placement.spec.resource_selectors
        watched = self._watched.get(key)
        if watched is None or watched.selectors != selectors or watched.catalogue is not catalogue:
            self._forget(key)
            watched = _Watched(selectors, catalogue, resolve_selectors(placement, catalogue))
            self._remember(key, watched)
            self._candidates.only(self._by_resource)
        return watched

    def _remember(self, key: Key, watched: _Watched) -> None:
        self._watched[key] = watched
        for token in watched.tokens:
            self._by_token[token][key] = None
        for resource in watched.resources:
            self._by_resource[resource][key] = None

    def _forget(self, key: Key) -> None:
        if (watched := self._watched.pop(key, None)) is None:
            return
        for token in watched.tokens:
            _remove(self._by_token, token, key)
        for resource in watched.resources:
            _remove(self._by_resource, resource, key)

    def _placement_changed(self, change: Change[ClusterResourcePlacement]) -> None:
        key = self._key(change.object.metadata)
        if change.old is None:
            self._wake([key])
        elif change.new is None:
            self._waiting.pop(key, None)
            self._forget(key)
            self._candidates.only(self._by_resource)

    def _changed(self, resource: Resource, found: Candidate) -> None:
        """An object changed: whoever selects it, or may, has to look again."""
        for token in index_keys_of(resource, found):
            self._wake(self._by_token.get(token, ()))

    def _troubled(self, resource: Resource, is_missing: bool) -> None:
        """A kind can be seen now, or cannot. One that is missing may be gone for good: ask."""
        if is_missing:
            self._ask_again()
        self._wake(self._by_resource.get(resource, ()))

    def _wake(self, keys: Iterable[Key]) -> None:
        for key in tuple(keys):
            if watched := self._watched.get(key):
                watched.selection = None
            self._signals[_kinds(key)].wake(key)

    def _is_there(self, placement: ClusterResourcePlacement) -> bool:
        """Whether our own cache shows it: what we remember of others would never be forgotten."""
        meta = placement.metadata
        return self._placements[_kinds(self._key(meta))].get(meta.name, meta.namespace) is not None

    def _key(self, meta: ObjectMeta) -> Key:
        return Key(self._hub.name, meta.namespace, meta.name)


def _kinds(key: Key) -> PlacementKinds:
    return CLUSTER if key.namespace is None else NAMESPACED


def _remove(index: dict[T, dict[Key, None]], entry: T, key: Key) -> None:
    index[entry].pop(key, None)
    if not index[entry]:
        del index[entry]


_NEEDED_VERBS: Final = ("get", "list", "watch")


def custom_names(crds: Collection[CustomResourceDefinition]) -> frozenset[tuple[str, str]]:
    """Group and plural of the kinds that are defined here."""
    return frozenset((crd.spec.group, crd.spec.names.plural) for crd in crds)


def served_kinds(
    discovery: Discovery,
    crds: Collection[CustomResourceDefinition],
    custom: Set[tuple[str, str]],
    left_out: Collection[tuple[str, str]] = (),
) -> Catalogue:
    """What the server said of its own kinds, and what CRDs say of theirs: they know sooner, also of the end.

    `custom` are the kinds that are, or were, defined by CRDs, and of which those alone are believed; `left_out` are
    kinds that stay on the hub.
    """
    built_in = [
        Kind(served.resource, served.preferred, served.can(*_NEEDED_VERBS))
        for served in discovery.kinds
        if (served.resource.group, served.resource.plural) not in custom
    ]
    return Catalogue(
        [*built_in, *(kind for crd in crds for kind in kinds_of_crd(crd))], discovery.unavailable, left_out
    )

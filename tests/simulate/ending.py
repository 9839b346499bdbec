"""Ending: how a fleet must be once nothing goes wrong any more: where it should be, or saying what it waits for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kedge.api.condition import FALSE, TRUE, find_condition
from kedge.api.core import ConfigMap
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import Binding
from kedge.api.reasons import OVERRIDDEN
from kedge.api.scheduling import PlacementType
from kedge.kube.client import Client
from kedge.plan.explaining.story import tell
from kedge.simulate.simulation import InvariantViolated, Simulation
from simulate.deployments import image_of, is_bad
from simulate.promises import Promises, is_available, is_judged, target_of

SOON = 5400.0  # seconds: a clock that was wrong for a while may have made a wait of minutes one of an hour

UNHEARD = 100.0  # seconds: a watch that fell silent before the faults stopped is noticed after 75 s


class Ending:
    """What is true at the end."""

    def __init__(self, simulation: Simulation, promises: Promises, namespace: str, name: str) -> None:
        self._simulation = simulation
        self._promises = promises
        self._hub: Client = simulation.client("hub")
        self._namespace = namespace
        self._name = name
        self._data: dict[str, bytes] = {}
        self._last: Callable[[], str] = lambda: ""
        simulation.at_end("the fleet is where it should be", self._unlike_at_end)

    async def arrived(self, image: str, members: Sequence[str], gone: Sequence[str]) -> None:
        """The fleet is where it should be, says so, and stays there."""
        listed = (await self._hub.list(ConfigMap, self._namespace)).items
        self._data = {one.metadata.name: msgspec.json.encode(one.data) for one in listed if _is_ours(one.metadata.name)}

        def unlike() -> str:
            return self._unlike(image, set(members), set(gone))

        try:
            await self._simulation.until("it arrives", lambda: not unlike(), within=SOON, every=1.0)
        except InvariantViolated as error:
            raise InvariantViolated(f"{error}: {unlike()}") from error
        await self._says_so()
        await self.rest(20.0)
        self._last = unlike

    def _unlike_at_end(self) -> str:
        return self._last()

    def _unlike(self, image: str, members: set[str], gone: set[str]) -> str:
        """How the fleet differs from one that has arrived."""
        promises = self._promises
        placement = promises.placements.now(self._name)
        assert placement is not None, "it is never deleted here"
        bindings = promises.bindings.all()
        bound = {one.spec.target_cluster for one in bindings.values()}
        if wrong := _wrongly_picked(placement, bound, members, len(bindings)):
            return wrong
        if waiting := [one.spec.target_cluster for one in bindings.values() if not is_available(one)]:
            return f"{_listed(waiting)} of {_listed(bound)} are not available"
        left_alone = gone | (promises.forgotten - bound)
        running = {name: image_of(one) for name, one in promises.deployments.now.items() if name not in left_alone}
        if running != dict.fromkeys(bound, image):
            return f"{_listed(bound)} should run {image}, and {running} do"
        if broken := [name for name in sorted(bound) if promises.deployments.available_image(name) != image]:
            return f"{_listed(broken)} are said to be available, and their Deployments are not"
        works = {name for name, heard in promises.works.items() if any(map(is_judged, map(_name, heard.all())))}
        if works != bound:
            return f"there are Works for {_listed(works)}, and {_listed(bound)} are bound"
        wrong_data = [name for name in sorted(bound) if self._data_on(name) != self._data]
        return f"{_listed(wrong_data)} have other ConfigMaps than the hub" if wrong_data else ""

    def _data_on(self, member: str) -> dict[str, bytes]:
        there = self._promises.on_members.get(member, {})
        return {name: data for name, data in there.items() if _is_ours(name)}

    async def _says_so(self) -> None:
        """The placement says so too, and nothing is left to be cleared."""
        for _ in range(600):
            story = tell(await self._placement())
            if story.is_done:
                return
            await asyncio.sleep(1.0)
        raise InvariantViolated(f"it arrived, but does not say so: {story}")

    async def stuck_and_says_so(self) -> None:
        """A bad release stops at its budget, and the placement names a cluster that has it, and why."""
        await self._simulation.until("a bad release reaches somebody", self._broken, within=SOON, every=1.0)
        await self.rest(UNHEARD)
        if wrong := self._untrue_words():
            raise InvariantViolated(wrong)
        broken = self._broken()
        placement = await self._placement()
        words = [one.message for one in placement.status.conditions if one.status != TRUE]
        self._promises.asked("a rollout that stands still names whom it waits for", tight=True)
        if not any(name in " ".join(words) for name in broken):
            raise InvariantViolated(f"{_listed(broken)} have the bad release, and the placement says {words}")

    def _untrue_words(self) -> str:
        """How what bindings say, once all was heard, differs from what the members' Deployments say."""
        found = self._promises.bindings.all().values()
        bindings = [
            one for one in found if one.spec.target_cluster != self._promises.hostile and not self._is_lost(one)
        ]
        said = {one.spec.target_cluster for one in bindings if is_available(one)}
        true = {one.spec.target_cluster for one in bindings if self._works(one.spec.target_cluster)}
        self._promises.asked("a binding says what the member's own Deployment says", tight=said != self.bound())
        return "" if said == true else f"{_listed(said)} are said to be available, and {_listed(true)} are"

    def _is_lost(self, binding: Binding) -> bool:
        """Whether it has a snapshot that a restore took away, and a hub that had not heard of that pointed to again."""
        overridden = find_condition(binding.status.conditions, OVERRIDDEN)
        return bool(self._promises.restores) and overridden is not None and overridden.status == FALSE

    def _works(self, member: str) -> bool:
        return self._promises.deployments.available_image(member) is not None

    def bound(self) -> set[str]:
        """The clusters that have a binding."""
        return {one.spec.target_cluster for one in self._promises.bindings.all().values()}

    async def hears_of(self, member: str) -> None:
        """That a cluster has stopped working is heard."""

        def is_heard() -> bool:
            found = [one for one in self._promises.bindings.all().values() if one.spec.target_cluster == member]
            return not self._works(member) and not any(map(is_available, found))

        self._promises.asked("a binding says what the member's own Deployment says", tight=True)
        await self._simulation.until(f"{member} is said not to be available any more", is_heard, within=60)

    def _broken(self) -> set[str]:
        """Members that have the bad release."""
        return self.bound() & set(self._promises.deployments.with_image(is_bad))

    async def rest(self, quiet: float) -> None:
        """Wait until nobody writes anything more, heartbeats apart."""
        loop, promises, began = self._simulation.loop, self._promises, self._simulation.loop.time()

        def is_quiet() -> bool:
            return loop.time() - max(promises.last_write, began) >= quiet

        await self._simulation.until(f"nothing is written for {quiet:g} s", is_quiet, every=2.0)

    async def _placement(self) -> ClusterResourcePlacement:
        return await self._hub.get(ClusterResourcePlacement, self._name)


def _wrongly_picked(placement: ClusterResourcePlacement, bound: set[str], members: set[str], bindings: int) -> str:
    policy = placement.spec.policy
    assert policy is not None, "every placement here has one"
    if bindings != len(bound):
        return f"there are {bindings} bindings for {_listed(bound)}"
    if policy.placement_type is PlacementType.pick_all:
        wanted = members
    elif policy.placement_type is PlacementType.pick_fixed:
        wanted = set(policy.cluster_names)
    else:
        number = target_of(placement, ())
        right = len(bound) == number and bound <= members
        return "" if right else f"{_listed(bound)} are bound, and {number} of {_listed(members)} are wanted"
    return "" if bound == wanted else f"{_listed(bound)} are bound, and {_listed(wanted)} are wanted"


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _is_ours(config_map: str) -> bool:
    return config_map.startswith("extra-")


def _listed(names: Sequence[str] | set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


# The end state, as lines that are the same however it was reached


_KINDS = (
    *("clusterresourceplacements", "clusterresourcebindings", "clusterresourcesnapshots", "works", "appliedworks"),
    *("clusterstagedupdateruns", "clusterapprovalrequests", "clusterstagedupdatestrategies"),
    *("clusterschedulingpolicysnapshots", "memberclusters", "internalmemberclusters", "namespaces"),
    *("deployments", "configmaps", "roles", "rolebindings"),
)
_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=-)[0-9a-f]{8}(?=\b)")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_COUNTED = ("resourceVersion", "generation", "observedGeneration", "managedFields")


def end_state(simulation: Simulation) -> list[str]:
    """Every object that matters, one line each, without what is different each time."""
    found = {
        f"{name} {kind.resource.plural} {_masked(version.key)} {_masked(_plain(version.decode()))}"
        for name, server in simulation.servers.items()
        for kind in server.registry.kinds()
        if kind.resource.plural in _KINDS
        for version in server.store.all(kind).at(server.store.number).within("")
    }
    return sorted(found)


def _plain(body: dict[str, Any]) -> str:
    return msgspec.json.encode(_without(body), order="deterministic").decode()


def _without(value: Any) -> Any:
    """Without numbers that count writes, and with conditions as others act on them."""
    if isinstance(value, dict) and "lastTransitionTime" in value:
        return {key: value.get(key) for key in ("type", "status", "reason")}
    if isinstance(value, dict):
        return {key: _without(one) for key, one in value.items() if key not in _COUNTED}
    return [_without(one) for one in value] if isinstance(value, list) else value


def _masked(text: str) -> str:
    return _TIME.sub("T", _RANDOM.sub("…", text))

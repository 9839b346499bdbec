"""What a rollout promises, judged by what runs: the members' own Deployments, write by write.

* At most maxUnavailable clusters hold a release that no cluster has proven available yet. Clusters that held nothing
  before are not meant.
* Of what works, no more is changed than maxUnavailable allows, counting every cluster whose Deployment has not been
  available for a while. Asked where the network is fine: what a Deployment says is then heard by the hub in no time.
  What an agent brings back to a member that was restored was decided before.
* An agent changes a Deployment only to what the hub has decided for its cluster.

The first is excused by what the hub had heard when it decided (`heard`): clusters that were to have something else by
then, clusters that were leaving the fleet, and a proof that was lost since.
"""

from __future__ import annotations

from collections.abc import Set

from msgspec import Struct

from kedge.api.apps import Deployment
from kedge.api.binding import BindingState
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.simulate.simulation import Simulation
from simulate.deployments import DeploymentChange
from simulate.heard import Known
from simulate.promises import Binding, Promises, View, agents_of, is_available, is_judged

HEARD_WITHIN = 10.0  # seconds, from a Deployment to the hub, while nothing is wrong with the network


class Decision(Struct, frozen=True):
    """That a cluster is to have an image."""

    at: float
    wrong: str = ""  # why the hub should have known better; empty if it could not


class MembersPromises:
    """Follows every write, and says at once when a member has what it must not have yet."""

    def __init__(self, simulation: Simulation, promises: Promises, *, is_heard_soon: bool) -> None:
        """`is_heard_soon` says that nothing is wrong with the network, nor with any process."""
        self._simulation = simulation
        self._promises = promises
        self._is_heard_soon = is_heard_soon
        self._decisions: dict[tuple[str, str], Decision] = {}  # by cluster and image, the last of each
        self._first: dict[str, str] = {}  # what clusters were given that held nothing before
        simulation.always("what runs is what a rollout promises", self._ask)

    def _ask(self, server: str, kind: Kind, change: Change) -> str:
        carried = self._simulation.trace.carried()
        if server == "hub" and kind.resource.plural == Binding.resource.plural and is_judged(change.version.key):
            self._note_decision(change.version.key, self._promises.bindings.number_of(carried))
        elif kind.resource.plural == Deployment.resource.plural and carried is not None:
            changed = self._promises.deployments.last
            is_agent = carried[0].partition(" ")[0] in agents_of(server)
            if changed is not None and is_agent and changed.new_image is not None:
                return self._of_change(changed, changed.new_image)
        return ""

    # What the hub decides

    def _note_decision(self, key: str, number: int) -> None:
        versions = self._promises.bindings.versions[key]
        before, now = (versions[-2].object if len(versions) > 1 else None), versions[-1].object
        if now is None:
            return
        had = self._image(before) if before is not None else None
        image, cluster = self._image(now), now.spec.target_cluster
        if image is None or image == had:
            return
        if had is None:
            self._first[cluster] = image
        elif self._first.get(cluster) != image:
            self._first.pop(cluster, None)
        self._decisions[cluster, image] = self._decision(key, image, number)

    def _decision(self, key: str, image: str, number: int) -> Decision:
        sent = self._promises.bindings.sent.get(number)
        if sent is None:
            return Decision(self._simulation.loop.time())  # a user's
        left = self._promises.may_have_left(sent)
        wrongs = [
            self._exposed(key, image, known, view, left)
            for known in self._promises.bindings.known_at(sent.first, sent.life)
            for view in self._promises.views(sent, known)
        ]
        return Decision(sent.first, "" if not all(wrongs) else next(iter(wrongs), ""))

    def _exposed(self, key: str, image: str, known: Known, view: View, left: Set[str]) -> str:
        """What is wrong with giving this image to one more cluster, for someone who knows that much."""
        if self._is_proven(image, known):
            return ""
        given = view.bindings[key].spec if key in view.bindings else None
        held = [one.spec for one in view.bindings.values() if self._holds(one, image)]
        # Two revisions may have one image. The limit is on a revision: what is left of an earlier one does not count.
        same = [one for one in held if given is None or one.resource_snapshot_name == given.resource_snapshot_name]
        holding = {one.target_cluster for one in same} - {given.target_cluster if given is not None else "", *left}
        if len(holding) < view.max_unavailable:
            return ""
        return f"the hub had given it to {', '.join(sorted(holding))}, and had heard from none that it works"

    def _is_proven(self, image: str, known: Known) -> bool:
        """Whether a binding with this image has said that it is available, in any form the hub may have seen."""
        most = max(known.most, *known.single.values(), 0)
        versions = (one for found in self._promises.bindings.versions.values() for one in found)
        seen = (one.object for one in versions if one.version <= most and one.object is not None)
        return any(is_available(one) and self._image(one) == image for one in seen)

    def _holds(self, binding: Binding, image: str) -> bool:
        is_picked = binding.metadata.deletion_timestamp is None and binding.spec.state == BindingState.bound
        is_first = self._first.get(binding.spec.target_cluster) == image
        return is_picked and not is_first and self._image(binding) == image

    def _image(self, binding: Binding) -> str | None:
        return self._promises.image_in(binding.spec.resource_snapshot_name)

    # What members have

    def _of_change(self, changed: DeploymentChange, image: str) -> str:
        decision = self._decisions.get((changed.member, image))
        self._promises.asked("a Deployment is changed only as the hub has decided", tight=True)
        if decision is None:
            return f"{changed.member} runs {image}, and the hub has not decided that"
        return self._of_exposure(changed.member, image, decision) or self._of_disturbed(changed, decision)

    def _of_exposure(self, member: str, image: str, decision: Decision) -> str:
        """At most maxUnavailable clusters hold a release that none has proven."""
        if image in self._promises.deployments.proven or self._first.get(member) == image:
            return ""
        bound = {one.spec.target_cluster for one in self._promises.bindings.all().values() if self._holds(one, image)}
        holding = [name for name in self._promises.deployments.with_image(lambda one: one == image) if name in bound]
        most = self._view().max_unavailable
        self._promises.asked("few clusters hold what none has proven", tight=len(holding) == most)
        if len(holding) <= most or not decision.wrong:
            return ""
        return f"{', '.join(holding)} hold {image}, which no cluster has proven, and {most} may: {decision.wrong}"

    def _of_disturbed(self, changed: DeploymentChange, decision: Decision) -> str:
        """Of what works, no more is changed than maxUnavailable allows."""
        is_restored = self._promises.restores.is_restored_since(changed.member, decision.at)
        if not self._is_heard_soon or not changed.was_available or is_restored:
            return ""
        view, down = self._view(), self._promises.deployments.down_since
        picked = {one.spec.target_cluster for one in view.bindings.values() if one.spec.state == BindingState.bound}
        down_then = {name for name, since in down.items() if since <= decision.at - HEARD_WITHIN}
        up, least = picked - {changed.member} - down_then, view.counted - view.max_unavailable
        self._promises.asked("what works is changed only while enough others do", tight=len(up) == least)
        if len(up) >= least:
            return ""
        return f"{changed.member} is changed while {', '.join(sorted(down_then))} do not work, and {least} must"

    def _view(self) -> View:
        placement = self._promises.placements.now("crp")
        assert placement is not None, "somebody placed it"
        return View(placement, self._promises.bindings.all())

"""Deployments: what runs on the members, from their own stores: which image, whether all of it works, since when."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from kedge.api.apps import Deployment
from kedge.embedded.store import Change

BAD = "app:bad"


class DeploymentChange(Struct, frozen=True):
    """A Deployment before and after a write; None where there is none."""

    member: str
    before: Deployment | None
    now: Deployment | None
    was_available: bool

    @property
    def is_deleted(self) -> bool:
        """Whether it is on its way out now, and was not before."""
        return is_there(self.before) and not is_there(self.now)

    @property
    def new_image(self) -> str | None:
        """The image it has now, and had not before; None if it has the same, or there is no Deployment."""
        if self.now is None or not is_there(self.now):
            return None
        image = image_of(self.now)
        return image if self.before is None or image_of(self.before) != image else None


class MemberDeployments:
    """The one Deployment that is placed, on each member."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self.now: dict[str, Deployment] = {}
        self.proven: set[str] = set()  # images that were available on a member once
        self.down_since: dict[str, float] = {}  # members on which it is there, and not available
        self.last: DeploymentChange | None = None
        self._worked: dict[tuple[str, str], float] = {}  # member and image: when that was last available
        self._last_down: dict[str, float] = {}

    def changed(self, member: str, change: Change) -> DeploymentChange:
        """Note a change of a member's Deployment."""
        before, worked = self.now.get(member), self.available_image(member)
        if worked is not None:
            self._worked[member, worked] = self._time()
        now = None if change.type == "DELETED" else msgspec.json.decode(change.version.body, type=Deployment)
        if now is None:
            self.now.pop(member, None)
        else:
            self.now[member] = now
        self._note_health(member)
        self.last = DeploymentChange(member, before, now, worked is not None)
        return self.last

    def _note_health(self, member: str) -> None:
        works = self.available_image(member)
        if works is not None:
            self.proven.add(works)
            if self.down_since.pop(member, None) is not None:
                self._last_down[member] = self._time()
        elif member in self.now:
            self.down_since.setdefault(member, self._time())

    def available_image(self, member: str) -> str | None:
        """The image that is available on a member, as its Deployment says; None if none is."""
        found = self.now.get(member)
        if found is None:
            return None
        status, wanted = found.status, found.spec.replicas if found.spec.replicas is not None else 1
        is_current = status.observed_generation == found.metadata.generation
        works = status.available_replicas == status.updated_replicas == wanted
        is_done = status.unavailable_replicas == 0  # else the one that works may be a pod of the image before
        return image_of(found) if is_current and works and is_done else None

    def was_available_since(self, member: str, image: str, moment: float) -> bool:
        """Whether this image was available on a member at that moment or later."""
        return self.available_image(member) == image or self._worked.get((member, image), -1.0) >= moment

    def was_down_since(self, member: str, moment: float) -> bool:
        """Whether a member's Deployment was not available at that moment or later."""
        return member in self.down_since or self._last_down.get(member, -1.0) >= moment

    def with_image(self, is_wanted: Callable[[str], bool]) -> list[str]:
        """The members whose Deployment has such an image."""
        return sorted(name for name, one in self.now.items() if is_wanted(image_of(one)))


def is_there(found: Deployment | None) -> bool:
    return found is not None and found.metadata.deletion_timestamp is None


def image_of(found: Deployment) -> str:
    containers = (found.spec.template.get("spec") or {}).get("containers")
    return str(containers[0]["image"]) if containers else ""


def is_bad(image: str | None) -> bool:
    """Whether an image never becomes ready."""
    return image is not None and image.startswith(BAD)

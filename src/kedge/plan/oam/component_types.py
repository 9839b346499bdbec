"""Component types: from the type and the properties of an Application's component to its workload.

There is no template language here. A component is a `webservice`, a `worker`, or given as objects; every other type is
refused in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from kedge.api.oam.applications import ApplicationComponent
from kedge.plan.fields import Object, text
from kedge.plan.oam.containers import deployment, read_web_service, read_worker, service
from kedge.plan.oam.refused import OamRefused


class ComponentObjects(Struct, frozen=True):
    """What a component is made of."""

    workload: Object
    others: tuple[Object, ...] = ()
    """Objects beside the workload, such as its Service."""


def objects_of(component: ApplicationComponent) -> ComponentObjects:
    """What a component is made of. Refuses a type that is not known, and properties that cannot be read."""
    render = _TYPES.get(component.type)
    if render is None:
        raise OamRefused(
            f"component {component.name} has the type {component.type!r}, which is not known here: use one of"
            f" {', '.join(sorted(_TYPES))}; raw takes a whole object as its properties"
        )
    return render(component.name, component.parameters)


def _web_service(name: str, properties: Object) -> ComponentObjects:
    given = read_web_service(name, properties)
    exposed = service(name, given)
    return ComponentObjects(deployment(name, given), (exposed,) if exposed is not None else ())


def _worker(name: str, properties: Object) -> ComponentObjects:
    return ComponentObjects(deployment(name, read_worker(name, properties)))


def _raw(name: str, properties: Object) -> ComponentObjects:
    return ComponentObjects(checked_object(properties, f"component {name}: its properties"))


def _objects(name: str, properties: Object) -> ComponentObjects:
    given = properties.get("objects")
    if not isinstance(given, list) or not given:
        raise OamRefused(f"component {name}: properties.objects is a list of objects, and the first is the workload")
    found = [checked_object(one, f"component {name}: properties.objects[{index}]") for index, one in enumerate(given)]
    return ComponentObjects(found[0], tuple(found[1:]))


def checked_object(given: object, where: str) -> Object:
    """A whole object. Refuses one without apiVersion and kind."""
    if not isinstance(given, Mapping) or not text(given, "apiVersion") or not text(given, "kind"):
        raise OamRefused(f"{where} must be a whole object, with apiVersion and kind")
    return given


_TYPES: Final[Mapping[str, Callable[[str, Object], ComponentObjects]]] = {
    "webservice": _web_service,
    "worker": _worker,
    "raw": _raw,
    "k8s-objects": _objects,
}

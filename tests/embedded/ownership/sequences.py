"""Random objects and patches of the kinds in `things`, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias, TypeVar

Json: TypeAlias = Any
T = TypeVar("T")

_STAYS = ("selector", "template", "containers", "name", "image", "port", "apiVersion", "kind", "metadata")
_PARTS = [("a", ""), ("b", ""), ("a", "other"), ("c", "plain")]


class Dice:
    """Random choices of the kind needed here."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def one(self, options: Sequence[T]) -> T:
        return self.rng.choice(options)

    def some(self, options: Sequence[T], probability: float = 0.5) -> list[T]:
        """Some of them, in any order."""
        found = [option for option in options if self.chance(probability)]
        self.rng.shuffle(found)
        return found

    def members(self, probability: float = 0.5, /, **makers: Json | Callable[[], Json]) -> dict[str, Json]:
        """Some of the members; what can be called is, and a tuple is a choice."""
        return {name: self._made(maker) for name, maker in makers.items() if self.chance(probability)}

    def _made(self, maker: Json) -> Json:
        if callable(maker):
            return maker()
        return self.one(maker) if isinstance(maker, tuple) else maker


def metadata(dice: Dice) -> dict[str, Json]:
    labels = lambda: dice.members(a=("1", "2"), b=("1", "2"))  # noqa: E731
    annotations = lambda: dice.members(x=("1", "2"), y=("1", "2"))  # noqa: E731
    finalizers = lambda: dice.some(["x.io/f", "x.io/g"])  # noqa: E731
    return dice.members(0.3, labels=labels, annotations=annotations, finalizers=finalizers)


def config_map(dice: Dice, whole: bool) -> Json:
    values = ("1", "2", "3")
    return dice.members(
        0.7,
        data=lambda: dice.members(a=values, b=values, c=values, d=values),
        binaryData=lambda: dice.members(e=("YQ==", "Yg=="), f="YQ=="),
    )


def deployment(dice: Dice, whole: bool) -> Json:
    spec = dice.members(
        0.3,
        replicas=(1, 2, 3),
        minReadySeconds=(1, 2),
        paused=(True, False),
        revisionHistoryLimit=(1, 10),
        strategy=lambda: dice.one([{}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": dice.one([1, "30%"])}}]),
    )
    if whole or dice.chance(0.3):
        spec["selector"] = {"matchLabels": {"app": "web"}}
    if whole or dice.chance(0.8):
        labels = {"app": "web", **dice.members(0.3, t=("1", "2"))}
        spec["template"] = {"metadata": {"labels": labels}, "spec": _pod(dice, whole)}
    return {"spec": spec}


def _pod(dice: Dice, whole: bool) -> Json:
    names = ["web", *dice.some(["side", "log"], 0.4)] if whole else dice.some(["web", "side", "log"])
    containers = {"containers": [_container(dice, name, whole) for name in names]} if names else {}
    return containers | dice.members(
        0.3,
        tolerations=([{"key": "a", "operator": "Exists"}], []),
        imagePullSecrets=lambda: [{"name": name} for name in dice.some("xy")],
        volumes=lambda: [{"name": name, "emptyDir": {}} for name in dice.some(["v", "w"])],
        nodeSelector=lambda: dice.members(k=("1", "2")),
        terminationGracePeriodSeconds=(5, 30),
        securityContext={},
        affinity=({}, {"nodeAffinity": {}}),
    )


def _container(dice: Dice, name: str, whole: bool) -> Json:
    image = {"image": dice.one(["i:1", "i:2"])} if whole or dice.chance(0.7) else {}
    rest = dice.members(
        0.35,
        env=lambda: [{"name": name, "value": dice.one("12")} for name in dice.some("ABC")],
        ports=lambda: [_container_port(dice, port) for port in dice.some([80, 81, 82])],
        resources=lambda: dice.members(limits=lambda: dice.members(cpu=("1", "500m"), memory="1Gi")),
        args=(["a"], ["a", "b"]),
        imagePullPolicy=("Always", "IfNotPresent"),
        securityContext=({}, {"runAsUser": 1}, {"capabilities": {"add": ["X"]}}),
    )
    return {"name": name, **image, **rest}


def _container_port(dice: Dice, port: int) -> Json:
    return {"containerPort": port, **dice.members(protocol=("TCP", "UDP"), name=f"n{port}")}


def service(dice: Dice, whole: bool) -> Json:
    ports = [_service_port(dice, port) for port in dice.some([80, 81, 82])]
    if whole and not ports:
        ports = [{"port": 80, "name": "p80"}]
    rest = dice.members(
        0.4,
        selector=lambda: dice.members(a=("1", "2"), b="1"),
        sessionAffinity=("None", "ClientIP"),
        publishNotReadyAddresses=(True, False),
    )
    return {"spec": ({"ports": ports} if ports else {}) | rest}


def _service_port(dice: Dice, port: int) -> Json:
    return {"port": port, "name": f"p{port}", **dice.members(protocol=("TCP", "UDP"), targetPort=(1, "x"))}


def thing(dice: Dice, whole: bool) -> Json:
    numbers = (1, 2)
    spec = dice.members(
        0.3,
        count=numbers,
        text=("a", "b", None),
        names=lambda: dice.some("uvw"),
        parts=lambda: [
            _part(dice, *part) for part in dice.some([("a", ""), ("b", ""), ("a", "other"), ("c", "plain")])
        ],
        order=([], ["x"], ["y", "x"]),
        whole=lambda: dice.members(i=numbers, j=1),
        table=lambda: dice.members(i=numbers, j=numbers),
        deep=({}, {"x": {}}, {"x": {"y": 1}}, {"x": {"y": 2}}),
        port=(1, "1"),
        free=lambda: {name: anything(dice) for name in dice.some("mno")},
        half=lambda: dice.members(
            known=lambda: dice.members(k=("1", "2"), u=lambda: anything(dice)), un=lambda: anything(dice)
        ),
        manifest=lambda: _manifest(dice),
    )
    status = {"status": {"phase": "X"}} if dice.chance(0.15) else {}
    return ({"spec": spec} if whole or dice.chance(0.9) else {}) | status


def _part(dice: Dice, name: str, kind: str) -> Json:
    more = dice.members(size=(1, 2), more=lambda: dice.members(a=("1", "2"), b="1"))
    return {"name": name, **({"kind": kind} if kind else {}), **more}


def _manifest(dice: Dice) -> Json:
    labels = dice.members(a="1", b=("1", "2"))
    data = dice.members(z=("1", "2"))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "q", "labels": labels}, "data": data}


def anything(dice: Dice, depth: int = 2) -> Json:
    """A value without a schema."""
    if depth and dice.chance(0.4):
        return {name: anything(dice, depth - 1) for name in dice.some("pq")}
    return dice.one([1, 2, "s", True, None, [], [1], [{"a": 1}]])


def thing_status(dice: Dice) -> Json:
    return {"status": dice.members(0.7, phase=("A", "B"), conditions=lambda: _conditions(dice, "R", "S"))}


def deployment_status(dice: Dice) -> Json:
    conditions = lambda: _conditions(dice, "Available", "Progressing")  # noqa: E731
    numbers = {"observedGeneration": (1, 2), "replicas": 3, "readyReplicas": (1, 2)}
    return {"status": dice.members(0.6, conditions=conditions, **numbers)}


def _conditions(dice: Dice, *types: str) -> Json:
    return [{"type": name, "status": dice.one(["True", "False"])} for name in dice.some(types)]


def with_nulls(dice: Dice, live: Json, patch: Json) -> Json:
    """A merge patch that also removes some of what is there."""
    if not (isinstance(live, dict) and isinstance(patch, dict)):
        return patch
    given = {name: with_nulls(dice, live.get(name), part) for name, part in patch.items()}
    gone = {name: None for name in sorted(live) if name not in given and name not in _STAYS and dice.chance(0.15)}
    return given | gone

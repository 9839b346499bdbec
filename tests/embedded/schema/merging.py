"""Strategic merge patches of one Deployment, and what each makes of it: held to the function and to both servers."""

from random import Random
from typing import Any

from msgspec import Struct

Untyped = dict[str, Any]


class Row(Struct, frozen=True):
    """A patch of the pod template's spec (or, with `whole`, of the Deployment), and what is then at a place."""

    name: str
    patch: Untyped
    at: str  # where to look, from where the patch begins; `x[]` is each item of the list x
    then: Any
    whole: bool = False

    @property
    def of_deployment(self) -> Untyped:
        return self.patch if self.whole else {"spec": {"template": {"spec": self.patch}}}


def deployment(name: str = "web") -> Untyped:
    web = {
        "name": "web",
        "image": "web:1",
        "args": ["-v", "-x"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
        "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
    }
    spec = {
        "containers": [web, {"name": "side", "image": "side:1"}],
        "volumes": [{"name": "conf", "configMap": {"name": "conf"}}, {"name": "tmp", "emptyDir": {}}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
        "nodeSelector": {"zone": "a", "disk": "ssd"},
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["x"]}],
    }
    labels = {"app": "web", "tier": "front"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels, "finalizers": ["x.io/a", "x.io/b"]},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _web(**members: Any) -> Untyped:
    return {"containers": [{"name": "web", **members}]}


ROWS = [
    # maps and values
    Row("a value is set", {"spec": {"replicas": 5}}, "spec.replicas", 5, whole=True),
    Row("a zero is a value", {"spec": {"replicas": 0}}, "spec.replicas", 0, whole=True),
    Row("a label is added", {"metadata": {"labels": {"x": "y"}}}, "metadata.labels.x", "y", whole=True),
    Row(
        "null removes a label", {"metadata": {"labels": {"tier": None}}}, "metadata.labels", {"app": "web"}, whole=True
    ),
    Row("null removes a map", {"metadata": {"labels": None}}, "metadata.labels", None, whole=True),
    Row("a map is merged", {"nodeSelector": {"zone": "b"}}, "nodeSelector", {"zone": "b", "disk": "ssd"}),
    Row("a map is replaced if told", {"nodeSelector": {"$patch": "replace", "x": "y"}}, "nodeSelector", {"x": "y"}),
    Row("a map is emptied if told", {"nodeSelector": {"$patch": "delete"}}, "nodeSelector", None),
    Row("an empty patch changes nothing", {}, "containers[].name", ["web", "side"]),
    Row("nulls inside something new are dropped", {"affinity": {"nodeAffinity": None}}, "affinity", {}),
    Row("null for what is not there is nothing", {"hostname": None}, "hostname", None),
    # lists of named things
    Row("a thing is merged by its name", _web(image="web:2"), "containers[].image", ["web:2", "side:1"]),
    Row("the rest of it stays", _web(image="web:2"), "containers[].args", [["-v", "-x"], None]),
    Row(
        "a new thing goes first",
        {"containers": [{"name": "new", "image": "new:1"}]},
        "containers[].name",
        ["new", "web", "side"],
    ),
    Row(
        "things come in the order of the patch",
        {"containers": [{"name": "side", "image": "side:2"}, {"name": "web", "image": "web:2"}]},
        "containers[].name",
        ["side", "web"],
    ),
    Row(
        "a thing is deleted if told",
        {"containers": [{"name": "side", "$patch": "delete"}]},
        "containers[].name",
        ["web"],
    ),
    Row(
        "deleting what is not there is nothing",
        {"containers": [{"name": "nobody", "$patch": "delete"}]},
        "containers[].name",
        ["web", "side"],
    ),
    Row(
        "a list is replaced if told",
        {"containers": [{"$patch": "replace"}, {"name": "only", "image": "only:1"}]},
        "containers[].name",
        ["only"],
    ),
    Row(
        "a list inside a thing is merged too",
        _web(env=[{"name": "B", "value": "9"}]),
        "containers[].env",
        [[{"name": "A", "value": "1"}, {"name": "B", "value": "9"}, {"name": "C", "value": "3"}], None],
    ),
    Row(
        "a variable is deleted",
        _web(env=[{"name": "A", "$patch": "delete"}]),
        "containers[].env",
        [[{"name": "B", "value": "2"}, {"name": "C", "value": "3"}], None],
    ),
    Row(
        "ports are told apart by their number",
        _web(ports=[{"containerPort": 81, "name": "http"}]),
        "containers[].ports",
        [[{"containerPort": 80, "protocol": "TCP"}, {"name": "http", "containerPort": 81, "protocol": "TCP"}], None],
    ),
    Row(
        "pull secrets are told apart by their name",
        {"imagePullSecrets": [{"name": "three"}]},
        "imagePullSecrets[].name",
        ["three", "one", "two"],
    ),
    Row(
        "aliases are told apart by their address",
        {"hostAliases": [{"ip": "10.0.0.2", "hostnames": ["y"]}]},
        "hostAliases[].ip",
        ["10.0.0.2", "10.0.0.1"],
    ),
    Row(
        "amounts are merged by what they are of",
        _web(resources={"limits": {"cpu": "2"}}),
        "containers[].resources",
        [{"limits": {"cpu": "2", "memory": "1Gi"}}, {}],
    ),
    # lists without names
    Row("a plain list is replaced", _web(args=["-q"]), "containers[].args", [["-q"], None]),
    Row("a plain list is emptied", _web(args=[]), "containers[].args", [None, None]),
    Row(
        "a list of things without a key is replaced",
        {"tolerations": [{"key": "b", "operator": "Exists"}]},
        "tolerations",
        [{"key": "b", "operator": "Exists"}],
    ),
    Row("null removes a list", {"tolerations": None}, "tolerations", None),
    # lists of primitives that merge
    Row(
        "a finalizer is added",
        {"metadata": {"finalizers": ["x.io/c"]}},
        "metadata.finalizers",
        ["x.io/c", "x.io/a", "x.io/b"],
        whole=True,
    ),
    Row(
        "a finalizer that is there stays where it is",
        {"metadata": {"finalizers": ["x.io/b"]}},
        "metadata.finalizers",
        ["x.io/a", "x.io/b"],
        whole=True,
    ),
    Row(
        "a finalizer is taken away",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a", "x.io/z"]}},
        "metadata.finalizers",
        ["x.io/b"],
        whole=True,
    ),
    Row(
        "one is taken away and one added",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"], "finalizers": ["x.io/c"]}},
        "metadata.finalizers",
        ["x.io/c", "x.io/b"],
        whole=True,
    ),
    # order
    Row(
        "an order is asked for",
        {"$setElementOrder/containers": [{"name": "side"}, {"name": "web"}]},
        "containers[].name",
        ["side", "web"],
    ),
    Row(
        "an order with a new thing",
        {
            "$setElementOrder/containers": [{"name": "web"}, {"name": "new"}, {"name": "side"}],
            "containers": [{"name": "new", "image": "new:1"}],
        },
        "containers[].name",
        ["web", "new", "side"],
    ),
    Row(
        "what the order does not name stays before what followed it",
        {"$setElementOrder/containers": [{"name": "side"}]},
        "containers[].name",
        ["web", "side"],
    ),
    Row(
        "an order and a deletion",
        {
            "$setElementOrder/containers": [{"name": "side"}],
            "containers": [{"name": "web", "$patch": "delete"}],
        },
        "containers[].name",
        ["side"],
    ),
    Row(
        "an order, a deletion and a new thing",
        {
            "$setElementOrder/containers": [{"name": "new"}],
            "containers": [{"name": "side", "$patch": "delete"}, {"name": "new", "image": "new:1"}],
        },
        "containers[].name",
        ["web", "new"],
    ),
    Row(
        "an order of primitives",
        {"metadata": {"$setElementOrder/finalizers": ["x.io/b", "x.io/a"]}},
        "metadata.finalizers",
        ["x.io/b", "x.io/a"],
        whole=True,
    ),
    Row("an order of a list that is not there is nothing", {"$setElementOrder/initContainers": []}, "hostname", None),
    # retained keys
    Row(
        "only what is retained stays",
        {"volumes": [{"name": "conf", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]},
        "volumes[].configMap",
        [None, None],
    ),
    Row(
        "what is retained and given is set",
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        "spec.strategy",
        {"type": "Recreate"},
        whole=True,
    ),
]

REFUSALS: list[tuple[str, Untyped, int, str]] = [
    ("a thing without its name", {"containers": [{"image": "x"}]}, 500, "does not contain declared merge key: name"),
    ("a deletion without a name", {"containers": [{"$patch": "delete"}]}, 500, "declared merge key: name"),
    ("an unknown directive", {"nodeSelector": {"$patch": "burn"}}, 500, "unknown patch type: burn in map"),
    ("an unknown directive in a list", {"containers": [{"name": "web", "$patch": "burn"}]}, 500, "unknown patch type"),
    (
        "a merge directive in a list",
        {"containers": [{"name": "web", "$patch": "merge"}]},
        500,
        "merging lists cannot yet be specified in the patch",
    ),
    (
        "keys to retain that do not name what is given",
        {"volumes": [{"name": "tmp", "$retainKeys": ["name"], "secret": {}}]},
        400,
        "invalid patch format of retainKeys",
    ),
    ("keys to retain that are no list", {"$retainKeys": "x"}, 400, "invalid patch format of retainKeys"),
    ("an order that is no list", {"$setElementOrder/containers": "x"}, 500, "expected a []interface {}"),
    ("an order of nothing", {"$setElementOrder": []}, 400, "invalid patch format of setElementOrder list"),
    ("a deletion from nothing", {"$deleteFromPrimitiveList": []}, 400, "invalid patch format of primitive list"),
    (
        "another order than the one asked for",
        {
            "$setElementOrder/containers": [{"name": "web"}, {"name": "side"}],
            "containers": [{"name": "side", "image": "a"}, {"name": "web", "image": "b"}],
        },
        500,
        "The order in patch list:",
    ),
    ("things of two sorts", {"containers": [{"name": "web"}, "x"]}, 500, "list element types are not identical"),
    ("a list of lists", {"containers": [["x"]]}, 500, "list element types are not identical"),
]


def any_patch(rng: Random) -> Untyped:
    """A patch of the Deployment: of any of its lists and maps, with any directive that kubectl may send."""
    spec: Untyped = {}
    names = ["web", "side", "new", "other"]
    if rng.random() < 0.8:
        spec["containers"] = [_any_container(rng, name) for name in _some(rng, names)]
    if rng.random() < 0.3:
        spec["$setElementOrder/containers"] = _named(_some(rng, names, least=1))
    if rng.random() < 0.5:
        spec["volumes"] = [_any_volume(rng, name) for name in _some(rng, ["conf", "tmp", "more"])]
    if rng.random() < 0.3:
        choices = [None, {"zone": None}, {"$patch": "replace", "q": "r"}, {"x": "y"}, {"$patch": "delete"}]
        spec["nodeSelector"] = rng.choice(choices)
    if rng.random() < 0.3:
        spec["tolerations"] = rng.choice([None, [], [{"key": "b", "operator": "Exists"}]])
    if rng.random() < 0.4:
        spec["imagePullSecrets"] = [_or_gone(rng, name) for name in _some(rng, ["one", "two", "three"])]
    metadata: Untyped = {}
    if rng.random() < 0.4:
        metadata[f"{rng.choice(['', '$deleteFromPrimitiveList/'])}finalizers"] = _some(rng, ["x.io/a", "x.io/c"])
    if rng.random() < 0.2:
        metadata["$setElementOrder/finalizers"] = _some(rng, ["x.io/a", "x.io/b", "x.io/c"], least=3)
    strategy = rng.choice([{}, {"$retainKeys": ["type"], "type": "Recreate"}, {"rollingUpdate": {"maxSurge": 2}}])
    return {"metadata": metadata, "spec": {"strategy": strategy, "template": {"spec": spec}}}


def _any_container(rng: Random, name: str) -> Untyped:
    container = _or_gone(rng, name)
    if name in ("new", "other") and "$patch" not in container:
        container["image"] = rng.choice(["i:1", "i:2"])
    if rng.random() < 0.3:
        container["args"] = rng.choice([[], ["a"], None])
    if rng.random() < 0.6:
        values = {"name": "", "value": rng.choice(["x", "", None])}
        container["env"] = [rng.choice([{**values, "name": one}, _or_gone(rng, one)]) for one in _some(rng, [*"ABCDE"])]
    if rng.random() < 0.3:
        container["$setElementOrder/env"] = _named(_some(rng, [*"ABCDE"], least=3))
    if rng.random() < 0.4:
        container["ports"] = [{"containerPort": port} for port in _some(rng, [80, 81, 82])]
    if rng.random() < 0.3:
        replaced = {"$patch": "replace", "requests": {"cpu": "1"}}
        container["resources"] = rng.choice([{"limits": {"cpu": 0.5}}, {"limits": {"cpu": None}}, None, replaced, {}])
    return container


def _any_volume(rng: Random, name: str) -> Untyped:
    secret = {"name": name, "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}
    folder = {"name": name, "emptyDir": rng.choice([{}, {"medium": "Memory"}, None])}
    files = {"name": name, "configMap": {"name": "z", "items": rng.choice([None, [], [{"key": "a", "path": "b"}]])}}
    return rng.choice([{"name": name, "$patch": "delete"}, secret, folder, files])


def _or_gone(rng: Random, name: str) -> Untyped:
    return {"name": name, "$patch": "delete"} if rng.random() < 0.25 else {"name": name}


def _named(names: list[Any]) -> list[Untyped]:
    return [{"name": name} for name in names]


def _some(rng: Random, items: list[Any], least: int = 0) -> list[Any]:
    return rng.sample(items, rng.randint(least, len(items)))


def looked_up(value: Any, path: str) -> Any:
    """What is at a path; None where there is nothing."""
    for step in path.split("."):
        name, _, each = step.partition("[]")
        value = value.get(name) if isinstance(value, dict) else None
        if step.endswith("[]") or each:
            rest = path.partition("[].")[2]
            return [looked_up(item, rest) for item in value or []]
    return value

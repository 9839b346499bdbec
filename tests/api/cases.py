"""Cases for a real API server, made from a schema: for each demand, an object just inside it and one just outside.

An object is a minimal valid one of its kind with one place filled in. Where a place makes sense only beside others
(`numberOfClusters` needs PickN), BESIDE says so. What CEL rules demand is in `rule_cases`.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from api.rows import children
from kedge.api.oam.rollout_rules import DURATION, NUMBER

Node = dict[str, Any]
Object = dict[str, Any]

MOMENT = "2025-03-12T06:15:21Z"
NONSENSE = "Nonsense"
NOTHING_SAID = object()
MAP_KEY = "k"

TEXTS: Mapping[str, tuple[str, str]] = {
    r"^[a-z0-9]+$": ("canary", "Canary"),
    r"^(100|[1-9][0-9]?)%$": ("50%", "0%"),
    r"^((100|[0-9]{1,2})%|[0-9]+)$": ("50%", "101%"),
    r"^((100|[1-9][0-9]?)%|[1-9][0-9]*)$": ("50%", "0%"),
    r"^(?:(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:s|m|h))+$": ("1.5h", "0"),
    r"^(?:0|(?:(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:s|m|h))+)$": ("0", "1d"),
    r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$": ("TestedAsOK", "tested as OK"),
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$": ("example.com/Ready", "not ready"),
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$": ("1.5Gi", "1.5GB"),
    DURATION: ("5m", "soon"),
    NUMBER: ("0.5", "half"),
}
"""For each pattern in use: a text that fits, and one that does not."""

FORMATS: Mapping[str, tuple[Any, Any]] = {
    "byte": ("eA==", "not of base 64"),
    "date-time": (MOMENT, NONSENSE),
    "int32": (1, 2**31),
    "int64": (2**31, 2**63),
}

SIMPLEST: Mapping[str, Any] = {
    r"\.tolerations\[\]": {"key": "x"},
    r"StageTasks\[\]\.type": "Approval",
    r"\.metricsRange": {"min": 1},
    r"\.templateRef": {"name": "x"},
}
"""By the end of a path: the simplest value, where the schema alone does not tell."""

WHOLE_OBJECT: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
UNKNOWN_FIELDS: Object = {"data": {"a": [1, {"b": "c"}]}, "unheard-of": True}

BESIDE: Mapping[str, tuple[str, Object]] = {
    r"spec\.policy\.clusterNames.*": ("spec.policy", {"placementType": "PickFixed"}),
    r"spec\.policy\.(numberOfClusters|topologySpreadConstraints.*)": (
        "spec.policy",
        {"placementType": "PickN", "numberOfClusters": 1},
    ),
    r"\.reportBackStrategy\.destination": (".reportBackStrategy", {"type": "Mirror"}),
    r"\.afterStageTasks\[\]\.waitTime": (".afterStageTasks[]", {"type": "TimedWait"}),
    r"\.deleteStageTasks\[\]\.waitTime": (".deleteStageTasks[]", {"type": "TimedWait"}),
}
"""By the end of the path that is filled in: which object on the way needs what else."""

NEVER_ACCEPTED: Mapping[str, str] = {
    r"\.beforeStageTasks\[\]\.waitTime": "a task before a stage takes no waitTime",
    r"\.templateRef\.kind": "kind can only be MetricTemplate",
}
"""Places whose every value a rule refuses: there a good value is refused by the rule, and by it alone."""


SILENT = {
    *("description", "type", "properties", "items", "additionalProperties", "anyOf"),
    *("x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-map-type"),
}
"""Words that shape a schema; every other word demands something."""


class Case(NamedTuple):
    """One thing a schema demands: an object that satisfies it, and one that does not."""

    path: str
    word: str
    accepted: Object
    refused: Object | None
    """None where nothing is refused: a default, fields of any name, and what stands for an object in a status."""
    rule: str = ""
    """The rule that refuses the accepted object nevertheless."""


def cases(root: Node) -> Iterator[Case]:
    """Every case of a whole object's schema, CEL rules apart."""
    for path, node in [("", root), *walk(root)]:
        for name in node.get("required", ()):
            yield _required(root, f"{path}.{name}".lstrip("."), node["properties"][name])
        for word in node:
            if word == "default":
                yield _default(root, path, node)
            elif word == "x-kubernetes-preserve-unknown-fields":
                yield Case(path, word, placed(root, path, sample(path, node) | UNKNOWN_FIELDS), None)
            elif (pair := inside_and_outside(path, node, word)) is not None:
                inside, outside = (placed(root, path, value) for value in pair)
                refused = None if _is_unchecked(path, word) else outside
                yield Case(path, word, inside, refused, _matching(NEVER_ACCEPTED, path) or "")


def walk(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Every node below one, those in conditions and label selectors too."""
    for below, child, _ in children(node, path):
        yield below, child
        yield from walk(child, below)


def demands(root: Node) -> set[tuple[str, str, str]]:
    """All that a schema demands: where, in which word, and what. A required field and a rule count one by one."""
    found = set()
    for path, node in [("", root), *walk(root)]:
        for word, demand in node.items():
            if word == "required":
                found |= {(f"{path}.{name}".lstrip("."), word, "") for name in demand}
            elif word == "x-kubernetes-validations":
                found |= {(path, word, f"{rule['rule']}: {rule['message']}") for rule in demand}
            elif word not in SILENT:
                found.add((path, word, repr(demand)))
    return found


def inside_and_outside(path: str, node: Node, word: str) -> tuple[Any, Any] | None:
    """A value just inside what a word demands, and one just outside; None if it demands nothing."""
    limit = node[word]
    match word:
        case "minimum":
            return limit, limit - 1
        case "maximum":
            return limit, limit + 1
        case "minLength":
            return "x" * limit, "x" * (limit - 1)
        case "maxLength":
            return _long(node, limit), _long(node, limit + 1)
        case "minItems":
            return [sample(f"{path}[]", node["items"])] * limit, [sample(f"{path}[]", node["items"])] * (limit - 1)
        case "maxItems":
            return [sample(f"{path}[]", node["items"])] * limit, [sample(f"{path}[]", node["items"])] * (limit + 1)
        case "x-kubernetes-list-map-keys":
            return [sample(f"{path}[]", node["items"])], [sample(f"{path}[]", node["items"])] * 2
        case "x-kubernetes-embedded-resource":
            return WHOLE_OBJECT, {key: value for key, value in WHOLE_OBJECT.items() if key != "apiVersion"}
        case "pattern":
            return TEXTS[limit]
        case "format":
            return FORMATS[limit]
        case "enum":
            return sample(path, node), NONSENSE
    return None


def _long(node: Node, length: int) -> str:
    """A text of this length that fits the node's pattern: a number has zeros wherever they say nothing."""
    zeros = f"{'0' * 30}.{'0' * 30}"
    fitting = ("x" * length, "5m".rjust(length, "0"), f"{zeros}e00", f"{zeros}e+00")
    return next(text for text in fitting if len(text) == length and re.search(node.get("pattern", ""), text))


def _is_unchecked(path: str, word: str) -> bool:
    """Servers look into objects inside objects only when the whole is written, not its status."""
    return word == "x-kubernetes-embedded-resource" and path.startswith("status.")


def _required(root: Node, path: str, node: Node) -> Case:
    whole = placed(root, path, sample(path, node))
    without = None if "default" in node else removed(whole, path)
    return Case(path, "required", whole, without, _matching(NEVER_ACCEPTED, path) or "")


def _default(root: Node, path: str, node: Node) -> Case:
    return Case(path, "default", removed(placed(root, path, node["default"]), path), None)


def sample(path: str, node: Node) -> Any:
    """The simplest valid value of a node."""
    if (simplest := _matching(SIMPLEST, path)) is not None:
        return copy.deepcopy(simplest)
    if "x-kubernetes-embedded-resource" in node:
        return copy.deepcopy(WHOLE_OBJECT)
    if "enum" in node:
        return node["enum"][0]
    if "pattern" in node:
        return TEXTS[node["pattern"]][0]
    match node.get("type"):
        case "object" if "additionalProperties" in node:
            return {MAP_KEY: sample(f"{path}{{}}", node["additionalProperties"])}
        case "object":
            return {name: sample(f"{path}.{name}", node["properties"][name]) for name in node.get("required", ())}
        case "array":
            return [sample(f"{path}[]", node["items"])] * node.get("minItems", 0)
        case "integer":
            return node.get("minimum", 1)
        case "boolean":
            return True
    return FORMATS[node["format"]][0] if "format" in node else "x"


def placed(root: Node, path: str, value: Any) -> Object:
    """A minimal object with a value at a path, and beside it what that needs."""
    whole, node, here = sample("", root), root, ""
    holder: Any = {"": whole}
    key: Any = ""
    parent, beside = _matching(BESIDE, path) or ("nowhere", {})
    for step in steps(path):
        if here.endswith(parent):
            holder[key] |= beside
        holder, node = holder[key], below(node, step)
        here = joined(here, step)
        key = {"[]": 0, "{}": MAP_KEY}.get(step, step)
        _fill(holder, key, here, node)
    holder[key] = value
    return dict(whole)


def _fill(holder: Any, key: Any, here: str, node: Node) -> None:
    if isinstance(holder, list):
        holder[:] = holder or [sample(here, node)]
    else:
        holder.setdefault(key, sample(here, node))


def steps(path: str) -> list[str]:
    """A path's parts: `a.b[].c{}` is a, b, [], c, {}."""
    return re.findall(r"[^.\[\]{}]+|\[\]|\{\}", path)


def joined(path: str, step: str) -> str:
    return f"{path}{step}" if step in ("[]", "{}") else f"{path}.{step}".lstrip(".")


def below(node: Node, step: str) -> Node:
    """The node one step down."""
    inner = {"[]": "items", "{}": "additionalProperties"}.get(step)
    found: Node = node[inner] if inner else node["properties"][step]
    return found


def found_at(whole: Any, path: str) -> Any:
    """What an object made by `placed` has at a path; None if nothing."""
    for step in steps(path):
        key: Any = {"[]": 0, "{}": MAP_KEY}.get(step, step)
        whole = whole[key] if step == "[]" else whole.get(key)
    return whole


def comes_back(root: Node, case: Case) -> Any:
    """What an accepted object is to have at the place of a case; NOTHING_SAID where the case is not about that."""
    if case.word == "default":
        return next(node["default"] for place, node in walk(root) if place == case.path)
    if case.word == "x-kubernetes-preserve-unknown-fields":
        return found_at(case.accepted, case.path)
    return NOTHING_SAID


def removed(whole: Object, path: str) -> Object:
    """A copy of an object without what is at a path."""
    *way, last = steps(path)
    return dict(_without(whole, way, last))


def _without(value: Any, way: list[str], last: str) -> Any:
    if not way:
        return {key: item for key, item in value.items() if key != last}
    step, rest = way[0], way[1:]
    if step == "[]":
        return [_without(value[0], rest, last), *value[1:]]
    key = MAP_KEY if step == "{}" else step
    return {**value, key: _without(value[key], rest, last)}


def server_path(path: str) -> str:
    """A path as an API server names it in its errors."""
    return path.replace("[]", "[0]").replace("{}", f".{MAP_KEY}")


def _matching(table: Mapping[str, Any], path: str) -> Any:
    return next((found for place, found in table.items() if re.search(f"{place}$", path)), None)

"""Cases for CEL rules: what each accepts and refuses, at the node it stands on.

A value of an object node completes the node's minimal form; a `Move` goes from one such value to another.
"""

from typing import Any, NamedTuple

from api.cases import Node, Object, placed, sample


class Move(NamedTuple):
    """An update."""

    old: Any
    new: Any


class RuleCase(NamedTuple):
    """What a rule, known by its message, accepts and refuses."""

    message: str
    accepted: tuple[Any, ...]
    refused: tuple[Any, ...]
    kinds: str = ""
    """Part of the kind's name, where a message stands in kinds of different shape."""


def selector(**fields: str | Object) -> Object:
    return {"group": "apps", "version": "v1", "kind": "Deployment", **fields}


def namespace(**fields: str | Object) -> Object:
    return {"group": "", "version": "v1", "kind": "Namespace", **fields}


def select(*selectors: Object, **fields: Any) -> Object:
    return {"resourceSelectors": list(selectors), **fields}


def named(length: int) -> Object:
    return {"metadata": {"name": "x" * length}}


PICKY = "NamespaceWithResourceSelectors"
OTHERS_NAMESPACE = {"group": "example.com", "version": "v1", "kind": "Namespace"}
SPREAD = {"topologySpreadConstraints": [{"topologyKey": "x"}]}
TOLERATE = {"tolerations": [{"key": "x"}]}
N = {"placementType": "PickN", "numberOfClusters": 0}
FIXED = {"placementType": "PickFixed"}
ALL = {"placementType": "PickAll"}
APPROVAL = {"type": "Approval"}
WAIT = {"type": "TimedWait", "waitTime": "1h"}

RULES = (
    RuleCase("must be longer than 0", ("", "1ms", "1h30m"), ("0s", "0h0m")),
    RuleCase("a metric has to have a range: set min, max or both", ({"min": 1}, {"max": "1.5"}), ({"min": None},)),
    RuleCase(
        "min is more than max: nothing is in this range",
        ({"min": 1, "max": 1}, {"min": 1, "max": 2}, {"min": "2", "max": 1}),
        ({"min": 2, "max": 1},),
    ),
    RuleCase("a metric has to refer to a MetricTemplate by its name", ({"name": "x"},), ({"name": ""},)),
    RuleCase(
        "kind can only be MetricTemplate",
        ({"name": "x"}, {"name": "x", "kind": ""}, {"name": "x", "kind": "MetricTemplate"}),
        ({"name": "x", "kind": "Secret"},),
    ),
    RuleCase("metadata.name max length is 63", (named(63),), (named(64),)),
    RuleCase("metadata.name max length is 127", (named(64), named(127)), (named(128),)),
    RuleCase(
        "placement type is immutable",
        (Move(N, {**N, "numberOfClusters": 5}), Move({}, ALL)),
        (Move(ALL, N), Move({}, FIXED), Move(FIXED, {})),
    ),
    RuleCase(
        "affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is "
        "PickFixed: remove them",
        ({**FIXED, "clusterNames": ["a"]}, FIXED, {**FIXED, "tolerations": [], "topologySpreadConstraints": []}),
        ({**FIXED, "affinity": {}}, {**FIXED, "numberOfClusters": 1}, {**FIXED, **SPREAD}, {**FIXED, **TOLERATE}),
    ),
    RuleCase(
        "clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll: "
        "remove them",
        (ALL, {**ALL, "affinity": {}, **TOLERATE}, {**ALL, "clusterNames": []}),
        ({"clusterNames": ["a"]}, {**ALL, "numberOfClusters": 1}, {**ALL, **SPREAD}),
    ),
    RuleCase(
        "clusterNames cannot be set and numberOfClusters must be set when placementType is PickN",
        (N, {**N, "affinity": {}, **SPREAD, **TOLERATE}),
        ({"placementType": "PickN"}, {**N, "clusterNames": ["a"]}),
    ),
    RuleCase(
        "value must be empty when operator is Exists",
        ([{"operator": "Exists"}, {"operator": "Exists", "key": "x", "value": ""}, {"key": "x", "value": "y"}],),
        ([{"key": "x"}, {"operator": "Exists", "key": "x", "value": "y"}],),
    ),
    RuleCase(
        "operator must be Exists when key is empty",
        ([{"operator": "Exists"}, {"operator": "Exists", "key": ""}, {"key": "x"}],),
        ([{}], [{"key": "x"}, {"operator": "Equal", "key": "", "value": "y"}]),
    ),
    RuleCase(
        "name and labelSelector are mutually exclusive in a resource selector",
        ([selector(name="a"), selector(labelSelector={}), selector(), selector(name="", labelSelector={})],),
        ([selector(), selector(name="a", labelSelector={})],),
    ),
    RuleCase(
        "only one namespace selector with NamespaceWithResourceSelectors mode is allowed",
        (
            select(namespace(name="a", selectionScope=PICKY), selector()),
            select(selector(selectionScope=PICKY), selector(selectionScope=PICKY)),
        ),
        (select(namespace(name="a", selectionScope=PICKY), namespace(name="b", selectionScope=PICKY)),),
    ),
    RuleCase(
        "namespace selector with NamespaceWithResourceSelectors mode must select by name",
        (select(namespace(name="a", selectionScope=PICKY)), select(namespace())),
        (
            select(namespace(selectionScope=PICKY)),
            select(namespace(name="", selectionScope=PICKY)),
            select(namespace(labelSelector={}, selectionScope=PICKY)),
        ),
    ),
    RuleCase(
        "when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed",
        (
            select(namespace(name="a", selectionScope=PICKY), selector(), OTHERS_NAMESPACE),
            select(namespace(), namespace()),
        ),
        (select(namespace(name="a", selectionScope=PICKY), selector(), namespace(name="b")),),
    ),
    RuleCase(
        "policy cannot be removed once set",
        (Move({}, {"policy": {}}), Move({"policy": {}}, {"policy": TOLERATE}), Move({}, {"revisionHistoryLimit": 5})),
        (Move({"policy": {}}, {}),),
    ),
    RuleCase(
        "statusReportingScope is immutable",
        (
            Move(
                select(namespace(), statusReportingScope="NamespaceAccessible"),
                select(namespace(name="a"), statusReportingScope="NamespaceAccessible"),
            ),
            Move({}, {"statusReportingScope": "ClusterScopeOnly"}),
        ),
        (
            Move(select(namespace()), select(namespace(), statusReportingScope="NamespaceAccessible")),
            Move(select(namespace(), statusReportingScope="NamespaceAccessible"), select(namespace())),
        ),
    ),
    RuleCase(
        "when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is "
        "required",
        (
            select(namespace(), selector(), OTHERS_NAMESPACE, statusReportingScope="NamespaceAccessible"),
            select(namespace(), namespace()),
        ),
        (
            select(selector(), statusReportingScope="NamespaceAccessible"),
            select(namespace(name="a"), namespace(name="b"), statusReportingScope="NamespaceAccessible"),
        ),
    ),
    RuleCase(
        "cannot change rollout strategy type from 'External' to other types: what an outside run has moved cannot be "
        "handed back",
        (Move("RollingUpdate", "External"), Move("External", "External")),
        (Move("External", "RollingUpdate"),),
    ),
    RuleCase(
        "destination must be set when type is Mirror, and only then",
        ({"type": "Mirror", "destination": "WorkAPI"}, {"type": "Disabled"}, {}),
        ({"type": "Mirror"}, {"type": "Disabled", "destination": "WorkAPI"}),
    ),
    RuleCase(
        "AfterStageTaskType is Approval, waitTime is not allowed",
        ([APPROVAL, WAIT],),
        ([WAIT, {"type": "Approval", "waitTime": "1h"}],),
    ),
    RuleCase(
        "AfterStageTaskType is TimedWait, waitTime is required",
        ([WAIT, APPROVAL],),
        ([APPROVAL, {"type": "TimedWait"}],),
    ),
    RuleCase("a task before a stage takes no waitTime", ([APPROVAL],), ([{"type": "Approval", "waitTime": "1h"}],)),
    RuleCase("BeforeStageTaskType cannot be TimedWait", ([APPROVAL],), ([{"type": "TimedWait"}],)),
    RuleCase("maxConcurrency must be at least 1, or a percentage", (1, 100, "1%"), (0, -1)),
    RuleCase("maxFailures must be 0 or more, or a percentage", (0, 100, "1%", "3"), (-1,)),
    RuleCase(
        "invalid state transition: cannot transition from Initialize to Stop",
        (Move({"state": "Initialize"}, {"state": "Run"}), Move({"state": "Run"}, {"state": "Stop"})),
        (Move({"state": "Initialize"}, {"state": "Stop"}),),
    ),
    RuleCase(
        "invalid state transition: cannot transition from Run to Initialize",
        (Move({"state": "Run"}, {"state": "Stop"}), Move({"state": "Initialize"}, {"state": "Initialize"})),
        (Move({"state": "Run"}, {"state": "Initialize"}),),
    ),
    RuleCase(
        "invalid state transition: cannot transition from Stop to Initialize",
        (Move({"state": "Stop"}, {"state": "Run"}), Move({"state": "Stop"}, {"state": "Stop"})),
        (Move({"state": "Stop"}, {"state": "Initialize"}),),
    ),
    RuleCase("placementName is immutable", (Move("a", "a"),), (Move("a", "b"),)),
    RuleCase("stagedRolloutStrategyName is immutable", (Move("a", "a"),), (Move("a", "b"),)),
    RuleCase("resourceSnapshotIndex is immutable", (Move("1", "1"),), (Move("1", "2"),)),
    RuleCase(
        "The spec field is immutable",
        (Move({"placementName": "a"}, {"placementName": "a"}),),
        (
            Move({"placementName": "a"}, {"placementName": "b"}),
            Move({"stagedRolloutStrategyName": "a"}, {"stagedRolloutStrategyName": "b"}),
            Move({"resourceSnapshotIndex": "1"}, {"resourceSnapshotIndex": "2"}),
        ),
        kinds="UpdateRun",
    ),
    RuleCase(
        "The spec field is immutable",
        (Move({"targetStage": "a"}, {"targetStage": "a"}),),
        (
            Move({"targetStage": "a"}, {"targetStage": "b"}),
            Move({"parentStageRollout": "a"}, {"parentStageRollout": "b"}),
        ),
        kinds="ApprovalRequest",
    ),
)


def rule_case(kind: str, message: str) -> RuleCase:
    """The case of a rule."""
    found = [case for case in RULES if case.message == message and case.kinds in kind]
    assert len(found) == 1, f"{kind}: {len(found)} cases for the rule {message!r}"
    return found[0]


def completed(root: Node, path: str, node: Node, value: Any) -> Object:
    """An object with a value at a rule's node."""
    if not isinstance(value, dict):
        return placed(root, path, value)
    whole = sample(path, node) | value
    return whole if path == "" else placed(root, path, whole)

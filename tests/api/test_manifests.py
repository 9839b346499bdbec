"""What the seeds' users write, read into the types and written again without losing anything."""

from typing import Any

import msgspec
import pytest

from api.cases import found_at, walk
from api.manifests import APPROVAL, MANIFESTS, STATUS, Object
from kedge.api.crd import Defined, crd
from kedge.api.crds import KINDS
from kedge.api.dialect import Dialect
from kedge.api.meta import Value
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.rollout import RolloutStrategyType
from kedge.api.staged import ApprovalStatus, ClusterStagedUpdateRun
from kedge.api.wire import read_plain

EVERY = [*MANIFESTS, STATUS]


def kind_of(manifest: Object) -> type[Defined]:
    return next(kind for kind in KINDS if kind.resource.kind == manifest["kind"])


def written(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


@pytest.mark.parametrize("manifest", EVERY, ids=lambda manifest: manifest["metadata"]["name"])
def test_a_manifest_comes_through_whole(manifest: Object) -> None:
    kind = kind_of(manifest)
    content = {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind")}
    assert with_defaults(kind, written(read_plain(manifest, kind))) == with_defaults(kind, content)


def with_defaults(kind: type[Defined], value: Any) -> Any:
    """An object as a server would complete it."""
    stored = next(version for version in crd(kind, Dialect.seed)["spec"]["versions"] if version["storage"])
    return completed(stored["schema"]["openAPIV3Schema"], value)


def completed(node: Object, value: Any) -> Any:
    if isinstance(value, list) and "items" in node:
        return [completed(node["items"], item) for item in value]
    if not isinstance(value, dict) or "properties" not in node:
        return value
    defaults = {name: child["default"] for name, child in node["properties"].items() if "default" in child}
    return defaults | {name: completed(node["properties"].get(name, {}), item) for name, item in value.items()}


def placement(name: str) -> ClusterResourcePlacement:
    manifest = next(manifest for manifest in MANIFESTS if manifest["metadata"]["name"] == name)
    return read_plain(manifest, ClusterResourcePlacement)


def test_numbers_and_percentages_are_kept_as_written() -> None:
    strategy = placement("crp-example").spec.strategy
    assert strategy is not None
    assert strategy.rolling_update is not None
    assert (strategy.rolling_update.max_unavailable, strategy.rolling_update.max_surge) == (1, "50%")
    assert strategy.rolling_update.unavailable_period_seconds == 60


def test_an_external_strategy_has_no_rolling_update() -> None:
    strategy = placement("crp-staged-update-sample").spec.strategy
    assert strategy is not None
    assert strategy.type is RolloutStrategyType.external
    assert strategy.rolling_update is None


def test_an_empty_list_that_is_required_is_written() -> None:
    run = read_plain(STATUS, ClusterStagedUpdateRun)
    assert run.status.deletion_stage_status is not None
    assert written(run)["status"]["deletionStageStatus"]["clusters"] == []


def test_a_wait_of_1h_stays_1h() -> None:
    path = "status.stagedUpdateStrategySnapshot.stages[].afterStageTasks[].waitTime"
    assert found_at(written(read_plain(STATUS, ClusterStagedUpdateRun)), path) == "1h"


def test_an_approval_in_plain_words_is_read() -> None:
    status = read_plain(APPROVAL, ApprovalStatus)
    assert status.conditions[0].reason == "tested as OK"
    assert written(status) == APPROVAL


SELECTORS: Object = {"resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace"}]}


@pytest.mark.parametrize(
    "spec",
    [
        SELECTORS,
        SELECTORS | {"strategy": {}},
        SELECTORS | {"strategy": {"rollingUpdate": {}}},
        SELECTORS | {"policy": {}},
        SELECTORS | {"policy": {"affinity": {}}},
    ],
    ids=str,
)
def test_absent_and_empty_stay_different_things(spec: Object) -> None:
    assert written(read_plain({"spec": spec}, ClusterResourcePlacement))["spec"] == spec


def test_every_kind_is_frozen() -> None:
    for kind in KINDS:
        assert issubclass(kind, Value)
        assert kind.__struct_config__.frozen


def test_walking_a_schema_reaches_every_field_of_the_longest_manifest() -> None:
    stored = next(version for version in crd(ClusterStagedUpdateRun)["spec"]["versions"] if version["storage"])
    known = {path for path, _ in walk(stored["schema"]["openAPIV3Schema"])}
    assert set(paths(STATUS["status"], "status")) <= known


def paths(value: Any, path: str) -> list[str]:
    if isinstance(value, list):
        return [path, *(below for item in value for below in paths(item, f"{path}[]"))]
    if isinstance(value, dict) and not path.endswith("matchLabels"):
        return [path, *(below for name, item in value.items() for below in paths(item, f"{path}.{name}"))]
    return [path]

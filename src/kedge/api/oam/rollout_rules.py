"""Rollout rules: what the CRDs of rollouts demand beyond types, in CEL.

`kedge.plan.batching.spec_rules` has all rules. Here is what an API server can check by itself: of a plan, and of
a change of it. The rules of a change stand on the whole object: only there are the target, the plan and the status
visible together.
"""

from __future__ import annotations

from typing import Final

from kedge.api.markers import Rule
from kedge.api.oam.rollout_states import ABANDONED, BEFORE_BATCHES, RollingState

MAX_BATCHES: Final = 100
"""How many batches a rollout may have. All lists are bounded so that the API server can tell what their rules cost."""
SHARE: Final = "^((100|[0-9]{1,2})%|[0-9]+)$"
"""A number or a percentage, if it is written as text."""
NUMBER: Final = r"^[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?$"
"""A number, if it is written as text."""
DURATION: Final = r"^([+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)?$"
URL: Final = r"^https?://([^\s/?#@]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(:[0-9]{1,5})?([/?#]\S*)?$"
ENDED: Final = "a successful or failed rollout cannot be modified without changing the target or the source"

NOT_NEGATIVE: Final = (Rule("type(self) == string || self >= 0", "must be at least 0, or a percentage"),)
SOME_TIME: Final = (Rule("self == '' || duration(self) > duration('0s')", "must be longer than 0"),)
RANGE_RULES: Final = (
    Rule("has(self.min) || has(self.max)", "a metric has to have a range: set min, max or both"),
    Rule(
        "!has(self.min) || !has(self.max) || type(self.min) != int || type(self.max) != int || self.min <= self.max",
        "min is more than max: nothing is in this range",
    ),
)
TEMPLATE_RULES: Final = (
    Rule("has(self.name) && self.name != ''", "a metric has to refer to a MetricTemplate by its name"),
    Rule("!has(self.kind) || self.kind in ['', 'MetricTemplate']", "kind can only be MetricTemplate"),
)
BATCH_HOOK_RULES: Final = (
    Rule(
        "self.type in ['pre-batch-rollout', 'post-batch-rollout']",
        "the webhook of a batch can only be pre-batch-rollout or post-batch-rollout",
    ),
)
BATCH_RULES: Final = (
    Rule("!has(self.replicas) || self.?podList.orValue([]).size() == 0", "replicas and podList cannot both be set"),
)
_EMPTY: Final = "(!has({0}.replicas) && (!has({0}.podList) || {0}.podList.size() == 0))"
BATCHES_RULES: Final = (
    Rule(
        f"self.size() == 0 || self.filter(b, {_EMPTY.format('b')}).size()"
        f" == ({_EMPTY.format('self[self.size() - 1]')} ? 1 : 0)",
        "replicas or podList has to be set: only the last batch can be without, and takes what is left",
    ),
)
TRAFFIC_RULES: Final = (
    Rule("has(self.routeRef.name) && self.routeRef.name != ''", "the name of the route has to be given"),
    Rule(
        "self.routeRef.?kind.orValue('') in ['', {'gateway-api': 'HTTPRoute', 'istio': 'VirtualService',"
        " 'nginx': 'Ingress'}[self.provider]]",
        "the route has to be an HTTPRoute for gateway-api, a VirtualService for istio, an Ingress for nginx",
    ),
    Rule("self.sourceService != self.targetService", "sourceService and targetService cannot be the same"),
)
PLAN_RULES: Final = (
    Rule(
        "!has(self.batchPartition) || !has(self.lastBatchToRollout) || self.batchPartition == self.lastBatchToRollout",
        "batchPartition and lastBatchToRollout mean the same, but differ: remove one of them",
    ),
    Rule(
        "!has(self.numBatches) || !has(self.rolloutBatches) || self.numBatches == self.rolloutBatches.size()",
        "the num batches does not match the rollout batch size",
    ),
)

_NEW: Final = "self.spec.rolloutPlan"
_OLD: Final = "oldSelf.spec.rolloutPlan"
_STATE: Final = "oldSelf.?status.rollingState.orValue('')"
_ENDED: Final = f"{_STATE} in ['rolloutSucceed', 'rolloutFailed']"
_UNDER_WAY: Final = [
    *(str(one) for one in RollingState if one not in (*BEFORE_BATCHES, RollingState.failed)),
    ABANDONED,
]
_MOVED: Final = "oldSelf.?status.currentBatch.orValue(0) > 0 || oldSelf.?status.upgradedReplicas.orValue(0) > 0"
_BEGUN: Final = (
    f"oldSelf.?status.batches.orValue([]).size() > 0 || {_STATE} in {_UNDER_WAY}"
    f" || ({_STATE} == 'rolloutFailed' && ({_MOVED}))"
)
"""Before that no batch is fixed, and what the plan says can be mended. KubeVela's status has no batches."""
_ALL: Final = 2**31
_INDEXES: Final = f"[{', '.join(map(str, range(MAX_BATCHES)))}]"
"""CEL of the older servers cannot count by itself."""


def _same(field: str, otherwise: str) -> str:
    """Whether a field is as it was; absent is as good as its default.

    Not in the shorter form with `orValue`: of that the server cannot tell how long it is, and so what it costs.
    """
    now, before = (f"(has({who}.{field}) ? {who}.{field} : {otherwise})" for who in ("self", "oldSelf"))
    return f"{now} == {before}"


def _last(plan: str) -> str:
    """The partition as a number: none is above all."""
    return f"{plan}.?batchPartition.orValue({plan}.?lastBatchToRollout.orValue({_ALL}))"


def update_rules(target: str, *others: tuple[str, str]) -> tuple[Rule, ...]:
    """The rules of a change: `target` names the field of the spec with the target, which is required.

    `others` are fields of the spec that say what is rolled out beside it, each with its default in CEL.
    """
    moved = f"self.spec.{target} != oldSelf.spec.{target}"
    beside = " && ".join(_same(f"spec.{name}", otherwise) for name, otherwise in others) or "true"
    size = _same("spec.rolloutPlan.targetSize", "-1")
    moved = f"{moved} || !({_BEGUN})"
    free = f"{moved} || {_ENDED}"
    return (
        Rule(f"{moved} || !({_ENDED}) || !({beside}) || !({size}) || {_NEW} == {_OLD}", ENDED),
        Rule(f"{free} || ({beside})", f"only {target} can say what is rolled out next while the rollout is under way"),
        Rule(
            f"{free} || {_last(_NEW)} >= {_last(_OLD)}",
            "the BatchPartition field can only increase unless the target ref has changed",
        ),
        Rule(f"{free} || {_batches_stay()}", "RolloutBatches can only change the part after the BatchPartition field"),
        Rule(
            f"{free} || ({_rest_stays()})",
            "rolloutStrategy, targetSize, numBatches, rolloutWebhooks and traffic cannot be changed while the rollout"
            " is under way unless the target changes",
        ),
    )


def _batches_stay() -> str:
    """Batches up to the partition stay, and the last one, which takes what is left, does not become another one."""
    old, new = (f"{plan}.?rolloutBatches.orValue([])" for plan in (_OLD, _NEW))
    end = f"{_last(_OLD)}, oldSelf.?status.currentBatch.orValue(0)"
    beyond = f"i > {_last(_OLD)} && i > oldSelf.?status.currentBatch.orValue(0)"
    gone = f"i >= {old}.size() && i >= {new}.size()"
    kept = f"i < {old}.size() && i < {new}.size() && {old}[i] == {new}[i]"
    last = f"({old}.size() > [{end}].max() + 1) == ({new}.size() > [{end}].max() + 1)"
    return f"({last} && {_INDEXES}.all(i, ({beyond}) || ({gone}) || ({kept})))"


def _rest_stays() -> str:
    plan = "spec.rolloutPlan"
    fields = (("rolloutStrategy", "''"), ("targetSize", "-1"))
    kept = [_same(f"{plan}.{name}", otherwise) for name, otherwise in fields]
    kept += [
        f"has({_NEW}.{name}) == has({_OLD}.{name}) && (!has({_NEW}.{name}) || {_NEW}.{name} == {_OLD}.{name})"
        for name in ("rolloutWebhooks", "traffic")
    ]
    # With batches it only repeats how many there are.
    listed = f"(has({_NEW}.rolloutBatches) && has({_OLD}.rolloutBatches))"
    return " && ".join((*kept, f"({listed} || {_same(f'{plan}.numBatches', '-1')})"))

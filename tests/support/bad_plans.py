"""Bad rollout plans: one row each, for the pure rules, the CRDs and the webhook."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

PLAN: Final = "spec.rolloutPlan"
BATCH: Final = f"{PLAN}.rolloutBatches[0]"
URL: Final = "https://example.com/check"
HOOK: Final = {"type": "initialize-rollout", "name": "check", "url": URL}
BATCH_HOOK: Final = {"type": "pre-batch-rollout", "name": "check", "url": URL}
METRIC: Final = {"name": "errors", "metricsRange": {"max": 5}, "templateRef": {"name": "errors"}}
TRAFFIC: Final = {
    "provider": "istio",
    "routeRef": {"kind": "VirtualService", "name": "web"},
    "sourceService": "web",
    "targetService": "web-canary",
}


class BadPlan(NamedTuple):
    """A plan that is refused: where, why, and by whom."""

    plan: dict[str, Any]
    path: str
    message: str
    """A part of it."""
    crd: bool = True
    """Whether the CRD refuses it, too: its schema or a rule in CEL."""
    readable: bool = True
    """Whether it is a plan at all: what is not has no typed form, and only the CRD and the webhook see it."""


def _hook(**said: Any) -> dict[str, Any]:
    return {"rolloutWebhooks": [HOOK | said]}


def _batch(**said: Any) -> dict[str, Any]:
    return {"rolloutBatches": [{"replicas": 1} | said]}


def _metric(**said: Any) -> dict[str, Any]:
    return {"canaryMetric": [METRIC | said]}


def _traffic(**said: Any) -> dict[str, Any]:
    return {"traffic": TRAFFIC | said}


_HOOKS = f"{PLAN}.rolloutWebhooks"
_METRICS = f"{PLAN}.canaryMetric"
_NO_URL = "is not a URL such as"
_NO_SHARE = "is neither a number of at least 0 nor a percentage from '0%' to '100%'"

BAD_PLANS: Final[dict[str, BadPlan]] = {
    "a size below 0": BadPlan({"targetSize": -1}, f"{PLAN}.targetSize", "cannot be less than 0"),
    "no time for a batch": BadPlan(
        {"progressDeadlineSeconds": 0}, f"{PLAN}.progressDeadlineSeconds", "has to be at least 1"
    ),
    "a partition below 0": BadPlan(
        {"batchPartition": -1}, f"{PLAN}.batchPartition", "the rollout plan has to be positive"
    ),
    "the same by its other name": BadPlan(
        {"lastBatchToRollout": -1}, f"{PLAN}.lastBatchToRollout", "the rollout plan has to be positive"
    ),
    "two partitions": BadPlan(
        {"batchPartition": 1, "lastBatchToRollout": 2}, f"{PLAN}.lastBatchToRollout", "remove one of them"
    ),
    "no batches": BadPlan({"rolloutBatches": []}, f"{PLAN}.rolloutBatches", "the rollout has to have batches"),
    "too many batches": BadPlan(
        {"rolloutBatches": [{"replicas": 1}] * 101}, f"{PLAN}.rolloutBatches", "at most 100 batches"
    ),
    "0 batches": BadPlan({"numBatches": 0}, f"{PLAN}.numBatches", "can only be from 1 to 100"),
    "fewer than 0 batches": BadPlan({"numBatches": -3}, f"{PLAN}.numBatches", "can only be from 1 to 100"),
    "a thousand batches": BadPlan({"numBatches": 1000}, f"{PLAN}.numBatches", "can only be from 1 to 100"),
    "a number of batches that there are not": BadPlan(
        {"numBatches": 2, "rolloutBatches": [{"replicas": 1}]},
        f"{PLAN}.numBatches",
        "the num batches does not match the rollout batch size",
    ),
    "an unknown strategy": BadPlan(
        {"rolloutStrategy": "Sideways"}, f"{PLAN}.rolloutStrategy", "Sideways", readable=False
    ),
    "a text for a number": BadPlan({"targetSize": "three"}, f"{PLAN}.targetSize", "integer", readable=False),
    "fewer than 0 pods": BadPlan(_batch(replicas=-1), f"{BATCH}.replicas", _NO_SHARE),
    "pods in words": BadPlan(_batch(replicas="two"), f"{BATCH}.replicas", _NO_SHARE),
    "a percentage below 0": BadPlan(_batch(replicas="-5%"), f"{BATCH}.replicas", _NO_SHARE),
    "a percentage above 100": BadPlan(_batch(replicas="140%"), f"{BATCH}.replicas", _NO_SHARE),
    "a part of a percent": BadPlan(_batch(replicas="2.5%"), f"{BATCH}.replicas", _NO_SHARE),
    "an empty percentage": BadPlan(_batch(replicas=""), f"{BATCH}.replicas", _NO_SHARE),
    "a list for a number": BadPlan(_batch(replicas=[1]), f"{BATCH}.replicas", "array", readable=False),
    "unavailable pods below 0": BadPlan(_batch(maxUnavailable=-1), f"{BATCH}.maxUnavailable", _NO_SHARE),
    "unavailable pods in words": BadPlan(_batch(maxUnavailable="some"), f"{BATCH}.maxUnavailable", _NO_SHARE),
    "unavailable pods above 100%": BadPlan(_batch(maxUnavailable="101%"), f"{BATCH}.maxUnavailable", _NO_SHARE),
    "an interval below 0": BadPlan(_batch(instanceInterval=-1), f"{BATCH}.instanceInterval", "cannot be less than 0"),
    "a number and pods": BadPlan(_batch(podList=["a"]), BATCH, "replicas and podList cannot both be set"),
    "a batch of nothing": BadPlan(
        {"rolloutBatches": [{}, {"replicas": 1}]}, BATCH, "replicas or podList has to be set"
    ),
    "a pod twice in a batch": BadPlan(
        {"rolloutBatches": [{"podList": ["a", "a"]}]}, f"{BATCH}.podList[1]", "the pod a is listed twice"
    ),
    "a pod in two batches": BadPlan(
        {"rolloutBatches": [{"podList": ["a"]}, {"podList": ["b", "a"]}]},
        f"{PLAN}.rolloutBatches[1].podList[1]",
        "the pod a is listed twice",
        crd=False,
    ),
    "a pod without a name": BadPlan(
        {"rolloutBatches": [{"podList": [""]}]}, f"{BATCH}.podList[0]", "a pod has to have a name"
    ),
    "a hook of an unknown type": BadPlan(_hook(type="later"), f"{_HOOKS}[0].type", "later", readable=False),
    "a hook without a name": BadPlan(_hook(name=""), f"{_HOOKS}[0].name", "a webhook has to have a name"),
    "a method that does not ask": BadPlan(
        _hook(method="DELETE"), f"{_HOOKS}[0].method", "the method can only be POST, GET or PUT, not 'DELETE'"
    ),
    "a method in small letters": BadPlan(_hook(method="post"), f"{_HOOKS}[0].method", "POST, GET or PUT"),
    "a hook without a URL": BadPlan(_hook(url=""), f"{_HOOKS}[0].url", _NO_URL),
    "a URL without a host": BadPlan(_hook(url="https:///check"), f"{_HOOKS}[0].url", _NO_URL),
    "a URL without a scheme": BadPlan(_hook(url="example.com/check"), f"{_HOOKS}[0].url", _NO_URL),
    "a URL of a file": BadPlan(_hook(url="file:///etc/passwd"), f"{_HOOKS}[0].url", _NO_URL),
    "a URL with a blank": BadPlan(_hook(url="https://example.com/a b"), f"{_HOOKS}[0].url", _NO_URL),
    "a URL with a second line": BadPlan(_hook(url="https://example.com/\nHost: x"), f"{_HOOKS}[0].url", _NO_URL),
    "a URL with a port in words": BadPlan(_hook(url="https://example.com:web/"), f"{_HOOKS}[0].url", _NO_URL),
    "a URL with too high a port": BadPlan(
        _hook(url="https://example.com:70000/"), f"{_HOOKS}[0].url", _NO_URL, crd=False
    ),
    "a hook with no time": BadPlan(
        _hook(timeoutSeconds=0), f"{_HOOKS}[0].timeoutSeconds", "a call takes from 1 to 300 seconds"
    ),
    "a hook with too much time": BadPlan(
        _hook(timeoutSeconds=301), f"{_HOOKS}[0].timeoutSeconds", "a call takes from 1 to 300 seconds"
    ),
    "a status that is none": BadPlan(
        _hook(expectedStatus=[200, 99]), f"{_HOOKS}[0].expectedStatus[1]", "99 is not an HTTP status"
    ),
    "two hooks with one name": BadPlan(
        {"rolloutWebhooks": [HOOK, HOOK]}, f"{_HOOKS}[1].name", "another webhook of the type initialize-rollout"
    ),
    "a hook of a batch for the whole rollout": BadPlan(
        _batch(batchRolloutWebhooks=[HOOK]),
        f"{BATCH}.batchRolloutWebhooks[0].type",
        "can only be pre-batch-rollout or post-batch-rollout, not initialize-rollout",
    ),
    "a hook of a batch with a bad method": BadPlan(
        _batch(batchRolloutWebhooks=[BATCH_HOOK | {"method": "HEAD"}]),
        f"{BATCH}.batchRolloutWebhooks[0].method",
        "POST, GET or PUT",
    ),
    "a hook of a batch with the name of another": BadPlan(
        {"rolloutWebhooks": [BATCH_HOOK], "rolloutBatches": [{"replicas": 1, "batchRolloutWebhooks": [BATCH_HOOK]}]},
        f"{BATCH}.batchRolloutWebhooks[0].name",
        "another webhook of the type pre-batch-rollout has the name 'check', too",
        crd=False,
    ),
    "a metric without a name": BadPlan(_metric(name=""), f"{_METRICS}[0].name", "a metric has to have a name"),
    "two metrics with one name": BadPlan(
        {"canaryMetric": [METRIC, METRIC]}, f"{_METRICS}[1].name", "another metric has the name 'errors', too"
    ),
    "a metric of a batch with the name of another": BadPlan(
        {"canaryMetric": [METRIC], "rolloutBatches": [{"replicas": 1, "canaryMetric": [METRIC]}]},
        f"{BATCH}.canaryMetric[0].name",
        "another metric has the name 'errors', too",
        crd=False,
    ),
    "an interval without a unit": BadPlan(_metric(interval="5"), f"{_METRICS}[0].interval", "'5' is not a duration"),
    "an interval in words": BadPlan(_metric(interval="soon"), f"{_METRICS}[0].interval", "'soon' is not a duration"),
    "an interval of no time": BadPlan(_metric(interval="0s"), f"{_METRICS}[0].interval", "is no time at all"),
    "an interval that goes back": BadPlan(_metric(interval="-1m"), f"{_METRICS}[0].interval", "is no time at all"),
    "a metric without a range": BadPlan(
        {"canaryMetric": [{"name": "errors", "templateRef": {"name": "errors"}}]},
        f"{_METRICS}[0].metricsRange",
        "a metric has to have a range",
    ),
    "a range without ends": BadPlan(
        _metric(metricsRange={}), f"{_METRICS}[0].metricsRange", "a metric has to have a range"
    ),
    "a range of nothing": BadPlan(
        _metric(metricsRange={"min": 2, "max": 1}), f"{_METRICS}[0].metricsRange", "min 2 is more than max 1"
    ),
    "a range of nothing, as text": BadPlan(
        _metric(metricsRange={"min": "0.99", "max": "0.5"}),
        f"{_METRICS}[0].metricsRange",
        "min 0.99 is more than max 0.5",
        crd=False,
    ),
    "an end that is no number": BadPlan(
        _metric(metricsRange={"max": "few"}), f"{_METRICS}[0].metricsRange.max", "'few' is not a number"
    ),
    "an end in percent": BadPlan(
        _metric(metricsRange={"min": "99%"}), f"{_METRICS}[0].metricsRange.min", "'99%' is not a number"
    ),
    "an end without end": BadPlan(
        _metric(metricsRange={"max": "Infinity"}), f"{_METRICS}[0].metricsRange.max", "'Infinity' is not a number"
    ),
    "a metric without a template": BadPlan(
        {"canaryMetric": [{"name": "errors", "metricsRange": {"max": 5}}]},
        f"{_METRICS}[0].templateRef",
        "a metric has to refer to a MetricTemplate by its name",
    ),
    "a template without a name": BadPlan(
        _metric(templateRef={"kind": "MetricTemplate"}), f"{_METRICS}[0].templateRef", "by its name"
    ),
    "a template of another kind": BadPlan(
        _metric(templateRef={"kind": "Secret", "name": "a"}),
        f"{_METRICS}[0].templateRef.kind",
        "can only be MetricTemplate, not Secret",
    ),
    "no measurements": BadPlan(_metric(count=0), f"{_METRICS}[0].count", "at least 1 measurement"),
    "fewer failures than none": BadPlan(
        _metric(failureLimit=-1), f"{_METRICS}[0].failureLimit", "cannot be less than 0"
    ),
    "fewer unanswered ones than none": BadPlan(
        _metric(inconclusiveLimit=-1), f"{_METRICS}[0].inconclusiveLimit", "cannot be less than 0"
    ),
    "an unknown provider": BadPlan(_traffic(provider="linkerd"), f"{PLAN}.traffic.provider", "linkerd", readable=False),
    "a route without a name": BadPlan(
        _traffic(routeRef={}), f"{PLAN}.traffic.routeRef.name", "the name of the VirtualService has to be given"
    ),
    "a route of another provider": BadPlan(
        _traffic(routeRef={"kind": "Ingress", "name": "web"}),
        f"{PLAN}.traffic.routeRef.kind",
        "the provider istio takes a VirtualService, not Ingress",
    ),
    "no source service": BadPlan(
        _traffic(sourceService=""), f"{PLAN}.traffic.sourceService", "the name of a Service has to be given"
    ),
    "no target service": BadPlan(
        _traffic(targetService=""), f"{PLAN}.traffic.targetService", "the name of a Service has to be given"
    ),
    "one service": BadPlan(
        _traffic(targetService="web"), f"{PLAN}.traffic.targetService", "cannot be the same as sourceService"
    ),
    "no weight": BadPlan(_traffic(maxWeight=0), f"{PLAN}.traffic.maxWeight", "can only be from 1 to 100"),
    "more weight than all": BadPlan(_traffic(maxWeight=101), f"{PLAN}.traffic.maxWeight", "can only be from 1 to 100"),
}  # fmt: skip

GOOD_PLANS: Final[dict[str, dict[str, Any]]] = {
    "nothing at all": {},
    "a number of batches": {"numBatches": 5, "targetSize": 0},
    "batches": {"rolloutBatches": [{"replicas": "20%"}, {"replicas": 2}, {"replicas": "100%"}]},
    "both, and they agree": {"numBatches": 2, "rolloutBatches": [{"replicas": "3"}, {}]},
    "a partition beyond the last batch": {"batchPartition": 9, "rolloutBatches": [{"replicas": 1}]},
    "both names of the partition, and they agree": {"batchPartition": 0, "lastBatchToRollout": 0},
    "pods": {"rolloutBatches": [{"podList": ["a"], "instanceInterval": 0}, {"podList": ["b"], "maxUnavailable": "9%"}]},
    "hooks of every type": {
        "rolloutWebhooks": [
            {"type": kind, "name": "check", "url": URL, "method": method, "timeoutSeconds": 300}
            for kind, method in (
                ("initialize-rollout", "GET"),
                ("pre-batch-rollout", "POST"),
                ("post-batch-rollout", "PUT"),
                ("finalize-rollout", ""),
            )
        ]
    },
    "the same hook with every batch": {
        "rolloutBatches": [
            {"replicas": 1, "batchRolloutWebhooks": [BATCH_HOOK | {"url": "http://10.0.0.1:8080", "method": "GET"}]},
            {"batchRolloutWebhooks": [BATCH_HOOK | {"url": "http://[::1]/a?b=c#d", "expectedStatus": [200, 204]}]},
        ]
    },
    "metrics": {
        "canaryMetric": [
            METRIC | {"interval": "1m30s", "metricsRange": {"min": "0.5", "max": "1e3"}, "count": 3, "failureLimit": 0},
            METRIC | {"name": "latency", "metricsRange": {"min": -5}, "templateRef": {"name": "a", "kind": ""}},
        ]
    },
    "traffic": _traffic(maxWeight=50, routeRef={"name": "web"}),
    "everything at once": {
        "rolloutStrategy": "DecreaseFirst",
        "targetSize": 3,
        "paused": True,
        "revertOnDelete": True,
        "progressDeadlineSeconds": 600,
        "onDeadline": "Hold",
        "onAutoscaler": "TakeOver",
    },
}  # fmt: skip

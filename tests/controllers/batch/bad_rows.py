"""Bad rows: what users, webhooks, metrics and routes do wrong to a rollout of 4 pods from v1 to v2 in two batches.

Each row says who refuses it, where the rollout then stands and with which sentence, what has moved until then, and what
lets it go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from controllers.batch.batch_bed import SHOP, Bed
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment
from kedge.api.crd import crd
from kedge.api.metric_template import MetricTemplate
from kedge.api.oam.rollouts import RolloutTrait
from kedge.kube.connect.outbound import Answer, Call, HttpOutbound, Outbound, OutboundFailed
from kedge.kube.patches import MergePatch
from support.routes import HTTP_ROUTES, INGRESSES, canary, http_route, http_route_definition

TEMPLATES: Final = crd(MetricTemplate)
HTTP_ROUTE_DEFINITION: Final = http_route_definition("v1")
HOOK: Final = "https://hooks.example.com/ask"
LOCATING, VERIFYING, INITIALIZING = "locatingTargetApp", "verifyingSpec", "initializing"
ROLLING, FAILED, SUCCEEDED = "rollingInBatches", "rolloutFailed", "rolloutSucceed"
NOTHING: Final = {"v1": 4, "v2": 0}
ONE_BATCH: Final = {"v1": 2, "v2": 2}
ALL: Final = {"v1": 0, "v2": 4}
Do: TypeAlias = Callable[[Bed], Awaitable[None]]


class World:
    """Answers for everybody outside; `answers` may be changed."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        found = self.answers(call)
        return await found if isinstance(found, Awaitable) else found

    async def close(self) -> None:
        """There is nothing to close."""


Answers: TypeAlias = Callable[[Call], Answer | Awaitable[Answer]]


class Row(Struct, frozen=True):
    """Something wrong, and what comes of it."""

    state: str
    """Where the rollout stands then."""
    said: str
    """A part of what its status says."""
    plan: Mapping[str, Any] = {}
    spec: Mapping[str, Any] = {}
    """Beside the plan."""
    refused: str = ""
    """A part of what an API server says that has the CRDs; empty if it lets it in."""
    webhook: str = ""
    """A part of what the webhook says; empty if it lets it in."""
    world: Answers | None = None
    outbound: Callable[[], Outbound] | None = None
    first: Do | None = None
    """What is done before the rollout is created."""
    moved: Mapping[str, int] = msgspec.field(default_factory=lambda: NOTHING)
    """How large both are while it stands there."""
    mend: Mapping[str, Any] | Do | None = None
    """What corrects it: an edit of the spec, or something else that is done."""
    better: Answers | None = None
    """What corrects it: these answers."""
    name: str = "web"
    ends: str = SUCCEEDED
    """Where it gets to when it is corrected."""

    @property
    def is_mended(self) -> bool:
        return self.mend is not None or self.better is not None


# What is done wrong, and corrected


def plan(**said: Any) -> dict[str, Any]:
    """An edit of the plan."""
    return {"rolloutPlan": said}


def ref(name: str = "v2", kind: str = "Deployment", version: str = "apps/v1", **more: str) -> dict[str, str]:
    return {"apiVersion": version, "kind": kind, "name": name, **more}


GOOD: Final = {"targetRef": {**ref(), "namespace": None, "uid": None}, "sourceRef": [ref("v1")]}
TWO: Final = plan(rolloutBatches=None, numBatches=2)


def batches(*sizes: Any) -> dict[str, Any]:
    return {"numBatches": None, "rolloutBatches": [{"replicas": one} if one is not None else {} for one in sizes]}


async def _owned(here: Bed) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "App", "name": "shop", "uid": "u", "controller": True}
    await here.client.patch(Deployment, "v2", MergePatch({"metadata": {"ownerReferences": [owner]}}), SHOP)


async def _free(here: Bed) -> None:
    await here.client.patch(Deployment, "v2", MergePatch({"metadata": {"ownerReferences": None}}), SHOP)
    await retry(here)


async def retry(here: Bed) -> None:
    """Ask a failed rollout to begin again."""
    change = MergePatch({"metadata": {"annotations": {"kedge.dev/retry": "1"}}})
    await here.client.patch(RolloutTrait, "web", change, SHOP)


async def _claimed(here: Bed) -> None:
    await here.trait("v2", "v1", name="first", numBatches=2, paused=True)
    await here.until_state("rollingInBatches", name="first")


async def _unclaimed(here: Bed) -> None:
    await here.client.delete(RolloutTrait, "first", SHOP)


async def _v9(here: Bed) -> None:
    await here.deployment("v9", 0, "app:9")


def hook(url: str = HOOK, **said: Any) -> dict[str, Any]:
    return {"rolloutWebhooks": [{"type": "pre-batch-rollout", "name": "ask", "url": url, **said}]}


def metric(**said: Any) -> dict[str, Any]:
    wanted = {"name": "success", "interval": "10s", "metricsRange": {"min": "0.99"}, "templateRef": template("success")}
    return {"canaryMetric": [{**wanted, **said}]}


def template(name: str) -> dict[str, str]:
    return {"apiVersion": "flagger.app/v1beta1", "kind": "MetricTemplate", "name": name}


async def measured(here: Bed, **provider: Any) -> None:
    """With a MetricTemplate."""
    await here.client.create(CustomResourceDefinition, TEMPLATES)
    await asyncio.sleep(2)
    given = {"type": "prometheus", "address": "http://prometheus.example.com:9090", **provider}
    query = given.pop("query", 'rate(requests{app="{{ target }}"}[{{ interval }}])')
    spec = {"provider": given, "query": query}
    await here.client.create(MetricTemplate, {"metadata": {"name": "success", "namespace": SHOP}, "spec": spec})


def measuring(**provider: Any) -> Do:
    async def do(here: Bed) -> None:
        await measured(here, **provider)

    return do


def template_with(change: Mapping[str, Any]) -> Do:
    async def do(here: Bed) -> None:
        await here.client.patch(MetricTemplate, "success", MergePatch({"spec": change}), SHOP)

    return do


def vector(*values: str) -> Answers:
    result = [{"metric": {"pod": str(number)}, "value": [0, value]} for number, value in enumerate(values)]
    return says({"status": "success", "data": {"resultType": "vector", "result": result}})


def says(body: Any, status: int = 200) -> Answers:
    return lambda _: Answer(status, msgspec.json.encode(body))


async def _never(_: Call) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


def _nobody(call: Call) -> Answer:
    raise OutboundFailed(f"{call}: nobody is there")


def _yes(_: Call) -> Answer:
    return Answer(200)


GOOD_METRIC: Final = vector("1")


def traffic(provider: str, name: str, **said: Any) -> dict[str, Any]:
    services = {"sourceService": "web-v1", "targetService": "web-v2"}
    return {"traffic": {"provider": provider, "routeRef": {"name": name}, **services, **said}}


async def _gateway(here: Bed) -> None:
    await here.client.create(CustomResourceDefinition, HTTP_ROUTE_DEFINITION)
    await asyncio.sleep(2)


def _route(**changes: Any) -> dict[str, Any]:
    made = http_route(SHOP)
    made["metadata"]["annotations"] = {"kedge.dev/assume-accepted": "true"}
    return {**made, "spec": {**made["spec"], **changes}}


async def _with_gateway(here: Bed) -> None:
    await _gateway(here)
    await here.client.create(HTTP_ROUTES, _route())


async def _with_ambiguous_route(here: Bed) -> None:
    await _gateway(here)
    backends = [{"name": name, "weight": 1} for name in ("web-v1", "web-v2", "web-v2")]
    await here.client.create(HTTP_ROUTES, _route(rules=[{"backendRefs": backends}]))


async def _with_foreign_route(here: Bed) -> None:
    await _gateway(here)
    await here.client.create(HTTP_ROUTES, _route(rules=[{"backendRefs": [{"name": "docs", "weight": 1}]}]))


async def _with_dead_route(here: Bed) -> None:
    await _gateway(here)
    backends = [{"name": name, "weight": 0} for name in ("web-v1", "web-v2")]
    await here.client.create(HTTP_ROUTES, _route(rules=[{"backendRefs": backends}]))


async def _good_route(here: Bed) -> None:
    await here.client.patch(HTTP_ROUTES, "web", MergePatch({"spec": http_route(SHOP)["spec"]}), SHOP)


async def _canary(here: Bed) -> None:
    await here.client.create(INGRESSES, canary(SHOP))


async def _plain_ingress(here: Bed) -> None:
    made = canary(SHOP)
    made["metadata"]["annotations"] = {}
    await here.client.create(INGRESSES, made)


async def _canary_again(here: Bed) -> None:
    annotations = canary(SHOP)["metadata"]["annotations"]
    await here.client.patch(INGRESSES, "web-canary", MergePatch({"metadata": {"annotations": annotations}}), SHOP)


# The rows

P = "spec.rolloutPlan"
HELD_METRIC = "0 of 1 metric passed: success (0 of 1 measurement in range; last: "


def _held(plan_: dict[str, Any], said: str, mend: dict[str, Any], **more: Any) -> Row:
    """A plan that admission refuses, and the controller holds."""
    return Row(VERIFYING, said, plan_, mend={"rolloutPlan": mend}, webhook=said, **more)


PLANS: Final[dict[str, Row]] = {
    "a size below 0": _held(
        {"targetSize": -1}, f"{P}.targetSize: cannot be less than 0", {"targetSize": None}, refused="greater than or"
    ),
    "no batch at all": _held(
        {"numBatches": 0}, f"{P}.numBatches: can only be from 1 to 100", {"numBatches": 2}, refused="greater than or"
    ),
    "too many batches": _held(
        {"numBatches": 101}, f"{P}.numBatches: can only be from 1 to 100", {"numBatches": 2}, refused="less than or"
    ),
    "an empty list of batches": _held(
        {"numBatches": None, "rolloutBatches": []},
        f"{P}.rolloutBatches: the rollout has to have batches",
        TWO["rolloutPlan"],
        refused="should have at least 1",
    ),
    "as many batches as are not listed": _held(
        {**batches(2, 2), "numBatches": 3},
        f"{P}.numBatches: the num batches does not match the rollout batch size",
        {"numBatches": 2},
        refused="the num batches does not match the rollout batch size",
    ),
    "a partition below 0": _held(
        {"batchPartition": -1},
        f"{P}.batchPartition: the rollout plan has to be positive",
        {"batchPartition": 1},
        refused="greater than or",
    ),
    "two partitions": _held(
        {"batchPartition": 0, "lastBatchToRollout": 1},
        "is 1, but batchPartition, which means the same, is 0: remove one of them",
        {"batchPartition": None},
        refused="mean the same, but differ",
    ),
    "more than 100 percent": _held(
        batches("150%", 2),
        "'150%' is neither a number of at least 0 nor a percentage",
        batches(2, 2),
        refused="should match",
    ),
    "less than nothing": _held(
        batches("-10%", 2),
        "'-10%' is neither a number of at least 0 nor a percentage",
        batches(2, 2),
        refused="should match",
    ),
    "a word": _held(
        batches("some", 2),
        "'some' is neither a number of at least 0 nor a percentage",
        batches(2, 2),
        refused="should match",
    ),
    "a negative batch": _held(
        batches(-3, 2),
        "-3 is neither a number of at least 0 nor a percentage",
        batches(2, 2),
        refused="must be at least 0",
    ),
    "an empty batch before the last": _held(
        batches(None, 4),
        "replicas or podList has to be set: only the last batch can be without",
        batches(2, 2),
        refused="only the last batch can be without",
    ),
    "a number and pods": _held(
        {"numBatches": None, "rolloutBatches": [{"replicas": 2, "podList": ["a", "b"]}, {"replicas": 2}]},
        "replicas and podList cannot both be set",
        batches(2, 2),
        refused="replicas and podList cannot both be set",
    ),
    "one pod twice": _held(
        {"numBatches": None, "rolloutBatches": [{"podList": ["a"]}, {"podList": ["a"]}, {}]},
        "the pod a is listed twice",
        batches(2, 2),
    ),
    "no time for a batch": _held(
        {"progressDeadlineSeconds": 0},
        f"{P}.progressDeadlineSeconds: has to be at least 1",
        {"progressDeadlineSeconds": 60},
        refused="greater than or",
    ),
    "a negative interval": _held(
        {"numBatches": None, "rolloutBatches": [{"replicas": 2, "instanceInterval": -1}, {}]},
        "instanceInterval: cannot be less than 0",
        batches(2, 2),
        refused="greater than or",
    ),
    "batches of too many pods": Row(
        FAILED, "the last batch has 3 pods, but 1 are left to it", batches(3, 3), mend={"rolloutPlan": batches(3, 1)}
    ),
    "batches of too few pods": Row(
        FAILED, "the last batch has 1 pod, but 3 are left to it", batches(1, 1), mend={"rolloutPlan": batches(1, 3)}
    ),
    "nothing for the last batch": Row(
        FAILED,
        "the batches before the last one take 4 of 4 pods, which leaves none to the last one",
        batches(4, None),
        mend={"rolloutPlan": batches(3, None)},
    ),
    "a smaller target": Row(
        FAILED, "target size `2` less than source size `4`", {"targetSize": 2}, mend=plan(targetSize=None)
    ),
    "a partition behind the last batch": Row(SUCCEEDED, "", {"batchPartition": 99}, moved=ALL),
}

REFERENCES: Final[dict[str, Row]] = {
    "a target that is missing": Row(
        VERIFYING, "Deployment shop/v9 does not exist", spec={"targetRef": ref("v9")}, mend=_v9
    ),
    "a source that is missing": Row(
        LOCATING, "Deployment shop/v9 does not exist", spec={"sourceRef": [ref("v9")]}, mend=GOOD
    ),
    "a pod": Row(
        FAILED, "the workload kind `Pod` is not supported", spec={"targetRef": ref("web", "Pod", "v1")}, mend=GOOD
    ),
    "a Secret": Row(
        FAILED, "the workload kind `Secret` is not supported", spec={"targetRef": ref("x", "Secret", "v1")}, mend=GOOD
    ),
    "something of the whole cluster": Row(
        FAILED, "the workload kind `Node` is not supported", spec={"targetRef": ref("x", "Node", "v1")}, mend=GOOD
    ),
    "a Job": Row(
        FAILED, "the workload kind `Job` is not supported", spec={"targetRef": ref("x", "Job", "batch/v1")}, mend=GOOD
    ),
    "itself": Row(
        FAILED,
        "the workload kind `RolloutTrait` is not supported",
        spec={"targetRef": ref("web", "RolloutTrait", "standard.oam.dev/v1alpha1")},
        mend=GOOD,
    ),
    "a kind that nobody knows": Row(
        FAILED,
        "the workload kind `Widget` is not supported",
        spec={"targetRef": ref("web", "Widget", "example.com/v1")},
        mend=GOOD,
    ),
    "a version that is not served": Row(
        VERIFYING, "Deployment shop/v2 does not exist", spec={"targetRef": ref(version="apps/v1beta1")}, mend=GOOD
    ),
    "a target of another namespace": Row(
        LOCATING,
        "spec.targetRef.namespace: can only be the namespace of the rollout, shop",
        spec={"targetRef": ref(namespace="bank")},
        webhook="spec.targetRef.namespace: can only be the namespace of the rollout",
        mend=GOOD,
    ),
    "a source of another namespace": Row(
        LOCATING,
        "spec.sourceRef[0].namespace: can only be the namespace of the rollout, shop",
        spec={"sourceRef": [ref("v1", namespace="bank")]},
        webhook="spec.sourceRef[0].namespace: can only be the namespace of the rollout",
        mend=GOOD,
    ),
    "a source of another kind": Row(
        FAILED,
        "the source StatefulSet shop/v1 and the target Deployment shop/v2 are not of the same kind",
        spec={"sourceRef": [ref("v1", "StatefulSet")]},
        mend=GOOD,
    ),
    "the target as the source": Row(
        FAILED,
        "a Deployment cannot be changed in place batch by batch: it has no partition",
        spec={"sourceRef": [ref("v2")]},
        mend=GOOD,
    ),
    "no name": Row(
        LOCATING,
        "spec.targetRef.name: cannot be empty",
        spec={"targetRef": ref("")},
        webhook="spec.targetRef.name: cannot be empty",
        mend=GOOD,
    ),
    "no kind": Row(
        LOCATING,
        "spec.targetRef.kind: cannot be empty",
        spec={"targetRef": ref(kind="")},
        webhook="spec.targetRef.kind: cannot be empty",
        mend=GOOD,
    ),
    **{
        f"the name {name}": Row(
            LOCATING,
            f"spec.targetRef.name: {name!r} is not the name of an object",
            spec={"targetRef": ref(name)},
            webhook=f"spec.targetRef.name: {name!r} is not the name of an object",
            mend=GOOD,
        )
        for name in ("../v2", "..", "v2/status", "v2?x=1", "V2", "v 2", "vé", "-v2")
    },
    "a kind with a subresource": Row(
        LOCATING,
        "spec.targetRef.kind: 'Deployment/scale' is not the kind of an object",
        spec={"targetRef": ref(kind="Deployment/scale")},
        webhook="is not the kind of an object",
        mend=GOOD,
    ),
    "a version with a path": Row(
        LOCATING,
        "spec.targetRef.apiVersion: 'apps/v1/x' is not the API version of an object",
        spec={"targetRef": ref(version="apps/v1/x")},
        webhook="is not the API version of an object",
        mend=GOOD,
    ),
    "another object of this name": Row(
        FAILED,
        "and the one with the uid of-before is meant",
        spec={"targetRef": ref(uid="of-before")},
        mend=GOOD,
    ),
    "another source of this name": Row(
        FAILED,
        "and the one with the uid of-before is meant",
        spec={"sourceRef": [ref("v1", uid="of-before")]},
        mend=GOOD,
    ),
    "a workload that somebody else controls": Row(
        FAILED, "Deployment shop/v2 has a controller owner: App shop", first=_owned, mend=_free
    ),
    "a workload that another rollout moves": Row(
        VERIFYING, "is being moved by another rollout: RolloutTrait/first/", first=_claimed, mend=_unclaimed
    ),
    "the longest name": Row(SUCCEEDED, "", name="a" * 253, moved=ALL),
    "a name with dots": Row(SUCCEEDED, "", name="web.v2.shop", moved=ALL),
}

HOOKS: Final[dict[str, Row]] = {
    "no URL": _held(
        hook("hooks.example.com"),
        f"{P}.rolloutWebhooks[0].url: 'hooks.example.com' is not a URL such as",
        hook(),
        refused="should match",
        world=_yes,
    ),
    "another scheme": _held(
        hook("file:///etc/passwd"), "is not a URL such as", hook(), refused="should match", world=_yes
    ),
    "no host": _held(hook("http://"), "is not a URL such as", hook(), refused="should match", world=_yes),
    "a status that is none": _held(
        hook(expectedStatus=[42]),
        "42 is not an HTTP status, from 100 to 599",
        hook(expectedStatus=[200]),
        refused="greater than or",
        world=_yes,
    ),
    "more patience than there is": _held(
        hook(timeoutSeconds=3600), "a call takes from 1 to 300 seconds", hook(), refused="less than or", world=_yes
    ),
    "it never answers": Row(ROLLING, "no answer within 10 s", hook(), world=_never, better=_yes),
    "nobody is there": Row(ROLLING, "nobody is there", hook(), world=_nobody, better=_yes),
    "it answers with an error": Row(ROLLING, "answered with 500", hook(), world=lambda _: Answer(500), better=_yes),
    "it answers with a status that is none": Row(
        ROLLING, "answered with 999", hook(), world=lambda _: Answer(999), better=_yes
    ),
    "it leads elsewhere": Row(
        FAILED, "webhook ask refused before batch 0: it answered with 302", hook(), world=lambda _: Answer(302)
    ),
    "it says no at length": Row(
        FAILED, "it answered with 403: xxxxxxx", hook(), world=lambda _: Answer(403, b"x" * 5_000_000)
    ),
    "it answers what is no text": Row(
        FAILED, "it answered with 403", hook(), world=lambda _: Answer(403, bytes(range(256)) * 20)
    ),
    **{
        f"the metadata service {host}": Row(
            ROLLING,
            "a link-local address or one of a metadata service: nobody is called there",
            hook(f"http://{host}/latest/meta-data/iam"),
            outbound=lambda: HttpOutbound(environ={}),
        )
        for host in ("169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]")
    },
    "an odd name": Row(
        ROLLING,
        "webhook {ask} %s \N{SNOWMAN} has failed",
        hook(name="{ask} %s \N{SNOWMAN}"),
        world=_nobody,
        better=_yes,
    ),
}

METRICS: Final[dict[str, Row]] = {
    name: Row(ROLLING, HELD_METRIC + said, metric(), world=world, first=measured, moved=ONE_BATCH, better=GOOD_METRIC)
    for name, (world, said) in {
        "no number": (vector("NaN"), "'NaN' is not a number"),
        "infinity": (vector("+Inf"), "'+Inf' is not a number"),
        "a word": (vector("plenty"), "'plenty' is not a number"),
        "a digit of another script": (
            vector("\N{ARABIC-INDIC DIGIT ONE}"),
            "'\N{ARABIC-INDIC DIGIT ONE}' is not a number",
        ),
        "nothing": (vector(), "the query found nothing"),
        "several series": (vector("1", "1"), "the query found 2 series, and has to find one"),
        "a matrix": (
            says({"status": "success", "data": {"resultType": "matrix", "result": []}}),
            "the query gives a matrix: it has to give one number",
        ),
        "a number that is none": (
            says({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [0, 1]}]}}),
            "its answer is not one of Prometheus",
        ),
        "no JSON": (lambda _: Answer(200, b"<html>"), "its answer is not one of Prometheus"),
        "endless brackets": (lambda _: Answer(200, b"[" * 1_000_000), "its answer is not one of Prometheus"),
        "much of nothing": (lambda _: Answer(200, b" " * 5_000_000), "its answer is not one of Prometheus"),
        "an error": (says({"status": "error", "error": "boom"}, 500), "answered with 500: boom"),
        "success with an error": (says({"status": "error", "error": "boom"}), "answered with 200: boom"),
        "a warning": (
            says(
                {
                    "status": "success",
                    "warnings": ["partial"],
                    "data": {"resultType": "vector", "result": [{"metric": {}, "value": [0, "1"]}]},
                }
            ),
            "it warned: partial",
        ),
        "a redirect": (lambda _: Answer(302), "answered with 302: redirects are not followed"),
        "it never answers": (_never, "no answer within 10 s"),
        "nobody is there": (_nobody, "nobody is there"),
    }.items()
} | {
    "no template": Row(
        ROLLING,
        "MetricTemplate shop/success: it does not exist",
        metric(),
        world=GOOD_METRIC,
        moved=ONE_BATCH,
        mend=measured,
    ),
    "a provider that nobody knows": Row(
        ROLLING,
        "MetricTemplate shop/success: ",
        metric(),
        world=GOOD_METRIC,
        first=measuring(type="datadog"),
        moved=ONE_BATCH,
        mend=template_with({"provider": {"type": "prometheus"}}),
    ),
    "a template without an address": Row(
        ROLLING,
        "MetricTemplate shop/success: ",
        metric(),
        world=GOOD_METRIC,
        first=measuring(address="http://[::1"),
        moved=ONE_BATCH,
        mend=template_with({"provider": {"address": "http://prometheus.example.com"}}),
    ),
    "a template that asks for what nobody knows": Row(
        ROLLING,
        "MetricTemplate shop/success: ",
        metric(),
        world=GOOD_METRIC,
        first=measuring(query="{{ variables.secret }}"),
        moved=ONE_BATCH,
        mend=template_with({"query": "up"}),
    ),
    "a Secret that is missing": Row(
        ROLLING,
        "MetricTemplate shop/success: Secret nowhere: it does not exist",
        metric(),
        world=GOOD_METRIC,
        first=measuring(secretRef={"name": "nowhere"}),
        moved=ONE_BATCH,
        mend=template_with({"provider": {"secretRef": None}}),
    ),
    "a metadata service": Row(
        ROLLING,
        "a link-local address or one of a metadata service: nobody is called there",
        metric(),
        outbound=lambda: HttpOutbound(environ={}),
        first=measuring(address="http://169.254.169.254"),
        moved=ONE_BATCH,
    ),
    "nothing, where that is a failure": Row(
        FAILED,
        "metric success: 1 measurement failed, and 0 may: the query found nothing",
        metric(noData="Fail"),
        world=vector(),
        first=measured,
        moved=ONE_BATCH,
    ),
    "too many that say nothing": Row(
        FAILED,
        "metric success: 3 measurements had no answer to go by, and 2 may",
        metric(inconclusiveLimit=2),
        world=vector("NaN"),
        first=measured,
        moved=ONE_BATCH,
    ),
    "a range without ends": _held(
        metric(metricsRange={}),
        "a metric has to have a range: set min, max or both",
        metric(),
        refused="a metric has to have a range",
        world=GOOD_METRIC,
        first=measured,
    ),
    "a range upside down": _held(
        metric(metricsRange={"min": "2", "max": "1"}),
        "min 2 is more than max 1: nothing is in this range",
        metric(),
        world=GOOD_METRIC,
        first=measured,
    ),
    "a template of another namespace": _held(
        metric(templateRef={**template("success"), "namespace": "bank"}),
        "templateRef.namespace: can only be the namespace of the rollout, shop",
        metric(),
        world=GOOD_METRIC,
        first=measured,
    ),
}

TRAFFIC: Final[dict[str, Row]] = {
    "no Gateway API": Row(
        INITIALIZING,
        "httproutes.gateway.networking.k8s.io are not served: install what defines them",
        traffic("gateway-api", "web"),
        mend=_with_gateway,
    ),
    "no Istio": Row(
        INITIALIZING,
        "virtualservices.networking.istio.io are not served: install what defines them",
        traffic("istio", "web"),
    ),
    "no route": Row(
        INITIALIZING, "there is no Ingress web-canary: create it", traffic("nginx", "web-canary"), mend=_canary
    ),
    "an Ingress that is no canary": Row(
        INITIALIZING,
        "web-canary",
        traffic("nginx", "web-canary"),
        first=_plain_ingress,
        mend=_canary_again,
    ),
    "a route with one Service twice": Row(
        INITIALIZING,
        "spec.rules[0] of HTTPRoute shop/web has web-v2 more than once as a backend: which one is meant is not clear",
        traffic("gateway-api", "web"),
        first=_with_ambiguous_route,
        mend=_good_route,
    ),
    "a route of others": Row(
        INITIALIZING,
        "no rule of HTTPRoute shop/web has both web-v1 and web-v2 as backends",
        traffic("gateway-api", "web"),
        first=_with_foreign_route,
        mend=_good_route,
    ),
    "a route without any weight": Row(
        INITIALIZING,
        "gives neither web-v1 nor web-v2 any traffic",
        traffic("gateway-api", "web"),
        first=_with_dead_route,
        mend=_good_route,
    ),
    "a route of another kind": _held(
        traffic("nginx", "web", routeRef={"name": "web", "kind": "HTTPRoute"}),
        "the provider nginx takes a Ingress, not HTTPRoute",
        {"traffic": None},
        refused="the route has to be an HTTPRoute for gateway-api",
    ),
    "a route of another namespace": _held(
        traffic("nginx", "web", routeRef={"name": "web", "namespace": "bank"}),
        "traffic.routeRef.namespace: can only be the namespace of the rollout, shop",
        {"traffic": None},
    ),
    "one Service for both": _held(
        traffic("nginx", "web", targetService="web-v1"),
        "cannot be the same as sourceService",
        {"traffic": None},
        refused="sourceService and targetService cannot be the same",
    ),
    "the name of a route with a path": _held(
        traffic("nginx", "../secrets/x"),
        "routeRef.name: '../secrets/x' is not the name of an object",
        {"traffic": None},
    ),
}

ROWS: Final[dict[str, Row]] = {
    f"{what}: {name}": row
    for what, rows in (
        ("plan", PLANS),
        ("reference", REFERENCES),
        ("webhook", HOOKS),
        ("metric", METRICS),
        ("traffic", TRAFFIC),
    )
    for name, row in rows.items()
}

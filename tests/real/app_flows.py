"""Whole rollouts of Applications, Components and ApplicationConfigurations, as their users type them."""

from __future__ import annotations

from functools import partial
from typing import Any

from kedge.api.oam.keys import ROLLOUT_TEMPLATE
from kedge.api.pods import Pod
from real.batch_operator import BatchBed, Manifest, template
from support.waiting import until_so

CORE = "core.oam.dev/v1beta1"
KRUISE = "apps.kruise.io/v1alpha1"
PODS = 2
PLAN = {"numBatches": 2}
SUCCEEDED = "rolloutSucceed"


# Applications


async def by_its_own_plan(bed: BatchBed) -> None:
    """An Application with a plan of its own: each change is rolled out. Without the plan its AppRollout goes."""
    for number in (1, 2):
        await application(bed, "planned", number, rolloutPlan=PLAN)
        await until_moved(bed, "approllout", "planned", f"planned-v{number}")
    assert await images(bed, "planned") == ["app:2"] * PODS
    await application(bed, "planned", 2)
    await until_so(partial(is_gone, bed, "approllout", "planned"), within=90)
    await remove(bed, "application", "planned")


async def by_an_app_rollout(bed: BatchBed) -> None:
    """From revision to revision by an AppRollout that is typed apart, with Services that it tells apart."""
    await bed.apply(*(service("store", name) for name in ("store-old", "store-new")), route("store"))
    await application(bed, "store", 1)
    await until_so(partial(run_only, bed, "store", "app:1"), within=90)
    plan = {**PLAN, "traffic": traffic("store")}
    spec = {"targetAppRevisionName": "store-v2", "sourceAppRevisionName": "store-v1", "rolloutPlan": plan}
    await bed.apply(oam("AppRollout", "store", spec, CORE))
    await application(bed, "store", 2)
    await until_moved(bed, "approllout", "store", "store-v2")
    assert await images(bed, "store") == ["app:2"] * PODS
    await remove(bed, "approllout", "store")


async def by_an_application_deployment(bed: BatchBed) -> None:
    """A second Application is brought in, and takes the pods of the first."""
    await application(bed, "shop-old", 1, component="shop")
    await until_so(partial(run_only, bed, "shop", "app:1"), within=90)
    await application(bed, "shop-new", 2, component="shop", annotations={ROLLOUT_TEMPLATE: "true"})
    spec = {"targetApplicationName": "shop-new", "sourceApplicationName": "shop-old", "rolloutPlan": PLAN}
    await bed.apply(oam("ApplicationDeployment", "shop", spec))
    await until_moved(bed, "applicationdeployment", "shop", "shop-new")
    assert await images(bed, "shop") == ["app:2"] * PODS
    await remove(bed, "applicationdeployment", "shop")


async def of_a_web_service(bed: BatchBed) -> None:
    """A webservice whose Service changes, and goes when nothing is exposed any more."""
    for ports in ([exposed(80)], [exposed(81)], []):
        spec = {
            "components": [{"name": "pages", "type": "webservice", "properties": {"image": "app:1", "ports": ports}}]
        }
        await bed.apply(oam("Application", "pages", spec, CORE))
        wanted = " ".join(str(one["port"]) for one in ports)
        await until_so(partial(is_shown, bed, "service", "pages", "jsonpath={.spec.ports[*].port}", wanted), within=90)


# Components


async def of_a_component(bed: BatchBed) -> None:
    """Two revisions of a Component, rolled out by a Rollout, which is deleted then."""
    for number in (1, 2):
        await component(bed, "part", workload("Deployment", "part", number, sized=False))
        await until_so(partial(exists, bed, "controllerrevision", f"part-v{number}"))
        plan = {"targetSize": PODS, **PLAN}
        spec = {"targetRevisionName": f"part-v{number}", "componentName": "part", "rolloutPlan": plan}
        await bed.apply(oam("Rollout", "part", spec, "standard.oam.dev/v1alpha1"))
        await until_moved(bed, "rollouts.standard.oam.dev", "part", f"part-v{number}")
    await remove(bed, "rollouts.standard.oam.dev", "part")


async def of_a_configuration(bed: BatchBed) -> None:
    """Components of every kind, with every kind of trait; then all of them go but one."""
    kinds = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "CloneSet": KRUISE}
    for kind in kinds:
        await component(bed, f"a-{kind.lower()}", workload(kind, f"a-{kind.lower()}", 1))
    for name in ("by-rollout", "by-trait"):
        await component(bed, name, workload("Deployment", name, 1))
    plain = [{"componentName": f"a-{kind.lower()}"} for kind in kinds]
    plain[0]["traits"] = [{"trait": autoscaler()}]  # type: ignore[assignment]
    rolled = [configured("by-rollout", "Rollout"), configured("by-trait", "RolloutTrait")]
    await bed.apply(oam("ApplicationConfiguration", "parts", {"components": [*plain, *rolled]}))
    for kind in kinds:
        await until_so(partial(run_only, bed, f"a-{kind.lower()}", "app:1"), within=90)
    for kind, name in (("rollouts.standard.oam.dev", "by-rollout"), ("rollouttrait", "by-trait")):
        await until_moved(bed, kind, name, f"{name}-v1")
    await until_so(partial(exists, bed, "hpa", "a-deployment"))
    await component(bed, "last", workload("Deployment", "last", 1))
    await bed.apply(oam("ApplicationConfiguration", "parts", {"components": [{"componentName": "last"}]}))
    gone = [(kind, f"a-{kind.lower()}") for kind in kinds]
    for kind, name in (
        *gone,
        ("rollouts.standard.oam.dev", "by-rollout"),
        ("rollouttrait", "by-trait"),
        ("hpa", "a-deployment"),
    ):
        await until_so(partial(is_gone, bed, kind, name), within=90)


def configured(name: str, kind: str) -> Manifest:
    trait = oam(kind, name, {"rolloutPlan": {"targetSize": PODS, **PLAN}}, "standard.oam.dev/v1alpha1")
    return {"componentName": name, "traits": [{"trait": trait}]}


# What is typed


async def application(
    bed: BatchBed, name: str, number: int, *, component: str = "", annotations: Manifest | None = None, **more: Any
) -> None:
    of = component or name
    found = [{"name": of, "type": "raw", "properties": workload("Deployment", of, number)}]
    whole = oam("Application", name, {"components": found, **more}, CORE)
    await bed.apply({**whole, "metadata": {"name": name, "annotations": annotations or {}}})


async def component(bed: BatchBed, name: str, of: Manifest) -> None:
    await bed.apply(oam("Component", name, {"workload": of}))


def workload(kind: str, app: str, number: int, *, sized: bool = True) -> Manifest:
    labels = {"app": app}
    spec: Manifest = {"selector": {"matchLabels": labels}, "template": template(labels, f"app:{number}")}
    if sized and kind != "DaemonSet":
        spec["replicas"] = PODS
    if kind == "StatefulSet":
        spec["serviceName"] = app
    return {"apiVersion": KRUISE if kind == "CloneSet" else "apps/v1", "kind": kind, "spec": spec}


def oam(kind: str, name: str, spec: Manifest, version: str = "core.oam.dev/v1alpha2") -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def autoscaler() -> Manifest:
    spec = {"minReplicas": PODS, "maxReplicas": 4}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}


def exposed(port: int) -> Manifest:
    return {"port": port, "expose": True}


def service(app: str, name: str) -> Manifest:
    spec = {"selector": {"app": app}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def route(name: str) -> Manifest:
    meta = {"name": name, "annotations": {"kedge.dev/assume-accepted": "true"}}
    backends = [{"name": f"{name}-{side}", "port": 80, "weight": weight} for side, weight in (("old", 1), ("new", 0))]
    spec = {"parentRefs": [{"name": "front"}], "rules": [{"backendRefs": backends}]}
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": meta, "spec": spec}


def traffic(name: str) -> Manifest:
    services = {"sourceService": f"{name}-old", "targetService": f"{name}-new"}
    return {"provider": "gateway-api", "routeRef": {"name": name}, **services}


# What is there then


async def until_moved(bed: BatchBed, kind: str, name: str, target: str) -> None:
    """Until a rollout has succeeded with this target."""

    async def has_succeeded() -> bool:
        found = await shown(bed, kind, name, "jsonpath={.status}")
        return SUCCEEDED in found and f'"{target}' in found

    try:
        await until_so(has_succeeded, within=90)
    except TimeoutError as error:
        said = await shown(bed, kind, name, "jsonpath={.status}")
        raise AssertionError(f"{kind} {name} has not moved to {target}: {said}") from error


async def exists(bed: BatchBed, kind: str, name: str) -> bool:
    return bool(await shown(bed, kind, name, "name"))


async def is_gone(bed: BatchBed, kind: str, name: str) -> bool:
    return not await exists(bed, kind, name)


async def is_shown(bed: BatchBed, kind: str, name: str, form: str, wanted: str) -> bool:
    return await shown(bed, kind, name, form) == wanted


async def remove(bed: BatchBed, kind: str, name: str) -> None:
    await bed.cluster.kubectl("delete", kind, name, "--namespace", bed.namespace)


async def shown(bed: BatchBed, kind: str, name: str, form: str) -> str:
    words = ("get", kind, name, "--namespace", bed.namespace, "--ignore-not-found", "--output", form)
    return (await bed.cluster.kubectl(*words)).strip()


async def images(bed: BatchBed, app: str) -> list[str]:
    """The images of the pods of an app that are ready."""
    found = (await bed.client.list(Pod, bed.namespace, labels={"app": app})).items
    ready = [pod for pod in found if any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)]
    return [str((pod.spec.containers or ())[0].image) for pod in ready]


async def run_only(bed: BatchBed, app: str, image: str) -> bool:
    """Whether the pods of an app run this image, and are ready."""
    return await images(bed, app) == [image] * PODS

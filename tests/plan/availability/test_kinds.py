"""Every row of seed 000's list, and what kubefleet.md §4.6 adds to it: both sides, and the sentence."""

from __future__ import annotations

import pytest

from kedge.plan.availability import Verdict, judge
from plan.availability.objects import (
    Object,
    budget,
    clone_set,
    condition,
    daemon_set,
    definition,
    deployment,
    export,
    job,
    made,
    service,
    stateful_set,
)

OLD_AND_NEW: Object = {"currentRevision": "web-a", "updateRevision": "web-b"}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
QUOTA = condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota: pods")
LATE = condition("Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "web-1" has timed out progressing.')
VALID = condition("Valid", "True", "ServiceIsValid", observedGeneration=2)
PEACE = condition("Conflict", "False", "NoConflictFound", observedGeneration=2)
WAR = condition("Conflict", "True", "ConflictFound", "in conflict with other exported services", observedGeneration=2)
LOST = condition("Valid", "False", "ServiceNotFound", "service shop/web is not found", observedGeneration=2)


def partition(number: int, replicas: int = 3) -> Object:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}
    return {"replicas": replicas, "updateStrategy": rolling}


def kept_back(share: object, **strategy: object) -> Object:
    return {"updateStrategy": {"partition": share, **strategy}}


def ingress(*entries: Object) -> Object:
    return {"loadBalancer": {"ingress": list(entries)}}


AVAILABLE = {
    "a Deployment with all replicas updated": deployment(),
    "a Deployment that does not say how many": deployment(
        {"replicas": None}, replicas=1, updatedReplicas=1, availableReplicas=1
    ),
    "a Deployment of none": deployment({"replicas": 0}, replicas=0, updatedReplicas=0, availableReplicas=0),
    "a Deployment with old pods on their way out": deployment(replicas=4),
    "a StatefulSet with all replicas updated": stateful_set(),
    "a StatefulSet of none": stateful_set(
        {"replicas": 0}, replicas=0, updatedReplicas=0, availableReplicas=0, currentReplicas=0
    ),
    "a StatefulSet whose partition is reached": stateful_set(
        partition(2), updatedReplicas=1, currentReplicas=2, **OLD_AND_NEW
    ),
    "a StatefulSet beyond its partition": stateful_set(
        partition(2), updatedReplicas=2, currentReplicas=1, **OLD_AND_NEW
    ),
    "a StatefulSet that holds back all": stateful_set(partition(5), updatedReplicas=0, **OLD_AND_NEW),
    "a StatefulSet with OnDelete, before any is deleted": stateful_set(ON_DELETE, updatedReplicas=0, **OLD_AND_NEW),
    "a StatefulSet with OnDelete, after some are deleted": stateful_set(ON_DELETE, updatedReplicas=2, **OLD_AND_NEW),
    "a CloneSet with all replicas updated": clone_set(),
    "a CloneSet of none": clone_set({"replicas": 0}, replicas=0, updatedReplicas=0, availableReplicas=0),
    "a CloneSet whose partition is reached": clone_set(kept_back("50%"), updatedReplicas=1),
    "a CloneSet that holds back all, paused": clone_set(kept_back("100%", paused=True), updatedReplicas=0),
    "a CloneSet with OnDelete": clone_set(ON_DELETE, updatedReplicas=0),
    "a CloneSet that still tells of a failure": clone_set(conditions=[condition("FailedScale", "True", "", "no")]),
    "a DaemonSet on every node": daemon_set(),
    "a DaemonSet without nodes": daemon_set(
        desiredNumberScheduled=0, currentNumberScheduled=0, updatedNumberScheduled=0, numberAvailable=0
    ),
    "a DaemonSet with OnDelete": daemon_set("OnDelete", updatedNumberScheduled=0),
    "a service with an address": service("ClusterIP", clusterIP="10.0.0.9", clusterIPs=["10.0.0.9"]),
    "a service that does not say its type": service(None, clusterIP="10.0.0.9"),
    "a headless service": service("ClusterIP", clusterIP="None", clusterIPs=["None"]),
    "a service on the nodes": service("NodePort", clusterIPs=["10.0.0.9"]),
    "a load balancer with an IP": service("LoadBalancer", ingress({"ip": "203.0.113.7"})),
    "a load balancer with a hostname": service("LoadBalancer", ingress({"hostname": "lb.example.com"})),
    "a CRD that is established": definition(),
    "a budget with room": budget(1, "True", "SufficientPods"),
    "a budget without room": budget(0, "False", "InsufficientPods"),
    "a budget without room, in the seed's words": budget(0, "False", "InsufficientPodsReason"),
    "an export with weight 0": export("0", VALID),
    "an export with weight 0, whatever the conflict": export("0", VALID, WAR),
    "an export with a weight": export("5", VALID, PEACE),
    "an export with the greatest weight": export("1000", VALID, PEACE),
    "an export that does not say its weight": export(None, VALID, PEACE),
    "an export in the seed's words": export(
        "5", condition("ServiceExportValid", "True"), condition("ServiceExportConflict", "False")
    ),
    "a Job that is complete": job(condition("SuccessCriteriaMet", "True"), condition("Complete", "True"), succeeded=2),
    "a Job that is complete and suspended": job(condition("Complete", "True"), suspend=True),
}

NOT_AVAILABLE = {
    "a Deployment without a status": (
        made("apps/v1", "Deployment", {"replicas": 3}),
        "Deployment shop/web has no status yet",
    ),
    "a Deployment that changed since": (
        deployment(observedGeneration=1),
        "Deployment shop/web has a status that is behind: it is of generation 1, not of 2",
    ),
    "a Deployment with none updated": (
        deployment(updatedReplicas=0),
        "Deployment shop/web has 0 of 3 updated replicas",
    ),
    "a Deployment with none updated, as Kubernetes leaves out zeros": (
        deployment(updatedReplicas=None),
        "Deployment shop/web has 0 of 3 updated replicas",
    ),
    "a Deployment with one that is not available": (
        deployment(availableReplicas=2, unavailableReplicas=1),
        "Deployment shop/web has 2 of 3 available replicas",
    ),
    "a Deployment with one too many": (
        deployment(replicas=4, availableReplicas=4),
        "Deployment shop/web has 1 replica too many",
    ),
    "a Deployment of one with a bad image": (
        deployment({"replicas": 1}, replicas=2, updatedReplicas=1, availableReplicas=1, unavailableReplicas=1),
        "Deployment shop/web has 1 unavailable replica beside 1 available",
    ),
    "a Deployment that is paused": (
        deployment({"paused": True}, updatedReplicas=0),
        "Deployment shop/web has 0 of 3 updated replicas: it is paused",
    ),
    "a Deployment that may not make pods": (
        deployment(updatedReplicas=1, conditions=[LATE, QUOTA]),
        "Deployment shop/web has 1 of 3 updated replicas: exceeded quota: pods",
    ),
    "a Deployment that takes too long": (
        deployment(updatedReplicas=1, conditions=[LATE]),
        'Deployment shop/web has 1 of 3 updated replicas: ReplicaSet "web-1" has timed out progressing.',
    ),
    "a CloneSet that changed since": (
        clone_set(observedGeneration=1),
        "CloneSet shop/web has a status that is behind: it is of generation 1, not of 2",
    ),
    "a CloneSet on its way": (clone_set(updatedReplicas=1), "CloneSet shop/web has 1 of 3 updated replicas"),
    "a CloneSet before its partition": (
        clone_set(kept_back(1), updatedReplicas=1),
        "CloneSet shop/web has 1 of 2 updated replicas",
    ),
    "a CloneSet that is paused on its way": (
        clone_set({"updateStrategy": {"paused": True}}, updatedReplicas=1),
        "CloneSet shop/web has 1 of 3 updated replicas: it is paused",
    ),
    "a CloneSet that is paused with a broken replica": (
        clone_set({"updateStrategy": {"paused": True}}, availableReplicas=2),
        "CloneSet shop/web has 2 of 3 available replicas",
    ),
    "a CloneSet with an old pod in place of a new one": (
        clone_set(replicas=4),
        "CloneSet shop/web has 1 replica too many",
    ),
    "a CloneSet whose pods are refused": (
        clone_set(replicas=2, availableReplicas=2, conditions=[condition("FailedScale", "True", "", "exceeded quota")]),
        "CloneSet shop/web has 2 of 3 available replicas: exceeded quota",
    ),
    "a CloneSet that cannot be updated in place": (
        clone_set(updatedReplicas=0, conditions=[condition("FailedUpdate", "True", "", "more than images changed")]),
        "CloneSet shop/web has 0 of 3 updated replicas: more than images changed",
    ),
    "a CloneSet whose failure is over": (
        clone_set(availableReplicas=2, conditions=[condition("FailedScale", "False", "", "exceeded quota")]),
        "CloneSet shop/web has 2 of 3 available replicas",
    ),
    "a CloneSet with a broken replica": (
        clone_set(availableReplicas=2),
        "CloneSet shop/web has 2 of 3 available replicas",
    ),
    "a StatefulSet that changed since": (
        stateful_set(observedGeneration=1),
        "StatefulSet shop/web has a status that is behind: it is of generation 1, not of 2",
    ),
    "a StatefulSet on its way": (
        stateful_set(updatedReplicas=1, currentReplicas=2, **OLD_AND_NEW),
        "StatefulSet shop/web has 1 of 3 updated replicas",
    ),
    "a StatefulSet that is not finished": (
        stateful_set(**OLD_AND_NEW),
        "StatefulSet shop/web is still moving from revision web-a to web-b",
    ),
    "a StatefulSet that contradicts itself": (
        stateful_set(currentReplicas=1),
        "StatefulSet shop/web has 1 current replica, and 3 updated",
    ),
    "a StatefulSet that shrinks": (
        stateful_set({"replicas": 2}, availableReplicas=2),
        "StatefulSet shop/web has 3 updated replicas, and is to have 2",
    ),
    "a StatefulSet with a broken replica": (
        stateful_set(availableReplicas=2),
        "StatefulSet shop/web has 2 of 3 available replicas",
    ),
    "a StatefulSet before its partition": (
        stateful_set(partition(1), updatedReplicas=1, currentReplicas=2, **OLD_AND_NEW),
        "StatefulSet shop/web has 1 of 2 updated replicas",
    ),
    "a StatefulSet at its partition with a broken replica": (
        stateful_set(partition(2), updatedReplicas=1, currentReplicas=2, availableReplicas=2, **OLD_AND_NEW),
        "StatefulSet shop/web has 2 of 3 available replicas",
    ),
    "a StatefulSet with OnDelete and a broken replica": (
        stateful_set(ON_DELETE, updatedReplicas=0, availableReplicas=2, **OLD_AND_NEW),
        "StatefulSet shop/web has 2 of 3 available replicas",
    ),
    "a DaemonSet that changed since": (
        daemon_set(observedGeneration=1),
        "DaemonSet shop/web has a status that is behind: it is of generation 1, not of 2",
    ),
    "a DaemonSet on its way": (
        daemon_set(updatedNumberScheduled=1),
        "DaemonSet shop/web has updated pods on 1 of 3 nodes",
    ),
    "a DaemonSet that is not on every node yet": (
        daemon_set(currentNumberScheduled=2),
        "DaemonSet shop/web has pods on 2 nodes, and updated ones on 3",
    ),
    "a DaemonSet with a broken pod": (
        daemon_set(numberAvailable=2),
        "DaemonSet shop/web has available pods on 2 of 3 nodes",
    ),
    "a DaemonSet with OnDelete and a broken pod": (
        daemon_set("OnDelete", updatedNumberScheduled=0, numberAvailable=2),
        "DaemonSet shop/web has available pods on 2 of 3 nodes",
    ),
    "a service without an address": (service("ClusterIP"), "Service shop/web has no cluster IP yet"),
    "a service on the nodes without an address": (service("NodePort"), "Service shop/web has no cluster IP yet"),
    "a load balancer without an address": (
        service("LoadBalancer", clusterIP="10.0.0.9"),
        "Service shop/web has no address of a load balancer yet",
    ),
    "a load balancer with an empty entry": (
        service("LoadBalancer", ingress({"ports": []})),
        "Service shop/web has no address of a load balancer yet",
    ),
    "a CRD that nobody has looked at": (
        definition(None, None),
        "CustomResourceDefinition shop/web does not have its names accepted yet",
    ),
    "a CRD whose names are taken": (
        definition("False", "False"),
        "CustomResourceDefinition shop/web does not have its names accepted yet",
    ),
    "a CRD that is not established": (
        definition("False"),
        "CustomResourceDefinition shop/web is not established yet",
    ),
    "a budget that changed since": (
        budget(1, "True", "SufficientPods", observedGeneration=1),
        "PodDisruptionBudget shop/web has a status that is behind: it is of generation 1, not of 2",
    ),
    "a budget with room that denies it": (
        budget(1, "False", "InsufficientPods"),
        (
            "PodDisruptionBudget shop/web allows 1 disruption, but its condition DisruptionAllowed is False "
            "(InsufficientPods)"
        ),
    ),
    "a budget without room that claims some": (
        budget(0, "True", "SufficientPods"),
        (
            "PodDisruptionBudget shop/web allows 0 disruptions, but its condition DisruptionAllowed is True "
            "(SufficientPods)"
        ),
    ),
    "a budget that could not be worked out": (
        budget(0, "False", "SyncFailed", "found no controllers for pod web-0", observedGeneration=1),
        "PodDisruptionBudget shop/web cannot be worked out: found no controllers for pod web-0",
    ),
    "a budget that says nothing": (
        budget(0),
        "PodDisruptionBudget shop/web allows 0 disruptions, but has no condition DisruptionAllowed yet",
    ),
    "an export nobody has looked at": (
        export("5"),
        "ServiceExport shop/web does not say yet whether it is valid",
    ),
    "an export of nothing": (
        export("5", LOST, PEACE),
        "ServiceExport shop/web is not valid: service shop/web is not found",
    ),
    "an export of nothing, with weight 0": (
        export("0", LOST),
        "ServiceExport shop/web is not valid: service shop/web is not found",
    ),
    "an export in conflict": (
        export("5", VALID, WAR),
        "ServiceExport shop/web is not free of conflicts: in conflict with other exported services",
    ),
    "an export whose conflicts are not known yet": (
        export("5", VALID),
        "ServiceExport shop/web does not say yet whether it is free of conflicts",
    ),
    "an export whose weight is a word": (
        export("much", VALID, PEACE),
        (
            "ServiceExport shop/web has 'much' as networking.fleet.azure.com/weight, "
            "which must be a whole number from 0 to 1000"
        ),
    ),
    "an export whose weight is too great": (
        export("1001", VALID, PEACE),
        (
            "ServiceExport shop/web has '1001' as networking.fleet.azure.com/weight, "
            "which must be a whole number from 0 to 1000"
        ),
    ),
    "an export whose weight is below 0": (
        export("-1", VALID),
        (
            "ServiceExport shop/web has '-1' as networking.fleet.azure.com/weight, "
            "which must be a whole number from 0 to 1000"
        ),
    ),
    "an export that changed since": (
        export("0", condition("Valid", "True", observedGeneration=1)),
        "ServiceExport shop/web does not say yet whether it is valid since it changed",
    ),
    "a Job nobody has looked at": (job(), "Job shop/web is not complete: 0 of 2 pods succeeded"),
    "a Job that runs": (
        job(active=1, succeeded=1, failed=3),
        "Job shop/web is not complete: 1 of 2 pods succeeded, 3 failed",
    ),
    "a Job for as many as there are": (
        made("batch/v1", "Job", {"parallelism": 2}, {"active": 2}),
        "Job shop/web is not complete: 0 pods succeeded",
    ),
    "a Job that failed": (
        job(condition("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")),
        "Job shop/web failed: BackoffLimitExceeded: Job has reached the specified backoff limit",
    ),
    "a Job that is suspended": (
        job(condition("Suspended", "True"), suspend=True),
        "Job shop/web is suspended: it completes only after spec.suspend is set to false",
    ),
}

DATA = [
    *(("v1", kind) for kind in ("Namespace", "Secret", "ConfigMap", "LimitRange", "ResourceQuota", "ServiceAccount")),
    *(("rbac.authorization.k8s.io/v1", kind) for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")),
    *(("networking.k8s.io/v1", kind) for kind in ("NetworkPolicy", "IngressClass")),
    *(("storage.k8s.io/v1", kind) for kind in ("CSIDriver", "CSINode", "StorageClass", "CSIStorageCapacity")),
    ("apps/v1", "ControllerRevision"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
]

UNTRACKABLE = {
    "a service that is only a name": service("ExternalName", externalName="example.com"),
    "an Ingress": made("networking.k8s.io/v1", "Ingress"),
    "a claim": made("v1", "PersistentVolumeClaim"),
    "an autoscaler": made("autoscaling/v2", "HorizontalPodAutoscaler"),
    "a CronJob": made("batch/v1", "CronJob"),
    "a kind of somebody's": made("example.com/v1", "Widget"),
    "a Deployment of somebody's": made("example.com/v1", "Deployment"),
    "a Service of somebody's": made("serving.knative.dev/v1", "Service"),
    "an export of another kind": made("multicluster.x-k8s.io/v1alpha1", "ServiceExport"),
}


@pytest.mark.parametrize("row", AVAILABLE)
def test_what_meets_its_criteria_is_available(row: str) -> None:
    verdict = judge(AVAILABLE[row])
    assert (verdict.available, verdict.trackable) == (True, True), verdict.message


@pytest.mark.parametrize("row", NOT_AVAILABLE)
def test_what_does_not_is_not_and_says_why(row: str) -> None:
    obj, message = NOT_AVAILABLE[row]
    assert judge(obj) == Verdict(available=False, trackable=True, message=message)


@pytest.mark.parametrize(("api", "kind"), DATA)
def test_data_is_available_as_soon_as_it_is_there(api: str, kind: str) -> None:
    found = judge({"apiVersion": api, "kind": kind, "metadata": {"name": "web"}})
    assert found == Verdict(available=True, trackable=True, message=f"{kind} web is there")


def test_the_kinds_of_data_are_those_of_the_seed_and_service_accounts() -> None:
    assert len(DATA) == 17 + 1


@pytest.mark.parametrize("row", UNTRACKABLE)
def test_of_anything_else_nothing_is_known(row: str) -> None:
    verdict = judge(UNTRACKABLE[row])
    assert (verdict.available, verdict.trackable) == (True, False)


@pytest.mark.parametrize("obj", [deployment(), made("v1", "Namespace"), made("example.com/v1", "Widget")])
def test_what_is_being_deleted_is_not_available(obj: Object) -> None:
    going = {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}}
    assert judge(going).message == f"{obj['kind']} shop/web is being deleted"
    assert not judge(going).available


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (stateful_set(), "StatefulSet shop/web has 3 of 3 replicas updated and available"),
        (
            stateful_set(partition(2), updatedReplicas=1, currentReplicas=2, **OLD_AND_NEW),
            "StatefulSet shop/web has 3 of 3 replicas available; its strategy updates 1",
        ),
    ],
)
def test_a_set_that_is_available_says_how_much_of_it_is_new(found: Object, said: str) -> None:
    assert judge(found).message == said

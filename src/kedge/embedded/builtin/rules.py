"""Rules of the built-in kinds, by group and kind. A kind that is not here has none beyond its schema."""

from __future__ import annotations

from collections.abc import Mapping

from kedge.embedded.builtin import (
    addresses,
    admissionregistration,
    advice,
    autoscaling,
    cluster,
    cluster_problems,
    config,
    ingress_problems,
    job_problems,
    jobs,
    network_problems,
    networking,
    pod_changes,
    pod_problems,
    pod_spec,
    pods,
    policy,
    rbac,
    scheduling,
    service_problems,
    services,
    storage,
    storage_problems,
    workload_problems,
    workloads,
)
from kedge.embedded.builtin.filling import struct
from kedge.embedded.rules import Rules

_ADMISSION = "admissionregistration.k8s.io"
_NETWORKING = "networking.k8s.io"
_RBAC = rbac.GROUP
_STORAGE = "storage.k8s.io"

RULES: Mapping[tuple[str, str], Rules] = {
    ("", "ConfigMap"): Rules(
        problems=config.config_map_problems,
        change_problems=config.config_map_changed,
    ),
    ("", "Endpoints"): Rules(
        complete=networking.complete_endpoints,
        problems=network_problems.endpoints_problems,
        warnings=advice.of_endpoints,
    ),
    ("", "Event"): Rules(
        complete=cluster.complete_event,
        problems=cluster_problems.event_problems,
    ),
    ("", "LimitRange"): Rules(
        complete=cluster.complete_limit_range,
        problems=cluster_problems.limit_problems,
    ),
    ("", "Node"): Rules(
        complete=cluster.complete_node,
        begin=cluster.begin_node,
        problems=cluster_problems.node_problems,
        change_problems=cluster_problems.node_changed,
    ),
    ("", "PersistentVolume"): Rules(
        complete=storage.complete_volume,
        begin=storage.begin_volume,
        problems=storage_problems.volume_problems,
        change_problems=storage_problems.volume_changed,
        warnings=advice.of_volume,
    ),
    ("", "PersistentVolumeClaim"): Rules(
        complete=storage.complete_claim,
        begin=storage.begin_claim,
        renew=storage.renew_claim,
        problems=storage_problems.claim_problems,
        change_problems=storage_problems.claim_changed,
        warnings=advice.of_claim,
    ),
    ("", "Pod"): Rules(
        complete=pods.complete,
        begin=pods.begin,
        carry=pods.carry,
        problems=pod_problems.pod_problems,
        change_problems=pod_changes.pod_changed,
        warnings=advice.of_pod,
    ),
    ("", "PodTemplate"): Rules(
        complete=struct({"template": {}}, template=pod_spec.template),
        warnings=advice.of_pod_template,
    ),
    ("", "ReplicationController"): Rules(
        complete=workloads.complete_replication_controller,
        problems=workload_problems.replication_controller_problems,
        warnings=advice.of_named_workload,
    ),
    ("", "ResourceQuota"): Rules(
        complete=cluster.complete_quota,
        problems=cluster_problems.quota_problems,
        change_problems=cluster_problems.quota_changed,
    ),
    ("", "Secret"): Rules(
        complete=config.complete_secret,
        problems=config.secret_problems,
        change_problems=config.secret_changed,
    ),
    ("", "Service"): Rules(
        complete=services.complete,
        begin=addresses.begin,
        carry=services.carry,
        renew=addresses.renew,
        problems=service_problems.service_problems,
        change_problems=service_problems.service_changed,
        warnings=advice.of_service,
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): Rules(
        complete=admissionregistration.complete_mutating,
        problems=admissionregistration.webhook_problems,
    ),
    (_ADMISSION, "ValidatingAdmissionPolicy"): Rules(
        complete=admissionregistration.complete_policy,
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): Rules(
        complete=admissionregistration.complete_policy_binding,
    ),
    (_ADMISSION, "ValidatingWebhookConfiguration"): Rules(
        complete=admissionregistration.complete_validating,
        problems=admissionregistration.webhook_problems,
    ),
    ("apiregistration.k8s.io", "APIService"): Rules(
        complete=admissionregistration.complete_api_service,
        problems=admissionregistration.api_service_problems,
    ),
    ("apps", "ControllerRevision"): Rules(
        complete=workloads.complete_controller_revision,
        problems=workload_problems.revision_problems,
        change_problems=workload_problems.revision_changed,
    ),
    ("apps", "DaemonSet"): Rules(
        complete=workloads.complete_daemon_set,
        begin=workloads.begin_daemon_set,
        carry=workloads.carry_daemon_set,
        problems=workload_problems.daemon_set_problems,
        change_problems=workload_problems.selector_changed,
        warnings=advice.of_workload,
    ),
    ("apps", "Deployment"): Rules(
        complete=workloads.complete_deployment,
        problems=workload_problems.deployment_problems,
        change_problems=workload_problems.selector_changed,
        warnings=advice.of_named_workload,
    ),
    ("apps", "ReplicaSet"): Rules(
        complete=workloads.complete_replica_set,
        problems=workload_problems.replica_set_problems,
        change_problems=workload_problems.selector_changed,
        warnings=advice.of_named_workload,
    ),
    ("apps", "StatefulSet"): Rules(
        complete=workloads.complete_stateful_set,
        problems=workload_problems.stateful_set_problems,
        change_problems=workload_problems.stateful_set_changed,
        warnings=advice.of_stateful_set,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Rules(
        complete=autoscaling.complete,
        problems=autoscaling.problems,
    ),
    ("batch", "CronJob"): Rules(
        complete=jobs.complete_cron_job,
        problems=job_problems.cron_job_problems,
        warnings=advice.of_cron_job,
    ),
    ("batch", "Job"): Rules(
        complete=jobs.complete_job,
        begin=jobs.begin_job,
        problems=job_problems.job_problems,
        change_problems=job_problems.job_changed,
        warnings=advice.of_named_workload,
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): Rules(
        complete=cluster.complete_signing_request,
    ),
    ("coordination.k8s.io", "Lease"): Rules(
        complete=cluster.complete_lease,
        problems=cluster_problems.lease_problems,
    ),
    ("discovery.k8s.io", "EndpointSlice"): Rules(
        complete=networking.complete_slice,
        problems=network_problems.slice_problems,
        change_problems=network_problems.slice_changed,
    ),
    (_NETWORKING, "Ingress"): Rules(
        complete=networking.complete_ingress,
        begin=networking.begin_ingress,
        problems=ingress_problems.ingress_problems,
        warnings=advice.of_ingress,
    ),
    (_NETWORKING, "IngressClass"): Rules(
        complete=networking.complete_ingress_class,
        problems=ingress_problems.class_problems,
        change_problems=ingress_problems.class_changed,
    ),
    (_NETWORKING, "NetworkPolicy"): Rules(
        complete=networking.complete_policy,
        problems=network_problems.policy_problems,
    ),
    ("node.k8s.io", "RuntimeClass"): Rules(
        problems=scheduling.runtime_problems,
        change_problems=scheduling.runtime_changed,
    ),
    ("policy", "PodDisruptionBudget"): Rules(
        complete=policy.complete,
        problems=policy.problems,
    ),
    (_RBAC, "ClusterRole"): Rules(
        complete=rbac.complete_role,
        problems=rbac.cluster_role_problems,
    ),
    (_RBAC, "ClusterRoleBinding"): Rules(
        complete=rbac.complete_binding,
        problems=rbac.cluster_binding_problems,
        change_problems=rbac.binding_changed,
    ),
    (_RBAC, "Role"): Rules(
        complete=rbac.complete_role,
        problems=rbac.role_problems,
    ),
    (_RBAC, "RoleBinding"): Rules(
        complete=rbac.complete_binding,
        problems=rbac.binding_problems,
        change_problems=rbac.binding_changed,
    ),
    ("scheduling.k8s.io", "PriorityClass"): Rules(
        complete=scheduling.complete_priority_class,
        problems=scheduling.priority_problems,
        change_problems=scheduling.priority_changed,
    ),
    (_STORAGE, "CSIDriver"): Rules(
        complete=storage.complete_driver,
        change_problems=storage_problems.driver_changed,
    ),
    (_STORAGE, "CSINode"): Rules(
        complete=storage.complete_csi_node,
    ),
    (_STORAGE, "StorageClass"): Rules(
        complete=storage.complete_class,
        problems=storage_problems.class_problems,
        change_problems=storage_problems.class_changed,
    ),
    (_STORAGE, "VolumeAttachment"): Rules(
        complete=storage.complete_attachment,
        problems=storage_problems.attachment_problems,
        change_problems=storage_problems.attachment_changed,
    ),
}

"""Rules by kind: the rules of each built-in kind, by group and kind. Other kinds have none beyond their schema."""

from __future__ import annotations

from collections.abc import Mapping

from kedge.embedded.builtin import (
    admissionregistration,
    autoscaling,
    cluster_kinds,
    config,
    disruption_budgets,
    ingress,
    jobs,
    network,
    pod_classes,
    pod_spec,
    pod_validation,
    pods,
    rbac,
    service_allocation,
    service_validation,
    services,
    storage,
    warnings,
    workload_validation,
    workloads,
)
from kedge.embedded.builtin.defaulting import struct
from kedge.embedded.kind_rules import KindRules

_ADMISSION = "admissionregistration.k8s.io"
_NETWORKING = "networking.k8s.io"
_RBAC = rbac.GROUP
_STORAGE = "storage.k8s.io"

RULES_BY_KIND: Mapping[tuple[str, str], KindRules] = {
    ("", "ConfigMap"): KindRules(
        problems=config.config_map_problems,
        update_problems=config.config_map_update_problems,
    ),
    ("", "Endpoints"): KindRules(
        with_defaults=network.default_endpoints,
        problems=network.endpoints_problems,
        warnings=warnings.endpoints_warnings,
    ),
    ("", "Event"): KindRules(
        with_defaults=cluster_kinds.default_event,
        problems=cluster_kinds.event_problems,
    ),
    ("", "LimitRange"): KindRules(
        with_defaults=cluster_kinds.default_limit_range,
        problems=cluster_kinds.limit_range_problems,
    ),
    ("", "Node"): KindRules(
        with_defaults=cluster_kinds.default_node,
        prepare_new=cluster_kinds.prepare_new_node,
        problems=cluster_kinds.node_problems,
        update_problems=cluster_kinds.node_update_problems,
    ),
    ("", "PersistentVolume"): KindRules(
        with_defaults=storage.default_volume,
        prepare_new=storage.prepare_new_volume,
        problems=storage.volume_problems,
        update_problems=storage.volume_update_problems,
        warnings=warnings.volume_warnings,
    ),
    ("", "PersistentVolumeClaim"): KindRules(
        with_defaults=storage.default_claim,
        prepare_new=storage.prepare_new_claim,
        allocate_changed=storage.check_claim_resize,
        problems=storage.claim_problems,
        update_problems=storage.claim_update_problems,
        warnings=warnings.claim_warnings,
    ),
    ("", "Pod"): KindRules(
        with_defaults=pods.default_pod,
        prepare_new=pods.prepare_new_pod,
        prepare_changed=pods.prepare_changed_pod,
        problems=pod_validation.pod_problems,
        update_problems=pod_validation.pod_update_problems,
        warnings=warnings.pod_warnings,
    ),
    ("", "PodTemplate"): KindRules(
        with_defaults=struct({"template": {}}, template=pod_spec.default_template),
        warnings=warnings.pod_template_warnings,
    ),
    ("", "ReplicationController"): KindRules(
        with_defaults=workloads.default_replication_controller,
        problems=workload_validation.replication_controller_problems,
        warnings=warnings.named_workload_warnings,
    ),
    ("", "ResourceQuota"): KindRules(
        with_defaults=cluster_kinds.default_quota,
        problems=cluster_kinds.quota_problems,
        update_problems=cluster_kinds.quota_update_problems,
    ),
    ("", "Secret"): KindRules(
        with_defaults=config.default_secret,
        problems=config.secret_problems,
        update_problems=config.secret_update_problems,
    ),
    ("", "Service"): KindRules(
        with_defaults=services.default_service,
        prepare_new=service_allocation.allocate_for_new,
        prepare_changed=services.prepare_changed_service,
        allocate_changed=service_allocation.allocate_for_changed,
        problems=service_validation.service_problems,
        update_problems=service_validation.service_update_problems,
        warnings=warnings.service_warnings,
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): KindRules(
        with_defaults=admissionregistration.default_mutating_webhooks,
        problems=admissionregistration.webhook_problems,
    ),
    (_ADMISSION, "ValidatingAdmissionPolicy"): KindRules(
        with_defaults=admissionregistration.default_policy,
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): KindRules(
        with_defaults=admissionregistration.default_policy_binding,
    ),
    (_ADMISSION, "ValidatingWebhookConfiguration"): KindRules(
        with_defaults=admissionregistration.default_validating_webhooks,
        problems=admissionregistration.webhook_problems,
    ),
    ("apiregistration.k8s.io", "APIService"): KindRules(
        with_defaults=admissionregistration.default_api_service,
        problems=admissionregistration.api_service_problems,
    ),
    ("apps", "ControllerRevision"): KindRules(
        with_defaults=workloads.default_controller_revision,
        problems=workload_validation.revision_problems,
        update_problems=workload_validation.revision_update_problems,
    ),
    ("apps", "DaemonSet"): KindRules(
        with_defaults=workloads.default_daemon_set,
        prepare_new=workloads.prepare_new_daemon_set,
        prepare_changed=workloads.prepare_changed_daemon_set,
        problems=workload_validation.daemon_set_problems,
        update_problems=workload_validation.selector_update_problems,
        warnings=warnings.workload_warnings,
    ),
    ("apps", "Deployment"): KindRules(
        with_defaults=workloads.default_deployment,
        problems=workload_validation.deployment_problems,
        update_problems=workload_validation.selector_update_problems,
        warnings=warnings.named_workload_warnings,
    ),
    ("apps", "ReplicaSet"): KindRules(
        with_defaults=workloads.default_replica_set,
        problems=workload_validation.replica_set_problems,
        update_problems=workload_validation.selector_update_problems,
        warnings=warnings.named_workload_warnings,
    ),
    ("apps", "StatefulSet"): KindRules(
        with_defaults=workloads.default_stateful_set,
        problems=workload_validation.stateful_set_problems,
        update_problems=workload_validation.stateful_set_update_problems,
        warnings=warnings.stateful_set_warnings,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): KindRules(
        with_defaults=autoscaling.default_autoscaler,
        problems=autoscaling.autoscaler_problems,
    ),
    ("batch", "CronJob"): KindRules(
        with_defaults=jobs.default_cron_job,
        problems=jobs.cron_job_problems,
        warnings=warnings.cron_job_warnings,
    ),
    ("batch", "Job"): KindRules(
        with_defaults=jobs.default_job,
        prepare_new=jobs.prepare_new_job,
        problems=jobs.job_problems,
        update_problems=jobs.job_update_problems,
        warnings=warnings.named_workload_warnings,
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): KindRules(
        with_defaults=cluster_kinds.default_signing_request,
    ),
    ("coordination.k8s.io", "Lease"): KindRules(
        with_defaults=cluster_kinds.default_lease,
        problems=cluster_kinds.lease_problems,
    ),
    ("discovery.k8s.io", "EndpointSlice"): KindRules(
        with_defaults=network.default_endpoint_slice,
        problems=network.endpoint_slice_problems,
        update_problems=network.endpoint_slice_update_problems,
    ),
    (_NETWORKING, "Ingress"): KindRules(
        with_defaults=ingress.default_ingress,
        prepare_new=ingress.prepare_new_ingress,
        problems=ingress.ingress_problems,
        warnings=warnings.ingress_warnings,
    ),
    (_NETWORKING, "IngressClass"): KindRules(
        with_defaults=ingress.default_ingress_class,
        problems=ingress.ingress_class_problems,
        update_problems=ingress.ingress_class_update_problems,
    ),
    (_NETWORKING, "NetworkPolicy"): KindRules(
        with_defaults=network.default_network_policy,
        problems=network.network_policy_problems,
    ),
    ("node.k8s.io", "RuntimeClass"): KindRules(
        problems=pod_classes.runtime_class_problems,
        update_problems=pod_classes.runtime_class_update_problems,
    ),
    ("policy", "PodDisruptionBudget"): KindRules(
        with_defaults=disruption_budgets.default_budget,
        problems=disruption_budgets.budget_problems,
    ),
    (_RBAC, "ClusterRole"): KindRules(
        with_defaults=rbac.default_role,
        problems=rbac.cluster_role_problems,
    ),
    (_RBAC, "ClusterRoleBinding"): KindRules(
        with_defaults=rbac.default_binding,
        problems=rbac.cluster_binding_problems,
        update_problems=rbac.binding_update_problems,
    ),
    (_RBAC, "Role"): KindRules(
        with_defaults=rbac.default_role,
        problems=rbac.role_problems,
    ),
    (_RBAC, "RoleBinding"): KindRules(
        with_defaults=rbac.default_binding,
        problems=rbac.binding_problems,
        update_problems=rbac.binding_update_problems,
    ),
    ("scheduling.k8s.io", "PriorityClass"): KindRules(
        with_defaults=pod_classes.default_priority_class,
        problems=pod_classes.priority_class_problems,
        update_problems=pod_classes.priority_class_update_problems,
    ),
    (_STORAGE, "CSIDriver"): KindRules(
        with_defaults=storage.default_csi_driver,
        update_problems=storage.csi_driver_update_problems,
    ),
    (_STORAGE, "CSINode"): KindRules(
        with_defaults=storage.default_csi_node,
    ),
    (_STORAGE, "StorageClass"): KindRules(
        with_defaults=storage.default_class,
        problems=storage.storage_class_problems,
        update_problems=storage.storage_class_update_problems,
    ),
    (_STORAGE, "VolumeAttachment"): KindRules(
        with_defaults=storage.default_attachment,
        problems=storage.attachment_problems,
        update_problems=storage.attachment_update_problems,
    ),
}

"""The built-in kinds: one row for each, as kube-apiserver v1.36 serves it.

Kinds with several versions are served in one: there is no conversion between built-in versions.
"""

from __future__ import annotations

from collections.abc import Mapping

from kedge.api.resource import Resource
from kedge.embedded.builtin.rules_by_kind import RULES_BY_KIND
from kedge.embedded.kind import Kind, KindNames, ScalePaths
from kedge.embedded.kind_rules import NO_RULES
from kedge.embedded.naming import NameRule

# Habits: C cluster-scoped, q a question, s has /status, S has a strict /status (takes no metadata along), g counts
# generations, a counts annotations too, v PUT needs the version, p PUT makes what is not there, l /status takes no
# labels along.
_TABLE = """
-                             v1  ConfigMap                         configmaps                         -
-                             v1  Endpoints                         endpoints                          p
-                             v1  Event                             events                             p
-                             v1  LimitRange                        limitranges                        p
-                             v1  Namespace                         namespaces                         Cs
-                             v1  Node                              nodes                              Cs
-                             v1  PersistentVolume                  persistentvolumes                  Cs
-                             v1  PersistentVolumeClaim             persistentvolumeclaims             s
-                             v1  Pod                               pods                               sg
-                             v1  PodTemplate                       podtemplates                       g
-                             v1  ReplicationController             replicationcontrollers             sg
-                             v1  ResourceQuota                     resourcequotas                     s
-                             v1  Secret                            secrets                            -
-                             v1  Service                           services                           sp
-                             v1  ServiceAccount                    serviceaccounts                    -
admissionregistration.k8s.io  v1  MutatingWebhookConfiguration      mutatingwebhookconfigurations      Cgv
admissionregistration.k8s.io  v1  ValidatingAdmissionPolicy         validatingadmissionpolicies        CSgv
admissionregistration.k8s.io  v1  ValidatingAdmissionPolicyBinding  validatingadmissionpolicybindings  Cgv
admissionregistration.k8s.io  v1  ValidatingWebhookConfiguration    validatingwebhookconfigurations    Cgv
apiextensions.k8s.io          v1  CustomResourceDefinition          customresourcedefinitions          Csgv
apiregistration.k8s.io        v1  APIService                        apiservices                        CSv
apps                          v1  ControllerRevision                controllerrevisions                -
apps                          v1  DaemonSet                         daemonsets                         sg
apps                          v1  Deployment                        deployments                        sgal
apps                          v1  ReplicaSet                        replicasets                        sg
apps                          v1  StatefulSet                       statefulsets                       sg
authentication.k8s.io         v1  SelfSubjectReview                 selfsubjectreviews                 Cq
authentication.k8s.io         v1  TokenReview                       tokenreviews                       Cq
authorization.k8s.io          v1  LocalSubjectAccessReview          localsubjectaccessreviews          q
authorization.k8s.io          v1  SelfSubjectAccessReview           selfsubjectaccessreviews           Cq
authorization.k8s.io          v1  SelfSubjectRulesReview            selfsubjectrulesreviews            Cq
authorization.k8s.io          v1  SubjectAccessReview               subjectaccessreviews               Cq
autoscaling                   v2  HorizontalPodAutoscaler           horizontalpodautoscalers           s
batch                         v1  CronJob                           cronjobs                           sg
batch                         v1  Job                               jobs                               sg
certificates.k8s.io           v1  CertificateSigningRequest         certificatesigningrequests         Cs
coordination.k8s.io           v1  Lease                             leases                             vp
discovery.k8s.io              v1  EndpointSlice                     endpointslices                     ga
networking.k8s.io             v1  Ingress                           ingresses                          sg
networking.k8s.io             v1  IngressClass                      ingressclasses                     Cg
networking.k8s.io             v1  NetworkPolicy                     networkpolicies                    g
node.k8s.io                   v1  RuntimeClass                      runtimeclasses                     Cvp
policy                        v1  PodDisruptionBudget               poddisruptionbudgets               sgv
rbac.authorization.k8s.io     v1  ClusterRole                       clusterroles                       Cp
rbac.authorization.k8s.io     v1  ClusterRoleBinding                clusterrolebindings                Cp
rbac.authorization.k8s.io     v1  Role                              roles                              p
rbac.authorization.k8s.io     v1  RoleBinding                       rolebindings                       p
scheduling.k8s.io             v1  PriorityClass                     priorityclasses                    Cg
storage.k8s.io                v1  CSIDriver                         csidrivers                         Cv
storage.k8s.io                v1  CSINode                           csinodes                           Cv
storage.k8s.io                v1  CSIStorageCapacity                csistoragecapacities               -
storage.k8s.io                v1  StorageClass                      storageclasses                     C
storage.k8s.io                v1  VolumeAttachment                  volumeattachments                  CSv
"""

_FIELDS: Mapping[str, Mapping[str, str]] = {
    "CertificateSigningRequest": {"spec.signerName": ""},
    "Event": {
        **{f"involvedObject.{part}": "" for part in ("apiVersion", "fieldPath", "kind", "name", "namespace")},
        **{f"involvedObject.{part}": "" for part in ("resourceVersion", "uid")},
        **dict.fromkeys(("reason", "reportingComponent", "source", "type"), ""),
    },
    "Job": {"status.successful": "0"},
    "Namespace": {"status.phase": ""},
    "Node": {"spec.unschedulable": "false"},
    "Pod": {
        "spec.hostNetwork": "false",
        **{f"spec.{part}": "" for part in ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName")},
        **{f"status.{part}": "" for part in ("nominatedNodeName", "phase", "podIP")},
    },
    "ReplicationController": {"status.replicas": "0"},
    "Secret": {"type": ""},
    "Service": {"spec.clusterIP": "", "spec.type": ""},
}
_FIELDS_ELSEWHERE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Event": {"source": ("source.component", "reportingComponent")},
}
_SHORT_NAMES: Mapping[str, tuple[str, ...]] = {
    "CertificateSigningRequest": ("csr",),
    "ConfigMap": ("cm",),
    "CronJob": ("cj",),
    "CustomResourceDefinition": ("crd", "crds"),
    "DaemonSet": ("ds",),
    "Deployment": ("deploy",),
    "Endpoints": ("ep",),
    "Event": ("ev",),
    "HorizontalPodAutoscaler": ("hpa",),
    "Ingress": ("ing",),
    "LimitRange": ("limits",),
    "Namespace": ("ns",),
    "NetworkPolicy": ("netpol",),
    "Node": ("no",),
    "PersistentVolume": ("pv",),
    "PersistentVolumeClaim": ("pvc",),
    "Pod": ("po",),
    "PodDisruptionBudget": ("pdb",),
    "PriorityClass": ("pc",),
    "ReplicaSet": ("rs",),
    "ReplicationController": ("rc",),
    "ResourceQuota": ("quota",),
    "Service": ("svc",),
    "ServiceAccount": ("sa",),
    "StatefulSet": ("sts",),
    "StorageClass": ("sc",),
}
_IN_CATEGORY_ALL = (
    *("CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job", "Pod", "ReplicaSet"),
    *("ReplicationController", "Service", "StatefulSet"),
)
_API_EXTENSION_GROUPS = ("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io")
_WITH_SCALE = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
_NAMED_AS_PATHS = (
    *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("APIService", "CertificateSigningRequest", "Event", "PodDisruptionBudget"),
)
_NAMED_AS_LABELS = ("Namespace", "Service", "StatefulSet")


def _kind(row: str) -> Kind:
    group, version, name, plural, habits = row.split()
    name_rule: NameRule = "path" if name in _NAMED_AS_PATHS else "label" if name in _NAMED_AS_LABELS else "subdomain"
    return Kind(
        Resource(group.strip("-"), version, name, plural, namespaced="C" not in habits),
        status="s" in habits.lower(),
        status_takes_metadata="s" in habits,
        status_takes_labels="l" not in habits,
        generation="g" in habits,
        generation_counts_annotations="a" in habits,
        put_needs_version="v" in habits,
        put_creates="p" in habits,
        name_rule=name_rule,
        fields=_FIELDS.get(name, {}),
        fields_elsewhere=_FIELDS_ELSEWHERE.get(name, {}),
        scale=ScalePaths() if name in _WITH_SCALE else None,
        kind_names=_kind_names(group, name),
        is_review="q" in habits,
        rules=RULES_BY_KIND.get((group.strip("-"), name), NO_RULES),
    )


def _kind_names(group: str, name: str) -> KindNames:
    categories = ("all",) if name in _IN_CATEGORY_ALL else ("api-extensions",) if group in _API_EXTENSION_GROUPS else ()
    return KindNames(name.lower(), _SHORT_NAMES.get(name, ()), categories)


BUILT_IN = tuple(_kind(row) for row in _TABLE.strip().splitlines())

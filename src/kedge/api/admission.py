"""Admission: what an API server asks an admission webhook, and what the webhook answers (admission.k8s.io/v1).

Versions v1 and v1beta1 have the same fields; an answer is given in the version of its question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from msgspec import field

from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

ADMISSION: Final = "admission.k8s.io"
REGISTRATION: Final = "admissionregistration.k8s.io"


class KindName(Value, frozen=True, gc=False):
    """A kind, by its names. The core group is written as an empty string."""

    group: str = ""
    version: str = ""
    kind: str = ""


class ResourceName(Value, frozen=True, gc=False):
    """A resource, by its names. The core group is written as an empty string."""

    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(Value, frozen=True, gc=False):
    """Who asks."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()


class AdmissionRequest(Value, frozen=True, gc=False):
    """One write that wants to happen. Objects are kept as they came, whatever they are: a rule that cannot read one
    may allow the write all the same."""

    uid: str = ""
    kind: KindName = KindName()
    resource: ResourceName = ResourceName()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str = ""
    user_info: UserInfo = UserInfo()
    object: Any = None
    old_object: Any = None
    dry_run: bool | None = None
    options: Any = None


class AdmissionStatus(Value, frozen=True, gc=False):
    """Why a write is refused, as kubectl shows it."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0


class AdmissionResponse(Value, frozen=True, gc=False):
    """Whether the write may happen."""

    uid: str
    allowed: bool
    status: AdmissionStatus | None = None
    patch: str | None = None
    """A JSON patch, in base64."""
    patch_type: str | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)


class AdmissionReview(Value, frozen=True, gc=False):
    """A question (`request`) or its answer (`response`)."""

    api_version: str = ""
    kind: str = ""
    request: AdmissionRequest | None = None
    response: AdmissionResponse | None = None


class ServiceReference(Value, frozen=True, gc=False):
    """A Service that leads to a webhook."""

    namespace: str
    name: str
    path: str = ""
    port: int = 443


class ClientConfig(Value, frozen=True, gc=False):
    """How a webhook is reached: a URL or a Service, and whom to trust (PEM in base64)."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str = ""


class Webhook(Value, frozen=True, gc=False):
    """One webhook of a configuration, as far as an operator reads it."""

    name: str
    client_config: ClientConfig = ClientConfig()
    failure_policy: str = "Fail"


class ValidatingWebhookConfiguration(Value, frozen=True, gc=False):
    """Webhooks that may refuse writes."""

    resource: ClassVar[Resource] = Resource(
        REGISTRATION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
    )
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    webhooks: tuple[Webhook, ...] = ()


class MutatingWebhookConfiguration(Value, frozen=True, gc=False):
    """Webhooks that may change writes, or have side effects."""

    resource: ClassVar[Resource] = Resource(
        REGISTRATION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
    )
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    webhooks: tuple[Webhook, ...] = ()

"""Ingress: defaults and validation of Ingresses and IngressClasses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kedge.api.resource import Resource
from kedge.embedded.builtin import checks
from kedge.embedded.builtin.defaulting import struct
from kedge.embedded.builtin.storage import default_class_name
from kedge.embedded.causes import IMMUTABLE, invalid_value, invalid_values, required_value, unsupported_value
from kedge.embedded.kind_rules import AdmissionContext
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_CLASSES = Resource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False)
_IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_BAD_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_WILDCARD = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)

default_ingress = struct({"spec": {}, "status": {}}, status=struct({"loadBalancer": {}}))
default_ingress_class = struct({"spec": {}}, spec=struct(parameters=struct({"scope": "Cluster"})))


def prepare_new_ingress(ingress: Untyped, context: AdmissionContext) -> Untyped:
    """A new Ingress gets the default class, unless it names one, by field or by annotation."""
    if "ingressClassName" in ingress["spec"] or CLASS_ANNOTATION in ingress["metadata"].get("annotations", {}):
        return ingress
    name = default_class_name(context, _CLASSES, _IS_DEFAULT)
    return {**ingress, "spec": {**ingress["spec"], "ingressClassName": name}} if name else ingress


def ingress_problems(ingress: Untyped) -> Iterator[Cause]:
    spec = ingress["spec"]
    old_way = ingress["metadata"].get("annotations", {}).get(CLASS_ANNOTATION)
    if old_way is not None and "ingressClassName" in spec and old_way != spec["ingressClassName"]:
        yield invalid_value(
            f"annotations.{CLASS_ANNOTATION}", old_way, "must match `ingressClassName` when both are specified"
        )
    rules = spec.get("rules", ())
    if not rules and "defaultBackend" not in spec:
        yield invalid_value("spec", None, "either `defaultBackend` or `rules` must be specified")
    if "defaultBackend" in spec:
        yield from _backend("spec.defaultBackend", spec["defaultBackend"])
    for index, rule in enumerate(rules):
        yield from _rule(f"spec.rules[{index}]", rule)
    for index, tls in enumerate(spec.get("tls", ())):
        for place, host in enumerate(tls.get("hosts", ())):
            yield from _host(f"spec.tls[{index}].hosts[{place}]", host)
        if tls.get("secretName"):
            yield from checks.subdomain(f"spec.tls[{index}].secretName", tls["secretName"])
    if "ingressClassName" in spec:
        yield from checks.subdomain("spec.ingressClassName", spec["ingressClassName"])


def ingress_class_problems(ingress_class: Untyped) -> Iterator[Cause]:
    controller = ingress_class["spec"].get("controller", "")
    if not controller:
        yield required_value("spec.controller")
        return
    if len(controller) > 250:
        yield Cause("spec.controller", "Too long: may not be more than 250 bytes", "FieldValueTooLong")
    domain, slash, path = controller.partition("/")
    if not slash or not domain or not path:
        yield invalid_value("spec.controller", controller, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from invalid_values("spec.controller", domain, checks.subdomain_problems(domain))


def ingress_class_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    if old["spec"].get("controller") != new["spec"].get("controller"):
        yield invalid_value("spec.controller", new["spec"].get("controller", ""), IMMUTABLE)


def _rule(at: str, rule: Untyped) -> Iterator[Cause]:
    if host := rule.get("host"):
        if checks.is_address(host):
            yield invalid_value(f"{at}.host", host, "must be a DNS name, not an IP address")
        yield from _host(f"{at}.host", host)
    if "http" not in rule:
        return
    paths = rule["http"].get("paths") or ()
    if not paths:
        yield required_value(f"{at}.http.paths")
    for index, path in enumerate(paths):
        yield from _path(f"{at}.http.paths[{index}]", path)


def _host(at: str, host: str) -> Iterable[Cause]:
    if "*" not in host:
        return checks.subdomain(at, host)
    fine = host.startswith("*.") and not checks.subdomain_problems(host[2:])
    return () if fine else (invalid_value(at, host, _WILDCARD),)


def _path(at: str, found: Untyped) -> Iterator[Cause]:
    path, kind = found.get("path", ""), found.get("pathType")
    if kind is None:
        yield required_value(f"{at}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield unsupported_value(f"{at}.pathType", kind, _PATH_TYPES)
    elif (path or kind != "ImplementationSpecific") and not path.startswith("/"):
        yield invalid_value(f"{at}.path", path, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        yield from (
            invalid_value(f"{at}.path", path, f"must not contain '{part}'") for part in _BAD_PARTS if part in path
        )
        yield from (
            invalid_value(f"{at}.path", path, f"cannot end with '{end}'") for end in _BAD_ENDS if path.endswith(end)
        )
    yield from _backend(f"{at}.backend", found.get("backend", {}))


def _backend(at: str, backend: Untyped) -> Iterator[Cause]:
    if "service" in backend and "resource" in backend:
        yield invalid_value(at, "", "cannot set both resource and service backends")
    elif "service" in backend:
        yield from _service(at, backend["service"])
    elif "resource" in backend:
        for name in ("kind", "name"):
            if not backend["resource"].get(name):
                yield required_value(f"{at}.resource.{name}")
    else:
        yield invalid_value(at, "", "resource or service backend is required")


def _service(at: str, service: Untyped) -> Iterator[Cause]:
    if not service.get("name"):
        yield required_value(f"{at}.service.name")
    else:
        yield from checks.label(f"{at}.service.name", service["name"])
    port = service.get("port", {})
    name, number = port.get("name"), port.get("number")
    if name and number:
        yield invalid_value(at, "", "cannot set both port name & port number")
    elif name:
        yield from invalid_values(f"{at}.service.port.name", name, checks.port_name_problems(name))
    elif number:
        yield from checks.port(f"{at}.service.port.number", number)
    else:
        yield required_value(at, "port name or number is required")

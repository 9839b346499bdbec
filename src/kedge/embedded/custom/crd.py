"""CRD: defaults, creation, update and validation of a CustomResourceDefinition.

    crd = with_defaults(crd)                    # names and conversion filled in
    crd = prepared_for_create(crd)              # a new one, with its first status
    problems(crd, old)                          # causes, as apiextensions-apiserver gives them; `old` for an update

Pure. Metadata is validated elsewhere, except for the name. Conversion by webhook is refused. Where Kubernetes shows a
Go struct as the bad value, the JSON that was sent is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from kedge.api.openapi.model import Raw
from kedge.api.resource import Resource
from kedge.embedded.custom import crd_versions, formats, go_causes
from kedge.embedded.custom.embedded_resources import dns_1035_label_problems
from kedge.embedded.kind_rules import KindRules
from kedge.embedded.naming import name_problems
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
_APPROVAL = "api-approved.kubernetes.io"
_SEE = "https://github.com/kubernetes/enhancements/pull/1111"
_MIXED = "may have mixed case, but should otherwise match: "
_NO_WEBHOOKS = "the embedded server converts nothing: give every version the same meaning, and use None"


def with_defaults(crd: Untyped) -> Untyped:
    """The CRD with its names and conversion filled in; the same object if nothing was missing."""
    spec = crd.get("spec", {})
    names, kind = spec.get("names", {}), str(spec.get("names", {}).get("kind", ""))
    filled = {
        **names,
        **({} if names.get("singular") else {"singular": kind.lower()}),
        **({} if names.get("listKind") or not kind else {"listKind": f"{kind}List"}),
    }
    conversion = spec.get("conversion") or {"strategy": "None"}
    if filled == names and spec.get("conversion") == conversion:
        return crd
    return {**crd, "spec": {**spec, "names": filled, "conversion": conversion}}


def prepared_for_create(crd: Untyped) -> Untyped:
    """A new CRD, whose names are not accepted yet."""
    status = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": _to_store(crd, [])}
    return {**crd, "status": status}


def prepared_for_update(old: Untyped, new: Untyped) -> Untyped:
    """A changed CRD, with its old status and the version that is stored from now on."""
    status = old.get("status", {})
    stored = _to_store(new, status.get("storedVersions") or [])
    return {**new, "status": {**status, "storedVersions": stored}}


def _versions(spec: Raw) -> list[Raw]:
    """The versions of a CRD; absent ones are written as null."""
    return spec.get("versions") or []


def _to_store(crd: Untyped, before: Sequence[str]) -> list[str]:
    chosen = next((one.get("name", "") for one in _versions(crd["spec"]) if one.get("storage")), None)
    return [*before] if chosen is None or chosen in before else [*before, chosen]


def problems(crd: Untyped, old: Untyped | None = None) -> list[Cause]:
    """What is wrong with a CRD that has its defaults and its status."""
    return [*_own_problems(crd), *_changes(old, crd["spec"])] if old else _new_problems(crd)


def _own_problems(crd: Untyped) -> list[Cause]:
    spec = crd["spec"]
    found = list(_spec(spec))
    found += _stored(crd.get("status", {}).get("storedVersions") or [], _versions(spec))
    if spec.get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(go_causes.invalid_value("spec.preserveUnknownFields", True, why))
    return found


def warnings(crd: Untyped) -> Iterator[str]:
    """Warnings about a new CRD."""
    if _is_new(crd):
        schemas = [(one.get("schema") or {}).get("openAPIV3Schema") or {} for one in _versions(crd["spec"])]
        unknown = dict.fromkeys(name for schema in schemas for name in formats.unknown_formats(schema))
        yield from (f'unrecognized format "{name}"' for name in unknown)


def _is_new(crd: Untyped) -> bool:
    return not crd.get("status", {}).get("conditions")


def _approval(crd: Untyped) -> Iterator[Cause]:
    """Groups of Kubernetes itself need the approval annotation."""
    group, note = str(crd["spec"].get("group", "")), crd["metadata"].get("annotations", {}).get(_APPROVAL, "")
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")) or note.lower().startswith("unapproved"):
        return
    address, lead = urlsplit(note), f'protected groups must have approval annotation "{_APPROVAL}"'
    if not note:
        yield go_causes.required_value(f"metadata.annotations[{_APPROVAL}]", f"{lead}, see {_SEE}")
    elif not (address.scheme and address.netloc):
        why = f'{lead} with either a URL or a reason starting with "unapproved", see {_SEE}'
        yield go_causes.invalid_value(f"metadata.annotations[{_APPROVAL}]", note, why)


def _name(crd: Untyped) -> Iterator[Cause]:
    spec, name = crd["spec"], crd["metadata"].get("name", "")
    if name and name != f"{spec.get('names', {}).get('plural', '')}.{spec.get('group', '')}":
        yield go_causes.invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec(spec: Raw) -> Iterator[Cause]:
    yield from _group(str(spec.get("group", "")))
    yield from _one_of(spec.get("scope", ""), "spec.scope", ["Cluster", "Namespaced"])
    versions = _versions(spec)
    yield from crd_versions.version_problems(spec.get("versions"))
    yield from _names(spec.get("names", {}), "spec.names")
    yield from crd_versions.shared_part_problems(versions)
    yield from _conversion(spec.get("conversion", {}))


def _group(group: str) -> Iterator[Cause]:
    if not group:
        yield go_causes.required_value("spec.group")
    elif wrong := name_problems(group, "subdomain"):
        yield go_causes.invalid_value("spec.group", group, ",".join(wrong))
    elif "." not in group:
        yield go_causes.invalid_value("spec.group", group, "should be a domain with at least one dot")


def _one_of(value: str, path: str, known: list[str]) -> Iterator[Cause]:
    if not value:
        yield go_causes.required_value(path)
    elif value not in known:
        yield go_causes.unsupported_value(path, value, known)


# Names, conversion, changes


def _names(names: Raw, path: str) -> Iterator[Cause]:
    for word in ("plural", "singular", "kind", "listKind"):
        if not names.get(word):
            yield go_causes.required_value(f"{path}.{word}")
    for word, lead in (("plural", ""), ("singular", ""), ("kind", _MIXED), ("listKind", _MIXED)):
        name = names.get(word, "")
        if name and (wrong := dns_1035_label_problems(name.lower() if lead else name)):
            yield go_causes.invalid_value(f"{path}.{word}", name, f"{lead}{','.join(wrong)}")
    yield from _each_name(names, "shortNames", path)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield go_causes.invalid_value(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _each_name(names, "categories", path)


def _each_name(names: Raw, word: str, path: str) -> Iterator[Cause]:
    for index, name in enumerate(names.get(word) or []):
        if wrong := dns_1035_label_problems(name):
            yield go_causes.invalid_value(f"{path}.{word}[{index}]", name, ",".join(wrong))


def _conversion(conversion: Raw) -> Iterator[Cause]:
    strategy = conversion.get("strategy", "")
    yield from _one_of(strategy, "spec.conversion.strategy", ["None", "Webhook"])
    if strategy == "Webhook":
        yield go_causes.invalid_value("spec.conversion.strategy", strategy, _NO_WEBHOOKS)
    elif conversion.get("webhook"):
        why = "should not be set when strategy is not set to Webhook"
        yield go_causes.forbidden("spec.conversion.webhookClientConfig", why)


def _changes(old: Untyped, spec: Raw) -> Iterator[Cause]:
    was = old["spec"]
    frozen: list[tuple[str, Any, Any]] = []
    if has_condition(old, "Established"):
        frozen += [("scope", spec.get("scope"), was.get("scope"))]
        frozen += [("names.kind", spec["names"].get("kind"), was["names"].get("kind"))]
    frozen += [("group", spec.get("group"), was.get("group"))]
    frozen += [("names.plural", spec["names"].get("plural"), was["names"].get("plural"))]
    for path, new, before in frozen:
        if new != before:
            yield go_causes.invalid_value(f"spec.{path}", new, "field is immutable")


def has_condition(crd: Untyped, condition: str) -> bool:
    """Whether a condition of a CRD is True."""
    found = crd.get("status", {}).get("conditions") or []
    return any(one["type"] == condition and one["status"] == "True" for one in found)


def _stored(stored: list[str], versions: Sequence[Raw]) -> Iterator[Cause]:
    path = "status.storedVersions"
    if not stored:
        yield go_causes.invalid_value(path, None, "must have at least one stored version")
        return
    names = [one.get("name") for one in versions]
    for one in versions:
        if one.get("storage") and one.get("name") not in stored:
            yield go_causes.invalid_value(path, stored, f"must have the storage version {one.get('name')}")
    for index, name in enumerate(stored):
        if name not in names:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions"
            )
            yield go_causes.invalid_value(f"{path}[{index}]", name, why)


def _new_problems(crd: Untyped) -> list[Cause]:
    """What is wrong with a CRD, and with its name if it is new."""
    return [*_name(crd), *_own_problems(crd), *_approval(crd)] if _is_new(crd) else _own_problems(crd)


CRD_RULES = KindRules(
    with_defaults=with_defaults,
    prepare_new=lambda crd, _around: prepared_for_create(crd),
    prepare_changed=prepared_for_update,
    problems=_new_problems,
    update_problems=lambda old, new: _changes(old, new["spec"]),
    warnings=warnings,
)

"""Naming: which names, labels, annotations and finalizers are valid, what to say of others, and the order of versions.

Each `..._problems` function gives the problems of one value, in Kubernetes' words; none means it is valid.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

NameRule: TypeAlias = Literal["subdomain", "label", "path"]  # what names of a kind must look like

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_QUALIFIED})?"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_value = re.compile(_VALUE).fullmatch

_ENDS = "and must start and end with an alphanumeric character"
_SAY_LABEL = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SAY_SUBDOMAIN = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_SAY_QUALIFIED = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_SAY_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_SAY_VALUE = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STANDARD_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")


def name_problems(name: str, rule: NameRule) -> list[str]:
    """What is wrong with the name of an object of a kind with this rule."""
    if rule == "path":
        return _segment_problems(name)
    return _label_problems(name) if rule == "label" else _subdomain_problems(name)


def key_problems(key: str) -> list[str]:
    """What is wrong with the key of a label."""
    *prefix, name = key.split("/")
    if len(prefix) > 1:
        return [f"a valid label key {_SAY_QUALIFIED} {_SAY_PREFIX}"]
    problems = [f"prefix part {problem}" for part in prefix for problem in _prefix_problems(part)]
    if not name:
        problems.append("name part must be non-empty")
    if len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _is_qualified(name):
        problems.append(f"name part {_SAY_QUALIFIED}")
    return problems


def value_problems(value: str) -> list[str]:
    """What is wrong with the value of a label."""
    problems = ["must be no more than 63 bytes"] if len(value) > 63 else []
    return problems if _is_value(value) else [*problems, _SAY_VALUE]


def is_finalizer(name: str) -> bool:
    """Whether it is a valid finalizer: with a domain, or one of Kubernetes itself."""
    return "/" in name or name in _STANDARD_FINALIZERS


def version_order(version: str) -> tuple[int, int, int, str]:
    """A sort key for API versions, preferred ones first: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    found = _VERSION.fullmatch(version)
    if not found:
        return 3, 0, 0, version
    major, stage, minor = found.groups()
    return ("", "beta", "alpha").index(stage or ""), -int(major), -int(minor or 0), version


def _prefix_problems(prefix: str) -> list[str]:
    return _subdomain_problems(prefix) if prefix else ["must be non-empty"]


def _subdomain_problems(name: str) -> list[str]:
    problems = ["must be no more than 253 characters"] if len(name) > 253 else []
    return problems if _is_subdomain(name) else [*problems, _SAY_SUBDOMAIN]


def _label_problems(name: str) -> list[str]:
    if "." in name:
        return ["must not contain dots"]
    problems = ["must be no more than 63 characters"] if len(name) > 63 else []
    return problems if _is_label(name) else [*problems, _SAY_LABEL]


def _segment_problems(name: str) -> list[str]:
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in name]

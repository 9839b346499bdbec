"""Checks: whether small values (ports, addresses, keys, percentages) are valid, in Kubernetes' words.

Each function gives the causes for one value at one field; none means it is valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network

from kedge.embedded.causes import NOT_NEGATIVE, invalid_value, invalid_values
from kedge.embedded.naming import key_problems, name_problems, value_problems
from kedge.kube.errors import Cause

PROTOCOLS = ("SCTP", "TCP", "UDP")
PORT_RANGE = "must be between 1 and 65535, inclusive"
_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_SAY_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_ENV = re.compile(r"[ -<>-~]+")
_SAY_ENV = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_SAY_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_SAY_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

label_problems = lru_cache(4096)(lambda name: name_problems(name, "label"))
subdomain_problems = lru_cache(4096)(lambda name: name_problems(name, "subdomain"))
_key_problems = lru_cache(4096)(key_problems)
_value_problems = lru_cache(4096)(value_problems)


def label(at: str, name: str) -> Iterable[Cause]:
    """It must be an RFC 1123 label."""
    return invalid_values(at, name, found) if (found := label_problems(name)) else ()


def subdomain(at: str, name: str) -> Iterable[Cause]:
    """It must be an RFC 1123 subdomain."""
    return invalid_values(at, name, found) if (found := subdomain_problems(name)) else ()


def qualified_name(at: str, key: str) -> Iterable[Cause]:
    """It must be a qualified name, like the key of a label."""
    return invalid_values(at, key, found) if (found := _key_problems(key)) else ()


def label_value(at: str, value: str) -> Iterable[Cause]:
    return invalid_values(at, value, found) if (found := _value_problems(value)) else ()


def labels(at: str, found: Mapping[str, str]) -> Iterator[Cause]:
    for key, value in found.items():
        yield from qualified_name(at, key)
        yield from label_value(at, value)


def port(at: str, number: int) -> Iterable[Cause]:
    return () if 0 < number < 65536 else (invalid_value(at, number, PORT_RANGE),)


@lru_cache(4096)
def port_name_problems(name: str) -> list[str]:
    """What is wrong with the name of a port."""
    problems = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not re.fullmatch(r"[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_or_name(at: str, value: int | str) -> Iterable[Cause]:
    return port(at, value) if isinstance(value, int) else invalid_values(at, value, port_name_problems(value))


@lru_cache(4096)
def config_key_problems(key: str) -> list[str]:
    """What is wrong with a key of a ConfigMap or a Secret."""
    problems = ["must be no more than 253 characters"] if len(key) > 253 else []
    if not _KEY.fullmatch(key):
        return [*problems, _SAY_KEY]
    if key in (".", ".."):
        return [*problems, f"must not be '{key}'"]
    return [*problems, "must not start with '..'"] if key.startswith("..") else problems


def env_name(at: str, name: str) -> Iterable[Cause]:
    return () if _ENV.fullmatch(name) else (invalid_value(at, name, _SAY_ENV),)


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def address(at: str, text: str) -> Iterable[Cause]:
    return () if is_address(text) else (invalid_value(at, text, _SAY_IP),)


def cidr(at: str, text: str) -> Iterable[Cause]:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return (invalid_value(at, text, _SAY_CIDR),)
    return () if "/" in text else (invalid_value(at, text, _SAY_CIDR),)


def count_or_percent(at: str, value: int | str) -> Iterable[Cause]:
    """It must be a count or a percentage."""
    if isinstance(value, int):
        return (invalid_value(at, value, NOT_NEGATIVE),) if value < 0 else ()
    return () if re.fullmatch(r"[0-9]+%", value) else (invalid_value(at, value, _PERCENT),)


def at_most_100_percent(at: str, value: int | str) -> Iterable[Cause]:
    """A percentage must be at most 100%."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]+%", value) and int(value[:-1]) > 100:
        return (invalid_value(at, value, "must not be greater than 100%"),)
    return ()


def number_in(value: int | str) -> int:
    """The number of a count or a percentage, whichever it is; 0 for neither."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if re.fullmatch(r"[0-9]+%", value) else 0


def relative_path(at: str, path: str) -> Iterator[Cause]:
    """It must be a relative path without `..`."""
    if path.startswith("/"):
        yield invalid_value(at, path, "must be a relative path")
    if ".." in path.split("/"):
        yield invalid_value(at, path, "must not contain '..'")

"""Names: what bindings and Works are called, and where Works are, as Karmada has it."""

from __future__ import annotations

from typing import Final

from kedge.api.karmada.keys import EXECUTION_PREFIX

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET, _PRIME, _SIZE = 0x811C9DC5, 0x01000193, 2**32


def binding_name(kind: str, name: str) -> str:
    """The name of the binding of a resource."""
    return f"{_plain(name)}-{kind}".lower()


def work_namespace(cluster: str) -> str:
    """Where the Works of a cluster are."""
    return f"{EXECUTION_PREFIX}{cluster}"


def work_name(kind: str, name: str, namespace: str = "") -> str:
    """The name of the Work of a resource: the same for every cluster."""
    key = "-".join(part for part in (namespace, _plain(name), kind) if part).lower()
    return f"{_plain(name).lower()}-{_encoded(str(fnv32a(key.encode())))}"


def _plain(name: str) -> str:
    return name.replace(":", ".")


def fnv32a(data: bytes) -> int:
    """FNV-1a, 32 bits."""
    found = _OFFSET
    for byte in data:
        found = (found ^ byte) * _PRIME % _SIZE
    return found


def _encoded(text: str) -> str:
    """In letters that spell no words."""
    return "".join(_LETTERS[ord(letter) % len(_LETTERS)] for letter in text)

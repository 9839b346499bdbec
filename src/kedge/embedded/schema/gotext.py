"""Go text: a JSON value as Go prints one (`%v`), which is how some refusals of kube-apiserver quote a patch."""

from __future__ import annotations

from typing import Any


def go_text(value: Any) -> str:
    """`{"spec": {"foo": [1, None]}}` is `map[spec:map[foo:[1 <nil>]]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)

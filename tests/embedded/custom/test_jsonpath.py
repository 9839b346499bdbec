"""JSONPath: what columns and selectable fields find in an object."""

from typing import Any

import pytest

from kedge.embedded.custom.jsonpath import BadPath, compile_path

OBJ: dict[str, Any] = {
    "spec": {"size": 3, "parts": [{"name": "a", "n": 1}, {"name": "b", "n": 2}], "a.b": "dotted", "none": None},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".spec.size", [3]),
        (".spec.none", [None]),
        (".spec.missing.more", []),
        (".spec['size']", [3]),
        ('.spec["size"]', [3]),
        (r".spec.a\.b", ["dotted"]),
        (".spec['a.b']", ["dotted"]),
        (".spec.parts[0].name", ["a"]),
        (".spec.parts[-1].name", ["b"]),
        (".spec.parts[9].name", []),
        (".spec.parts[*].name", ["a", "b"]),
        (".spec.parts[0:1].name", ["a"]),
        (".spec.parts[:].n", [1, 2]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type == "Done")].status', ["False"]),
        (".status.conditions[?(@.type!='Ready')].status", ["False"]),
        (".spec.parts[?(@.n>1)].name", ["b"]),
        (".spec.parts[?(@.missing)].name", []),
        (".spec.parts[?(@.n)].name", ["a", "b"]),
        (".spec['size','a.b']", [3, "dotted"]),
        ("..type", ["Ready", "Done"]),
        (".", [OBJ]),
        (".spec.size.deeper", []),
    ],
)
def test_a_path_finds(text: str, found: list[Any]) -> None:
    assert compile_path(text)(OBJ) == found


@pytest.mark.parametrize("text", ["spec", ".spec[", ".spec[x]", ".spec[?(type=='a')]", ".a[?(@.b==c)]"])
def test_a_path_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadPath):
        compile_path(text)

"""Go types: what the structs behind the API say about their members that OpenAPI leaves out.

Reads the Go source by its shape (`type X struct {`, a member per line, its json tag), which generated and formatted
code keeps. Promises a fact for every member of every struct it finds; what is no struct has none.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from controlplane.gotool import go_environment
from controlplane.versions import MODULES_FOLDER

# The beginning of a definition's name, and the Go module its types are in.
_PLACES = (
    ("io.k8s.apimachinery.", "k8s.io/apimachinery"),
    ("io.k8s.apiextensions-apiserver.", "k8s.io/apiextensions-apiserver"),
    ("io.k8s.kube-aggregator.", "k8s.io/kube-aggregator"),
    ("io.k8s.api.", "k8s.io/api"),
)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_MEMBER = re.compile(r'^\t(?:(\w+) +)?(\S+) +`[^`]*json:"([^"]*)"')
_NUMBERED = re.compile(r'^\t(?!//).*json:"([^"]*)".*protobuf:"\w+,(\d+),')
_STRUCTS_WITHOUT_SHAPE = ("intstr.IntOrString", "resource.Quantity", "v1.Time", "v1.MicroTime", "runtime.RawExtension")


@dataclass(frozen=True)
class Fact:
    """What Go says of one member of a struct."""

    type: str  # as Go's errors name it: `int32`, `[]v1.Container`
    pointer: bool
    always: bool  # written also when it holds nothing
    via: str = ""  # the struct it is a member of, where that is embedded in this one


def sources() -> Mapping[str, Path]:
    """Where the source of each module is; downloads it if it must."""
    modules = [module for _, module in _PLACES]
    command = ["go", "mod", "download", *modules]
    cwd = MODULES_FOLDER / "kubernetes"
    subprocess.run(command, cwd=cwd, env=go_environment(), check=True, capture_output=True)
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Path}} {{.Dir}}", *modules]
    told = subprocess.run(command, cwd=cwd, env=go_environment(), check=True, capture_output=True, text=True).stdout
    return {path: Path(folder) for path, folder in (line.split() for line in told.splitlines())}


class Source:
    """The Go source, and what was read of it: each folder when first asked for."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders
        self._texts: dict[Path, str] = {}
        self._structs: dict[Path, dict[str, str]] = {}

    def members(self, definition: str) -> Mapping[str, Fact]:
        """The facts about the members of a definition."""
        folder, name = self._place(definition)
        return dict(self._members(folder, name))

    def numbers(self, definition: str) -> Mapping[int, str]:
        """What JSON calls each field that protobuf numbers; empty for one whose members stand in its place."""
        folder, name = self._place(definition)
        found = map(_NUMBERED.match, self._bodies(folder).get(name, "").splitlines())
        return {int(match[2]): match[1].partition(",")[0] for match in found if match and match[1] != "-"}

    def _place(self, definition: str) -> tuple[Path, str]:
        for start, module in _PLACES:
            if definition.startswith(start):
                *way, name = definition.removeprefix(start).split(".")
                return self._folders[module].joinpath(*way), name
        raise LookupError(f"{definition}: no Go module is known for it")

    def _members(self, folder: Path, name: str) -> Iterator[tuple[str, Fact]]:
        for line in self._bodies(folder).get(name, "").splitlines():
            if match := _MEMBER.match(line):
                yield from self._member(folder, *match.groups())

    def _member(self, folder: Path, name: str | None, written: str, tag: str) -> Iterator[tuple[str, Fact]]:
        json_name, *words = tag.split(",")
        if "inline" in words or (not json_name and name is None):
            other, short = self._found(folder, written.lstrip("*"))
            via = "" if name is None and short == "TypeMeta" else short
            for inner, fact in self._members(other, short):
                yield inner, Fact(fact.type, fact.pointer, fact.always, via)
        elif json_name and json_name != "-":
            shown = self._shown(folder, written)
            pointer = shown.startswith("*")
            empty_is_seen = "omitempty" not in words or (not pointer and self._is_struct(folder, written))
            yield json_name, Fact(shown.lstrip("*"), pointer, empty_is_seen and "omitzero" not in words)

    def _is_struct(self, folder: Path, written: str) -> bool:
        if written.startswith(("[", "map[")) or self._shown(folder, written) in _STRUCTS_WITHOUT_SHAPE:
            return not written.startswith(("[", "map["))
        other, name = self._found(folder, written)
        return name in self._bodies(other)

    def _shown(self, folder: Path, written: str) -> str:
        """A type as Go's errors name it: with the name of its package."""
        match = re.fullmatch(r"(\**(?:\[\]|map\[\w+(?:\.\w+)?\])*\**)([\w.]+|interface\{\})", written)
        assert match, f"{written}: a Go type of a shape not met before"
        start, name = match.groups()
        start = re.sub(r"map\[(?!string\])[\w.]+\]", "map[string]", start)
        if name == "byte":
            return f"{start}uint8"
        return start + (name if name.islower() and "." not in name else self._qualified(folder, name))

    def _qualified(self, folder: Path, name: str) -> str:
        if "." not in name:
            return f"{folder.name}.{name}"
        package, _, short = name.partition(".")
        return f"{self._import(folder, package).rsplit('/', 1)[-1]}.{short}"

    def _found(self, folder: Path, name: str) -> tuple[Path, str]:
        """Where a type is declared, and its name there."""
        package, dot, short = name.partition(".")
        if not dot:
            return folder, name
        path = self._import(folder, package)
        for module, root in sorted(self._folders.items(), key=lambda item: -len(item[0])):
            if path == module or path.startswith(f"{module}/"):
                return root / path.removeprefix(module).lstrip("/"), short
        return folder, name

    def _import(self, folder: Path, package: str) -> str:
        match = re.search(
            rf'^(?:import )?\s*(?:{package} "([^"]+)"|"([^"]+/{package})")$', self._text(folder), re.MULTILINE
        )
        assert match, f"{package} is not imported in {folder}"
        return match[1] or match[2]

    def _bodies(self, folder: Path) -> Mapping[str, str]:
        """What stands between the braces of each struct of a package."""
        if folder not in self._structs:
            self._structs[folder] = {found[1]: found[2] for found in _STRUCT.finditer(self._text(folder))}
        return self._structs[folder]

    def _text(self, folder: Path) -> str:
        if folder not in self._texts:
            files = sorted(folder.glob("*.go")) if folder.is_dir() else []
            chosen = [file for file in files if not file.name.endswith("_test.go") and "generated" not in file.name]
            self._texts[folder] = "\n".join(file.read_text() for file in chosen)
        return self._texts[folder]

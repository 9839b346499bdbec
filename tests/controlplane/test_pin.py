"""The go.mod and go.sum files that fix what is built."""

import re

import pytest

from controlplane.pin import go_mod
from controlplane.versions import MODULES, Module, Program

THEIRS = """module k8s.io/kubernetes

go 1.26.0

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/streaming => ./staging/src/k8s.io/streaming
	example.com/fork => example.com/other v1.0.0
)
"""


def test_siblings_that_are_folders_there_are_versions_here() -> None:
    module = Module("k", "k8s.io/kubernetes", "v1.36.3", (Program("a", "k8s.io/kubernetes/cmd/a"),), siblings="v0.36.3")
    lines = [line.strip() for line in go_mod(module, THEIRS).splitlines()]
    assert "require k8s.io/kubernetes v1.36.3" in lines
    assert "k8s.io/kubernetes/cmd/a" in lines
    assert [line for line in lines if "=>" in line] == [
        "k8s.io/api => k8s.io/api v0.36.3",
        "k8s.io/streaming => k8s.io/streaming v0.36.3",
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_the_pinned_files_are_of_the_versions_we_name(module: Module) -> None:
    """Whoever changes a version has to run `python -m controlplane pin`."""
    mod, checksums = (module.folder / "go.mod").read_text(), (module.folder / "go.sum").read_text()
    assert re.search(rf"\b{re.escape(module.path)} {re.escape(module.version)}\b", mod)
    assert f"{module.path} {module.version} h1:" in checksums
    if module.siblings:
        assert set(re.findall(r"=> \S+ (\S+)", mod)) == {module.siblings}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_the_pinned_files_name_modules_only(module: Module) -> None:
    text = (module.folder / "go.mod").read_text() + (module.folder / "go.sum").read_text()
    assert "://" not in text

"""Where the programs of a control plane are taken from."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from controlplane.binaries import Binaries, Missing, cache_folder, find
from controlplane.versions import PROGRAMS

NEW = dict.fromkeys(("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"), "v1.36.0")
ALL_NEW = {**NEW, "etcd": "3.6.1", "kwok": "v0.8.0"}


class Machine:
    """A machine with an assets folder, a PATH and a cache, all empty."""

    def __init__(self, folder: Path) -> None:
        self.assets, self.path = folder / "assets", folder / "path"
        self.env = {
            "KUBEBUILDER_ASSETS": str(self.assets),
            "PATH": str(self.path),
            "KEDGE_CACHE": str(folder / "cache"),
        }
        self.cache = cache_folder(self.env)

    def find(self) -> Binaries | Missing:
        return find(self.env)

    def sources(self) -> Mapping[str, str]:
        found = self.find()
        assert isinstance(found, Binaries), found
        return {name: binary.source for name, binary in found.found.items()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def install(folder: Path, versions: Mapping[str, str]) -> None:
    """Programs that tell these versions."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, version in versions.items():
        program(folder / name, f"echo {shlex.quote(f'{name} version {version}')}")


def program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def test_nothing_anywhere_is_missing_with_a_reason_for_people(machine: Machine) -> None:
    found = machine.find()
    assert isinstance(found, Missing)
    assert found.programs == tuple(program.name for program in PROGRAMS)
    for part in (
        "kube-apiserver",
        str(machine.assets),
        str(machine.cache),
        "Go 1.26+",
        "make kube",
        "KUBEBUILDER_ASSETS",
    ):
        assert part in found.reason


def test_what_was_built_is_found_without_being_started(machine: Machine, tmp_path: Path) -> None:
    machine.cache.mkdir(parents=True)
    for one in PROGRAMS:
        program(machine.cache / one.name, f"touch {tmp_path}/started")
    assert set(machine.sources().values()) == {"cache"}
    assert not (tmp_path / "started").exists()


def test_assets_come_before_PATH_and_PATH_before_the_cache(machine: Machine) -> None:
    install(machine.cache, ALL_NEW)
    install(machine.path, {"etcd": "3.6.1", "kwok": "v0.8.1"})
    install(machine.assets, {"etcd": "3.6.2"})
    sources = machine.sources()
    assert (sources["etcd"], sources["kwok"], sources["kubectl"]) == ("KUBEBUILDER_ASSETS", "PATH", "cache")


@pytest.mark.parametrize(
    ("name", "version", "why"),
    [
        ("kube-apiserver", "v1.33.9", "older than v1.34.0"),
        ("kubectl", "v1.32.4", "older than v1.34.0"),
        ("kubectl", "v1.36.3-dispatcher", "is a dispatcher"),
        ("kubectl", "v1.38.0", "does not go with"),
        ("etcd", "3.4.30", "older than v3.5.13"),
        ("kwok", "v0.6.0", "older than v0.8.0"),
        ("etcd", "unknown", "does not tell its version"),
    ],
)
def test_an_unusable_program_on_PATH_is_passed_over(machine: Machine, name: str, version: str, why: str) -> None:
    install(machine.path, ALL_NEW | {name: version})
    found = machine.find()
    assert isinstance(found, Missing)
    assert found.programs == (name,)
    assert why in found.reason


def test_the_cache_stands_in_for_an_unusable_program_on_PATH(machine: Machine) -> None:
    install(machine.path, {"kubectl": "v1.32.4-dispatcher"})
    install(machine.cache, ALL_NEW)
    assert machine.sources()["kubectl"] == "cache"


def test_built_controllers_are_not_mixed_with_a_much_older_API_server(machine: Machine) -> None:
    install(machine.assets, {"kube-apiserver": "v1.34.1", "kubectl": "v1.34.1", "etcd": "3.6.1"})
    install(machine.cache, ALL_NEW)
    found = machine.find()
    assert isinstance(found, Missing)
    assert found.programs == ("kube-controller-manager", "kube-scheduler")
    assert "does not go with" in found.reason


def test_a_program_that_cannot_be_run_is_passed_over(machine: Machine) -> None:
    install(machine.cache, ALL_NEW)
    machine.path.mkdir()
    (machine.path / "etcd").write_bytes(b"\x7fELF, but not really")
    (machine.path / "etcd").chmod(0o755)
    assert machine.sources()["etcd"] == "cache"


def test_a_file_that_is_not_executable_is_no_program(machine: Machine) -> None:
    install(machine.cache, ALL_NEW)
    machine.assets.mkdir()
    (machine.assets / "etcd").write_text(json.dumps({}))
    assert machine.sources()["etcd"] == "cache"


@pytest.mark.parametrize(
    ("env", "root"),
    [
        ({"KEDGE_CACHE": "/k", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/k"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/kedge"),
        ({"HOME": "/h"}, "/h/.cache/kedge"),
    ],
)
def test_the_cache_is_where_users_expect_it(env: dict[str, str], root: str) -> None:
    assert cache_folder(env).is_relative_to(Path(root) / "controlplane")

"""What the control plane is made of: programs, the Go modules they come from, and their pinned versions.

Promises one set of versions that works together. To move a version: change it here, then run
`python -m controlplane pin`, which writes `modules/*/go.mod` and `go.sum` anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "1.36.3"
ETCD = "3.6.16"
KWOK = "0.8.0"

OLDEST_KUBERNETES = (1, 34, 0)
OLDEST_ETCD = (3, 5, 13)  # older ones lack the watch progress that kube-apiserver asks for
OLDEST_KWOK = (0, 8, 0)
OLDEST_GO = (1, 26)

MODULES_FOLDER = Path(__file__).parent / "modules"


@dataclass(frozen=True)
class Program:
    """One program: its name, the Go package it is built from, and the argument that makes it tell its version."""

    name: str
    package: str
    version_arguments: tuple[str, ...] = ("--version",)


@dataclass(frozen=True)
class Module:
    """A Go module that programs are built from.

    `siblings` is set when its go.mod requires modules of the same repository at no real version and replaces them
    by folders: the version at which they are published.
    """

    name: str
    path: str
    version: str
    programs: tuple[Program, ...]
    siblings: str | None = None
    link_values: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> Path:
        """Where its go.mod and go.sum are kept."""
        return MODULES_FOLDER / self.name

    @property
    def link_flags(self) -> str:
        values = [f"-X {name}={value}" for name, value in self.link_values]
        return " ".join(["-s", "-w", *values])


def _kubernetes(version: str) -> Module:
    major, minor, patch = version.split(".")
    build = "k8s.io/component-base/version."
    return Module(
        name="kubernetes",
        path="k8s.io/kubernetes",
        version=f"v{version}",
        siblings=f"v0.{minor}.{patch}",
        programs=(
            Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
            Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
            Program("kubectl", "k8s.io/kubernetes/cmd/kubectl", ("version", "--client")),
        ),
        # Without these the server calls itself v0.0.0-master, and clients complain.
        link_values=(
            (build + "gitVersion", f"v{version}"),
            (build + "gitMajor", major),
            (build + "gitMinor", minor),
            (build + "gitTreeState", "clean"),
        ),
    )


MODULES: tuple[Module, ...] = (
    Module(
        name="etcd",
        path="go.etcd.io/etcd/server/v3",
        version=f"v{ETCD}",
        programs=(Program("etcd", "go.etcd.io/etcd/server/v3"),),
    ),
    Module(
        name="kwok",
        path="sigs.k8s.io/kwok",
        version=f"v{KWOK}",
        programs=(Program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),),
    ),
    _kubernetes(KUBERNETES),
)

PROGRAMS: tuple[Program, ...] = tuple(program for module in MODULES for program in module.programs)
PINNED_SET = f"kubernetes{KUBERNETES}-etcd{ETCD}-kwok{KWOK}"

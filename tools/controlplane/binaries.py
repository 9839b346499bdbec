"""Binaries: the six programs of a control plane, and where they are found.

Each program is taken from the folder named by KUBEBUILDER_ASSETS, else from PATH, else from the cache that
`python -m controlplane build` fills. What comes from outside is asked for its version and passed over when
it is too old, or too far from the kube-apiserver it would work with.
Promises never to build or download anything, and to be fast: what lies in the cache is not even started.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from controlplane import versions
from controlplane.versions import PROGRAMS, Program

Version = tuple[int, int, int]

ASSETS = "KUBEBUILDER_ASSETS"
HOW_TO_GET_THEM = (
    f"install Go {versions.OLDEST_GO[0]}.{versions.OLDEST_GO[1]}+ on PATH, then run 'make kube'; "
    f"or set {ASSETS} to a folder that holds them"
)
_OLDEST: Mapping[str, Version] = {"etcd": versions.OLDEST_ETCD, "kwok": versions.OLDEST_KWOK}
_ARCHITECTURES: Mapping[str, str] = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_MOST_MINORS_APART = 1


@dataclass(frozen=True)
class Binary:
    """One program that was found, whence, and its version."""

    name: str
    path: Path
    source: str
    version: Version


@dataclass(frozen=True)
class Binaries:
    """Everything a control plane needs."""

    found: Mapping[str, Binary]

    def __getitem__(self, name: str) -> Path:
        return self.found[name].path


@dataclass(frozen=True)
class Missing:
    """No control plane here: which programs lack, why, and what to do about it."""

    programs: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class _Refused:
    why: str


def find(env: Mapping[str, str] | None = None) -> Binaries | Missing:
    """The programs of a control plane, or the reason why there are none."""
    env = os.environ if env is None else env
    _ask_versions_at_once(env)
    found: dict[str, Binary] = {}
    refusals: dict[str, list[str]] = {}
    for program in PROGRAMS:
        binary = _first_usable(program, env, found.get("kube-apiserver"), refusals.setdefault(program.name, []))
        if binary is not None:
            found[program.name] = binary
    lacking = tuple(program.name for program in PROGRAMS if program.name not in found)
    return Missing(lacking, _why(lacking, refusals, env)) if lacking else Binaries(found)


def cache_folder(env: Mapping[str, str] | None = None) -> Path:
    """Where built programs are kept: one folder per set of versions and kind of machine."""
    env = os.environ if env is None else env
    goos, goarch = go_platform()
    return cache_root(env) / "controlplane" / f"{versions.PINNED_SET}-{goos}-{goarch}"


def cache_root(env: Mapping[str, str]) -> Path:
    """Where everything that is built once is kept."""
    if own := env.get("KEDGE_CACHE"):
        return Path(own)
    if xdg := env.get("XDG_CACHE_HOME"):
        return Path(xdg) / "kedge"
    home = env.get("HOME")
    return (Path(home) if home else Path.home()) / ".cache" / "kedge"


def go_platform() -> tuple[str, str]:
    """This machine, in Go's words."""
    machine = platform.machine().lower()
    return platform.system().lower(), _ARCHITECTURES.get(machine, machine)


def is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _outside(program: Program, env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Candidates that we did not build, in order of preference."""
    if assets := env.get(ASSETS):
        path = Path(assets) / program.name
        if is_program(path):
            yield ASSETS, path
    if on_path := shutil.which(program.name, path=env.get("PATH", "")):
        yield "PATH", Path(on_path)


def _first_usable(
    program: Program, env: Mapping[str, str], apiserver: Binary | None, refusals: list[str]
) -> Binary | None:
    for binary in _candidates(program, env, refusals):
        refused = _refuse(binary, apiserver)
        if refused is None:
            return binary
        refusals.append(refused.why)
    return None


def _candidates(program: Program, env: Mapping[str, str], refusals: list[str]) -> Iterator[Binary]:
    for source, path in _outside(program, env):
        told = _told_version(path, program.version_arguments)
        if isinstance(told, _Refused):
            refusals.append(f"{path} {told.why}")
        else:
            yield Binary(program.name, path, source, told)
    built = cache_folder(env) / program.name
    if is_program(built):
        yield Binary(program.name, built, "cache", _pinned_version(program))


def _refuse(binary: Binary, apiserver: Binary | None) -> _Refused | None:
    oldest = _OLDEST.get(binary.name, versions.OLDEST_KUBERNETES)
    if binary.version < oldest:
        return _Refused(f"{binary.path} is {_text(binary.version)}, older than {_text(oldest)}")
    if apiserver is None or binary.name in _OLDEST:
        return None
    if abs(binary.version[1] - apiserver.version[1]) > _MOST_MINORS_APART:
        return _Refused(
            f"{binary.path} is {_text(binary.version)}, which does not go with "
            f"{apiserver.path} {_text(apiserver.version)} (from {apiserver.source})"
        )
    return None


def _pinned_version(program: Program) -> Version:
    pinned = {"etcd": versions.ETCD, "kwok": versions.KWOK}.get(program.name, versions.KUBERNETES)
    major, minor, patch = (int(part) for part in pinned.split("."))
    return major, minor, patch


def _ask_versions_at_once(env: Mapping[str, str]) -> None:
    """Fill the cache of versions in parallel: one after another would take the sum of the start times."""
    questions = [(path, p.version_arguments) for p in PROGRAMS for _, path in _outside(p, env)]
    if len(questions) > 1:
        with ThreadPoolExecutor(len(questions)) as pool:
            list(pool.map(lambda question: _told_version(*question), questions))


@lru_cache(maxsize=64)
def _told_version(path: Path, arguments: tuple[str, ...]) -> Version | _Refused:
    """The version a program gives when asked; it runs at most once per process."""
    try:
        answer = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _Refused(f"cannot be run: {error}")
    match = re.search(r"\bv?(\d+)\.(\d+)\.(\d+)(-dispatcher)?", answer.stdout)
    if match is None:
        return _Refused("does not tell its version")
    if match[4]:
        return _Refused("is a dispatcher, not the program itself")
    return int(match[1]), int(match[2]), int(match[3])


def _why(lacking: tuple[str, ...], refusals: Mapping[str, list[str]], env: Mapping[str, str]) -> str:
    passed_over = [why for name in lacking for why in refusals[name]]
    because = f" (passed over: {'; '.join(passed_over)})" if passed_over else ""
    assets = f"{ASSETS}={env[ASSETS]}" if env.get(ASSETS) else f"{ASSETS} (not set)"
    looked_in = f"looked in {assets}, PATH and {cache_folder(env)}"
    return f"no usable {', '.join(lacking)}{because}; {looked_in}; {HOW_TO_GET_THEM}"


def _text(version: Version) -> str:
    return "v" + ".".join(str(part) for part in version)

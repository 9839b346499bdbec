"""Pod volumes: validation of the volumes of a pod: each has a unique name and exactly one source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.quantities import quantity_must_not_be_negative
from kedge.embedded.causes import (
    duplicate_value,
    forbidden,
    invalid_value,
    invalid_values,
    must_be_one_of,
    required_value,
)
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_Check: TypeAlias = Callable[[str, Untyped], Iterator[Cause]]
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def volume_problems(at: str, volumes: Sequence[Untyped]) -> Iterator[Cause]:
    """What is wrong with the volumes of a pod."""
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        where = f"{at}[{index}]"
        name = volume.get("name", "")
        if not name:
            yield required_value(f"{where}.name")
        elif problems := checks.label_problems(name):
            yield from invalid_values(f"{where}.name", name, problems)
        elif name in names:
            yield duplicate_value(f"{where}.name", name)
        names.add(name)
        sources = [part for part in volume if part != "name"]
        yield from source_problems(where, sources, volume)


def source_problems(at: str, sources: Sequence[str], holder: Untyped) -> Iterator[Cause]:
    """What is wrong with the source of a volume."""
    known = sources if len(sources) == 1 else [name for name in _SOURCES if name in sources]
    for name in known[1:]:
        yield forbidden(f"{at}.{name}", "may not specify more than 1 volume type")
    for name in known[:1]:
        yield from _SOURCES.get(name, _nothing)(f"{at}.{name}", holder[name])


def _empty_dir(at: str, source: Untyped) -> Iterator[Cause]:
    if "sizeLimit" in source:
        for cause in quantity_must_not_be_negative(f"{at}.sizeLimit", source["sizeLimit"]):
            yield forbidden(cause.field, "SizeLimit field must be a valid resource quantity")


def host_path_problems(at: str, source: Untyped) -> Iterator[Cause]:
    path = source.get("path", "")
    if not path:
        yield required_value(f"{at}.path")
    elif ".." in path.split("/"):
        yield invalid_value(f"{at}.path", path, "must not contain '..'")
    yield from must_be_one_of(f"{at}.type", source.get("type", ""), _HOST_PATH_TYPES)


def _secret(at: str, source: Untyped) -> Iterator[Cause]:
    if not source.get("secretName"):
        yield required_value(f"{at}.secretName")
    yield from _files(at, source)


def _config_map(at: str, source: Untyped) -> Iterator[Cause]:
    if not source.get("name"):
        yield required_value(f"{at}.name")
    yield from _files(at, source)


def _files(at: str, source: Untyped) -> Iterator[Cause]:
    """What is wrong with the modes and names of the files of a volume."""
    yield from _mode(f"{at}.defaultMode", source.get("defaultMode", 0))
    for index, item in enumerate(source.get("items", ())):
        where = f"{at}.items[{index}]"
        if not item.get("key"):
            yield required_value(f"{where}.key")
        if not item.get("path"):
            yield required_value(f"{where}.path")
        else:
            yield from checks.relative_path(f"{where}.path", item["path"])
        yield from _mode(f"{where}.mode", item.get("mode", 0))


def _mode(at: str, mode: int) -> Iterator[Cause]:
    if not 0 <= mode <= 0o777:
        yield invalid_value(at, mode, _MODE)


def _claim(at: str, source: Untyped) -> Iterator[Cause]:
    if not source.get("claimName"):
        yield required_value(f"{at}.claimName")


def _nfs(at: str, source: Untyped) -> Iterator[Cause]:
    if not source.get("server"):
        yield required_value(f"{at}.server")
    if not source.get("path"):
        yield required_value(f"{at}.path")
    elif not source["path"].startswith("/"):
        yield invalid_value(f"{at}.path", source["path"], "must be an absolute path")


def _downward(at: str, source: Untyped) -> Iterator[Cause]:
    yield from _mode(f"{at}.defaultMode", source.get("defaultMode", 0))
    for item in source.get("items", ()):
        if "fieldRef" not in item and "resourceFieldRef" not in item:
            yield required_value(at, "one of fieldRef and resourceFieldRef is required")


def _csi(at: str, source: Untyped) -> Iterator[Cause]:
    if not source.get("driver"):
        yield required_value(f"{at}.driver")


def _nothing(_at: str, _source: Untyped) -> Iterator[Cause]:
    return iter(())


# In the order in which Kubernetes looks at them: of two sources the later one is one too many.
_SOURCES: Mapping[str, _Check] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path_problems,
    "gitRepo": _nothing,
    "gcePersistentDisk": _nothing,
    "awsElasticBlockStore": _nothing,
    "secret": _secret,
    "nfs": _nfs,
    "iscsi": _nothing,
    "glusterfs": _nothing,
    "flocker": _nothing,
    "persistentVolumeClaim": _claim,
    "rbd": _nothing,
    "cinder": _nothing,
    "cephfs": _nothing,
    "quobyte": _nothing,
    "downwardAPI": _downward,
    "fc": _nothing,
    "configMap": _config_map,
    "azureFile": _nothing,
    "flexVolume": _nothing,
    "vsphereVolume": _nothing,
    "photonPersistentDisk": _nothing,
    "portworxVolume": _nothing,
    "azureDisk": _nothing,
    "storageos": _nothing,
    "projected": _nothing,
    "scaleIO": _nothing,
    "csi": _csi,
    "ephemeral": _nothing,
    "image": _nothing,
    "local": _nothing,
}

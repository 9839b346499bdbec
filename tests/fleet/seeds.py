"""Seeds: the examples users know, read out of the documents they stand in, to the letter."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import yaml

from fleet.traces import Untyped

_FOLDER = Path(__file__).parent / "seeds"
_SAFE_ROLLOUT = (_FOLDER / "safe-rollout.txt").read_text()
_STRATEGIES = (_FOLDER / "rollout-strategies.txt").read_text()


def example(number: int) -> list[Untyped]:
    """The specs of an example of the page on safe rollouts, in order, each as a placement named `crp`.

    The page shows bare specs: apiVersion, kind and metadata are all that is added.
    """
    part = re.split(r"(?m)^#+ Example (\d+):$", _SAFE_ROLLOUT)
    text = dict(zip(map(int, part[1::2]), part[2::2], strict=True))[number]
    blocks = re.findall(r"(?s)```yaml\n(.*?)```", text)
    return [{**placement(), **yaml.safe_load(block)} for block in blocks]


def rolling_update() -> Untyped:
    """The manifest of the page on rollout strategies, whole."""
    found = re.search(r"(?ms)^apiVersion: [^\n]+\nkind: ClusterResourcePlacement\n.*?\n\n", _STRATEGIES)
    assert found is not None
    manifest: Untyped = yaml.safe_load(found[0])
    return manifest


def placement(spec: Untyped | None = None) -> Untyped:
    kind = {"apiVersion": "placement.kubernetes-fleet.io/v1", "kind": "ClusterResourcePlacement"}
    return {**kind, "metadata": {"name": "crp"}, **({"spec": spec} if spec else {})}


# Staged updates


def staged() -> tuple[Untyped, Untyped, Untyped]:
    """The strategy, the placement and the run of the page on rollout strategies."""
    strategy, placement_, run = map(yaml.safe_load, staged_texts())
    return strategy, placement_, run


def staged_texts() -> tuple[str, str, str]:
    """The same, to the letter."""
    kinds = ("ClusterStagedUpdateStrategy", "ClusterResourcePlacement", "ClusterStagedUpdateRun")
    part = _STRATEGIES.partition("Defining a staged update strategy\n")[2]
    strategy, placement_, run = (_first(part, kind) for kind in kinds)
    return strategy, placement_, run


def typed() -> list[str]:
    """What the page has its readers type about staged updates, in order."""
    return [found[1] for found in re.finditer(r"(?m)^ *(kubectl (?:get|patch) .*)$", _STRATEGIES)]


def quoted(patch: str) -> str:
    """The page's patch with the quotes that a shell needs around its body; without them, the shell takes it apart."""
    return re.sub(r"-p (\{.*\}) --", r"-p '\1' --", patch)


def answer_to_patch() -> str:
    """What kubectl answers to that, says the page."""
    found = re.search(r"(?m)^ *(\S+ patched)$", _STRATEGIES)
    assert found is not None
    return found[1]


def staged_status() -> Untyped:
    """The run the page shows midway, whole; times are left out."""
    part = _STRATEGIES.partition("The following sample is annotated to explain.\n")[2]
    # A time that is left out may have begun an item of a list.
    text = re.sub(r"(?m)^(\s*)- lastTransitionTime: \.\.\.\n\s*", r"\1- ", part.partition("\nSubmit approvals")[0])
    text = "\n".join(line for line in text.splitlines() if not line.rstrip().endswith("..."))
    manifest: Untyped = yaml.safe_load(text)
    return manifest


def approval() -> Untyped:
    """The body of the page's patch that approves, with the time it is given."""
    found = re.search(r"--type=merge -p (\{.*\}) --subresource=status", _STRATEGIES)
    assert found is not None
    body: Untyped = yaml.safe_load(re.sub(r"\"'\$\(date[^\"]*\"", '"2025-03-12T06:15:21Z"', found[1]))
    return body


def tables() -> list[str]:
    """The tables `kubectl get` prints on the page, in order."""
    return [found[0] for found in re.finditer(r"(?m)^ *NAME  .*\n.*\n", _STRATEGIES)]


def _first(text: str, kind: str) -> str:
    found = re.search(rf"(?ms)^( *)apiVersion: [^\n]+\n *kind: {kind}\n.*?\n *\n", text)
    assert found is not None
    return textwrap.dedent(found[0])

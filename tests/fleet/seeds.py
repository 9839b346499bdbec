"""Seeds: the examples users know, read out of the documents they stand in, to the letter."""

from __future__ import annotations

import re
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

"""The seeds' manifests, as plain data."""

from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

FOLDER = Path(__file__).with_name("manifests")
APPROVAL = {
    "conditions": [
        {
            "type": "Approved",
            "status": "True",
            "reason": "tested as OK",
            "message": "lgtm",
            "lastTransitionTime": "2025-03-12T06:15:21Z",
            "observedGeneration": 1,
        }
    ]
}
"""The status in seed 002's patch of an approval request."""


def manifests(name: str) -> list[Object]:
    """The objects of one file."""
    return list(yaml.load_all((FOLDER / name).read_text(), yaml.CSafeLoader))


STATUS = manifests("seed-002-status.yaml")[0]
MANIFESTS = [*manifests("seed-000.yaml"), *manifests("seed-002.yaml")]
RUN = next(manifest for manifest in MANIFESTS if manifest["kind"] == "ClusterStagedUpdateRun")

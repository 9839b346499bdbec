"""Known differences, beyond what may differ between any two servers. Each is told of in docs/embedded.md."""

from __future__ import annotations

import re

_NOT_SERVED = (
    *("bindings", "componentstatuses", "deviceclasses", "flowschemas", "ipaddresses", "mutatingadmissionpolicies"),
    *("mutatingadmissionpolicybindings", "prioritylevelconfigurations", "resourceclaims", "resourceclaimtemplates"),
    *("resourceslices", "servicecidrs", "volumeattributesclasses"),
)
DIFFERENCES = [
    (
        "kinds that are not served",
        rf"(?m)^({'|'.join(_NOT_SERVED)}|events  ev  events\.k8s\.io/v1)  .*(\n|$)",
        "",
    ),
    (
        "the real server is shared, and other tests make it a member or a hub",
        r"(?m)^\w+  (\w+  )?\w+\.kubernetes-fleet\.io/v1\w*  .*(\n|$)",
        "",
    ),
    (
        "on which node a pod runs is the scheduler's choice, and other pods sway it",
        r"\bnode-\d\b",
        "NODE",
    ),
    (
        "OpenAPI v2 is empty, so kubectl does not try to make a patch of it after v3",
        r"warning: error calculating patch from openapi spec: .*\n",
        "",
    ),
]


def without_differences(text: str) -> str:
    for _, pattern, instead in DIFFERENCES:
        text = re.sub(pattern, instead, text)
    return text

"""What a ServiceExport says of itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kedge.api.core import Service, ServiceSpec
from kedge.api.meta import ObjectMeta
from kedge.embedded.workloads.exports import CONFLICT, WEIGHT, ServiceExport, status

NOW = datetime(2030, 1, 1, tzinfo=UTC)
OFFERED = Service(metadata=ObjectMeta(name="web", namespace="shop"), spec=ServiceSpec(cluster_ip="10.0.0.1"))


def export(**annotations: str) -> ServiceExport:
    return ServiceExport(metadata=ObjectMeta(name="web", namespace="shop", generation=1, annotations={**annotations}))


def said(found: ServiceExport, service: Service | None) -> list[tuple[str, str, str]]:
    return [(one.type, one.status, one.reason) for one in status(found, service, NOW).conditions]


FREE = ("Conflict", "False", "NoConflictFound")


@pytest.mark.parametrize(
    ("annotations", "service", "conditions"),
    [
        ({}, OFFERED, [("Valid", "True", "ServiceIsValid"), FREE]),
        ({WEIGHT: "100"}, OFFERED, [("Valid", "True", "ServiceIsValid"), FREE]),
        ({WEIGHT: "0"}, OFFERED, [("Valid", "True", "ServiceIsValid")]),
        ({WEIGHT: "much"}, OFFERED, [("Valid", "False", "ServiceExportInvalidWeightAnnotation")]),
        ({WEIGHT: "1001"}, OFFERED, [("Valid", "False", "ServiceExportInvalidWeightAnnotation")]),
        ({WEIGHT: "-1"}, OFFERED, [("Valid", "False", "ServiceExportInvalidWeightAnnotation")]),
        ({CONFLICT: "true"}, OFFERED, [("Valid", "True", "ServiceIsValid"), ("Conflict", "True", "ConflictFound")]),
        ({}, None, [("Valid", "False", "ServiceNotFound")]),
        ({}, Service(spec=ServiceSpec(type="ExternalName")), [("Valid", "False", "ServiceIneligible")]),
        ({}, Service(spec=ServiceSpec(cluster_ip="None")), [("Valid", "False", "ServiceIneligible")]),
    ],
)
def test_what_an_export_says(annotations: dict[str, Any], service: Service | None, conditions: list[Any]) -> None:
    assert said(export(**annotations), service) == conditions


def test_the_message_says_what_is_wrong_with_the_weight() -> None:
    texts = [status(export(**{WEIGHT: text}), OFFERED, NOW).conditions[0].message for text in ("much", "1001")]
    start = "serviceExport shop/web has an invalid weight annotation, err = the weight annotation is not"
    assert texts == [f"{start} a valid integer: much", f"{start} in the range [0, 1000]: 1001"]

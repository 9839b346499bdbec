"""Known differences from the recorded fleets. Each has its reason, and is told of in docs/kubefleet.md."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from fleet.comparing import Difference


class Known(Struct, frozen=True):
    """A difference that is meant to be: in which traces it occurs, and under which heading the docs say why.

    Patterns match whole words: of the kind (or the words after `kubectl get`), the name and the path.
    """

    heading: str
    traces: tuple[str, ...]
    kind: str
    path: str
    name: str = ".*"
    backends: tuple[str, ...] = ("embedded", "real")

    def covers(self, difference: Difference) -> bool:
        pairs = ((self.kind, difference.kind), (self.name, difference.name), (self.path, difference.path))
        return all(re.fullmatch(pattern, text) for pattern, text in pairs)


_WITHOUT_STRATEGY = ("08", "09", "10", "11", "12")
_WITH_RUNS = ("14", "15", "16", "17", "18")

KNOWN = (
    Known("There are no ClusterProfiles", ("01", "19"), "MemberCluster", r"metadata\.finalizers \(length\)"),
    Known("Members report their Kubernetes version", ("01", "19"), "(Internal)?MemberCluster", r".*/k8s-version"),
    Known("An agent has only the rights it uses", ("01", "19"), "Role", r"rules.*"),
    Known("The hub never writes users' specs", ("01", "19"), "MemberCluster", r"metadata\.generation"),
    Known("The hub never writes users' specs", _WITHOUT_STRATEGY, "ClusterResourcePlacement", r"metadata\.generation"),
    Known("The hub never writes users' specs", _WITHOUT_STRATEGY, "ClusterResourcePlacement", r"spec\.strategy"),
    Known(
        "The hub never writes users' specs",
        _WITHOUT_STRATEGY,
        "clusterresourceplacements",
        r"(SCHEDULED-|AVAILABLE-)?GEN",
    ),
    *(
        Known("One blocked cluster does not block others", ("08",), kind, path, name)
        for kind, path, name in (
            ("ClusterResourcePlacement", r"status\.placementStatuses\[0\]\.conditions\.\w+(\.reason|\.status)?", "crp"),
            ("ClusterResourceBinding", r"metadata\.finalizers \(length\)", "crp-cluster-4-SUFFIX"),
            ("ClusterResourceBinding", r"spec\.(state|resourceSnapshotName)", "crp-cluster-4-SUFFIX"),
            ("ClusterResourceBinding", "status", "crp-cluster-4-SUFFIX"),
            ("Work", "", "fleet-member-cluster-4/crp-work"),
        )
    ),
    *(
        Known("A cluster that waits says so", ("08",), kind, path)
        for kind, path in (
            ("ClusterResourcePlacement", r"status\.conditions\.\w+RolloutStarted\.(reason|status)"),
            (
                "ClusterResourcePlacement",
                r"status\.placementStatuses\[1\]\.conditions\.RolloutStarted\.(reason|status)",
            ),
            ("ClusterResourceBinding", "status"),
        )
    ),
    Known(
        "A binding that is being deleted gets no new conditions",
        ("08",),
        "ClusterResourceBinding",
        r"status\.conditions\.RolloutStarted\.observedGeneration",
        "crp-cluster-3-SUFFIX",
    ),
    Known("The hub never writes users' specs", _WITH_RUNS, "ClusterStagedUpdateRun", r"metadata\.generation"),
    Known("The hub never writes users' specs", _WITH_RUNS, "ClusterStagedUpdateRun", r"spec\.resourceSnapshotIndex"),
    *(
        Known("A run continues as soon as it can", ("18",), kind, path, name)
        for kind, path, name in (
            (
                "ClusterResourcePlacement",
                r"status\.conditions\.\w+(Overridden\.\w+|Synchronized|Applied|Available)",
                ".*",
            ),
            ("ClusterResourcePlacement", r"status\.placementStatuses\[2\]\.conditions\.\w+(\.reason|\.status)?", ".*"),
            ("ClusterResourceBinding", r"status\.conditions\.\w+\.observedGeneration", ".*-cluster-3-SUFFIX"),
            ("ClusterResourceBinding", r"status\.conditions \(order\)", ".*-cluster-3-SUFFIX"),
            ("ClusterStagedUpdateRun", r"status\.conditions\.Progressing\.(reason|status)", "second"),
            (
                "ClusterStagedUpdateRun",
                r"status\.stagesStatus\[1\]\.conditions\.Progressing\.(reason|status)",
                "second",
            ),
            ("ClusterStagedUpdateRun", r"status\.stagesStatus\[1\]\.clusters\[1\]\.conditions\.Succeeded", "second"),
            ("ClusterStagedUpdateRun", r"status\.stagesStatus\[1\]\.afterStageTaskStatus\[0\]\.conditions", "second"),
            ("clusterstagedupdateruns", "PROGRESSING", "second"),
            ("clusterapprovalrequests", "", "second-after-canary"),
        )
    ),
)


def unknown(trace: str, differences: Iterable[Difference]) -> list[Difference]:
    """Those that nobody has given a reason for."""
    return [one for one in differences if not any(trace in known.traces and known.covers(one) for known in KNOWN)]


def outdated(trace: str, backend: str, differences: Iterable[Difference]) -> list[Known]:
    """Those that no longer occur where they are said to."""
    found = list(differences)
    here = (known for known in KNOWN if trace in known.traces and backend in known.backends)
    return [known for known in here if not any(known.covers(one) for one in found)]

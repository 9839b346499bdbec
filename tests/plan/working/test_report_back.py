"""Which of the statuses that a member reports are shown on the originals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.fleet import PARENT_BINDING, PARENT_NAMESPACE, PARENT_PLACEMENT
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, PlacementSpec, ResourcePlacement
from kedge.api.placement_kinds import Binding, Placement
from kedge.api.work import BackReportedStatus, ManifestCondition, Work, Workload, WorkResourceIdentifier
from kedge.plan.identifiers import identifiers_of
from kedge.plan.working.report_back import ReportedStatuses, reported_statuses
from plan.working.objects import NOON, binding, work

PLACEMENT = ClusterResourcePlacement(metadata=ObjectMeta(name="crp"), spec=PlacementSpec(resource_selectors=()))
STATUS = {"replicas": 3}


def manifest(api: str, kind: str, name: str, namespace: str | None = "shop") -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **place}}


WEB = manifest("apps/v1", "Deployment", "web")
DATABASE = manifest("example.com/v1", "Database", "orders")
APPROVAL = manifest("placement.kubernetes-fleet.io/v1beta1", "ClusterApprovalRequest", "run-canary", None)


def named(found: dict[str, Any], ordinal: int = 0, **other: Any) -> WorkResourceIdentifier:
    (one,) = identifiers_of([found])
    namespace = one.namespace or ""
    named = WorkResourceIdentifier(
        ordinal=ordinal, group=one.group, version=one.version, kind=one.kind, namespace=namespace, name=one.name
    )
    return replace(named, **other)


def report(which: WorkResourceIdentifier, status: Any = STATUS) -> ManifestCondition:
    back = BackReportedStatus(observation_time=NOON, observed_status={"kind": which.kind, "status": status})
    return ManifestCondition(identifier=which, conditions=(), back_reported_status=back)


def of_work(*reports: ManifestCondition, manifests: tuple[dict[str, Any], ...] = (WEB,), **meta: Any) -> Work:
    found = work(objects=reports, **meta)
    return replace(found, spec=replace(found.spec, workload=Workload(manifests=manifests)))


def judged(
    found: Work,
    placed: tuple[dict[str, Any], ...] = (WEB,),
    *,
    placement: Placement = PLACEMENT,
    bound: Binding | None = None,
) -> ReportedStatuses:
    return reported_statuses(placement, bound or binding(), found, identifiers_of(placed))


def names(found: ReportedStatuses) -> list[str]:
    return [one.original.name for one in found.shown]


def test_the_status_of_a_placed_object_is_shown() -> None:
    found = judged(of_work(report(named(WEB)), report(named(DATABASE, 1)), manifests=(WEB, DATABASE)), (WEB, DATABASE))
    assert (names(found), found.not_placed) == (["web", "orders"], 0)
    assert found.shown[0].status == STATUS


@pytest.mark.parametrize(
    "which",
    [
        pytest.param(named(WEB, 1), id="at a place where nothing is"),
        pytest.param(named(WEB, -1), id="at a place before the first"),
        pytest.param(named(WEB, name="till"), id="of another name"),
        pytest.param(named(WEB, namespace="bank"), id="in another namespace"),
        pytest.param(named(WEB, namespace=""), id="in no namespace"),
        pytest.param(named(WEB, kind="StatefulSet"), id="of another kind"),
        pytest.param(named(WEB, group="extensions"), id="of another group"),
        pytest.param(named(WEB, version="v1beta1"), id="of another version"),
        pytest.param(named(APPROVAL), id="an approval"),
    ],
)
def test_an_object_that_is_not_at_its_ordinal_in_the_work_is_not_shown(which: WorkResourceIdentifier) -> None:
    assert judged(of_work(report(which)), (WEB, APPROVAL)) == ReportedStatuses(not_placed=1)


def test_an_object_that_a_member_put_into_its_work_is_not_shown() -> None:
    assert judged(of_work(report(named(DATABASE)), manifests=(DATABASE,))) == ReportedStatuses(not_placed=1)


def test_an_object_that_was_placed_by_another_part_of_the_revision_is_not_shown() -> None:
    assert judged(of_work(report(named(DATABASE))), (WEB, DATABASE)) == ReportedStatuses(not_placed=1)


@pytest.mark.parametrize(
    "found",
    [
        APPROVAL,
        manifest("cluster.kubernetes-fleet.io/v1", "MemberCluster", "a", None),
        manifest("kedge.dev/v1", "Anything", "a"),
        manifest("placement.kubefleet.dev/v1alpha1", "PlacementPolicy", "a"),
        manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "databases.example.com", None),
        manifest("apiregistration.k8s.io/v1", "APIService", "v1.metrics", None),
        manifest("certificates.k8s.io/v1", "CertificateSigningRequest", "a", None),
        manifest("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "a", None),
        manifest("v1", "Namespace", "shop", None),
        manifest("v1", "ResourceQuota", "limit"),
        manifest("apps/v1", "Deployment", "coredns", "kube-system"),
        manifest("apps/v1", "Deployment", "hub", "fleet-system"),
    ],
    ids=lambda found: f"{found['kind']}",
)
def test_kinds_that_the_hub_acts_on_are_never_shown(found: dict[str, Any]) -> None:
    assert judged(of_work(report(named(found)), manifests=(found,)), (found,)) == ReportedStatuses()


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param({"namespace": "fleet-member-b"}, id="of another cluster"),
        pytest.param({"namespace": "shop"}, id="of nobody"),
        pytest.param({"labels": {PARENT_PLACEMENT: "crp"}}, id="of no binding"),
        pytest.param({"labels": {PARENT_PLACEMENT: "crp", PARENT_BINDING: "crp-b-0"}}, id="of another binding"),
        pytest.param({"labels": {PARENT_PLACEMENT: "other", PARENT_BINDING: "crp-a-0"}}, id="of another placement"),
        pytest.param(
            {"labels": {PARENT_PLACEMENT: "crp", PARENT_BINDING: "crp-a-0", PARENT_NAMESPACE: "shop"}},
            id="of a placement in a namespace",
        ),
    ],
)
def test_a_work_that_is_not_the_bindings_own_shows_nothing(meta: dict[str, Any]) -> None:
    assert judged(of_work(report(named(WEB)), **meta)) == ReportedStatuses(not_placed=1)


@pytest.mark.parametrize(("namespace", "shown"), [("shop", ["web"]), ("bank", [])])
def test_a_resource_placement_shows_objects_of_its_own_namespace_only(namespace: str, shown: list[str]) -> None:
    rp = ResourcePlacement(metadata=ObjectMeta(name="crp", namespace=namespace), spec=PLACEMENT.spec)
    assert names(judged(of_work(report(named(WEB))), placement=rp)) == shown


def test_of_two_reports_of_one_object_the_first_counts() -> None:
    found = judged(of_work(report(named(WEB)), report(named(WEB), {"replicas": 4})))
    assert [one.status for one in found.shown] == [STATUS]


@pytest.mark.parametrize("status", [None, "ready", 3, ["ready"]])
def test_a_report_without_a_status_is_not_shown(status: Any) -> None:
    assert judged(of_work(report(named(WEB), status))) == ReportedStatuses()


OBJECTS = st.builds(
    manifest,
    st.sampled_from(["v1", "apps/v1", "placement.kubernetes-fleet.io/v1", "kedge.dev/v1"]),
    st.sampled_from(["Deployment", "ClusterApprovalRequest", "Namespace"]),
    st.sampled_from(["web", "till"]),
    st.sampled_from([None, "shop", "kube-system"]),
)
SEVERAL = st.lists(OBJECTS, max_size=4).map(tuple)


@given(held=SEVERAL, placed=SEVERAL, said=st.lists(st.tuples(OBJECTS, st.integers(-2, 5)), max_size=5))
def test_whatever_a_member_reports_only_objects_placed_in_its_work_are_shown(
    held: tuple[dict[str, Any], ...], placed: tuple[dict[str, Any], ...], said: list[tuple[dict[str, Any], int]]
) -> None:
    reports = [report(named(one, ordinal)) for one, ordinal in said]
    found = judged(of_work(*reports, manifests=held), placed)
    shown = [one.original for one in found.shown]
    assert set(shown) <= set(identifiers_of(held)) & set(identifiers_of(placed))
    assert len(shown) == len(set(shown))
    assert not [one for one in shown if one.group.endswith(("kubernetes-fleet.io", "kedge.dev"))]
    assert len(shown) + found.not_placed <= len(reports)

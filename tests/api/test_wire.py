"""Nulls: what Go programs and users' files put where nothing is."""

from typing import Any

import msgspec
import pytest

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment
from kedge.api.cluster import MemberCluster
from kedge.api.core import ConfigMap
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.pods import Pod
from kedge.api.rbac import ClusterRole, PolicyRule, Role
from kedge.api.wire import read, read_plain

FROM_GO = [
    (ObjectMeta, '{"creationTimestamp":null}'),
    (Role, '{"rules":null}'),
    (ClusterRole, '{"rules":null}'),
    (PolicyRule, '{"verbs":null}'),
    (CustomResourceDefinition, '{"spec":{"versions":null},"status":{"conditions":null,"storedVersions":null}}'),
    (Pod, '{"spec":{"containers":null}}'),
    (Deployment, '{"spec":{"selector":null}}'),
]


@pytest.mark.parametrize(("kind", "text"), FROM_GO, ids=lambda value: getattr(value, "__name__", ""))
def test_nulls_that_go_types_write_are_read_without_help(kind: type[Any], text: str) -> None:
    assert msgspec.json.decode(text, type=kind) == kind()


def test_a_pod_template_is_kept_as_written() -> None:
    text = '{"spec":{"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":null}}}}'
    found = msgspec.json.decode(text, type=Deployment).spec.template
    assert found == {"metadata": {"creationTimestamp": None}, "spec": {"containers": None}}


FROM_USERS = [
    (ConfigMap, '{"metadata":{"labels":null,"annotations":null,"ownerReferences":null,"finalizers":null},"data":null}'),
    (Deployment, '{"metadata":null,"spec":{"replicas":null,"strategy":null},"status":null}'),
]


@pytest.mark.parametrize(("kind", "text"), FROM_USERS, ids=lambda value: getattr(value, "__name__", ""))
def test_any_other_null_is_forgiven_when_asked(kind: type[Any], text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=kind)
    assert read(text, kind) == kind()


def test_a_null_inside_a_list_of_objects_is_forgiven() -> None:
    selector = {"group": "", "version": "v1", "kind": "Namespace", "name": None, "labelSelector": None}
    placement = read_plain({"spec": {"resourceSelectors": [selector], "policy": None}}, ClusterResourcePlacement)
    assert placement.spec.resource_selectors[0].name == ""


def test_what_still_does_not_fit_is_named() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$.spec.identity"):
        read('{"spec":{"heartbeatPeriodSeconds":null,"identity":5}}', MemberCluster)
    with pytest.raises(msgspec.ValidationError, match="identity"):
        read('{"spec":{"identity":null}}', MemberCluster)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        read("{", ConfigMap)

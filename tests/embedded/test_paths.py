"""Paths: what `Resource.path` writes is read back, and nothing else is taken for a place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.resource import Resource
from kedge.embedded.request_info import ResourcePath, parse_path

WORDS = st.text(alphabet="abz09.-_:/% é", min_size=1, max_size=8)
PLAIN = st.sampled_from(["pods", "things", "nodes"])


@given(st.sampled_from(["", "apps", "t.io"]), PLAIN, WORDS, WORDS, st.sampled_from([None, "status", "scale"]))
def test_what_a_resource_writes_is_read_back(
    group: str, plural: str, namespace: str, name: str, subresource: str | None
) -> None:
    resource = Resource(group, "v1", "Kind", plural)
    path = resource.path(namespace, name, subresource)
    assert parse_path(path) == ResourcePath(group, "v1", plural, namespace, name, subresource or "")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/api/v1/pods", ResourcePath("", "v1", "pods")),
        ("/api/v1/namespaces", ResourcePath("", "v1", "namespaces")),
        ("/api/v1/namespaces/shop", ResourcePath("", "v1", "namespaces", "", "shop")),
        ("/api/v1/namespaces/shop/status", ResourcePath("", "v1", "namespaces", "", "shop", "status")),
        ("/api/v1/namespaces/shop/finalize", ResourcePath("", "v1", "namespaces", "", "shop", "finalize")),
        ("/api/v1/namespaces/shop/pods", ResourcePath("", "v1", "pods", "shop")),
        ("/api/v1/namespaces/shop/pods/", ResourcePath("", "v1", "pods", "shop")),
        ("/apis/apps/v1/namespaces/shop/deployments/web", ResourcePath("apps", "v1", "deployments", "shop", "web")),
        ("/apis/t.io/v1/things/a/b/c", ResourcePath("t.io", "v1", "things", "", "a", "b/c")),
        ("/api", None),
        ("/api/v1", None),
        ("/apis/apps", None),
        ("/apis/apps/v1", None),
        ("/version", None),
        ("/", None),
    ],
)
def test_paths_name_places(path: str, place: ResourcePath | None) -> None:
    assert parse_path(path) == place

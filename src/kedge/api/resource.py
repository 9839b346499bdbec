"""Resource: where objects of one kind live in a Kubernetes API.

Promises paths and names only; it does no I/O. A typed object carries its Resource as the class attribute
`resource`; an untyped one (a dict) is named by the Resource itself.
"""

from __future__ import annotations

from urllib.parse import quote

from msgspec import Struct


class Resource(Struct, frozen=True):
    """One kind in one version: `Resource("apps", "v1", "Deployment", "deployments")`."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects: `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of its group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of a collection (no name), an object, or a subresource of it.

        Without a namespace a namespaced collection means every namespace.
        """
        parts = [self.root]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part is not None]
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

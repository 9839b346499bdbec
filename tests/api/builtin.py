"""The built-in kinds Kedge knows."""

from kedge.api import apiextensions, apps, batch, coordination, core, pods, policy, rbac
from kedge.api.meta import Value

MODULES = (core, pods, apps, batch, policy, coordination, apiextensions, rbac)
BUILT_IN = [
    kind
    for module in MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Value) and hasattr(kind, "resource")
]

"""kubernetes_asyncio, from which the official asynchronous client descends."""

from __future__ import annotations

import kubernetes_asyncio
from kubernetes_asyncio import client, config, watch  # noqa: F401  # loads what the package leaves to be asked for

from kedgebench.rivals.generated import Generated


class KubernetesAsyncio(Generated):
    package = kubernetes_asyncio

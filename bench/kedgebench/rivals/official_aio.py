"""The official client, asynchronous (`kubernetes.aio`)."""

from __future__ import annotations

from kubernetes import aio
from kubernetes.aio import client, config, watch  # noqa: F401  # loads what `aio` leaves to be asked for

from kedgebench.rivals.generated import Generated


class OfficialAio(Generated):
    package = aio

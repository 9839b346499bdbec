"""A real Kubernetes control plane on loopback, for tests and benchmarks.

    binaries = find()                       # or obtain(), which builds what lacks
    async with ControlPlane(binaries) as plane:
        cluster = await plane.start("hub", controllers=True, nodes=2)
        print(await cluster.kubectl("get", "nodes"))

Not part of the `kedge` package, and does not import it.
"""

from controlplane.binaries import Binaries, Missing, find
from controlplane.cluster import Cluster, Identity, KubectlError, User
from controlplane.plane import ControlPlane
from controlplane.processes import StartError

__all__ = [
    "Binaries",
    "Cluster",
    "ControlPlane",
    "Identity",
    "KubectlError",
    "Missing",
    "StartError",
    "User",
    "find",
]

"""Kubernetes without a cluster: an API server, its background controllers, and simulated workloads.

    cluster = EmbeddedCluster("cluster-1", clock=SystemClock(), rng=Random(1))
    cluster.start()
    client = Client(cluster.transport())

The core is the server with its store, and does no I/O. It is reached in process (`inprocess`) or over HTTPS
(`https_server`). Around it are packages: `schema` (what objects look like), `builtin` (the kinds of Kubernetes),
`custom` (those of CRDs), `ownership` (server-side apply), `tables`, `protobuf`, `background` (garbage collection,
namespaces, old events) and `workloads` (Deployments, nodes and the rest: ordinary controllers that use the API only).
"""

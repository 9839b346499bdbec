"""Kubernetes without a cluster: an API server, what keeps its house, and workloads that come alive on it.

    cluster = EmbeddedCluster("cluster-1", clock=SystemClock(), rng=Random(1))
    cluster.start()
    client = Client(cluster.transport())

The core is the server with its store, and does no I/O; it has two doors, in process (`inprocess`) and HTTPS (`door`).
Around it are rooms: `schema` (what objects look like), `builtin` (the kinds of Kubernetes), `custom` (those of CRDs),
`ownership` (server-side apply), `tables`, `protobuf`, `background` (garbage collection, namespaces, old events) and `workloads`
(Deployments, nodes and the rest: ordinary controllers, which know nothing of this server).
"""

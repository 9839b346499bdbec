"""Background controllers: what a Kubernetes cluster does to its objects by itself, beside running workloads.

Garbage collection, deletion of namespaces, the default objects of a namespace, protection of volumes in use, expiry of
events. They read the server's store directly and act through its API, a little after the write that gave cause, never
within it.
"""

"""Keeping house: what a Kubernetes cluster does to its objects by itself, beside running workloads.

Garbage collection, the end of namespaces, what every namespace comes with, and the end of old events. All of it reads
the server's store directly and acts through its API, a little after the write that gave cause, never within it.
"""

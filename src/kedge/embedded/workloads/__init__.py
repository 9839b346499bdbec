"""Simulated workloads: what kube-controller-manager, kube-scheduler and kubelets do, as ordinary controllers.

They act through a client and its caches alone, so that they run on the embedded server and on a real kube-apiserver.
`everything` puts them together; each has a plan that is a pure function, in a module of its own.
"""

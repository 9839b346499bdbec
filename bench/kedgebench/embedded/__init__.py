"""The second part of the benchmark: the embedded server, fleets of it, and the simulator.

Every task runs in a process of its own (`task`), one after another, and is asked for by `part`, which turns the answers
into measures. Where there is a peer (kube-apiserver with etcd) it gets the same requests from the same client.
"""

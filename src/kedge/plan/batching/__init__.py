"""Batching: a workload moves to another revision batch by batch, each on proof of the one before.

The state machine is data (`states`), the arithmetic is KubeVela's (`sizes`), each kind of workload has its moves
(`moves` says which), and `rollout` puts them together: one pure step from what is observed to what is to be done.
"""

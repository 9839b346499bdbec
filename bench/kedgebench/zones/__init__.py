"""The fourth part of the benchmark: rollout groups, whose zones an operator rolls out one after another.

Every task runs in a process of its own (`task`), on a real control plane with simulated nodes, and is asked for by
`part`, which turns the answers into measures: releases beside waves that nobody decides about, and an operator of many
groups at rest.
"""

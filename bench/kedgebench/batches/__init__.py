"""The fifth part of the benchmark: rollouts in batches, from Deployment to Deployment.

Every task runs in a process of its own (`task`), on a real control plane with simulated nodes, and is asked for by
`part`, which turns the answers into measures: releases beside releases by hand, and beside Argo Rollouts where its
controller can be built (`argo_build`); and an operator of many rollouts that have succeeded, at rest.
"""

"""Align: one workload over many clusters by one pod budget. Bindings on the hub, Works in each member."""

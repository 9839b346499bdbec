"""Zoning: StatefulSets of one rollout group, rolled out and scaled one zone at a time."""

"""The controllers of rollout groups: StatefulSets in several zones of one cluster."""

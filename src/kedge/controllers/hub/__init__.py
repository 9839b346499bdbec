"""The hub: members, snapshots, scheduling, rollouts, works, and the status of placements."""

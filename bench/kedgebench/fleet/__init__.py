"""The third part of the benchmark: a fleet, from the change on the hub to the last member that has it.

Every task runs in a process of its own (`task`), one after another, and is asked for by `part`, which turns the answers
into measures: a rolling update over real members beside a plain rollout on one of them, a first placement on embedded
members, what a cluster costs the hub and its agent as fleets grow, and a hub with twenty thousand Works to look after.
"""

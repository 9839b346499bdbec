"""Aligning: the pods of one workload, divided over clusters, roll by one budget, as if they were in one cluster.

Every cluster holds a part of the budget from the moment it may act on it (`ledger`) until its own status proves that it
does not need it any more (`bounds`). What is left for one cluster (`headroom`) says what it may be asked for next
(`offers`); `alignment` asks one cluster after the other, and grants what is safe with all that others hold.
"""

"""The sixth part: a workload that is divided over real clusters and rolls by one budget, beside one in one cluster."""

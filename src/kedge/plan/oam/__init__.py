"""OAM: from Applications and Components to workloads, revisions and traits. What rollouts in batches refer to.

`component_types` makes a workload of a component's type and properties, `revisions` keeps the states of components and
Applications apart, `emission` says what is written to the API for one component.
"""

"""Application: makes revisions of Components and Applications, and the workloads that they ask for."""

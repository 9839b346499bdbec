"""The shells around decisions: observe what the caches show, ask `kedge.plan`, act on what it says."""

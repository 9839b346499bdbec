"""Writes `src/kedge/api/openapi/definitions.json`: the schemas of built-in kinds, as a real server publishes them.

    python -m openapi          # PYTHONPATH=tools; needs what `make kube` makes, and Go

Two sources: `/openapi/v3` of a kube-apiserver for shapes, and the Go types it is built from for what OpenAPI does not
say: which members are pointers, and which are written even when they hold nothing.
"""

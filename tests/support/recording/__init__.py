"""What a real API server answered, recorded and replayed.

Tests that hold Kedge to a real kube-apiserver ask it through a `RealApi` (fixtures `bare_api`, `full_api`). Its answers
are kept in a file beside the tests, one per module (`recorded/<module>.json`), by Kubernetes version and test. While
what they were recorded for has not changed they are replayed; otherwise the server is asked again, and must answer the
same. docs/testing.md says when which happens.
"""

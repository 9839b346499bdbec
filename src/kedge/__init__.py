"""Kedge rolls changes out safely on Kubernetes, one proven step at a time."""

__version__ = "0.1.0.dev0"

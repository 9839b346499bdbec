"""Workloads: what Kedge must know of a kind that runs pods, in one form for every kind. Knows no type of the fleet."""

from kedge.plan.workloads.handler import Limits, Patch, Replicas, Strategy, WorkloadHandler
from kedge.plan.workloads.registry import find_handler
from kedge.plan.workloads.template import template_hash

__all__ = ["Limits", "Patch", "Replicas", "Strategy", "WorkloadHandler", "find_handler", "template_hash"]

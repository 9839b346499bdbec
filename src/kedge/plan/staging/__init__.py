"""Staging: how a run moves a change through stages of clusters, and what it waits for (seed 002)."""

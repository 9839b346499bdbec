"""Rolling: which clusters of a placement may move now, and what the others wait for (seed 000)."""

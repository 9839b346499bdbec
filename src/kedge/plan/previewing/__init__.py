"""Previewing: the outcome of a rollout that was simulated in virtual time, and how long clusters take."""

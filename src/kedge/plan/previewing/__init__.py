"""Previewing: what a rollout that was played through in virtual time came to, and how long clusters take."""

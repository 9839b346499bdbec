"""Reporting: what a placement's status says, from all that is known of its clusters."""

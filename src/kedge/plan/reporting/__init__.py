"""Reporting: the status of a placement, from everything that is known of its clusters."""

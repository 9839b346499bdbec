"""Placing: which clusters a placement is on, and why. Start with `schedule.schedule`."""

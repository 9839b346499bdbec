"""Placing: which clusters a placement is to be on, and why. `schedule.schedule` is the whole; the rest are parts."""

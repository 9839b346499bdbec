"""Selecting: which objects of the hub a placement is about, and what of them goes to members."""

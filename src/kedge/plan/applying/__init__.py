"""Applying: what a member writes for a Work, in which order, and what it reports. Pure."""

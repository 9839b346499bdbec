"""Applying: what a member writes for a Work, in which order, and what it then says of it. Pure."""

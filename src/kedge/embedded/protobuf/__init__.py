"""Requests in the binary form that kubectl sends many of its own objects in."""

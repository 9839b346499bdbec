"""`python -m support.recording`: say that everything recorded was just asked of the real server."""

from support.recording import tables

tables.stamp()

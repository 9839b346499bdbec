"""Working: which Works a binding needs, and the status of a binding from what its member reports."""

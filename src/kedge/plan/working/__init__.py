"""Working: which Works a binding needs, and what the answers of its member come to."""

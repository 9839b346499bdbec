"""OpenAPI: what shape the objects of a kind have, and how their lists merge. One reading for server and agents."""

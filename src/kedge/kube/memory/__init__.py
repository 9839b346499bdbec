"""Memory: what large caches cost, kept small. `loading` is about filling one, `sharing` about what it holds."""

"""Schemas of built-in and custom kinds, and decoding, pruning, patching and OpenAPI by them."""

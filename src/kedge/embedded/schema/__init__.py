"""Schemas of built-in and custom kinds: decoding, pruning, zero values and strategic merge by them."""

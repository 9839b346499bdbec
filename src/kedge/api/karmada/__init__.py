"""Karmada: the kinds of Karmada that alignment reads and writes, with the parts of them that it needs."""

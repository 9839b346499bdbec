"""Explaining: where a placement stands, for people; from objects alone, so that any hub of this contract will do."""

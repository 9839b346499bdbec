"""Protobuf: requests in the binary encoding in which kubectl sends many built-in kinds."""

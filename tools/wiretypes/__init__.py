"""Writes `src/kedge/embedded/builtin/messages.json`: how built-in kinds are written in protobuf.

    python -m wiretypes          # PYTHONPATH=tools; needs Go

Two sources, both in the Go modules that kube-apiserver is built from: the `generated.proto` files for the numbers and
types of fields, and the Go types for what JSON calls them, and which have no name there: their members stand among
those of the message they are in.
"""

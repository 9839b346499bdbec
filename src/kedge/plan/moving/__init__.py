"""Moving: the kernel of every rollout. Units move from one revision to another, within a budget, and on proof.

It knows no kind of unit: a unit is a cluster of a placement, a pod of a workload, a zone. Every scope brings its own
adapter, which rounds percentages to integers, says what proves a unit, and puts the units in order. A wait is data; the
scope writes the sentence.
"""

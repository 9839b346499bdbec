"""Measuring: metrics that have to be in their range before something goes on: a batch, a stage.

`measurement` says what one measurement means, `metric` what all those of a metric mean and when to measure again.
Knows no scope. What is missing is never success: no answer, no series, several, NaN, infinity.
"""

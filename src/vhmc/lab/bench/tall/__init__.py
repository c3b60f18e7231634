"""Tall logistic regressions: time to a given accuracy, by method."""

"""Tall logistic regressions: time to a given accuracy, ours and others'."""

"""Experiment 2: Bayesian probit regression."""

"""Experiment 3: Bayesian logistic regression on a9a."""

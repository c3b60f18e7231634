"""Experiment 1: a beta-binomial model for overdispersion."""

"""Hierarchical and structured posteriors: groups, items, people and states in time.

Most parameters depend on the others through a few scales and means only. Models on
real data are those of the README of the folder `structured` that holds their data;
initial values are zeros and ones. Two forms of a model report the same quantities.
Reference moments are made by benchmarks/structured_reference.py. The Poisson inversion,
a forward model outside of JAX, has a script and a file of its own.
"""

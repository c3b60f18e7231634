"""Posteriors that are hard to find: raw units, far starts, overflow, walls, plateaus.

All have one mode. Moments of the unconstrained vector are made by
benchmarks/search_reference.py.
"""

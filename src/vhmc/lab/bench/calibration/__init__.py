"""Posteriors on which the verdict is calibrated: what a new user might bring.

None of them is in `vhmc.lab.bench.problems`, on which the method was tuned. They run
from easy regressions to densities that no budget can explore. Data are simulated here,
but for two regressions on real data. Starts are plain, not tuned. Reference moments
are made by benchmarks/calibration_reference.py.
"""

"""Posteriors on which the verdict is calibrated: what a new user might bring.

None of them is in `vhmc.lab.bench.run.PROBLEMS`, on which the method was tuned. They
range from easy regressions to densities that no budget can explore. Data are simulated,
except for two regressions on real data. Starts are not tuned. Reference moments are
made by benchmarks/calibration_reference.py.
"""

"""Posteriors in families, with known moments, on which the verdict is calibrated.

A family makes as many posteriors as wanted, each with data and sizes of its own by a
seed. Half of them, by a hash of the name, are there to fit the rule of the verdict and
the errors by parameter on; the other half is there to report on. None is used to tune
the sampler.
"""

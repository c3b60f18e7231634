"""Experiment 4: independent component analysis of a magnetoencephalogram."""

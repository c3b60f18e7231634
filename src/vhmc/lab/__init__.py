"""The laboratory: baselines, benchmarks, the paper's experiments, and their data."""

"""Data of the experiments: found beside the code, in a cache, or at their origin."""

"""The models of the paper's experiments."""

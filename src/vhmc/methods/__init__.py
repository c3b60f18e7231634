"""The algorithms: the paper's, and what they stand on."""

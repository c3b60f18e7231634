"""Find which parameters of a model depend on each other given all the others."""

"""HMC, random features, constraints, importance weights, effective sample sizes."""

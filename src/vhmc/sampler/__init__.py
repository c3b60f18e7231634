"""The default sampler, from the search for the mass to the verdict."""

"""Several modes: found, trained one by one, weighed and drawn as a mixture."""

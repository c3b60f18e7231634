"""Transport maps: coordinates in which the posterior is about standard normal."""

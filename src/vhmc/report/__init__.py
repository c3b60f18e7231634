"""A run as a page: what a person would rather look at than read numbers."""

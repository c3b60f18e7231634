"""Distances of draws and surrogates from the exact posterior."""

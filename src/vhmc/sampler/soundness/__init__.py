"""Checks of the model itself: its gradient, its noise, and whether it has a mass."""

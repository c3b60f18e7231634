"""Walls: where the log density is minus infinity, found and transformed away."""

"""Runs: chains iterated, costs added up, draws handed back."""

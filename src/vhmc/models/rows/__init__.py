"""Tall data: likelihoods that are sums over rows, wherever the rows are."""

"""Tall data: likelihoods that are sums over rows in memory, in files or on workers."""

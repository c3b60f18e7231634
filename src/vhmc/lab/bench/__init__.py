"""Posteriors with known answers, and the methods that `vhmc` is compared with."""

"""Posteriors of several modes, with known masses."""

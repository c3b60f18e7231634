"""The surrogate: a transport map, a residual on top, and their fit."""

"""The numerical parts: nodes, fits, potentials, dynamics, transforms."""

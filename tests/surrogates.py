"""Surrogates that are wrong on purpose, with and without a network and a curved map."""

import numpy as np

from vhmc.surrogate.network import Network, Nodes
from vhmc.surrogate.residual import Guard, ZeroResidual
from vhmc.surrogate.surrogate import Surrogate
from vhmc.transport.affine import Affine
from vhmc.transport.coupling import Coupling
from vhmc.transport.transport_map import TransportMap


def wrong_surrogate(dim, *, with_network=False, is_curved=False, num_nodes=20):
    """A Gaussian beside the mass and too narrow; bends and dents where asked for."""
    rng = np.random.default_rng(1)
    layers = [Affine(np.full(dim, 0.2), 0.8 * np.eye(dim))]
    if is_curved:
        axes = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        rate, shift = np.full(dim - 1, 0.7), 0.3 * rng.standard_normal(dim - 1)
        layers.append(Coupling(axes, rate, shift))
    residual = ZeroResidual()
    if with_network:
        # Hinges as narrow as a posterior: to forget them must show.
        directions = 4 * rng.standard_normal((num_nodes, dim)) / np.sqrt(dim)
        points = 0.7 * rng.standard_normal((num_nodes, dim))
        nodes = Nodes(directions, -np.sum(directions * points, axis=1))
        weights = 0.25 * rng.choice([-1.0, 1.0], num_nodes)
        residual = Network(nodes, weights, num_nodes)
    return Surrogate(TransportMap(tuple(layers)), residual, Guard(6.0, 3.0))


KINDS = {
    "plain": {},
    "network": {"with_network": True},
    "curved": {"is_curved": True},
    "network on a curved map": {"with_network": True, "is_curved": True},
}

r"""Variational Hamiltonian Monte Carlo in the paper's form (Algorithm 2)."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from vhmc._types import PRNGKey, Vector
from vhmc.numerics.bases import AbstractBasis, additive
from vhmc.numerics.gaussian import Gaussian
from vhmc.numerics.hmc import HMC, HMCInfo
from vhmc.numerics.mass import Mass, unit_mass
from vhmc.paper import score_matching
from vhmc.paper.potentials import Blend, Surrogate
from vhmc.paper.score_matching import ScoreFit

Schedule = Callable[[Array], Array]
r"""From the iteration $t = 1, 2, \dots$ to the weight $\mu_t$ of the surrogate."""
NodeLaw = Callable[[PRNGKey, int, Gaussian], AbstractBasis]

RIDGE_SHARE = 0.1
"""Of the guide's mean curvature; set on the models of `ridge_robustness.py`."""


class Ramp(eqx.Module):
    r"""The paper's $\mu_t = 1 - \exp(-t / n_s)$.

    timescale: iterations $n_s$ after which the surrogate has 63 % of the weight.
    """

    timescale: float

    def __check_init__(self):
        if not self.timescale > 0:
            raise ValueError(f"timescale must be positive, got {self.timescale}")

    def __call__(self, iteration: Array) -> Array:
        r"""Share $\mu_t$ of the surrogate at an iteration."""
        return -jnp.expm1(-iteration / self.timescale)


class VHMCState(NamedTuple):
    """The chain, the fit, and what was drawn or found before the first step.

    num_proposals: the paper's iteration $t$.
    num_gradients: exact gradients learnt from.
    """

    theta: Vector
    fit: ScoreFit
    basis: AbstractBasis
    guide: Gaussian
    kernel: HMC
    num_proposals: Int[Array, ""]
    num_gradients: Int[Array, ""]

    @property
    def surrogate(self) -> Surrogate:
        """The network with the weights learnt so far."""
        return Surrogate(self.basis, self.fit.weights)


class VHMC(eqx.Module):
    r"""Algorithm 2 with all of its inputs; the start is given with the target.

    num_features: hidden nodes $s$. Below $d (d + 3) / 2$ the network cannot represent
        even a quadratic.
    ridge: regularisation $\lambda$ of the weights, as printed. Unless given it is
        `RIDGE_SHARE` times the guide's mean curvature, $0.1 \, \mathrm{tr}(P) / d$: the
        squared node gradients have that unit, so the fit does not depend on units.
    schedule: $\mu_t$, from the Laplace guide (0) to the surrogate (1); any callable.
    num_train: iterations $t_0$ in which accepted states are learnt from.
    num_steps: leapfrog steps $L$ of a trajectory.
    jitter: fraction of `num_steps` that is random (see `HMC`).
    step_size: leapfrog step $\epsilon$; unless given, found for `acceptance`.
    acceptance: wanted mean acceptance probability.
    mass: mass matrix, identity unless given.
    nodes: law of the node parameters, called with a key, $s$ and the Laplace guide.
    trains_inputs: whether the input weights are trained, once, after half of training.
    """

    num_features: int = 100
    ridge: float | None = None
    schedule: Schedule = Ramp(200.0)
    num_train: int = 2000
    num_steps: int = 10
    jitter: float = 0.5
    step_size: float | None = None
    acceptance: float = 0.85
    mass: Mass | None = None
    nodes: NodeLaw = additive
    trains_inputs: bool = False

    def __check_init__(self):
        if self.num_features < 1:
            raise ValueError(
                f"the number of nodes must be at least 1, got {self.num_features}"
            )
        if self.ridge is not None and not 0 < self.ridge < math.inf:
            raise ValueError(f"ridge must be positive, got {self.ridge}")
        if self.num_train < 1:
            raise ValueError(f"num_train must be at least 1, got {self.num_train}")
        if self.num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, got {self.num_steps}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be between 0 and 1, got {self.jitter}")
        if self.step_size is not None and not 0 < self.step_size < math.inf:
            raise ValueError(f"step_size must be positive, got {self.step_size}")
        if not 0 < self.acceptance < 1:
            raise ValueError(f"acceptance must be in (0, 1), got {self.acceptance}")
        shares = jax.vmap(self.schedule)(jnp.arange(1.0, self.num_train + 1))
        outside = np.flatnonzero(~((shares >= 0) & (shares <= 1)))
        if len(outside):
            raise ValueError(
                f"the schedule must stay in [0, 1], got {shares[outside[0]]:g} at "
                f"t = {outside[0] + 1}"
            )

    def check_dim(self, dim: int) -> None:
        """Refuse a mass of another size than the model's, before the model is asked."""
        size = dim if self.mass is None else self.mass.inverse.shape[0]
        if size != dim:
            raise ValueError(f"the mass is for {size} parameters, there are {dim}")

    def initial_kernel(self, guide: Gaussian) -> HMC:
        """The kernel before tuning: its step is the narrowest standard deviation."""
        dim = guide.mean.shape[0]
        mass = unit_mass(dim) if self.mass is None else self.mass
        # In the momentum's coordinates, where a unit step is a unit of time.
        whiten = guide.whiten * mass.factor[None, :]
        if mass.factor.ndim == 2:
            whiten = guide.whiten @ mass.factor
        narrowest = 1 / np.linalg.norm(whiten, ord=2)
        step_size = narrowest if self.step_size is None else self.step_size
        return HMC(
            mass,
            jnp.asarray(step_size, dtype=float),
            jnp.asarray(self.num_steps),
            jnp.asarray(self.jitter, dtype=float),
        )

    def init(
        self, key: PRNGKey, theta: Vector, guide: Gaussian, kernel: HMC
    ) -> VHMCState:
        """Draw the nodes; nothing is learnt yet."""
        basis = self.nodes(key, self.num_features, guide)
        if basis.num_features != self.num_features:
            raise ValueError(
                f"the law of the nodes gave {basis.num_features} nodes, not "
                f"{self.num_features}"
            )
        fit = score_matching.init(self.num_features, self.ridge_for(guide))
        zero = jnp.zeros((), dtype=int)
        return VHMCState(theta, fit, basis, guide, kernel, zero, zero)

    def ridge_for(self, guide: Gaussian) -> float | Array:
        """The ridge, unless given relative to the guide's mean curvature."""
        if self.ridge is not None:
            return self.ridge
        return RIDGE_SHARE * jnp.sum(guide.whiten**2) / guide.mean.shape[0]

    def potential(self, state: VHMCState) -> Blend:
        r"""$V_t = \mu_t z_t + (1 - \mu_t) g$ for the next iteration."""
        mu = self.schedule(state.num_proposals + 1.0)
        return Blend(state.surrogate, state.guide, mu)

    def propose(self, key: PRNGKey, state: VHMCState) -> tuple[VHMCState, HMCInfo]:
        """Move the chain on $V_t$; costs no evaluation."""
        potential = self.potential(state)
        step_key = jax.random.fold_in(key, state.num_proposals)
        chain = state.kernel.init(state.theta[None], potential)
        chain, info = state.kernel.step(step_key, chain, potential)
        num_proposals = state.num_proposals + 1
        kernel = state.kernel
        if self.step_size is None:
            kernel = kernel.nudge(info, self.acceptance, num_proposals)
        state = state._replace(
            theta=chain.theta[0], kernel=kernel, num_proposals=num_proposals
        )
        return state, info

    def learn(self, state: VHMCState, grad: Vector) -> VHMCState:
        """Spend one exact gradient, taken at `state.theta`, on the fit."""
        jac = state.basis.jacobian(state.theta)
        fit = score_matching.update(state.fit, jac, grad)
        return state._replace(fit=fit, num_gradients=state.num_gradients + 1)

r"""Variational Hamiltonian Monte Carlo in the paper's form (Algorithm 2)."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from vhmc._types import PRNGKey, Vector
from vhmc.core import score_matching
from vhmc.core.bases import AbstractBasis, additive
from vhmc.core.gaussian import Gaussian
from vhmc.core.hmc import HMC, HMCInfo
from vhmc.core.mass import Mass, identity
from vhmc.core.potentials import Blend, Surrogate
from vhmc.core.score_matching import ScoreFit
from vhmc.methods.schedules import Ramp, Schedule

NodeLaw = Callable[[PRNGKey, int, Gaussian], AbstractBasis]


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
    ridge: regularisation $\lambda$ of the weights.
    schedule: $\mu_t$, from the Laplace guide (0) to the surrogate (1); any callable.
    num_train: iterations $t_0$ in which accepted states are learnt from.
    num_steps: leapfrog steps $L$ of a trajectory.
    jitter: share of `num_steps` that is random (see `HMC`).
    step_size: leapfrog step $\epsilon$; unless given, found for `acceptance`.
    acceptance: wanted mean acceptance probability.
    mass: mass matrix, identity unless given.
    nodes: law of the node parameters, called with a key, $s$ and the Laplace guide.
    """

    num_features: int = 100
    ridge: float = 1.0
    schedule: Schedule = Ramp(200.0)
    num_train: int = 2000
    num_steps: int = 10
    jitter: float = 0.5
    step_size: float | None = None
    acceptance: float = 0.85
    mass: Mass | None = None
    nodes: NodeLaw = additive

    def __check_init__(self):
        if self.num_features < 1:
            raise ValueError(
                f"the number of nodes must be at least 1, got {self.num_features}"
            )
        if not self.ridge > 0:
            raise ValueError(f"ridge must be positive, got {self.ridge}")
        if self.num_train < 1:
            raise ValueError(f"num_train must be at least 1, got {self.num_train}")
        if self.num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, got {self.num_steps}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be between 0 and 1, got {self.jitter}")
        if self.step_size is not None and not self.step_size > 0:
            raise ValueError(f"step_size must be positive, got {self.step_size}")
        if not 0 < self.acceptance < 1:
            raise ValueError(f"acceptance must be in (0, 1), got {self.acceptance}")
        first = float(self.schedule(jnp.ones(())))
        if not 0 <= first <= 1:
            raise ValueError(f"the schedule must stay in [0, 1], got {first} at t = 1")

    def initial_kernel(self, guide: Gaussian) -> HMC:
        """The kernel before tuning; a unit step is a standard deviation at worst."""
        narrowest = 1 / jnp.linalg.norm(guide.whiten, ord=2)
        step_size = narrowest if self.step_size is None else self.step_size
        mass = identity(len(guide.mean)) if self.mass is None else self.mass
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
        fit = score_matching.init(self.num_features, self.ridge)
        zero = jnp.zeros((), dtype=int)
        return VHMCState(theta, fit, basis, guide, kernel, zero, zero)

    def potential(self, state: VHMCState) -> Blend:
        r"""$V_t = \mu_t z_t + (1 - \mu_t) g$ for the next iteration."""
        mu = self.schedule(state.num_proposals + 1.0)
        return Blend(state.surrogate, state.guide, mu)

    def propose(self, key: PRNGKey, state: VHMCState) -> tuple[VHMCState, HMCInfo]:
        """Move the chain on $V_t$; costs no call of the model."""
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

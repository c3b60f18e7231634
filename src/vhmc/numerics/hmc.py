r"""Hamiltonian Monte Carlo (Algorithm 1) on any potential, several chains in one batch.

The one kernel of the package: the exact baseline, the training phase and the frozen
phase differ only in the potential they pass. All chains of a batch share the number of
leapfrog steps, so a step is a handful of matrix products.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vhmc._types import Points, Potential, PRNGKey, Scalar
from vhmc.numerics.mass import Mass

MAX_ENERGY_ERROR = 1000.0
"""A trajectory that gains more than this has left the level set: Stan's threshold."""

Chains = Float[Array, " n"]
Flags = Bool[Array, " n"]


class HMCState(NamedTuple):
    """Points of the chains with what the next step would otherwise recompute."""

    theta: Points
    energy: Chains
    grad: Points


class HMCInfo(NamedTuple):
    """What one transition did."""

    accept_prob: Chains
    is_accepted: Flags
    is_divergent: Flags
    num_steps: Int[Array, ""]


class Trajectory(NamedTuple):
    """The end of a leapfrog trajectory."""

    theta: Points
    momentum: Points
    energy: Chains
    grad: Points


class HMC(eqx.Module):
    r"""Hamiltonian Monte Carlo with a fixed step size.

    mass: mass matrix $M$ of the momentum.
    step_size: leapfrog step $\epsilon$.
    num_steps: leapfrog steps $L$ in one trajectory, at most.
    jitter: fraction of $L$ that is random. The number of steps is uniform on
        $\lceil (1 - j) L \rceil, \dots, L$, which keeps trajectories from locking on to
        a period of the dynamics; 0 is Algorithm 1 as printed, 1 draws from 1 to L.
    temperature: $T$ of the target $e^{-U / T}$, one for all chains or one a chain. The
        dynamics stay those of $U$: the momentum is hotter, and energies count less.
    """

    mass: Mass
    step_size: Scalar | float
    num_steps: Int[Array, ""] | int = 10
    jitter: Scalar | float = 0.0
    temperature: Chains | Scalar | float = 1.0

    def init(self, theta: Points, potential: Potential) -> HMCState:
        """Evaluate the chains; again whenever the potential changed."""
        return HMCState(theta, *jax.vmap(jax.value_and_grad(potential))(theta))

    def step(
        self, key: PRNGKey, state: HMCState, potential: Potential
    ) -> tuple[HMCState, HMCInfo]:
        """Move every chain once; costs at most `num_steps` gradients a chain."""
        num_chains, dim = state.theta.shape
        key_momentum, key_uniform = jax.random.split(key)
        momentum = self.mass.sample(key_momentum, num_chains, dim)
        momentum = momentum * jnp.sqrt(jnp.reshape(self.temperature, (-1, 1)))
        uniforms = jax.random.uniform(key_uniform, (1 + num_chains,))
        length = self._length(uniforms[0])
        end = leapfrog(potential, self.mass, state, momentum, self.step_size, length)

        before = state.energy + self.mass.kinetic(momentum)
        after = end.energy + self.mass.kinetic(end.momentum)
        drop = (before - after) / self.temperature
        # A finite energy with a gradient that is not would freeze the chain for good.
        is_usable = ~jnp.isnan(drop) & jnp.all(jnp.isfinite(end.grad), axis=1)
        log_ratio = jnp.where(is_usable, drop, -jnp.inf)
        accept_prob = jnp.exp(jnp.minimum(log_ratio, 0.0))
        is_accepted = uniforms[1:] < accept_prob

        info = HMCInfo(accept_prob, is_accepted, log_ratio < -MAX_ENERGY_ERROR, length)
        proposed = HMCState(end.theta, end.energy, end.grad)
        return _choose(is_accepted, proposed, state), info

    def _length(self, uniform: Scalar) -> Int[Array, ""]:
        """Leapfrog steps of one transition (`randint` would compile for longer)."""
        fewest = jnp.maximum(jnp.ceil((1 - self.jitter) * self.num_steps), 1)
        choices = self.num_steps - fewest + 1
        return (fewest + jnp.floor(uniform * choices)).astype(int)

    def nudge(self, info: HMCInfo, acceptance: Scalar | float, count: Array) -> "HMC":
        r"""Move the step size towards a wanted acceptance (Robbins and Monro).

        $\log \epsilon \leftarrow \log \epsilon + k^{-0.6} (\bar a_k - a)$ with
        $\bar a_k$ the chains' mean acceptance probability in transition $k$, from 1.
        """
        excess = jnp.mean(info.accept_prob) - acceptance
        step_size = self.step_size * jnp.exp(count**-0.6 * excess)
        return eqx.tree_at(lambda kernel: kernel.step_size, self, step_size)


@eqx.filter_jit
def energies_and_grads(potential: Potential, thetas: Points) -> tuple[Chains, Points]:
    """Energies and their gradients, in one program: op by op they took seconds."""
    return jax.vmap(jax.value_and_grad(potential))(thetas)


def leapfrog(
    potential: Potential,
    mass: Mass,
    start: HMCState,
    momentum: Points,
    step_size: Scalar | float,
    num_steps: Int[Array, ""] | int,
) -> Trajectory:
    r"""Integrate eq. velocity and force over `num_steps` steps of `step_size`.

    The half kicks of neighbouring steps are one full kick at the same point, and the
    first gradient is the cached one of `start`: a trajectory costs $L$ gradients, not
    $2 L$. The energy is computed at its end only.
    """
    grad_fn = jax.vmap(jax.grad(potential))
    momentum = momentum - 0.5 * step_size * start.grad

    def drift_and_kick(_, carry):
        theta, momentum = carry
        theta = theta + step_size * mass.velocity(momentum)
        return theta, momentum - step_size * grad_fn(theta)

    theta, momentum = jax.lax.fori_loop(
        0, num_steps - 1, drift_and_kick, (start.theta, momentum)
    )
    theta = theta + step_size * mass.velocity(momentum)
    energy, grad = jax.vmap(jax.value_and_grad(potential))(theta)
    return Trajectory(theta, momentum - 0.5 * step_size * grad, energy, grad)


def _choose(chosen: Flags, new: HMCState, old: HMCState) -> HMCState:
    rows = chosen[:, None]
    return HMCState(
        jnp.where(rows, new.theta, old.theta),
        jnp.where(chosen, new.energy, old.energy),
        jnp.where(rows, new.grad, old.grad),
    )

"""What can be said against a run without knowing the exact answer."""

import jax.numpy as jnp
import numpy as np

from vhmc.numerics.chains import Chains
from vhmc.numerics.effective_size import split_rhat
from vhmc.numerics.hmc import energies_and_grads
from vhmc.paper.algorithm2 import VHMC
from vhmc.paper.training import Trained

RHAT_LIMIT = 1.1
LEAST_DRAWS = 100
"""Draws of a chain below which R-hat is noise."""
MOST_DIVERGENT = 0.01
MOST_UNEXPLAINED = 0.2
FARTHEST = 5.0
"""Times the distance of the farthest training state beyond which draws ran away."""


def doubts(method: VHMC, trained: Trained, run: Chains) -> list[str]:
    """What the user should know before trusting the draws, without the exact answer."""
    found = []
    num_draws, dim = run.theta.shape[1:]
    needed = dim * (dim + 3) // 2
    if method.num_features < needed:
        found.append(
            f"{method.num_features} nodes cannot represent even a quadratic in {dim} "
            f"dimensions: use at least {needed}"
        )
    if trained.num_failed:
        found.append(
            f"the model had no finite log density and gradient at {trained.num_failed} "
            "accepted states: constrain the parameters to where it has"
        )
    unexplained = unexplained_share(trained)
    if not unexplained < MOST_UNEXPLAINED:
        found.append(
            f"the surrogate leaves {unexplained:.0%} of the training gradients "
            "unexplained: use more nodes or a smaller ridge"
        )
    divergent = float(run.is_divergent.mean())
    if divergent > MOST_DIVERGENT:
        found.append(
            f"{divergent:.1%} of the transitions diverged: lower the step size"
        )
    rhat = split_rhat(run.theta).max() if num_draws >= LEAST_DRAWS else 1.0
    if not rhat < RHAT_LIMIT:
        found.append(
            f"the chains on the frozen surrogate disagree (R-hat {rhat:.3g}): draw "
            "more, or train longer"
        )
    guide = trained.state.guide
    seen, drawn = (
        np.linalg.norm((points - guide.mean) @ guide.whiten.T, axis=-1).max()
        for points in (trained.theta, run.theta.reshape(-1, dim))
    )
    if not drawn < FARTHEST * seen:
        found.append(
            f"draws go {drawn / seen:.3g} times as far from the mode as the training "
            "states: the surrogate may not be normalisable; train longer"
        )
    return found


def unexplained_share(trained: Trained) -> float:
    """Squared error of the surrogate's gradients over the gradients' own square.

    At the training states, in units of the guide: a network of no use is at 1.
    """
    is_known = np.isfinite(trained.energy) & np.isfinite(trained.grad).all(axis=1)
    theta, grad = trained.theta[is_known], trained.grad[is_known]
    _, guessed = energies_and_grads(trained.state.surrogate, jnp.asarray(theta))
    errors, sizes = (
        np.sum(np.linalg.solve(trained.state.guide.whiten.T, rows.T) ** 2)
        for rows in (np.asarray(guessed) - grad, grad)
    )
    return float(errors / sizes)

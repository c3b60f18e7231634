"""A drug that saturates its elimination: an ODE as a black box, without JAX.

The concentration obeys dC/dt = -v C / (k + C). SciPy solves it together with its
forward sensitivities, the derivatives of C with respect to v, k and the first
concentration, which obey a linear ODE of their own. The data are simulated.
"""

import numpy as np
from scipy.integrate import solve_ivp

import vhmc

TIMES = np.linspace(0.5, 12.0, 16)
TRUTH = {"v": 2.0, "k": 1.5, "first": 10.0, "sd": 0.2}
# Log-normal priors: medians and standard deviations of the logarithms.
MEDIANS = np.array([1.0, 1.0, 8.0, 0.5])
SPREADS = np.array([1.0, 1.0, 0.5, 1.0])


def right_side(time, state, v, k):
    level, by_v, by_k, by_first = state
    slope = -v * k / (k + level) ** 2
    return [
        -v * level / (k + level),
        slope * by_v - level / (k + level),
        slope * by_k + v * level / (k + level) ** 2,
        slope * by_first,
    ]


def solve(v, k, first):
    """Concentrations at the times of the data, and their three derivatives."""
    solution = solve_ivp(
        right_side,
        (0.0, TIMES[-1]),
        [first, 0.0, 0.0, 1.0],
        args=(v, k),
        t_eval=TIMES,
        method="LSODA",
        rtol=1e-8,
        atol=1e-10,
    )
    if not solution.success:
        raise RuntimeError(solution.message)
    return solution.y[0], solution.y[1:].T


def simulate(seed: int = 1) -> np.ndarray:
    level, _ = solve(TRUTH["v"], TRUTH["k"], TRUTH["first"])
    rng = np.random.default_rng(seed)
    return level + TRUTH["sd"] * rng.standard_normal(len(TIMES))


class Model:
    """Log posterior and gradient; a class, so that processes can share the work."""

    def __init__(self, data: np.ndarray):
        self.data = data

    def __call__(self, params):
        v, k, first, sd = params
        level, jacobian = solve(v, k, first)
        residual = self.data - level
        value = -0.5 * np.sum(residual**2) / sd**2 - len(residual) * np.log(sd)
        grad = np.append(
            residual @ jacobian / sd**2,
            np.sum(residual**2) / sd**3 - len(residual) / sd,
        )
        score = np.log(params / MEDIANS) / SPREADS**2
        value += np.sum(-0.5 * score**2 * SPREADS**2 - np.log(params))
        return value, grad - (score + 1) / params


def main(budget: int = 600) -> vhmc.Posterior:
    target = vhmc.from_callable(
        Model(simulate()),
        dim=4,
        init=MEDIANS,
        names=list(TRUTH),
        constraints=dict.fromkeys(TRUTH, vhmc.positive),
    )
    print(target)
    posterior = vhmc.sample(target, budget, seed=0)
    print(posterior.verdict)
    print(posterior.summary())
    print(f"{len(posterior.failures)} points failed")
    return posterior


if __name__ == "__main__":
    main()

"""Reference moments of the Poisson inversion, read by `vhmc.lab.bench.structured`.

Exact MCMC: Hamiltonian Monte Carlo on the true posterior of log theta, preconditioned
first by the Gauss-Newton matrix at the mode, then by the covariance of a pilot run.
Chains start from overdispersed draws of that Gaussian. The measurements are read from
the folder that VHMC_DATA names.

Run: python benchmarks/poisson_reference.py [transitions of a chain] [file for draws]
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.optimize

from vhmc._imports import load_arviz
from vhmc.lab.bench.structured import inversion

CHAINS = 4
PILOT = 400
"""Transitions of a chain of each of the two pilot runs; the first half is dropped."""
BURN_IN = 200
LENGTH = 1.6
"""Mean length of a trajectory, in units of the preconditioner's standard deviation."""
STEPS = 9
FARTHEST = 24.0
"""Log coefficient, ten prior sds out, beyond which a trajectory has diverged."""
PRIOR_MEAN, PRIOR_SD = inversion.PRIOR_SD**2, inversion.PRIOR_SD


class Posterior:
    """Energy and gradient of log theta, counted."""

    def __init__(self) -> None:
        self.membrane = inversion.Membrane()
        self.data = inversion.measurements()
        self.num_gradients = 0

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log density, and its gradient."""
        self.num_gradients += 1
        if np.abs(point).max() > FARTHEST:
            return np.inf, np.zeros_like(point)
        theta = np.exp(point)
        try:
            misfit = (self.membrane(theta) - self.data) / inversion.NOISE_SD
        except np.linalg.LinAlgError:  # a trajectory that has diverged
            return np.inf, np.zeros_like(point)
        away = (point - PRIOR_MEAN) / PRIOR_SD
        pulled = self.membrane.vjp(theta, misfit / inversion.NOISE_SD)
        grad = theta * pulled + away / PRIOR_SD
        return 0.5 * misfit @ misfit + 0.5 * away @ away, grad

    def gauss_newton(self, point: np.ndarray) -> np.ndarray:
        """Hessian without the second derivatives of the model."""
        theta = np.exp(point)
        rows = [self.membrane.vjp(theta, unit) for unit in np.eye(len(self.data))]
        jacobian = np.stack(rows) * theta / inversion.NOISE_SD
        return jacobian.T @ jacobian + np.eye(len(point)) / PRIOR_SD**2


def chain(posterior, rng, start, factor, step, number):
    """States of one chain, their acceptance, and the step size at its end.

    factor: Cholesky factor of the preconditioner's covariance.
    step: size to begin with; it is adapted to an acceptance of 0.8 in the first half
        of a pilot run, and fixed if `number` is given as a negative number.
    """
    adapts, number = number > 0, abs(number)
    point, (energy, grad) = start, posterior(start)
    states, accepted = np.empty((number, len(start))), np.empty(number)
    for count in range(number):
        momentum = rng.standard_normal(len(start))
        size = step * rng.uniform(0.6, 1.2)
        length = rng.integers(STEPS // 2, STEPS * 3 // 2 + 1)
        new, new_grad = point.copy(), grad
        total = energy + 0.5 * momentum @ momentum
        momentum = momentum - 0.5 * size * factor.T @ new_grad
        for leap in range(length):
            new = new + size * factor @ momentum
            new_energy, new_grad = posterior(new)
            half = 1.0 if leap < length - 1 else 0.5
            momentum = momentum - half * size * factor.T @ new_grad
            if not np.isfinite(new_energy):
                break
        drop = total - new_energy - 0.5 * momentum @ momentum
        accepted[count] = np.exp(min(0.0, drop)) if np.isfinite(drop) else 0.0
        if rng.uniform() < accepted[count]:
            point, energy, grad = new, new_energy, new_grad
        states[count] = point
        if adapts and count < number // 2:
            step *= np.exp((accepted[count] - 0.8) * (1 + count / 10) ** -0.6)
    return states, accepted.mean(), step


def main() -> None:
    """Run the chains and write their moments."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    began, posterior = time.perf_counter(), Posterior()
    rng = np.random.default_rng(0)
    dim = inversion.CELLS**2
    mode = scipy.optimize.minimize(posterior, np.zeros(dim), jac=True).x
    inverse = np.linalg.inv(posterior.gauss_newton(mode))
    factor, centre, step = np.linalg.cholesky(inverse), mode, LENGTH / STEPS
    for pilot in range(2):
        runs = []
        for _ in range(CHAINS):
            start = centre + factor @ rng.standard_normal(dim)
            states, rate, step = chain(posterior, rng, start, factor, step, PILOT)
            runs.append(states[PILOT // 2 :])
        pooled = np.concatenate(runs)
        centre = pooled.mean(axis=0)
        # Few effective draws: shrink towards the Gauss-Newton matrix.
        weight = 0.5 if pilot == 0 else 0.8
        covariance = weight * np.cov(pooled.T) + (1 - weight) * inverse
        factor = np.linalg.cholesky(covariance)
        print(f"pilot {pilot}: acceptance {rate:.2f}, step {step:.3f}", flush=True)
    runs = []
    for _ in range(CHAINS):
        start = centre + 1.5 * factor @ rng.standard_normal(dim)
        states, rate, _ = chain(posterior, rng, start, factor, step, -number)
        runs.append(states[BURN_IN:])
        print(f"acceptance {rate:.2f}, {time.perf_counter() - began:.0f} s", flush=True)
        if len(sys.argv) > 2:
            np.save(sys.argv[2], np.stack(runs))
    write(np.stack(runs), posterior.num_gradients, number)


def write(draws: np.ndarray, num_gradients: int, number: int) -> None:
    """Moments with the figures that say how good they are."""
    arviz = load_arviz()
    columns = np.moveaxis(draws, -1, 0)
    bulk, tail = (
        min(float(arviz.ess(column, method=kind)) for column in columns)
        for kind in ("bulk", "tail")
    )
    rhat = max(float(arviz.rhat(column)) for column in columns)
    flat = draws.reshape(-1, draws.shape[-1])
    table = {
        "method": f"preconditioned HMC on the true posterior, {CHAINS} chains of "
        f"{draws.shape[1]} transitions after {BURN_IN}, {num_gradients} gradients",
        "r_hat": round(rhat, 5),
        "ess_bulk": round(bulk),
        "ess_tail": round(tail),
        "made_by": f"python benchmarks/poisson_reference.py {number}",
        "mean": [float(f"{value:.6g}") for value in flat.mean(axis=0)],
        "sd": [float(f"{value:.6g}") for value in flat.std(axis=0, ddof=1)],
    }
    path = Path(inversion.__file__).with_name(inversion.REFERENCE)
    path.write_text(json.dumps(table, indent=1) + "\n")
    print({key: table[key] for key in list(table)[:5]})


if __name__ == "__main__":
    main()

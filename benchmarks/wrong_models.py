"""What is said of models that are wrong: gradients, noise, digits, and mass.

Takes four right models and breaks each in eighteen ways; twelve densities without a
finite mass, and five that have one. For each the first sentence about the model is
printed, and whether it is the one that was expected:

    python benchmarks/wrong_models.py            # about three minutes
    python benchmarks/wrong_models.py logistic   # those whose name has this in it
"""

import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import vhmc

BUDGET = 400
TOLERATED = "nothing"
"""Said of the model: the verdict may have other reasons."""
ABOUT_MODEL = (
    "the gradient",
    "entries of the gradient",
    "values of the log density",
    "the log density is",
    "the posterior has",
)
"""How sentences begin that are about the model."""

Answer = tuple[float, np.ndarray]
Model = Callable[[np.ndarray], Answer]
GENERATOR = np.random.default_rng(5)
SLOPES = GENERATOR.normal(size=(300, 4)) * [1.0, 0.5, 2.0, 1.0]
NOISE = GENERATOR.normal(size=300)
TRUTH = np.array([1.0, -0.5, 0.3, 0.8])
ETA = SLOPES @ TRUTH


class Base(NamedTuple):
    """A right model.

    log_likelihood: by row.
    log_prior: of the parameters.
    dim: number of parameters, `abcd...`.
    """

    log_likelihood: Callable[[jax.Array], jax.Array]
    log_prior: Callable[[jax.Array], jax.Array]
    dim: int

    def model(self, num_rows: int | None = None) -> Model:
        """Value and gradient of the first rows, or of all."""

        def density(theta: jax.Array) -> jax.Array:
            return self.log_likelihood(theta)[:num_rows].sum() + self.log_prior(theta)

        both = jax.jit(jax.value_and_grad(density))

        def model(theta: np.ndarray) -> Answer:
            value, grad = both(theta)
            return float(value), np.array(grad)

        return model


def _normal_prior(theta: jax.Array) -> jax.Array:
    return -0.5 * theta @ theta / 25


def _gaussian(theta: jax.Array) -> jax.Array:
    return -0.5 * (ETA + NOISE - SLOPES @ theta) ** 2


def _scaled(theta: jax.Array) -> jax.Array:
    residual = ETA[:40] + 0.7 * NOISE[:40] - SLOPES[:40] @ theta[:4]
    return -0.5 * (residual / jnp.exp(theta[4])) ** 2 - theta[4]


def _logistic(theta: jax.Array) -> jax.Array:
    sign = np.where(ETA + NOISE > 0, 1.0, -1.0)
    return -jnp.logaddexp(0.0, -sign * (SLOPES @ theta))


def _poisson(theta: jax.Array) -> jax.Array:
    count = np.floor(np.exp(0.5 * ETA + 0.3 * NOISE))
    return count * 0.5 * (SLOPES @ theta) - jnp.exp(0.5 * (SLOPES @ theta))


BASES = {
    "gaussian": Base(_gaussian, _normal_prior, 4),
    "scaled": Base(_scaled, _normal_prior, 5),
    "logistic": Base(_logistic, _normal_prior, 4),
    "poisson": Base(_poisson, _normal_prior, 4),
}


def with_grad(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Base], Model]:
    """The gradient changed."""

    def broken(base: Base) -> Model:
        model = base.model()
        return lambda theta: (model(theta)[0], change(model(theta)[1]))

    return broken


def with_value(change: Callable[[float], float]) -> Callable[[Base], Model]:
    """The value changed."""

    def broken(base: Base) -> Model:
        model = base.model()
        return lambda theta: (change(model(theta)[0]), model(theta)[1])

    return broken


def _scaled_entry(place: int, factor: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(grad: np.ndarray) -> np.ndarray:
        grad[place] *= factor
        return grad

    return change


def _stale(base: Base) -> Model:
    model, kept = base.model(), [np.zeros(base.dim)]

    def broken(theta: np.ndarray) -> Answer:
        value, grad = model(theta)
        kept.append(grad)
        return value, kept.pop(0)

    return broken


def _half_of_the_data(base: Base) -> Model:
    whole, half = base.model(), base.model(150 if base.dim == 4 else 20)
    return lambda theta: (whole(theta)[0], half(theta)[1])


def _no_jacobian(base: Base) -> Model:
    """The last parameter is on a log scale, and the gradient leaves that out."""
    model = base.model()
    return lambda theta: (model(theta)[0] + theta[-1], model(theta)[1])


def _single(base: Base) -> Model:
    model = base.model()
    return lambda theta: (
        float(np.float32(model(theta)[0] - 1e5)),
        model(theta)[1].astype(np.float32),
    )


def noisy(sd: float) -> Callable[[float], float]:
    """Noise in the value."""
    rng = np.random.default_rng(3)
    return lambda value: value + sd * rng.normal()


def noisy_grad(sd: float) -> Callable[[np.ndarray], np.ndarray]:
    """Noise in the gradient."""
    rng = np.random.default_rng(4)
    return lambda grad: grad * (1 + sd * rng.normal(size=len(grad)))


WRONG: dict[str, tuple[Callable[[Base], Model], str]] = {
    "right": (Base.model, TOLERATED),
    "gradient 1 % too large": (with_grad(lambda g: 1.01 * g), "0.9901 times"),
    "gradient of half the scale": (with_grad(lambda g: 0.5 * g), "2 times"),
    "gradient of the energy": (with_grad(lambda g: -g), "wrong sign in all"),
    "wrong sign of b": (with_grad(_scaled_entry(1, -1.0)), "for b it has the wrong"),
    "b 1 % too large": (with_grad(_scaled_entry(1, 1.01)), "for b"),
    "c without a gradient": (with_grad(_scaled_entry(2, 0.0)), "for c it is zero"),
    "permuted gradient": (with_grad(lambda g: np.roll(g, 1)), "permuted"),
    "gradient of the last call": (_stale, "late"),
    "gradient of half of the data": (_half_of_the_data, "the gradient is"),
    "no Jacobian": (_no_jacobian, "log-Jacobian"),
    "values with noise of 0.3": (with_value(noisy(0.3)), "density is noisy"),
    "values with noise of 0.003": (with_value(noisy(0.003)), TOLERATED),
    "gradients with noise of 20 %": (with_grad(noisy_grad(0.2)), "gradient is noisy"),
    "offset 1e12": (with_value(lambda value: value + 1e12), TOLERATED),
    "offset 1e17": (with_value(lambda value: value + 1e17), "are near 1e+17"),
    "32 bits": (_single, TOLERATED),
    "32 bits near -1e7": (
        with_value(lambda value: float(np.float32(value - 1e7))),
        "in 32 bits",
    ),
    "integers": (with_value(lambda value: float(round(value))), "integers"),
}

IMPROPER: dict[str, tuple[Callable[[jax.Array], jax.Array], str]] = {
    "sum of a and b": (
        lambda t: -0.5 * (t[0] + t[1] - 1) ** 2 - t[2] ** 2,
        "a, b move",
    ),
    "difference of b and c": (
        lambda t: -jnp.cosh(t[1] - t[2]) - 0.5 * t[0] ** 2,
        "b, c move",
    ),
    "a without a prior": (lambda t: -0.5 * t[1:] @ t[1:], "if a move"),
    "c linear": (lambda t: t[2] - 0.5 * t[:2] @ t[:2], "if c move"),
    "a grows": (lambda t: 0.5 * t[0] ** 2 - 0.5 * t[1:] @ t[1:], "if a move"),
    "a separates": (
        lambda t: -jnp.logaddexp(0.0, -3 * t[0]) - 0.5 * t[1:] @ t[1:],
        "if a move",
    ),
    "flat log scale b": (
        lambda t: (
            -0.5 * (1.0 - jnp.exp(t[1]) * t[0]) ** 2 - 0.5 * (t[0] ** 2 + t[2] ** 2)
        ),
        "if b move",
    ),
    "a beyond a wall": (
        lambda t: -jnp.exp(-t[0]) - 0.5 * t[1:] @ t[1:],
        "if a move",
    ),
    "slow tail of b": (
        lambda t: -0.4 * jnp.log1p(t[1] ** 2) - 0.5 * (t[0] ** 2 + t[2] ** 2),
        "if b move",
    ),
    "constant": (lambda t: 0.0 * t.sum(), "is the same at all"),
    "sum of all": (lambda t: -0.5 * t.sum() ** 2, "a, b, c move"),
    "collinear slopes": (
        lambda t: -0.5 * jnp.sum((NOISE[:9] - SLOPES[:9, :2] @ (t[:2] + t[1:])) ** 2),
        "a, b, c move",
    ),
}

PROPER: dict[str, Callable[[jax.Array], jax.Array]] = {
    "Cauchy tails": lambda t: -jnp.log1p(t**2).sum(),
    "wide prior": lambda t: -0.5 * ((t[0] + t[1] - 1) ** 2 + t @ t / 1e8),
    "funnel": lambda t: -(t[0] ** 2) / 18 - t[0] - 0.5 * t[1:] @ t[1:] * jnp.exp(-t[0]),
    "Laplace": lambda t: -jnp.abs(t).sum(),
    "far": lambda t: -0.5 * ((t - 1e4) / 3) @ ((t - 1e4) / 3),
}


def said(model: Model, dim: int) -> tuple[str, str, int]:
    """Verdict or error, what was said of the model, and the evaluations."""
    names = list("abcdefgh"[:dim])
    target = vhmc.from_callable(model, dim=dim, names=names)
    try:
        posterior = vhmc.sample(target, budget=BUDGET, progress=False)
    except vhmc.RunFailure as failure:
        return (
            "failure",
            str(failure).split("; all evaluations")[0],
            (target.num_evaluations),
        )
    assert posterior.verdict is not None
    about = [one for one in posterior.verdict.reasons if one.startswith(ABOUT_MODEL)]
    sentence = about[0] if about else TOLERATED
    return posterior.verdict.status, sentence, target.num_evaluations


def _jax_model(density: Callable[[jax.Array], jax.Array]) -> Model:
    both = jax.jit(jax.value_and_grad(density))
    return lambda theta: (float(both(theta)[0]), np.array(both(theta)[1]))


def cases() -> dict[str, tuple[Model, int, str]]:
    """Models with their dimension and what is to be said of them."""
    found: dict[str, tuple[Model, int, str]] = {}
    for name, base in BASES.items():
        for kind, (broken, expected) in WRONG.items():
            found[f"{name}: {kind}"] = broken(base), base.dim, expected
    for kind, (density, expected) in IMPROPER.items():
        found[f"improper: {kind}"] = _jax_model(density), 3, expected
    for kind, density in PROPER.items():
        found[f"proper: {kind}"] = _jax_model(density), 3, TOLERATED
    return found


def main() -> None:
    """Print a line for each."""
    warnings.simplefilter("ignore")
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = {name: case for name, case in cases().items() if wanted in name}
    num_right = 0
    for name, (model, dim, expected) in chosen.items():
        status, sentence, cost = said(model, dim)
        is_right = expected in sentence
        num_right += is_right
        mark = "" if is_right else f"   EXPECTED: {expected}"
        print(f"{name} | {status} | {cost} | {sentence}{mark}", flush=True)
    print(f"{num_right} of {len(chosen)} as expected")


if __name__ == "__main__":
    main()

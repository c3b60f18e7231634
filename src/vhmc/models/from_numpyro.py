"""Turn a NumPyro model into a target, with NumPyro's own transforms."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from vhmc._imports import load_extra
from vhmc._types import Scalar, Vector
from vhmc.evaluation.space import Space
from vhmc.evaluation.target import Target, improper
from vhmc.models.batches import batched
from vhmc.models.traced import TracedTarget


def from_numpyro(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Target:
    """Target of a NumPyro model.

    Draws have the sample sites in their supports and the deterministic sites; plates
    name the dims. The model is traced here but not evaluated: the start is zero in
    NumPyro's unconstrained space.

    model, args, kwargs: the model and its own arguments.
    """
    load_extra("numpyro", "from_numpyro", "numpyro")
    space = NumPyroSpace(model, args, kwargs)
    target = TracedTarget(space.energy, space)
    target.constants = improper(space.flat)
    return target


class NumPyroSpace(Space):
    """Sample sites, with NumPyro's bijections to their supports."""

    def __init__(self, model: Callable[..., Any], args: tuple, kwargs: dict[str, Any]):
        self._model, self._args, self._kwargs = model, args, kwargs
        sites = _traced_sites(model, args, kwargs)
        sampled = {n: site for n, site in sites.items() if site["type"] == "sample"}
        latent = {n: site for n, site in sampled.items() if not site["is_observed"]}
        discrete = [n for n, site in latent.items() if site["fn"].support.is_discrete]
        if discrete:
            raise ValueError(
                f"sites {', '.join(discrete)} are discrete: sum them out of the model"
            )
        if not latent:
            raise ValueError("the model has no parameters: no sample site without obs")
        self.names = list(latent)
        self.shapes = {name: site["shape"] for name, site in latent.items()}
        self.flat = [n for n, s in latent.items() if _is_flat(s["fn"])]
        self._has_data = len(latent) < len(sampled)
        # A list, as JAX sorts the names of a dict: this keeps the model's order.
        zeros = [jnp.zeros(site["unconstrained_shape"]) for site in latent.values()]
        vector, unravel = ravel_pytree(zeros)
        self.unconstrained_sizes = [part.size for part in zeros]
        self._unravel = lambda theta: dict(zip(self.names, unravel(theta), strict=True))
        self.start = np.asarray(vector, dtype=float)
        self.dims = {name: _dims(name, site) for name, site in sites.items()}
        self.coords = {}

    def energy(self, theta: Vector) -> Scalar:
        """Minus the log joint density, Jacobians included."""
        from numpyro.infer.util import potential_energy

        model = self._model, self._args, self._kwargs
        return potential_energy(*model, self._unravel(theta))

    def flatten(self, init: Any) -> np.ndarray:
        from numpyro.infer.util import unconstrain_fn

        model = self._model, self._args, self._kwargs
        values = unconstrain_fn(*model, init)
        return np.asarray(ravel_pytree([values[name] for name in self.names])[0])

    def draw_prior(self, rng: np.random.Generator, number: int) -> np.ndarray | None:
        from numpyro import handlers

        if self.flat:
            return None
        keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), number)
        rows = []
        for key in keys:
            seeded = handlers.seed(self._model, key)
            sites = handlers.trace(seeded).get_trace(*self._args, **self._kwargs)
            values = {name: sites[name]["value"] for name in self.names}
            rows.append(self.flatten(values))
        return np.stack(rows)

    def constrain(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        values = self.map_rows(self._replays[False], thetas)
        return {name: values[name] for name in self.names}

    def expand(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """Sample sites, then deterministic ones."""
        values = self.map_rows(self._replays[True], thetas)
        return {name: values[name] for name in self.names} | values

    def log_likelihood(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        from numpyro.infer import log_likelihood

        if not self._has_data:
            return {}

        def terms(rows: np.ndarray) -> dict[str, jax.Array]:
            draws = self.constrain(rows)
            return log_likelihood(self._model, draws, *self._args, **self._kwargs)

        return self.map_rows(terms, thetas)

    @functools.cached_property
    def _replays(self) -> list[Callable[[np.ndarray], dict[str, np.ndarray]]]:
        """Forward runs without and with deterministic sites, compiled once each."""
        from numpyro.infer.util import constrain_fn

        def replay(return_deterministic: bool, theta: Vector) -> dict[str, jax.Array]:
            model = self._model, self._args, self._kwargs
            return constrain_fn(*model, self._unravel(theta), return_deterministic)

        return [batched(functools.partial(replay, flag)) for flag in (False, True)]


def _traced_sites(
    model: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Sites of a model with their shapes, found by tracing without evaluation."""
    from numpyro import handlers
    from numpyro.distributions import biject_to
    from numpyro.infer.initialization import init_to_uniform

    found: dict[str, dict[str, Any]] = {}

    def run() -> None:
        seeded = handlers.seed(model, jax.random.key(0))
        # Not drawn from the prior: an improper one cannot be sampled.
        begun = handlers.substitute(seeded, substitute_fn=init_to_uniform)
        for name, site in handlers.trace(begun).get_trace(*args, **kwargs).items():
            if site["type"] not in ("sample", "deterministic"):
                continue
            found[name] = {**site, "shape": jnp.shape(site["value"])}
            if site["type"] == "sample" and not site["fn"].support.is_discrete:
                transform = biject_to(site["fn"].support)
                shape = transform.inverse_shape(jnp.shape(site["value"]))
                found[name]["unconstrained_shape"] = shape

    jax.eval_shape(run)
    return found


def _is_flat(distribution: Any) -> bool:
    """Whether a prior is NumPyro's constant, in a plate or not."""
    from numpyro.distributions import ImproperUniform

    while hasattr(distribution, "base_dist"):
        distribution = distribution.base_dist
    return isinstance(distribution, ImproperUniform)


def _dims(name: str, site: dict[str, Any]) -> list[str]:
    """Names of the axes of a site: its plates, else ArviZ's default names."""
    names = [f"{name}_dim_{i}" for i in range(len(site["shape"]))]
    num_event = site["fn"].event_dim if site["type"] == "sample" else 0
    for frame in site.get("cond_indep_stack", ()):
        place = frame.dim - num_event
        if -place <= len(names) and site["shape"][place] == frame.size:
            names[place] = frame.name
    return names

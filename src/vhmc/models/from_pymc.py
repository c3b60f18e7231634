"""Turn a PyMC model into a target, with PyMC's own transforms, dims and coords."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vhmc._imports import load_extra
from vhmc._types import Scalar, Vector
from vhmc.evaluation.space import Space
from vhmc.evaluation.target import Target, improper
from vhmc.evaluation.user_code import Guarded
from vhmc.models.caller import Caller
from vhmc.models.host import HostTarget
from vhmc.models.traced import TracedTarget


def from_pymc(
    model: Any = None, *, parallel: Any = None, timeout: float | None = None
) -> Target:
    """Target of a PyMC model.

    JAX evaluates the log density if it can trace the model; otherwise, as with a custom
    Op, PyTensor's compiled function does: `target.route` says which. Draws have the
    model's variables with dims and coords, and the deterministics.

    model: by default that of the surrounding `with` block.
    parallel, timeout: as in `from_callable`; used only where PyTensor evaluates.
    """
    pymc = load_extra("pymc", "from_pymc", "pymc")
    model = pymc.modelcontext(model)
    if model.discrete_value_vars:
        names = ", ".join(var.name for var in model.discrete_value_vars)
        raise ValueError(f"parameters {names} are discrete: sum them out of the model")
    if not model.value_vars:
        raise ValueError(
            "the model has no parameters: all random variables are observed"
        )
    space = PyMCSpace(model)
    # Tracing an Op may raise any exception; nothing is evaluated by then.
    energy, obstacle = Guarded(_traced_energy)(model, space)
    if not obstacle:
        target: Target = TracedTarget(energy, space)
        target.constants = improper(_flat(model))
        return target
    function = model.logp_dlogp_function(ravel_inputs=True)
    function.set_extra_values({})
    caller = Caller(function, parallel=parallel, timeout=timeout)
    route = f"compiled by PyTensor, as JAX cannot trace it ({obstacle})"
    target = HostTarget(caller, space, route, is_serial=caller.is_serial)
    target.constants = improper(_flat(model))
    return target


def _flat(model: Any) -> list[str]:
    """Names of the parameters whose prior is PyMC's constant."""
    from pymc import Flat, HalfFlat

    kinds = tuple(type(prior.dist().owner.op) for prior in (Flat, HalfFlat))
    return [var.name for var in model.free_RVs if isinstance(var.owner.op, kinds)]


def _traced_energy(model: Any, space: "PyMCSpace") -> Callable[[Vector], Scalar]:
    from pymc.sampling.jax import get_jaxified_graph

    log_density = get_jaxified_graph(inputs=model.value_vars, outputs=[model.logp()])

    def energy(theta: Vector) -> Scalar:
        return -jnp.asarray(log_density(*space.split(theta))[0], dtype=float)

    jax.eval_shape(jax.value_and_grad(energy), jnp.asarray(space.start))
    return energy


class PyMCSpace(Space):
    """Unobserved random variables, with PyMC's transforms to their supports."""

    def __init__(self, model: Any):
        self._model = model
        point = model.initial_point()
        starts = [np.asarray(point[var.name]) for var in model.value_vars]
        self._unconstrained_shapes = [start.shape for start in starts]
        self.unconstrained_sizes = [start.size for start in starts]
        self._dtypes = [start.dtype for start in starts]
        self.start = np.concatenate([start.ravel() for start in starts]).astype(float)
        self.names = [variable.name for variable in model.free_RVs]
        self._forward: dict[tuple[str, ...], Callable[..., Any]] = {}
        variables = {var.name: var for var in model.unobserved_value_vars}
        derived = [var.name for var in model.deterministics]
        self._variables = {name: variables[name] for name in [*self.names, *derived]}
        first = self._values(self.start[None], self.names)
        self.shapes = {name: value.shape[1:] for name, value in first.items()}
        self.dims = {
            name: [dim or f"{name}_dim_{i}" for i, dim in enumerate(dims)]
            for name, dims in model.named_vars_to_dims.items()
        }
        coords = model.coords.items()
        self.coords = {
            name: list(labels) for name, labels in coords if labels is not None
        }

    def split(self, theta: Any) -> list[Any]:
        """Values of PyMC's value variables at an unconstrained vector."""
        parts, begin = [], 0
        for shape, dtype in zip(self._unconstrained_shapes, self._dtypes, strict=True):
            end = begin + int(np.prod(shape))
            parts.append(theta[begin:end].reshape(shape).astype(dtype))
            begin = end
        return parts

    def draw_prior(self, rng: np.random.Generator, number: int) -> np.ndarray | None:
        import pymc

        if _flat(self._model):
            return None
        outputs = []
        for variable in self._model.free_RVs:
            transform = self._model.rvs_to_transforms[variable]
            if transform is not None:
                variable = transform.forward(variable, *variable.owner.inputs)
            outputs.append(variable)
        drawn = pymc.draw(outputs, number, random_seed=int(rng.integers(2**31)))
        parts = [np.reshape(part, (number, -1)) for part in drawn]
        return np.concatenate(parts, axis=1)

    def constrain(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        return self._values(thetas, self.names)

    def expand(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """Unobserved random variables, then deterministics."""
        return self._values(thetas, list(self._variables))

    def log_likelihood(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        observed = self._model.observed_RVs
        if not observed:
            return {}
        names = [variable.name for variable in observed]
        return self._run(
            names, lambda: self._model.logp(vars=observed, sum=False), thetas
        )

    def _values(self, thetas: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
        return self._run(names, lambda: [self._variables[n] for n in names], thetas)

    def _run(
        self, names: list[str], outputs: Callable[[], list[Any]], thetas: np.ndarray
    ) -> dict[str, np.ndarray]:
        """PyTensor's variables by name, compiled when they are first asked for."""
        key = tuple(names)
        if key not in self._forward:
            self._forward[key] = self._compiled(outputs())
        forward = self._forward[key]
        return self.map_rows(
            lambda rows: dict(zip(names, forward(rows), strict=True)), thetas
        )

    def _compiled(self, outputs: list[Any]) -> Callable[[np.ndarray], list[np.ndarray]]:
        """Function of rows of vectors, by JAX if it can trace it, else by PyTensor."""
        batch, obstacle = Guarded(self._traced)(outputs)
        if not obstacle:
            return batch
        function = self._model.compile_fn(
            inputs=self._model.value_vars,
            outs=outputs,
            on_unused_input="ignore",
            point_fn=False,
        )

        def row_by_row(thetas: np.ndarray) -> list[np.ndarray]:
            rows = [function(*self.split(theta)) for theta in thetas]
            return [np.stack(values) for values in zip(*rows, strict=True)]

        return row_by_row

    def _traced(self, outputs: list[Any]) -> Callable[[np.ndarray], list[np.ndarray]]:
        from pymc.sampling.jax import get_jaxified_graph

        graph = get_jaxified_graph(inputs=self._model.value_vars, outputs=outputs)
        batch = jax.jit(jax.vmap(lambda theta: graph(*self.split(theta))))
        jax.eval_shape(batch, jnp.asarray(self.start)[None])
        return batch

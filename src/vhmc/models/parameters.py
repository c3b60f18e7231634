"""A `Space` built from initial values and the constraints of this package."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from vhmc._types import Scalar, Vector
from vhmc.evaluation.space import Space
from vhmc.models.batches import batched
from vhmc.numerics.constraints import AbstractConstraint, real


class Parameters(Space):
    """Parameters in a pytree, with the constraints of `vhmc.numerics.constraints`.

    A nested parameter is named by its path, such as `prior.scale`; a bare array is
    named `theta`.

    init: initial values; their structure and shapes define the parameters.
    constraints: by name; parameters without one are real.
    """

    def __init__(self, init: Any, constraints: Mapping[str, AbstractConstraint]):
        paths, tree = jax.tree_util.tree_flatten_with_path(init, is_leaf=_is_list)
        self._tree: Any = tree
        # JAX sorts the keys of a dict; users expect the order in which they wrote them.
        written = list(init) if isinstance(init, dict) else []
        self._order = sorted(
            range(len(paths)),
            key=lambda i: written.index(paths[i][0][0].key) if written else i,
        )
        paths = [paths[i] for i in self._order]
        self.names = [
            jax.tree_util.keystr(path, simple=True, separator=".") or "theta"
            for path, _ in paths
        ]
        self._check_names(constraints)
        self._constraints = [constraints.get(name, real) for name in self.names]
        values = self._as_arrays([value for _, value in paths])
        self.shapes = dict(zip(self.names, (v.shape for v in values), strict=True))
        unconstrained = self._to_unconstrained(values)
        vector, self._unravel = ravel_pytree(unconstrained)
        self.unconstrained_sizes = [part.size for part in unconstrained]
        self.start = np.asarray(vector)
        if not self.dim:
            raise ValueError("init has no parameters")
        self.dims, self.coords = {}, {}

    def unflatten(self, theta: Vector) -> tuple[Any, Scalar]:
        """The user's parameters at `theta`, and the log-Jacobian of the transform."""
        parts = zip(self._constraints, self._unravel(theta), strict=True)
        log_jacobians = [constraint.log_jacobian(part) for constraint, part in parts]
        values = self._constrained_leaves(theta)
        leaves = [values[self._order.index(i)] for i in range(len(values))]
        tree = jax.tree_util.tree_unflatten(self._tree, leaves)
        return tree, jnp.sum(jnp.stack(log_jacobians))

    def flatten(self, init: Any) -> np.ndarray:
        """Unconstrained vector of values in the user's space, which are checked."""
        leaves, tree = jax.tree_util.tree_flatten(init, is_leaf=_is_list)
        if tree != self._tree:
            raise ValueError(f"start must hold just {', '.join(self.names)}")
        values = self._as_arrays([leaves[i] for i in self._order])
        for name, value in zip(self.names, values, strict=True):
            if value.shape != self.shapes[name]:
                raise ValueError(
                    f"start of {name} must have shape {self.shapes[name]}, "
                    f"got {value.shape}"
                )
        return np.asarray(ravel_pytree(self._to_unconstrained(values))[0])

    def flat_values(self, theta: Vector) -> Float[Array, " n"]:
        """All values in the user's space as one vector, in the order of `names`."""
        return jnp.concatenate([jnp.ravel(v) for v in self._constrained_leaves(theta)])

    def constrain(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        return self.map_rows(self._constrain_rows, thetas)

    @functools.cached_property
    def _constrain_rows(self) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        leaves = batched(self._constrained_leaves)
        return lambda rows: dict(zip(self.names, leaves(rows), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        # A compiled program cannot be pickled: a worker compiles its own.
        kept = self.__dict__.items()
        return {name: value for name, value in kept if name != "_constrain_rows"}

    def _constrained_leaves(self, theta: Vector) -> list[jax.Array]:
        parts = zip(self._constraints, self._unravel(theta), strict=True)
        return [constraint.constrain(part) for constraint, part in parts]

    def _check_names(self, constraints: Mapping[str, AbstractConstraint]) -> None:
        if not isinstance(constraints, Mapping):
            raise ValueError("constraints must be a dict from names to constraints")
        for name in self.names:
            if self.names.count(name) > 1:
                raise ValueError(f"two parameters are named {name}")
        unknown = [str(name) for name in constraints if name not in self.names]
        if unknown:
            raise ValueError(
                f"constraints name no parameter: {', '.join(unknown)} "
                f"(parameters are {', '.join(self.names)})"
            )
        for name, constraint in constraints.items():
            if not isinstance(constraint, AbstractConstraint):
                raise ValueError(
                    f"the constraint of {name} must be one of vhmc's, got {constraint}"
                )

    def _as_arrays(self, leaves: list[Any]) -> list[jax.Array]:
        try:
            arrays = [np.asarray(leaf) for leaf in leaves]
            if any(np.iscomplexobj(array) for array in arrays):
                raise TypeError("complex numbers have no order")
            return [jax.device_put(array.astype(float)) for array in arrays]
        except (TypeError, ValueError) as error:
            message = "parameters must be real numbers or arrays of them"
            raise ValueError(message) from error

    def _to_unconstrained(self, values: list[jax.Array]) -> list[jax.Array]:
        triples = list(zip(self.names, self._constraints, values, strict=True))
        for name, constraint, value in triples:
            if not constraint.contains(value):
                raise ValueError(
                    f"start of {name} must be {constraint.description}, got {value}"
                )
        return [constraint.unconstrain(value) for _, constraint, value in triples]


def _is_list(node: Any) -> bool:
    """Whether it is a vector written as a list, not a list of parameters as in JAX."""
    return isinstance(node, list) and all(
        isinstance(entry, int | float) or _is_list(entry) for entry in node
    )

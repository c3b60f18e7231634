"""Names for the shapes that the whole package speaks of."""

from collections.abc import Callable
from typing import Any, TypeAlias

from jaxtyping import Array, Float, Key

Scalar: TypeAlias = Float[Array, ""]
Vector: TypeAlias = Float[Array, " d"]
Points: TypeAlias = Float[Array, "n d"]
PRNGKey: TypeAlias = Key[Array, ""]

Potential: TypeAlias = Callable[[Vector], Scalar]
"""A vector in, minus a log density (up to a constant) out; ideally a pytree."""

Shared: TypeAlias = Any
"""An array of NumPy or of JAX: in code that serves the host and compiled programs."""

"""Turn a simulator behind the UM-Bridge protocol into a target."""

import http.client
import json
import threading
import urllib.parse
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from vhmc._arguments import whole
from vhmc.evaluation.target import Target
from vhmc.models.from_callable import Names, flat_parameters, from_callable
from vhmc.models.least_squares import (
    LogLikelihood,
    as_log_prior,
    least_squares_target,
    log_constant,
    normal_errors,
)
from vhmc.numerics.constraints import AbstractConstraint

PROTOCOL = 1.0
Density = Callable[[Any], Any] | tuple[ArrayLike, ArrayLike]
ValueAndGrad = Callable[[np.ndarray], tuple[Any, Any]]


def from_umbridge(
    url: str,
    model_name: str,
    *,
    prior: Density | None = None,
    noise: Density | None = None,
    init: ArrayLike | None = None,
    names: Names | None = None,
    constraints: Mapping[str, AbstractConstraint] | None = None,
    config: dict[str, Any] | None = None,
    differences: str | None = None,
    step: float | None = None,
    workers: int = 1,
    timeout: float | None = None,
) -> Target:
    """Target of a model served by UM-Bridge, with a prior and a noise model.

    The server's output and gradient at one point count as one evaluation. With a prior
    and a pair as `noise`, the outputs of every evaluation are kept, and `vhmc.sample`
    may learn them in place of the log density, as for `from_forward`.

    url: of the server, such as http://localhost:4242.
    model_name: of the model on that server.
    prior: log density of the parameters as a function that JAX can trace, or a pair of
        means and standard deviations of independent normals; None if the model's output
        is the log posterior.
    noise: log density of the data as a function of the model's output, or a pair of the
        data and the standard deviations of independent normal errors; None if the
        output is one number, the log density itself.
    init: initial parameters; by default the prior's means if it is a pair, else zero.
    names, constraints, differences, step: as in `from_callable`; `differences` is
        needed if the server has no gradient.
    config: passed to the server with every request.
    workers: points that are requested at a time.
    timeout: seconds to wait for one request.
    """
    server = Server(url, model_name, config or {}, timeout)
    dim, num_outputs = sum(server.input_sizes), sum(server.output_sizes)
    if noise is None and num_outputs != 1:
        raise ValueError(
            f"the model has {num_outputs} outputs: give the noise that links them to "
            "the data"
        )
    if differences is None and not server.has_gradient:
        raise ValueError(
            "the server's model has no gradient: choose differences, 'forward' or "
            "'central'"
        )
    workers = whole("workers", workers, 1)
    if init is None and isinstance(prior, tuple):
        init = np.broadcast_to(np.asarray(prior[0], dtype=float), (dim,))
    log_prior = _density(prior, dim, "prior")
    log_noise = _density(noise, num_outputs, "noise")

    def log_posterior(point: np.ndarray) -> Any:
        log_likelihood, sensitivity = log_noise(server.evaluate(point))
        value, grad = log_prior(point)
        value = float(value) + float(log_likelihood)
        if differences is not None:
            return value
        grad = np.asarray(grad)
        if np.isfinite(value):
            grad = grad + server.gradient(point, np.asarray(sensitivity))
        return value, grad

    route = f"the UM-Bridge model {model_name} at {url}"
    parallel = ThreadPoolExecutor(workers) if workers > 1 else None
    if prior is not None and isinstance(noise, tuple):
        vjp = server.gradient if differences is None else None
        data, sds = normal_errors(*_filled(noise, num_outputs))
        target: Target = least_squares_target(
            LogLikelihood(server.evaluate, vjp, data, sds),
            data,
            sds,
            as_log_prior(prior, dim),
            flat_parameters(dim, init, names, constraints or {}),
            route,
            is_constrained=bool(constraints),
            differences=differences,
            step=step,
            parallel=parallel,
        )
    else:
        target = from_callable(
            log_posterior,
            dim,
            init,
            names=names,
            constraints=constraints,
            differences=differences,
            step=step,
            parallel=parallel,
        )
    target.route = route
    return target


class Server:
    """A model on a UM-Bridge server; each thread keeps its own connection open."""

    def __init__(
        self, url: str, name: str, config: dict[str, Any], timeout: float | None
    ):
        self._name, self._config, self._timeout = name, config, timeout
        self._address = urllib.parse.urlsplit(url)
        self._path = self._address.path.rstrip("/")
        if self._address.scheme not in ("http", "https"):
            raise ValueError(f"url must begin with http:// or https://, got {url!r}")
        self._local = threading.local()
        try:
            info = self._request("Info")
        except (http.client.HTTPException, OSError, RuntimeError) as error:
            raise ValueError(f"no UM-Bridge server answers at {url}") from error
        if info.get("protocolVersion") != PROTOCOL:
            raise ValueError(
                f"{url} speaks version {info.get('protocolVersion')} of the UM-Bridge "
                f"protocol, not {PROTOCOL}"
            )
        if name not in info["models"]:
            known = ", ".join(info["models"])
            raise ValueError(f"{url} has no model {name}: it has {known}")
        support = self.ask("ModelInfo")["support"]
        if not support.get("Evaluate", False):
            raise ValueError(f"the model {name} of {url} cannot be evaluated")
        self.has_gradient = bool(support.get("Gradient", False))
        self.input_sizes = self.ask("InputSizes", config=config)["inputSizes"]
        self.output_sizes = self.ask("OutputSizes", config=config)["outputSizes"]

    def evaluate(self, point: np.ndarray) -> np.ndarray:
        """All outputs as one vector."""
        answer = self.ask("Evaluate", input=self._inputs(point), config=self._config)
        parts = [np.asarray(part, dtype=float) for part in answer["output"]]
        return np.concatenate(parts)

    def gradient(self, point: np.ndarray, sensitivity: np.ndarray) -> np.ndarray:
        """Vector-Jacobian product of `sensitivity` and the model's Jacobian."""
        inputs = self._inputs(point)
        ends = np.cumsum(self.output_sizes)[:-1]
        total = np.zeros(len(point))
        # The protocol takes one block of outputs and one block of inputs at a time.
        for out_block, part in enumerate(np.split(sensitivity, ends)):
            total += np.concatenate(
                [
                    self.ask(
                        "Gradient",
                        outWrt=out_block,
                        inWrt=in_block,
                        input=inputs,
                        sens=part.tolist(),
                        config=self._config,
                    )["output"]
                    for in_block in range(len(inputs))
                ]
            )
        return total

    def ask(self, what: str, **fields: Any) -> dict[str, Any]:
        """Send one request of the protocol; raise the errors that it returns."""
        answer = self._request(what, {"name": self._name, **fields})
        if "error" in answer:
            error = answer["error"]
            raise RuntimeError(f"{error.get('type')}: {error.get('message')}")
        return answer

    def _request(self, what: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        method, content = "GET", None
        if body is not None:
            method, content = "POST", json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        is_fresh = not hasattr(self._local, "connection")
        if is_fresh:
            self._local.connection = self._connect()
        connection = self._local.connection
        try:
            connection.request(method, f"{self._path}/{what}", content, headers)
            response = connection.getresponse()
            text = response.read()
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            del self._local.connection
            # A server may close an idle connection: try once more with a new one.
            if is_fresh or isinstance(error, TimeoutError):
                raise
            return self._request(what, body)
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise RuntimeError(
                f"{what} was answered by {response.status} and no JSON"
            ) from error

    def _connect(self) -> http.client.HTTPConnection:
        is_secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        connection = kind(self._address.netloc, timeout=self._timeout)
        # Threads may outlive this object; their connections must not.
        weakref.finalize(self, connection.close)
        return connection

    def _inputs(self, point: np.ndarray) -> list[list[float]]:
        ends = np.cumsum(self.input_sizes)[:-1]
        return [part.tolist() for part in np.split(point, ends)]


def _filled(pair: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Data and standard deviations, one for each output."""
    data, sd = (np.broadcast_to(np.asarray(part, float), (size,)) for part in pair)
    return data, sd


def _density(density: Density | None, size: int, name: str) -> ValueAndGrad:
    """A log density with its gradient, of a function or of means and sds."""
    if density is None:
        # Without noise the output is the log density; without a prior it adds zero.
        slope = 1.0 if name == "noise" else 0.0
        return lambda value: (slope * np.sum(value), np.full(size, slope))
    if callable(density):
        return jax.jit(jax.value_and_grad(density))
    try:
        mean, sd = (
            np.broadcast_to(np.asarray(part, dtype=float), (size,)) for part in density
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a function or a pair of arrays of length {size}"
        ) from error
    if not (sd > 0).all():
        raise ValueError(f"standard deviations of the {name} must be positive")

    constant = log_constant(sd)

    def normal(value: np.ndarray) -> tuple[float, np.ndarray]:
        standardised = (value - mean) / sd
        return constant - 0.5 * standardised @ standardised, -standardised / sd

    return normal

"""What a front end adds to an evaluation, and what workers gain.

    python benchmarks/front_ends.py

Every overhead is the time of `target.evaluate` on rounds of 16 points, by point, less
that of the model called directly at the same points in the same process. The last lines
evaluate a model that sleeps for 0.1 s, by one worker and by eight.
"""

import json
import socket
import sys
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm

import vhmc

GALLERY = Path(__file__).parents[1] / "gallery"
ROUND = 16
REPEATS = 200


def regression_data(rows=400, columns=5, seed=0):
    """Rows of a linear model."""
    rng = np.random.default_rng(seed)
    design = rng.standard_normal((rows, columns))
    return design, design @ np.arange(columns) + rng.standard_normal(rows)


DESIGN, Y = regression_data()


def value_and_grad(theta):
    """Log density of the regression in NumPy, and its gradient."""
    beta, log_scale = theta[:-1], theta[-1]
    residual = (Y - DESIGN @ beta) * np.exp(-log_scale)
    square = residual @ residual
    value = -0.5 * square - len(Y) * log_scale
    grad = DESIGN.T @ residual * np.exp(-log_scale)
    return value, np.append(grad, square - len(Y))


def log_density(theta):
    """The same in JAX."""
    residual = (Y - DESIGN @ theta[:-1]) * jnp.exp(-theta[-1])
    return -0.5 * jnp.sum(residual**2) - len(Y) * theta[-1]


def numpyro_model():
    """The same in NumPyro."""
    beta = numpyro.sample("beta", dist.Normal(jnp.zeros(5), 10))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    numpyro.sample("y", dist.Normal(DESIGN @ beta, sigma), obs=Y)


def pymc_model():
    """The same in PyMC."""
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 10, shape=5)
        sigma = pm.HalfCauchy("sigma", 2.5)
        pm.Normal("y", DESIGN @ beta, sigma, observed=Y)
    return model


def seconds_a_point(function, points):
    """Median over rounds of the time of one call on a round, by point."""
    function(points)
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        function(points)
        times.append(time.perf_counter() - began)
    return np.median(times) / len(points)


def one_by_one(function):
    """A function of one point, on a round of them."""
    return lambda points: [function(point) for point in points]


def traced(energy):
    """What JAX itself takes for a round."""
    batched = jax.jit(jax.vmap(jax.value_and_grad(energy)))
    return lambda points: jax.block_until_ready(batched(points))


def front_ends(points):
    """Name, target, and the model called directly."""
    yield "from_jax", vhmc.from_jax(log_density, np.zeros(6)), traced(log_density)
    yield (
        "from_callable",
        vhmc.from_callable(value_and_grad, 6),
        one_by_one(value_and_grad),
    )
    yield (
        "from_callable, constraints",
        vhmc.from_callable(
            value_and_grad,
            6,
            np.ones(6),
            names={"beta": (5,), "s": ()},
            constraints={"s": vhmc.positive},
        ),
        one_by_one(value_and_grad),
    )
    yield (
        "from_callable, timeout",
        vhmc.from_callable(value_and_grad, 6, timeout=10.0),
        one_by_one(value_and_grad),
    )
    target = vhmc.from_numpyro(numpyro_model)
    yield "from_numpyro", target, traced(target.energy)
    target = vhmc.from_pymc(pymc_model())
    yield "from_pymc, JAX", target, traced(target.energy)
    data = {"N": len(Y), "D": 5, "X": DESIGN, "y": Y}
    target = vhmc.from_stan(GALLERY / "regression.stan", data)
    model = target.parameters._model
    yield "from_stan", target, one_by_one(model.value_and_grad)


def main():
    """Print all."""
    points = np.random.default_rng(1).normal(size=(ROUND, 6))
    print(f"{'front end':<28}{'model, us':>12}{'evaluate, us':>14}{'added, us':>12}")
    for name, target, direct in front_ends(points):
        own, whole = (
            1e6 * seconds_a_point(function, points)
            for function in (direct, target.evaluate)
        )
        print(f"{name:<28}{own:>12.1f}{whole:>14.1f}{whole - own:>12.1f}", flush=True)
    umbridge()
    workers()


def bare_exchange(url, points):
    """The server's own time: two requests a point, ready-made, through one socket."""
    address = urllib.parse.urlsplit(url)
    sock = socket.create_connection((address.hostname, address.port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    shared = {"name": "rod", "config": {}}
    requests = []
    for point in points:
        fields = {"input": [point.tolist()], **shared}
        back = {"outWrt": 0, "inWrt": 0, "sens": [1.0] * 8, **fields}
        for path, body in (("Evaluate", fields), ("Gradient", back)):
            content = json.dumps(body)
            head = f"POST /{path} HTTP/1.1\r\nHost: {address.netloc}\r\n"
            head += f"Content-Length: {len(content)}\r\n\r\n"
            requests.append((head + content).encode())

    def exchange(_):
        for request in requests:
            sock.sendall(request)
            answer = sock.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")

    return exchange


def umbridge():
    """The gallery's server asked bare, and the target around it."""
    sys.path.insert(0, str(GALLERY))
    import umbridge_rod as rod

    points = np.random.default_rng(1).normal(scale=0.3, size=(ROUND, 4))
    with rod.running_server() as url:
        target = vhmc.from_umbridge(
            url, "rod", prior=(np.zeros(4), 1.0), noise=(rod.data(), rod.NOISE)
        )
        own, whole = (
            1e6 * seconds_a_point(function, points)
            for function in (bare_exchange(url, points), target.evaluate)
        )
    print(f"{'from_umbridge':<28}{own:>12.1f}{whole:>14.1f}{whole - own:>12.1f}")


def slow(theta):
    """A model that waits, as for a simulator elsewhere."""
    time.sleep(0.1)
    return -0.5 * theta @ theta, -theta


def workers():
    """One worker against eight: single rounds, and a whole run."""
    points = np.zeros((64, 3))
    rates = {}
    for number in (1, 8):
        with ThreadPoolExecutor(number) as pool:
            target = vhmc.from_callable(slow, 3, parallel=pool)
            began = time.perf_counter()
            target.evaluate(points)
            rates[number] = len(points) / (time.perf_counter() - began)
    print(
        f"a model of 0.1 s: {rates[1]:.1f} evaluations a second by 1 worker, ", end=""
    )
    print(f"{rates[8]:.1f} by 8: {rates[8] / rates[1]:.2f} times")
    runs = {}
    for number in (1, 8):
        with ThreadPoolExecutor(number) as pool:
            target = vhmc.from_callable(slow, 3, parallel=pool)
            vhmc.sample(vhmc.from_jax(lambda x: -0.5 * x @ x, np.zeros(3)), 300)
            began = time.perf_counter()
            posterior = vhmc.sample(target, 300)
            runs[number] = time.perf_counter() - began
    print(
        f"a whole run of {posterior.num_evaluations} such evaluations: {runs[1]:.1f} s "
        f"by 1 worker, {runs[8]:.1f} s by 8: {runs[1] / runs[8]:.2f} times"
    )


if __name__ == "__main__":
    main()

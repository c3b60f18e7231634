"""Conductivities of a rod from its temperatures, by a UM-Bridge server.

The server is a program of its own, here another Python process on this machine: a real
one may be C++ on a cluster. It solves -(exp(q) u')' = 1 on a rod with fixed ends, q
constant on each of four pieces, and answers for gradients by the adjoint equation. The
data are simulated.
"""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import requests

import vhmc

CELLS = 40
PIECES = 4
SENSORS = np.arange(4, CELLS, 5) - 1
TRUTH = np.array([0.5, -0.5, 0.8, 0.0])
NOISE = 0.002


def stiffness(log_conductivity: np.ndarray) -> np.ndarray:
    """Matrix of the finite-volume scheme; linear in the conductivities."""
    faces = np.repeat(np.exp(log_conductivity), CELLS // PIECES) * CELLS**2
    matrix = np.diag(faces[:-1] + faces[1:])
    return matrix - np.diag(faces[1:-1], 1) - np.diag(faces[1:-1], -1)


def temperatures(log_conductivity: np.ndarray) -> np.ndarray:
    return np.linalg.solve(stiffness(log_conductivity), np.ones(CELLS - 1))


def serve(port: int) -> None:
    import umbridge
    from aiohttp import web

    class Rod(umbridge.Model):
        def __init__(self):
            super().__init__("rod")

        def get_input_sizes(self, config):
            return [PIECES]

        def get_output_sizes(self, config):
            return [len(SENSORS)]

        def __call__(self, parameters, config):
            return [temperatures(np.array(parameters[0]))[SENSORS].tolist()]

        def gradient(self, out_wrt, in_wrt, parameters, sens, config):
            inputs = np.array(parameters[in_wrt])
            state = temperatures(inputs)
            load = np.zeros(CELLS - 1)
            load[SENSORS] = sens
            adjoint = np.linalg.solve(stiffness(inputs), load)
            # The matrix is linear in each conductivity: its derivative is its own part.
            parts = []
            for piece in range(PIECES):
                only = np.full(PIECES, -np.inf)
                only[piece] = inputs[piece]
                parts.append(float(-adjoint @ stiffness(only) @ state))
            return parts

        def supports_evaluate(self):
            return True

        def supports_gradient(self):
            return True

    # UM-Bridge listens on all interfaces; this example is for this machine alone.
    run_app = web.run_app
    web.run_app = lambda app, port: run_app(app, host="127.0.0.1", port=port)
    # The server ends with the process that started it: then nobody holds its input.
    threading.Thread(target=_end_with_input, daemon=True).start()
    umbridge.serve_models([Rod()], port)


def _end_with_input() -> None:
    import os

    sys.stdin.read()
    os._exit(0)


@contextlib.contextmanager
def running_server() -> Iterator[str]:
    """Start the server on a free port, and end it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, __file__, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            with contextlib.suppress(requests.ConnectionError):
                requests.get(f"{url}/Info", timeout=1)
                break
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()
        process.stdin.close()


def data(seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return temperatures(TRUTH)[SENSORS] + NOISE * rng.standard_normal(len(SENSORS))


def main(budget: int = 500) -> vhmc.Posterior:
    with running_server() as url:
        target = vhmc.from_umbridge(
            url,
            "rod",
            prior=(np.zeros(PIECES), 1.0),
            noise=(data(), NOISE),
            names=[f"q{piece}" for piece in range(1, PIECES + 1)],
        )
        print(target)
        posterior = vhmc.sample(target, budget, seed=0)
    print(posterior.verdict)
    print(posterior.summary())
    return posterior


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(int(sys.argv[1]))
    else:
        main()

"""A run in a process of its own, for tests that kill it."""

import hashlib
import json
import sys
import time
import warnings

import numpy as np

import vhmc


class Talking:
    """A slow model that says when it is asked."""

    def __init__(self, is_quiet):
        self.calls, self.is_quiet = 0, is_quiet

    def __call__(self, theta):
        self.calls += 1
        if not self.is_quiet:
            print("call", flush=True)
            time.sleep(0.003)
        shapes = np.array([3.0, 5.0])
        return shapes @ theta - np.exp(theta).sum(), shapes - np.exp(theta)


def run(path):
    """The posterior and the calls of the model; told aloud if there is a ledger."""
    model = Talking(is_quiet=path is None)
    target = vhmc.from_callable(model, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(
            target, 200, draws=50, chains=2, num_features=20, ledger=path
        )
    return posterior, model.calls


def digest(posterior):
    return hashlib.sha256(posterior.unconstrained.tobytes()).hexdigest()


if __name__ == "__main__":
    posterior, _ = run(sys.argv[1])
    print(json.dumps({"digest": digest(posterior)}), flush=True)

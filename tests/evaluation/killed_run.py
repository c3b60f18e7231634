"""A run in a process of its own, for tests that kill it or fill its disk."""

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
    """The posterior and the evaluations."""
    model = Talking(is_quiet=True)
    return sampled(model, path), model.calls


def sampled(model, path):
    target = vhmc.from_callable(model, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vhmc.sample(
            target, 200, draws=50, chains=2, num_features=20, ledger=path
        )


def digest(posterior):
    return hashlib.sha256(posterior.unconstrained.tobytes()).hexdigest()


def told(path):
    """How a run ended, its calls told aloud meanwhile."""
    model = Talking(is_quiet=False)
    end = {"error": "", "digest": "", "num_points": 0}
    try:
        posterior = sampled(model, path)
        end |= {
            "digest": digest(posterior),
            "num_points": len(posterior.evaluation_log.theta),
        }
    except vhmc.LedgerError as error:
        end["error"] = str(error)
    except vhmc.RunFailure as failure:
        end |= {"error": str(failure), "num_points": len(failure.evaluation_log.theta)}
    return end | {"calls": model.calls}


if __name__ == "__main__":
    print(json.dumps(told(sys.argv[1])), flush=True)

"""Reference moments of the structured posteriors, read by `vhmc.lab.bench.structured`.

Where the posterior is Gaussian given a few scales, quadrature over them; a finer
lattice must change no mean or standard deviation. Elsewhere long chains of NUTS, as for
the calibration targets, in the form that mixes: most effects are sampled non-centred.

Data are read from the folder that VHMC_POSTERIORS names.

Run: python benchmarks/structured_reference.py [name ...]
"""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from calibration_reference import CHAINS, nuts_reference

from vhmc._imports import load_arviz
from vhmc.lab.bench import structured
from vhmc.lab.bench.problem import Model
from vhmc.lab.bench.structured.problems import ELSEWHERE, MODELS, REFERENCE, posterior
from vhmc.lab.bench.structured.quadrature import scale_mixture

LINES = ("sigma_alpha", "sigma_beta", "sigma_y")
SCALES = {
    "eight-schools": ("tau",),
    "rats": LINES,
    "radon": ("sigma_alpha", "sigma_y"),
    "radon-slopes": LINES,
    "mixed-500": ("sigma_a", "sigma_y"),
    "local-level-1000": ("sigma_x", "sigma_y"),
}
"""Of the posteriors that are Gaussian given these."""
SPACINGS = (0.8, 0.5)
LARGEST_CHANGE = 1e-3
"""Of a mean in sd or of an sd relative to itself, from one spacing to the other."""

EFFECTS: dict[str, dict[str, Callable]] = {
    "seeds": {"b": lambda p: (0.0, p["tau"] ** -0.5)},
    "surgical": {"b": lambda p: (p["mu"], p["variance"] ** 0.5)},
    "glmm-poisson": {"eps": lambda p: (0.0, p["sigma"])},
}
"""Location and scale of the effects that are sampled non-centred."""
SMALLEST_ESS, LARGEST_RHAT = 10_000, 1.005


def noncentred(model: Model, effects: dict[str, Callable]) -> Model:
    """The same model with effects as multiples of their scale around their location."""

    def places(p):
        pairs = {name: place(p) for name, place in effects.items()}
        return {
            name: [jnp.asarray(value)[..., None] for value in pair]
            for name, pair in pairs.items()
        }

    def centred(p):
        found = places(p).items()
        return p | {name: at + scale * p[name] for name, (at, scale) in found}

    def log_density(p):
        found = places(p).items()
        volume = sum(p[name].size * jnp.log(scale[0]) for name, (_, scale) in found)
        return model.log_density(centred(p)) + volume

    def report(draws):
        return model.report(jax.tree.map(np.asarray, centred(draws)))

    return Model(log_density, model.init, model.constraints, report)


def quadrature_entry(key: str, model: Model) -> tuple[np.ndarray, np.ndarray, dict]:
    """Means, sds, and how they were found."""
    coarse, fine = (scale_mixture(model, SCALES[key], step) for step in SPACINGS)
    mean_change = np.max(np.abs(fine.mean - coarse.mean) / fine.sd)
    change = max(mean_change, np.max(np.abs(coarse.sd / fine.sd - 1)))
    if not change < LARGEST_CHANGE:
        raise RuntimeError(f"{key}: a finer lattice changes a moment by {change:.2g}")
    method = (
        f"quadrature over log {', '.join(SCALES[key])}: {fine.num_nodes} nodes, "
        f"{SPACINGS[1]} sd apart"
    )
    about = {"method": method, "change_from_coarser": float(f"{change:.1e}")}
    return fine.mean, fine.sd, about


def nuts_entry(key: str, model: Model) -> tuple[np.ndarray, np.ndarray, dict]:
    """Means, sds, and how they were found."""
    form = ""
    if key in EFFECTS:
        model, form = noncentred(model, EFFECTS[key]), "effects non-centred, "
    values, method, *_ = nuts_reference(key, model)
    chains = np.moveaxis(values.reshape(CHAINS, -1, values.shape[-1]), -1, 0)
    arviz = load_arviz()
    bulk, tail = (
        min(float(arviz.ess(chain, method=kind)) for chain in chains)
        for kind in ("bulk", "tail")
    )
    rhat = max(float(arviz.rhat(chain)) for chain in chains)
    if min(bulk, tail) < SMALLEST_ESS or rhat > LARGEST_RHAT:
        print(f"  {key} is NOT good enough")
    accuracy = {"r_hat": round(rhat, 5), "ess_bulk": round(bulk)}
    about = {"method": form + method, **accuracy, "ess_tail": round(tail)}
    return values.mean(axis=0), values.std(axis=0, ddof=1), about


def main() -> None:
    """Make the references asked for and merge them into the file."""
    path = Path(structured.__file__).parent / REFERENCE
    made_by = "python benchmarks/structured_reference.py"
    # The centred form of a model comes last, and is the one that quadrature takes.
    own = {posterior(name): make for name, make in MODELS.items()}
    own = {key: make for key, make in own.items() if key not in ELSEWHERE}
    for key in sys.argv[1:] or own:
        begin = time.perf_counter()
        model = own[key]()
        make = quadrature_entry if key in SCALES else nuts_entry
        mean, sd, about = make(key, model)
        print(key, about, f"{time.perf_counter() - begin:.0f} s", flush=True)
        moments = {
            name: {"mean": float(f"{m:.7g}"), "sd": float(f"{s:.7g}")}
            for name, m, s in zip(model.names(), mean, sd, strict=True)
        }
        table = json.loads(path.read_text()) if path.exists() else {}
        table[key] = {**about, "made_by": f"{made_by} {key}", "quantities": moments}
        partial = path.with_name(path.name + ".partial")
        partial.write_text(as_text({k: table[k] for k in own if k in table}))
        partial.replace(path)


def as_text(table: dict) -> str:
    """JSON with a quantity per line."""
    text = json.dumps(table, indent=1)
    return re.sub(r"\{\s+(\"mean\": .*),\s+(\"sd\": .*)\s+\}", r"{\1, \2}", text) + "\n"


if __name__ == "__main__":
    main()

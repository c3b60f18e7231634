"""Reference moments of the hierarchical logistic model: a long run of BlackJAX's NUTS.

The non-centred form with a dense metric, eight chains. The file written is read by
`vhmc.lab.bench.hierarchical`, and refused if the smallest effective size is too small.

Run: python benchmarks/hierarchical_reference.py
"""

import json
from pathlib import Path

import blackjax
import jax
import numpy as np

from vhmc._imports import load_arviz
from vhmc.lab.bench import hierarchical

CHAINS, WARMUP, DRAWS, SEED = 8, 2000, 60_000, 0
ACCEPTANCE = 0.95  # the neck of small tau gives divergences at the usual 0.8
SMALLEST_ESS = 20_000


def main():
    """Sample, check, write."""
    model = hierarchical.noncentred_model()
    target = model.make()

    def log_density(theta):
        return -target.energy(theta)

    def chain(key, start):
        key_warmup, key_sample = jax.random.split(key)
        warmup = blackjax.window_adaptation(
            blackjax.nuts,
            log_density,
            is_mass_matrix_diagonal=False,
            target_acceptance_rate=ACCEPTANCE,
        )
        (state, tuned), _ = warmup.run(key_warmup, start, num_steps=WARMUP)
        kernel = blackjax.nuts(log_density, **tuned).step

        def step(state, key):
            state, info = kernel(key, state)
            return state, (state.position, info.is_divergent)

        return jax.lax.scan(step, state, jax.random.split(key_sample, DRAWS))[1]

    key_start, key_chains = jax.random.split(jax.random.key(SEED))
    scatter = jax.random.uniform(key_start, (CHAINS, target.dim), minval=-1, maxval=1)
    keys = jax.random.split(key_chains, CHAINS)
    thetas, is_divergent = jax.jit(jax.vmap(chain))(keys, target.start + scatter)
    draws = target.parameters.constrain(np.asarray(thetas))
    values = model.quantities(draws)
    arviz = load_arviz()
    table = {}
    for i, name in enumerate(model.names()):
        column = values[..., i]
        bulk, tail = (arviz.ess(column, method=kind) for kind in ("bulk", "tail"))
        table[name] = {
            "mean": float(column.mean()),
            "sd": float(column.std(ddof=1)),
            "ess_bulk": round(float(bulk)),
            "ess_tail": round(float(tail)),
            "r_hat": round(float(arviz.rhat(column)), 5),
        }
    smallest = min(min(row["ess_bulk"], row["ess_tail"]) for row in table.values())
    num_divergent = int(is_divergent.sum())
    print(f"smallest ESS {smallest}, divergences {num_divergent}")
    print("largest R-hat", max(row["r_hat"] for row in table.values()))
    if smallest < SMALLEST_ESS:
        raise RuntimeError(f"smallest ESS is {smallest}: take more draws")
    about = (
        f"BlackJAX {blackjax.__version__} NUTS, non-centred form, dense metric, "
        f"target acceptance {ACCEPTANCE}, "
        f"{CHAINS} chains x ({WARMUP} warm-up + {DRAWS} draws), seed {SEED}, "
        f"{num_divergent} divergent; made by benchmarks/hierarchical_reference.py"
    )
    folder = Path(hierarchical.__file__).parent
    text = json.dumps({"about": about, "quantities": table}, indent=1)
    (folder / hierarchical.REFERENCE).write_text(text + "\n")


if __name__ == "__main__":
    main()

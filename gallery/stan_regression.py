"""A Stan file with generated quantities, and leave-one-out by ArviZ."""

from pathlib import Path

import arviz as az
import numpy as np

import vhmc
from vhmc.lab.models.beta_binomial import cancer_mortality

PROGRAM = Path(__file__).with_name("regression.stan")


def main(budget: int = 500) -> vhmc.Posterior:
    table = cancer_mortality()
    size = np.log(table.at_risk)
    design = np.stack([np.ones_like(size), size - size.mean()], axis=1)
    # Half a death more than there was: some cities had none.
    log_odds = np.log((table.deaths + 0.5) / (table.at_risk - table.deaths + 0.5))
    data = {"N": len(size), "D": 2, "X": design, "y": log_odds}
    target = vhmc.from_stan(PROGRAM, data)
    print(target)
    posterior = vhmc.sample(target, budget, seed=0)
    print(posterior.verdict)
    print(posterior.summary(var_names=["beta", "sigma"]))
    print(az.loo(posterior.to_arviz(log_likelihood=True), var_name="log_lik"))
    return posterior


if __name__ == "__main__":
    main()

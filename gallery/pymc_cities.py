"""Death rates of twenty cities: a hierarchical PyMC model with coords."""

import numpy as np
import pymc as pm

import vhmc
from vhmc.lab.models.beta_binomial import cancer_mortality


def build() -> pm.Model:
    data = cancer_mortality()
    cities = [f"city {number}" for number in range(1, len(data.deaths) + 1)]
    with pm.Model(coords={"city": cities}) as model:
        mean = pm.Normal("mean", -7, 2)
        spread = pm.HalfNormal("spread", 1)
        offset = pm.Normal("offset", 0, 1, dims="city")
        rate = pm.Deterministic(
            "rate", pm.math.invlogit(mean + spread * offset), dims="city"
        )
        pm.Binomial(
            "deaths", data.at_risk.astype(int), rate, observed=data.deaths, dims="city"
        )
    return model


def main(budget: int = 1000) -> vhmc.Posterior:
    target = vhmc.from_pymc(build())
    print(target)
    posterior = vhmc.sample(target, budget, seed=0)
    print(posterior.verdict)
    print(posterior.summary(var_names=["mean", "spread"]))
    rates = posterior.to_arviz()["posterior"]["rate"].mean(("chain", "draw"))
    worst = str(rates["city"].values[int(np.argmax(rates.values))])
    print(f"highest rate: {worst}, {float(rates.max()):.4f}")
    return posterior


if __name__ == "__main__":
    main()

"""Do larger cities have other death rates? A binomial regression in NumPyro."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import vhmc
from vhmc.lab.models.beta_binomial import cancer_mortality


def regression(at_risk, size, deaths=None):
    intercept = numpyro.sample("intercept", dist.Normal(-7, 5))
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    with numpyro.plate("city", len(at_risk)):
        logit = numpyro.deterministic("logit", intercept + slope * size)
        numpyro.sample("deaths", dist.Binomial(at_risk, logits=logit), obs=deaths)


def main(budget: int = 500) -> vhmc.Posterior:
    data = cancer_mortality()
    size = np.log(data.at_risk)
    target = vhmc.from_numpyro(
        regression,
        jnp.asarray(data.at_risk),
        size - size.mean(),
        deaths=jnp.asarray(data.deaths),
    )
    print(target)
    posterior = vhmc.sample(target, budget, seed=0)
    print(posterior.verdict)
    print(posterior.summary(var_names=["intercept", "slope"]))
    return posterior


if __name__ == "__main__":
    main()

"""How a budget is shared out, known before anything is spent."""

from typing import NamedTuple

from vhmc._arguments import shown, whole
from vhmc.evaluation.target import Target

CORRECTIONS = ("auto", "none", "importance", "exact")
LEAST_BUDGET = 20


class Plan(NamedTuple):
    """Most points by part; what one leaves, training may use.

    A point is one call of the model, unless its gradient is made of differences.

    search: descents from several starts.
    hessian: curvature at the best end; 0 if too dear, then the descents' own is used.
    settling: draws that scout where the mass is, and move the Gaussian there.
    training: rounds of chains, those that repair the frozen surrogate included.
    checking: true values at fresh draws, for the verdict and importance weights.
    correcting: one true value for each draw of the exact rung.
    chains: chains of the training rounds.
    """

    search: int
    hessian: int
    settling: int
    training: int
    checking: int
    correcting: int
    chains: int

    @property
    def total(self) -> int:
        """The budget, in points."""
        return sum(self[:-1])


def plan(target: Target, budget: int = 1000, correction: str = "auto") -> Plan:
    """Share out a budget of calls of the model.

    budget: calls of the model, at most.
    correction: rung of the ladder; only `exact` sets calls aside.
    """
    if not isinstance(target, Target):
        raise TypeError(
            "the model must be a target, as from_jax, from_numpyro, from_pymc, "
            f"from_stan and from_callable make one, got {shown(target)}"
        )
    if not isinstance(correction, str) or correction not in CORRECTIONS:
        raise ValueError(
            f"correction must be one of {', '.join(CORRECTIONS)}, "
            f"got {shown(correction)}"
        )
    least = LEAST_BUDGET * target.price
    budget = whole("budget", budget)
    if budget < least:
        raise ValueError(
            f"budget must be at least {least} calls of the model, got {budget}"
        )
    budget //= target.price
    correcting = int(0.4 * budget) if correction == "exact" else 0
    rest = budget - correcting
    # Beyond 400 true values the verdict learns little more.
    checking = min(int(0.15 * rest), 400)
    search = min(int(0.2 * rest), 400)
    price = target.hessian_price
    hessian = price if price <= (rest - search) // 5 else 0
    settling = min(int(0.15 * rest), 160)
    training = rest - checking - search - hessian - settling
    chains = 16 if budget >= 400 else 8 if budget >= 200 else 4
    return Plan(search, hessian, settling, training, checking, correcting, chains)

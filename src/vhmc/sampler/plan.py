"""Plan a run: how its budget is shared out, known before anything is evaluated."""

from typing import Any, NamedTuple

from vhmc._arguments import shown, whole
from vhmc.models.model_target import Data, Model, model_target
from vhmc.sampler.correction import CHOICES, budget_share

LEAST_BUDGET = 20
LOOK, MOST_TO_LOOK = 0.1, 200
"""Share of the points for looking around the posterior, and the most of them."""


class Settings(NamedTuple):
    """What the user chose beside the budget.

    draws, chains, correction, seed, num_features: as in `sample`.
    structure: what identifies the argument of `sample`.
    """

    draws: int
    chains: int
    correction: str
    seed: int
    num_features: int | None
    structure: Any = True


class Plan(NamedTuple):
    """Upper limits of the points of each phase; training may use what the others leave.

    A point is one evaluation, unless its gradient is made of differences.

    search: descents from several starts.
    hessian: curvature at the best end; 0 if too expensive: then the descents' own.
    warm_up: draws of a Gaussian, which is fitted to them until it covers the mass.
    look: points of the widened posterior, and descents from them, that look for other
        modes and for mass far outside; where there is any, training has less.
    training: rounds of chains, those that repair the surrogate included.
    check: draws of the surrogate, for the verdict and importance weights.
    correction: one for each draw of the exact correction.
    chains: chains of the training rounds.
    """

    search: int
    hessian: int
    warm_up: int
    look: int
    training: int
    check: int
    correction: int
    chains: int

    @property
    def reserve(self) -> int:
        """Points that search, warm-up and training leave for what follows."""
        return self.look + self.check + self.correction

    @property
    def total(self) -> int:
        """The budget, in points."""
        return sum(self[:-1])


def plan(
    model: Model = None,
    budget: int = 1000,
    correction: str = "auto",
    *,
    data: Data = None,
) -> Plan:
    """Share out a budget of evaluations.

    model: as in `sample`.
    budget: evaluations, at most.
    correction: as in `sample`; only `exact` sets evaluations aside.
    data: of a Stan program.
    """
    target = model_target(model, data)
    if not isinstance(correction, str) or correction not in CHOICES:
        raise ValueError(
            f"correction must be one of {', '.join(CHOICES)}, got {shown(correction)}"
        )
    least = LEAST_BUDGET * target.price
    budget = whole("budget", budget)
    if budget < least:
        raise ValueError(f"budget must be at least {least} evaluations, got {budget}")
    return share_out(
        budget // target.price, target.hessian_price, budget_share(correction)
    )


def share_out(points: int, hessian_price: int, correction_share: float) -> Plan:
    """The plan for a number of points.

    hessian_price: points that a Hessian costs.
    correction_share: fraction that is set aside for the correction.
    """
    correction = int(correction_share * points)
    rest = points - correction
    # Beyond 400 checked draws the verdict learns little more.
    check = min(int(0.15 * rest), 400)
    search = min(int(0.2 * rest), 400)
    hessian = hessian_price if hessian_price <= (rest - search) // 5 else 0
    warm_up = min(int(0.15 * rest), 160)
    look = min(int(LOOK * rest), MOST_TO_LOOK)
    training = rest - check - search - hessian - warm_up - look
    chains = 16 if points >= 400 else 8 if points >= 200 else 4
    return Plan(search, hessian, warm_up, look, training, check, correction, chains)

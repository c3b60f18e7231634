r"""Effective sample size as the paper defines it, beside ArviZ's.

The paper's footnote: $\mathrm{ESS} = B \, [1 + 2 \sum_{k=1}^K \gamma(k)]^{-1}$ for $B$
draws of one chain with autocorrelations $\gamma(k)$, cut at $K$ as in Geyer (1992).
"""

import warnings

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike

from vhmc._imports import load_arviz

FEWEST_DRAWS = 4
"""Draws of a chain below which it cannot be split and compared."""


def geyer_ess(draws: ArrayLike) -> np.ndarray:
    """Effective sample size of one chain, shape (draw, ...), for every column.

    The cut is Geyer's initial monotone positive sequence: pairs of neighbouring
    autocorrelations are summed for as long as the sum stays positive, none counting for
    more than the one before it. Constant columns give NaN; a chain that alternates may
    be worth more than its length, up to its square.
    """
    chain = np.asarray(draws, dtype=float)
    columns = chain.reshape(len(chain), -1)
    sizes = [_ess_of_column(column) for column in columns.T]
    return np.array(sizes).reshape(chain.shape[1:])


def _ess_of_column(column: np.ndarray) -> float:
    num_draws = len(column)
    if np.ptp(column) == 0:
        return float("nan")
    centred = column - column.mean()
    # Padding to twice the length keeps the circular convolution from wrapping round.
    spectrum = np.fft.rfft(centred, 2 * num_draws)
    autocov = np.fft.irfft(np.abs(spectrum) ** 2, 2 * num_draws)[:num_draws]
    autocorr = autocov / autocov[0]
    pairs = autocorr[: num_draws // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    positive = pairs[: ends[0]] if len(ends) else pairs
    # A sum of pairs counts lag zero twice: 1 + 2 sum_{k>=1} = 2 sum_{pairs} - 1.
    time = 2 * np.minimum.accumulate(positive).sum() - 1
    return num_draws / max(time, 1 / num_draws)


def bulk_ess(draws: ArrayLike) -> np.ndarray:
    """ArviZ's rank-normalised bulk ESS, for draws of shape (chain, draw, ...)."""
    return _by_parameter("ess", draws, method="bulk")


def mean_ess(draws: ArrayLike) -> np.ndarray:
    """ArviZ's ESS for the mean itself, for draws of shape (chain, draw, ...)."""
    return _by_parameter("ess", draws, method="mean")


def split_rhat(draws: ArrayLike) -> np.ndarray:
    r"""Rank-normalised split R-hat, for draws of shape (chain, draw, ...).

    The larger one for draws and for their distances from the median, each by the
    normal scores of its ranks (Vehtari and others, 2021). The numbers are ArviZ's; here
    all parameters are one batch, as training asks after every round.
    """
    chains = _at_least_two(np.asarray(draws, dtype=float))
    half = chains.shape[1] // 2
    halves = np.concatenate([chains[:, :half], chains[:, -half:]])
    flat = halves.reshape(-1, *chains.shape[2:])
    with np.errstate(all="ignore"):  # chains that do not move: undefined
        folded = np.abs(halves - np.median(flat, axis=0))
        rhats = [_rhat(_normal_scores(rows)) for rows in (halves, folded)]
    is_finite = np.isfinite(flat).all(axis=0)
    return np.where(is_finite, np.maximum(*rhats), np.nan)


def _normal_scores(chains: np.ndarray) -> np.ndarray:
    """Normal quantiles of ranks among the draws of all chains."""
    flat = chains.reshape(-1, *chains.shape[2:])
    ranks = scipy.stats.rankdata(flat, axis=0)
    return scipy.special.ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(
        chains.shape
    )


def _rhat(chains: np.ndarray) -> np.ndarray:
    """Root of the variance of all draws over that within chains."""
    number = chains.shape[1]
    between = np.var(chains.mean(axis=1), axis=0, ddof=1)
    within = np.var(chains, axis=1, ddof=1).mean(axis=0)
    return np.asarray(np.sqrt(between / within + (number - 1) / number))


def worst_ess(draws: np.ndarray) -> float:
    """Bulk ESS of the worst coordinate of draws, shape (chain, draw, dim).

    Zero for chains too short to be judged and for a coordinate that does not move.
    """
    if draws.shape[1] < FEWEST_DRAWS:
        return 0.0
    return float(np.nan_to_num(np.min(bulk_ess(draws))))


def worst_rhat(draws: np.ndarray) -> float:
    """Split R-hat of the worst coordinate; infinite for chains too short."""
    if draws.shape[1] < FEWEST_DRAWS:
        return np.inf
    return float(np.max(split_rhat(draws)))


def _at_least_two(chains: np.ndarray) -> np.ndarray:
    """One chain as two: chains are compared, and split in two anyway."""
    if len(chains) > 1:
        return chains
    half = chains.shape[1] // 2
    return chains[0, : 2 * half].reshape(2, half, *chains.shape[2:])


def _by_parameter(statistic: str, draws: ArrayLike, **options) -> np.ndarray:
    az = load_arviz()
    chains = _at_least_two(np.asarray(draws, dtype=float))
    with warnings.catch_warnings():
        # Many short chains are what training makes: their number is no mistake.
        for complaint in ("More chains", "Found chain dimension"):  # ArviZ 0 and 1
            warnings.filterwarnings("ignore", complaint, UserWarning)
        data = az.convert_to_dataset({"x": chains})
    with np.errstate(all="ignore"):  # chains that do not move: infinite or undefined
        return np.asarray(getattr(az, statistic)(data, **options)["x"])

"""Test whether errors still depend on parameters that a prediction did not use."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

CLIP = 3.0
"""Standard deviations beyond which features do not grow."""

SPARE = 10
"""Points beyond the number of features, without which nothing can be tested."""


class Leftovers:
    """Dependence of errors on the other parameters.

    Regresses ranks of the errors, and of errors with the sign of the value, on the
    other parameters and on their squares, each four times all together: so neither many
    weak effects nor a common factor go unseen.

    table: standardised parameters, of shape (n, dim).
    used: columns of the prediction.
    errors: of the prediction, held out.
    values: what was predicted.
    """

    def __init__(
        self,
        table: np.ndarray,
        used: Sequence[int],
        errors: np.ndarray,
        values: np.ndarray,
    ):
        self._table = np.clip(table, -CLIP, CLIP)
        self._used = list(used)
        ranks = (stats.rankdata(errors) - 0.5) / len(errors)
        score = stats.norm.ppf(ranks)
        chosen = self._table[:, self._used]
        base = np.column_stack([np.ones(len(table)), chosen, chosen**2])
        self._axes, _ = np.linalg.qr(base)
        responses = score, score * np.sign(values)
        self._responses = [self._remainder(response) for response in responses]

    def suspects(self, level: float, most: int) -> list[int] | None:
        """Parameters without which all tests pass at this level.

        None if more than `most` would have to go, or if there are too few points.
        """
        found: list[int] = []
        while len(found) <= most:
            others = self._others(found)
            if not others:
                return found
            tests = [
                _joint_test(response, self._remainder(self._table[:, others] ** power))
                for response in self._responses
                for power in (1, 2)
            ]
            if any(test is None for test in tests):
                return None
            worst = min((test for test in tests if test), key=lambda test: test[0])
            if worst[0] > level:
                return found
            found.append(others[int(np.argmax(worst[1]))])
        return None

    def likely(self, number: int) -> list[int]:
        """Parameters that would explain the errors best, linearly or as a product."""
        others = self._others([])
        columns = self._table[:, others]
        joint = np.zeros(len(others))
        for response in self._responses:
            for power in (1, 2):
                test = _joint_test(response, self._remainder(columns**power))
                if test:
                    joint = np.maximum(joint, test[1])
        single = np.max(
            [
                _correlations(self._responses[0], self._remainder(columns * factor))
                for factor in self._table[:, self._used].T[:, :, None]
            ],
            axis=0,
        )
        first = [np.argsort(-score)[:number] for score in (joint, single)]
        return [others[i] for i in dict.fromkeys(np.concatenate(first).tolist())]

    def _others(self, found: list[int]) -> list[int]:
        absent = {*self._used, *found}
        return [j for j in range(self._table.shape[1]) if j not in absent]

    def _remainder(self, array: np.ndarray) -> np.ndarray:
        """What smooth functions of the parameters in use do not explain."""
        return array - self._axes @ (self._axes.T @ array)


def _joint_test(
    response: np.ndarray, features: np.ndarray
) -> tuple[float, np.ndarray] | None:
    """Significance of all features together, and the t values of each."""
    number, freedom = features.shape[1], len(response) - features.shape[1] - SPARE
    if freedom < 1:
        return None
    features = features / np.sqrt(np.mean(features**2, axis=0) + 1e-12)
    gram = features.T @ features + 1e-6 * np.eye(number)
    inverse = np.linalg.inv(gram)
    slopes = inverse @ (features.T @ response)
    left = np.sum((response - features @ slopes) ** 2)
    explained = max(np.sum(response**2) - left, 0.0)
    noise = left / freedom
    significance = stats.f.sf(explained / number / noise, number, freedom)
    return float(significance), np.abs(slopes) / np.sqrt(noise * np.diag(inverse))


def _correlations(response: np.ndarray, features: np.ndarray) -> np.ndarray:
    sizes = np.sqrt(np.sum(features**2, axis=0) * np.sum(response**2)) + 1e-12
    return np.abs(features.T @ response) / sizes

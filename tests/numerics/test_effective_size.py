"""R-hat of all parameters at once is ArviZ's."""

import numpy as np
import pytest

from vhmc.numerics.effective_size import _by_parameter, split_rhat


@pytest.mark.parametrize("shape", [(4, 9, 3), (16, 20, 5), (1, 40, 2), (3, 50)])
def test_split_rhat_is_that_of_arviz(shape):
    rng = np.random.default_rng(0)
    draws = np.cumsum(rng.standard_normal(shape), axis=1)
    draws = np.round(draws, 1)  # ties
    expected = _by_parameter("rhat", draws, method="rank")
    np.testing.assert_allclose(split_rhat(draws), expected, rtol=1e-10)


def test_split_rhat_is_undefined_where_draws_are():
    draws = np.random.default_rng(0).standard_normal((4, 10, 3))
    draws[1, 3, 0] = np.nan
    draws[:, :, 1] = 2.0
    assert np.array_equal(np.isfinite(split_rhat(draws)), [False, False, True])

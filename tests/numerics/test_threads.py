"""Threads of BLAS: one in our fits, all of them for the model."""

import numpy as np
from threadpoolctl import threadpool_info

from vhmc.numerics.threads import all_threads, one_thread


def test_the_model_has_the_threads_that_the_process_began_with():
    def numbers():
        np.eye(2) @ np.eye(2)
        return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}

    usual = numbers()
    with one_thread():
        assert numbers() <= {1}
        with all_threads():
            assert numbers() == usual
        assert numbers() <= {1}
    assert numbers() == usual

"""Keep BLAS to one thread in our own fits, and give the model all of its threads.

OpenBLAS lets its threads wait in a loop after every call. On matrices as small as ours
a second thread gains little, and the core that it keeps busy is one that the chains
could use. It also makes a seed give the same numbers on any number of cores.
"""

import contextlib
import functools
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@functools.cache
def _usual() -> dict[str, int]:
    """Threads of each library as the process was started."""
    return {one["prefix"]: one["num_threads"] for one in _controller().info()}


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """BLAS has one thread."""
    _usual()
    with _controller().limit(limits=1):
        yield


@contextlib.contextmanager
def all_threads() -> Iterator[None]:
    """BLAS has as many threads as it began with, also within `one_thread`."""
    with _controller().limit(limits=_usual()):
        yield

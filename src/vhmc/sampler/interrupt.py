"""Ctrl-C as a wish: the round under way is finished first."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def wish_to_stop() -> Iterator[Callable[[], bool]]:
    """Say whether the user pressed Ctrl-C; the second press ends at once.

    Outside of the main thread Python delivers no signals, and a process that was told
    to ignore them goes on ignoring them: then there is no wish.
    """
    pressed = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before in (signal.SIG_IGN, None):
        yield pressed.is_set
        return

    def handle(number, frame):
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)

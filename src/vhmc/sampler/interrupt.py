"""On Ctrl-C, finish the current round, then stop."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """A function that says whether the user pressed Ctrl-C; a second press raises.

    Outside of the main thread, where Python delivers no signals, and in a process that
    ignores them it always says no.
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

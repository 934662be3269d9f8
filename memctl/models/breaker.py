"""A circuit breaker: an endpoint that is down is left alone for a while, then tried once.

After Nygard, Release It! (2007).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

FAILURES_TO_OPEN = 3
FIRST_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 300.0


class Breaker:
    """Says whether an endpoint may be called; told what came of each call.

    Closed at first; after a few failures in a row open for a pause that doubles each time, then
    one caller may try.  Shared between threads.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._mutex = threading.Lock()
        self._failures = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._open_until = 0.0
        self._trying = False

    def seconds_left(self) -> float:
        """Return for how many seconds it must not be called; 0 when this caller may call now."""
        with self._mutex:
            if self._failures < FAILURES_TO_OPEN:
                return 0.0
            left = self._open_until - self._monotonic()
            if left > 0:
                return left
            if self._trying:  # somebody else finds out whether it is back
                return 1.0
            self._trying = True
            return 0.0

    def succeeded(self) -> None:
        """Note that it answered, whatever it said."""
        with self._mutex:
            self._failures, self._pause, self._trying = 0, FIRST_PAUSE_SECONDS, False

    def failed(self) -> None:
        """Note that it could not be reached or could not serve."""
        with self._mutex:
            self._failures += 1
            if self._failures >= FAILURES_TO_OPEN:
                self._open_until = self._monotonic() + self._pause
                if self._trying:
                    self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            self._trying = False

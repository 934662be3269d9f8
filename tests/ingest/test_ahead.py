"""Work that is done ahead of its use, and what is done while it is waited for."""

from __future__ import annotations

import threading
from collections.abc import Generator

from waiting import PATIENCE

from memctl.ingest.ingest_pipeline import prefetch


def test_whoever_waits_for_an_item_is_called_meanwhile() -> None:
    called = threading.Event()

    def items() -> Generator[bool, None, None]:
        yield called.wait(PATIENCE)

    assert list(prefetch(items(), 1, called.set)) == [True]

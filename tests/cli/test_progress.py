"""The bar of what takes longer, as it is seen on a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import PATIENCE

pty = pytest.importorskip("pty", reason="there are no terminals of this kind")


def test_a_bar_is_drawn_before_anything_is_read(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    is_drawn = threading.Event()

    def look() -> None:
        """Read what is drawn until nobody can draw any more."""
        drawn = b""
        with suppress(OSError):
            while piece := os.read(ours, 4096):
                drawn += piece
                if b"ingesting" in drawn:
                    is_drawn.set()

    eyes = threading.Thread(target=look)
    environment = os.environ | {"MEMCTL_HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "memctl", "ingest", "-"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        eyes.start()
        assert is_drawn.wait(PATIENCE)
        process.communicate(b"Ann sails to Lisbon.", timeout=PATIENCE)
    eyes.join()
    os.close(ours)
    assert process.returncode == 0

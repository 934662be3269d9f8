"""The process of the watcher gives back what it does not use."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest
from waiting import PATIENCE

ALLOCATING = """
import ctypes, os, sys, threading
from pathlib import Path
from memctl.machine import limit_malloc_caching

if sys.argv[1] == "yes":
    limit_malloc_caching()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
met = threading.Barrier(9)

def allocate():
    met.wait()
    met.wait()
    for _ in range(3):
        block = libc.malloc(ctypes.c_size_t(8 << 20))
        ctypes.memset(block, 1, 8 << 20)
        libc.free(block)
        met.wait()
    met.wait()

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
met.wait()
before = resident()
met.wait()
for _ in range(3):
    met.wait()
print(resident() - before)
met.wait()
"""


def _kept(gives_back: str) -> int:
    command = [sys.executable, "-c", ALLOCATING, gives_back]
    tuning = ("MALLOC_", "GLIBC_TUNABLES")
    environment = {name: each for name, each in os.environ.items() if not name.startswith(tuning)}
    done = subprocess.run(
        command, env=environment, capture_output=True, check=True, timeout=PATIENCE
    )
    return int(done.stdout)


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="is about glibc"
)
def test_blocks_that_threads_have_freed_are_given_back_to_the_system() -> None:
    assert _kept("yes") < 4_000_000
    assert _kept("no") > 30_000_000

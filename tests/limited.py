"""Commands and tests by a user for whom permissions hold, whoever runs the tests."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

LIMITED = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if hasattr(os, "geteuid") and os.geteuid() == 0
    else []
)
"""What takes root's privilege to pass over permissions away."""

needs_permissions = pytest.mark.skipif(
    os.name == "nt" or (bool(LIMITED) and shutil.which("setpriv") is None),
    reason="needs permissions that hold for this user",
)


@contextmanager
def permissions_that_hold() -> Iterator[None]:
    """Take that privilege from this thread, too, and from those that it starts meanwhile."""
    if os.name == "nt" or (LIMITED and sys.platform != "linux"):
        pytest.skip("needs permissions that hold for this user")
    if not LIMITED:
        yield
        return
    libc = ctypes.CDLL(None)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    effective = sets[0]
    sets[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = effective
        assert libc.capset(header, sets) == 0

"""A command by a user for whom permissions hold, whoever runs the tests."""

from __future__ import annotations

import os
import shutil

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

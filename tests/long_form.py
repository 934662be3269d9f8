"""Whether tests go on for as long as they should before a release; by default they are bounded."""

from __future__ import annotations

import os

IS_LONG = os.environ.get("MEMCTL_LONG_TESTS") == "1"

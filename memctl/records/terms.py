"""Words that records of several kinds share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Level = Literal["evidence", "memory", "insight"]
LEVELS: tuple[Level, ...] = ("evidence", "memory", "insight")
Metadata = Mapping[str, Any]

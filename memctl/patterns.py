"""Regular expressions that are compiled when they are first used.

A query or the help needs few of those of the modules that it imports, and to compile them all took
an eighth of a query's processor time.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


def lazy_regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what behaves as ``re.compile(pattern, flags)`` does, and is compiled on first use."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._given = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._given)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the compiled pattern, which is then at hand."""
        value = getattr(self._compiled, name)
        setattr(self, name, value)
        return value

"""The package's modules as syntax trees, parsed once for all tests that look at them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import memctl

PACKAGE = Path(memctl.__file__).parent


@cache
def source_trees() -> dict[Path, ast.Module]:
    """Each module by its path, in order."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}

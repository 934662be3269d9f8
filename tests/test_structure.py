"""The package keeps its shape: no cycles, no crowded folders, no module name twice."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_IN_A_FOLDER = 25
COMMANDS = "memctl.cli.commands"
"""A command may be called like the module that does its work."""


def modules() -> dict[str, Path]:
    """Every module of the package by its name."""
    found = {}
    for path in sorted((ROOT / "memctl").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, names: set[str]) -> Iterator[str]:
    """The modules that one imports, in functions and for type checking too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in names:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in names else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)


def cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in imports[name]:
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        for name in imports:
            if name not in index:
                visit(name)
    finally:
        sys.setrecursionlimit(limit)
    return found


def test_no_modules_import_each_other_not_even_for_type_checking() -> None:
    names = modules()
    imports = {
        name: set(imports_of(path, set(names))) - {name, "memctl"} for name, path in names.items()
    }
    assert cycles(imports) == []


def test_no_folder_is_crowded() -> None:
    folders = Counter(path.parent for path in modules().values())
    assert {str(f): n for f, n in folders.items() if n > MOST_IN_A_FOLDER} == {}


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(
        name.rpartition(".")[2]
        for name, path in modules().items()
        if path.name != "__init__.py" and not name.startswith(COMMANDS)
    )
    assert [name for name, count in names.items() if count > 1] == []

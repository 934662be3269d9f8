"""The package keeps its shape: no cycles, no crowded packages, no module name twice, one seam."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from source_trees import PACKAGE, source_trees

MAX_MODULES = 504
"""320 of documents and memories; 60 of conversations, tiers, pools and operations; the rest of
servers, the web page, links, skills, upkeep, feedback and merging."""
MAX_IN_A_PACKAGE = 25
MAX_LINES_OF_A_FUNCTION = 80
"""Parameters included; a docstring says as much as it has to."""
COMMANDS = "memctl.cli.commands"
"""A command may be called like the module that does its work."""
STORAGE = "memctl.store.tables.storage"
"""The one module that names the files of tables."""
TABLE_FILE = re.compile(
    r"(^|/)(lance|_versions|_indices|_deletions|_refs|_transactions)(/|$)|[^.]\.lance$"
)
"""What names a folder or a file of a table."""
NOT_PATHS = {("memctl.store.tables.inspection", "page_data.lance")}
"""A file that the engine has in each index of a kind, named below the index."""


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name."""
    found = {}
    for path in source_trees():
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, names: set[str]) -> Iterator[str]:
    """The modules that one imports, in functions and for type checking too."""
    for node in ast.walk(source_trees()[path]):
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


def test_there_are_no_more_modules_than_can_be_looked_over() -> None:
    assert len(modules()) <= MAX_MODULES


def test_no_package_is_crowded() -> None:
    packages = Counter(path.parent for path in modules().values())
    crowded = {str(p): n for p, n in packages.items() if n > MAX_IN_A_PACKAGE}
    assert crowded == {}


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(
        name.rpartition(".")[2]
        for name, path in modules().items()
        if path.name != "__init__.py" and not name.startswith(COMMANDS)
    )
    assert [name for name, count in names.items() if count > 1] == []


def path_words(tree: ast.Module) -> Iterator[str]:
    """Yield what a module says in literals that names files of tables; docstrings do not count."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings and TABLE_FILE.search(node.value):
            yield node.value


def paths_from_uris(tree: ast.Module) -> Iterator[str]:
    """Yield the places where a path is made of what only the engine should read."""
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_call and node.func.id in ("Path", "PurePath"):
            arguments = [ast.unparse(argument) for argument in node.args]
            yield from (said for said in arguments if re.search(r"\.(file_)?uri\b", said))


def test_only_the_storage_names_files_of_tables_and_nothing_makes_a_path_of_a_uri() -> None:
    found: set[tuple[str, str]] = set()
    for name, path in modules().items():
        if name != STORAGE:
            tree = source_trees()[path]
            said = (*path_words(tree), *paths_from_uris(tree))
            found.update((name, word) for word in said)
    assert found - NOT_PATHS == set()


def lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    words = ast.get_docstring(function, clean=False)
    return (function.end_lineno or 0) - function.lineno + 1 - len((words or "").splitlines())


def test_no_function_is_longer_than_a_screen_or_two() -> None:
    long = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path, tree in source_trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and lines_without_docstring(node) > MAX_LINES_OF_A_FUNCTION
    ]
    assert long == []

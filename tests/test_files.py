"""Every file of ours is written through one function, which makes it durable and never half."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from source_trees import PACKAGE, source_trees

REASONS = {
    "files.py": "is that function, and makes the files that are locked",
    "ingest/discovery/sources.py": "what standard input says, which is read again and then goes",
    "models/model_status.py": "sound made in memory",
    "readers/archives.py": "members of an archive, for as long as they are read",
    "readers/data_files/sqlite_files.py": "a copy of a database with its logs, while it is read",
    "readers/media/clips.py": "sound made in memory",
    "sessions/conversations.py": "a copy that gets its name, that of its hash, when it is whole",
    "store/file_caches.py": "grows at its end; only as many bytes count as its state file says",
    "store/transfer/exports.py": "what is exported into a pipe",
    "watch/claims.py": "the copy of a file of the user's keeps its time and rights",
}
"""The modules that write a file otherwise, and why."""


def writings(tree: ast.AST) -> Iterator[int]:
    """The lines in which a file is opened for writing, or written, by other means."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="write_text" | "write_bytes")):
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="os"), attr="O_CREAT"):
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="shutil"), attr="copyfileobj"):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="open") | ast.Name(id="open")):
                words = [item for item in ast.walk(node) if isinstance(item, ast.Constant)]
                modes = [word.value for word in words if isinstance(word.value, str)]
                if any(mode.strip("bt+") in {"w", "a", "x"} for mode in modes):
                    yield node.lineno


def test_every_file_is_written_through_the_one_function_that_saves() -> None:
    others = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path, tree in source_trees().items()
        if (lines := list(writings(tree)))
    }
    assert set(others) == set(REASONS), others

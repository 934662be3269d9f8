"""A copy of the package whose tables have more columns and one table more, as a later one may.

Nothing but the declarations is changed in it.
"""

from __future__ import annotations

import ast
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from waiting import PATIENCE

import memctl
from memctl.schema.migrations import SCHEMA_VERSION

GROWN_VERSION = SCHEMA_VERSION + 1
"""The schema version of the copy."""
PACKAGE = Path(memctl.__file__).parent
HOMES = Path(__file__).parent / "homes"
COLUMNS = """\
    mood: str = "calm"
    place: str | None = None
    colours: tuple[str, ...] = ()
"""
RECORD = """\
    id: str
    memory_id: str
    text: str
    weight: float = 0.5
"""
DECLARATION = """\
    Table(
        "remarks",
        Remark,
        required=("id", "memory_id", "text"),
        references=(Reference("memory_id", ("memories",), "erase"),),
        scalar_indexes={"id": "BTREE", "memory_id": "BTREE"},
        bounds={"weight": _SHARE},
        verbatim_columns=("id", "memory_id"),
    ),
)  # fmt: skip
"""
MIGRATION = """\
MIGRATIONS += (
    Migration(tables=("remarks",), columns={"memories": ("mood", "place", "colours")}),
)
"""


@dataclass(frozen=True)
class Done:
    """What a command has printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, object]]:
        """What it printed as JSON, one object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def sample_home(schema: int, folder: Path) -> Path:
    """Unpack the stored home of a schema version, and return where it stands."""
    with tarfile.open(HOMES / f"tables-{schema}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "home"


def sample_export(schema: int, folder: Path) -> Path:
    """Unpack what the memctl of an earlier schema version exported of its stored home."""
    path = folder / f"all-{schema}.memctl"
    path.write_bytes(lzma.decompress((HOMES / f"export-{schema}.memctl.xz").read_bytes()))
    return path


def grown_package(folder: Path) -> Path:
    """Copy the package into a folder and declare the columns and the table."""
    package = folder / "memctl"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    _add_record(package / "records.py")
    schema = package / "schema"
    _replace(schema / "table_names.py", '"relations"]', '"relations", "remarks"]')
    _replace(schema / "table_names.py", '"relations")', '"relations", "remarks")')
    _replace(schema / "declarations.py", ")  # fmt: skip\n", DECLARATION)
    _replace(
        schema / "declarations.py",
        "from memctl.schema.table_names",
        "from memctl.records import Remark\nfrom memctl.schema.table_names",
    )
    _replace(
        schema / "migrations.py", "SCHEMA_VERSION = FIRST", f"{MIGRATION}SCHEMA_VERSION = FIRST"
    )
    return folder


def _add_record(path: Path) -> None:
    """Add the columns to memories, and a record that is made like that of relations."""
    lines = path.read_text().splitlines(keepends=True)
    found = ast.walk(ast.parse("".join(lines)))
    classes = {node.name: node for node in found if isinstance(node, ast.ClassDef)}
    relation, memory = classes["Relation"], classes["Memory"]
    first = min([relation.lineno, *(each.lineno for each in relation.decorator_list)])
    head = "".join(lines[first - 1 : relation.body[0].lineno - 1]).replace("Relation", "Remark")
    lines.insert(memory.end_lineno or 0, COLUMNS)
    path.write_text("".join([*lines, "\n\n", head, RECORD]))


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new))


def run_all(
    package: Path, home: Path, *commands: tuple[str, ...], patience: float = PATIENCE
) -> list[Done]:
    """Run commands of a copy of the package on a home, one after another in one process.

    The first word of a command may be ``python``: then its second is a program, which finds the
    store of the knowledge base ``notes`` as ``store``.  They have ``patience`` seconds.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home), json.dumps(commands)],
        cwd=package,
        env=os.environ | {"PYTHONPATH": str(package), "MEMCTL_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Done(*each) for each in json.loads(done.stdout.splitlines()[-1])]


PROGRAM = """
import contextlib, io, json, sys
from pathlib import Path
from memctl.cli.main import run
from memctl.store.store import Store

def act(words):
    if words[0] != "python":
        return run(words)
    with Store.open(Path(home) / "kb/notes") as store:
        exec(words[1], globals() | {"store": store})
    return 0

home, commands = sys.argv[1], json.loads(sys.argv[2])
results = []
for words in commands:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = act(words)
    results.append((code, *(each.buffer.getvalue().decode() for each in (out, err))))
print(json.dumps(results))
"""

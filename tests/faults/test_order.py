"""A file is said to be remembered only when nothing can take that back, a power cut included.

A child process tells in which order it makes files durable, renames them and commits the ledger.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import PATIENCE
from watched import Place

from memctl.kb_settings import Inbox
from memctl.schema.table_names import TABLES
from memctl.store.tables.engine import lance

TELLING = """
import json, os, sys
from pathlib import Path
from memctl.store.ledger import ledger
from memctl.watch import claims

log, tables, *arguments = sys.argv[1:]
steps = open(log, "w", buffering=1)

def tell(**step):
    steps.write(json.dumps(step) + "\\n")

def telling(owner, name, describe):
    original = getattr(owner, name)
    def recorded(*args, **kwargs):
        step = describe(*args)
        result = original(*args, **kwargs)
        tell(**step)
        return result
    setattr(owner, name, recorded)

def opened(descriptor):
    return {"step": "sync", "path": os.readlink(f"/proc/self/fd/{descriptor}")}

telling(os, "fsync", opened)
renamed = lambda old, new: {"step": "rename", "path": str(new), "old": str(old)}
telling(os, "rename", renamed)
telling(os, "replace", renamed)
telling(claims, "rename_to_free", renamed)
telling(os, "unlink", lambda path, **_: {"step": "unlink", "path": str(path)})

connect, statements = ledger.connect, []

def trace(statement):
    statements.append(statement)
    if statement == "COMMIT":
        written = [str(path) for path in Path(tables).rglob("*") if path.is_file()]
        tell(step="commit", statements=statements[:], written=written)
        statements.clear()

def traced(*args):
    connection = connect(*args)
    connection.set_trace_callback(trace)
    return connection

ledger.connect = traced
from memctl.cli.main import run
code = run(arguments)
tell(step="end", code=code)
"""


@dataclass(frozen=True)
class Step:
    """One thing that the child did."""

    step: str
    path: str = ""
    old: str = ""
    statements: Sequence[str] = ()
    written: Sequence[str] = ()
    code: int = 0

    def says(self, *parts: str) -> bool:
        """Whether one statement of this commit has all of these parts."""
        return any(all(part in text for part in parts) for text in self.statements)


@pytest.fixture
def steps_of(place: Place, tmp_path: Path) -> Callable[..., list[Step]]:
    """Run a command and return its steps."""

    def run(*arguments: str) -> list[Step]:
        return steps_in(place.home.config.home, tmp_path / "steps.jsonl", *arguments)

    return run


def steps_in(home: Path, log: Path, *arguments: str) -> list[Step]:
    """Run a command in a home and return its steps."""
    tables = home / "kb" / "notes" / "lance"
    environment = os.environ | {"MEMCTL_HOME": str(home), "MEMCTL_WATCH_SETTLE_SECONDS": "0.05"}
    command = [sys.executable, "-c", TELLING, str(log), str(tables), *arguments]
    subprocess.run(command, env=environment, timeout=PATIENCE, check=True, capture_output=True)
    return [Step(**json.loads(line)) for line in log.read_text().splitlines()]


def only(steps: Sequence[Step], wanted: Callable[[Step], bool]) -> int:
    (place,) = (number for number, step in enumerate(steps) if wanted(step))
    return place


def synced(steps: Sequence[Step], path: str | Path) -> list[int]:
    """When something was made durable."""
    return [n for n, step in enumerate(steps) if step.step == "sync" and step.path == str(path)]


def require_durable(steps: Sequence[Step], commit: int, before: set[str]) -> None:
    """Every file that the commit is about, and then its folder, is on disk before it."""
    new = set(steps[commit].written) - before
    assert new
    for path in new:
        own = synced(steps[:commit], path)
        assert own, f"{path} is not durable"
        folders = synced(steps[:commit], Path(path).parent)
        assert folders
        assert folders[-1] > own[-1], f"the name of {path} is not durable"


def files_of(place: Place) -> set[str]:
    tables = place.layout.folder / "lance"
    return {str(path) for path in tables.rglob("*") if path.is_file()}


def test_watch_notes_makes_durable_says_done_and_only_then_moves(
    place: Place, steps_of: Callable[..., list[Step]]
) -> None:
    before = files_of(place)
    original = place.drop("sub/a.txt", "Ann sails to Lisbon on Friday.")
    steps = steps_of("watch", "--once")
    target = place.layout.processed / "sub" / "a.txt"
    intent = only(steps, lambda step: step.says("INSERT", "INTO files", "'claimed'"))
    claim = only(steps, lambda step: step.step == "rename" and step.old == str(original))
    head = only(steps, lambda step: step.says("INTO heads", "'HEAD'"))
    moved = only(steps, lambda step: step.step == "rename" and step.path == str(target))
    done = only(steps, lambda step: step.says("UPDATE files", "'done'"))
    assert intent < claim < head < moved < done
    require_durable(steps, head, before)
    assert steps[head].says("UPDATE files", "'indexed'"), "HEAD and the file are one step"
    assert steps[head].says("PRAGMA synchronous = FULL")
    for path in (target, target.parent, place.layout.processing):
        assert [at for at in synced(steps, path) if moved < at < done], f"{path} is not durable"
    made = synced(steps, place.layout.processed)
    assert made
    assert made[0] < done, "the new folder is not durable"


def test_a_file_from_another_file_system_is_durable_before_the_original_goes(
    place: Place, stick: Path, steps_of: Callable[..., list[Step]]
) -> None:
    original = stick / "a.txt"
    original.write_text("Ann sails to Lisbon on Friday.")
    place.set(inboxes=(Inbox(place.layout.inbox), Inbox(stick)))
    steps = steps_of("watch", "--once")
    gone = only(steps, lambda step: step.step == "unlink" and step.path == str(original))
    copy = only(steps[:gone], lambda step: step.step == "rename" and step.old.endswith(".part"))
    claimed = Path(steps[copy].path)
    assert synced(steps[:copy], steps[copy].old), "the copy is not durable"
    assert [at for at in synced(steps, claimed.parent) if copy < at < gone]
    assert synced(steps[:copy], claimed.parent.parent), "its folder is not durable"


def test_ingest_ends_well_only_when_what_it_wrote_is_durable(
    place: Place, tmp_path: Path, steps_of: Callable[..., list[Step]]
) -> None:
    before = files_of(place)
    source = tmp_path / "a.txt"
    source.write_text("Ann sails to Lisbon on Friday.")
    steps = steps_of("ingest", "-k", "notes", str(source))
    head = only(steps, lambda step: step.says("INTO heads", "'HEAD'"))
    require_durable(steps, head, before)
    assert head < only(steps, lambda step: step.step == "end" and step.code == 0)
    assert source.exists()


def test_a_reason_is_durable_before_the_file_it_is_about_moves(
    place: Place, steps_of: Callable[..., list[Step]]
) -> None:
    place.drop("zeros.txt", "\0")
    steps = steps_of("watch", "--once")
    reason = place.layout.failed / "zeros.txt.reason.json"
    named = only(steps, lambda step: step.step == "rename" and step.path == str(reason))
    moved = only(
        steps,
        lambda step: step.step == "rename" and step.path == str(place.layout.failed / "zeros.txt"),
    )
    assert synced(steps[:named], steps[named].old)
    assert [at for at in synced(steps, reason.parent) if named < at < moved]


def test_a_failed_file_and_what_goes_with_it_are_durable_before_the_book_lets_go_of_them(
    place: Place, steps_of: Callable[..., list[Step]]
) -> None:
    place.drop("talk.srt", "1\n00:00:00,000 --> 00:00:02,000\nHello there.\n")
    place.drop("talk.mp3", b"ID3")
    steps = steps_of("watch", "--once")
    let_go = only(steps, lambda step: step.says("DELETE FROM files"))
    for name in ("talk.mp3", "talk.srt"):
        target = place.layout.failed / name
        moved = only(steps, lambda step: step.step == "rename" and step.path == str(target))  # noqa: B023
        for path in (target, target.parent, place.layout.processing):
            assert [at for at in synced(steps, path) if moved < at < let_go], f"{path}, {name}"


def test_what_a_killed_writer_left_is_taken_back_durably_before_anything_counts(
    place: Place, steps_of: Callable[..., list[Step]]
) -> None:
    place.drop("a.txt", "Ann sails to Lisbon on Friday.")
    place.drain()
    table = place.layout.folder / "lance" / "memories.lance"
    left = lance().dataset(str(table))
    left.delete("true")  # a version beyond the one that counts
    before = files_of(place)
    steps = steps_of("memory", "add", "-k", "notes", "Bo has the keys.")
    heads = [n for n, step in enumerate(steps) if step.says("INTO heads", "'HEAD'")]
    assert heads
    for head in heads:
        require_durable(steps, head, before)
    texts = {row["text"] for row in place.rows("memories", "text")}
    assert {"Bo has the keys."} < texts


def test_the_folders_of_a_first_knowledge_base_are_durable_before_anything_is_said(
    tmp_path: Path,
) -> None:
    home = tmp_path / "new" / "home"
    steps = steps_in(home, tmp_path / "steps.jsonl", "kb", "create", "notes")
    named = only(
        steps,
        lambda step: step.step == "rename" and step.path == str(home / "kb" / "notes"),
    )
    for folder in (tmp_path, tmp_path / "new", home):
        assert synced(steps[:named], folder), f"what {folder} holds is not durable"
    assert synced(steps[:named], steps[named].old), "what the knowledge base holds is not durable"
    assert synced(steps[named:], home / "kb"), "the name of the knowledge base is not durable"


@pytest.mark.parametrize(
    "command", [("kb", "rename", "notes", "new"), ("kb", "delete", "notes", "--yes")]
)
def test_renaming_the_folder_of_a_knowledge_base_is_durable(
    place: Place, steps_of: Callable[..., list[Step]], command: Sequence[str]
) -> None:
    steps = steps_of(*command)
    gone = only(steps, lambda step: step.step == "rename" and step.old == str(place.layout.folder))
    assert synced(steps[gone:], place.layout.folder.parent)


def test_a_snapshot_is_durable_in_the_tables_as_well(
    place: Place, steps_of: Callable[..., list[Step]]
) -> None:
    steps = steps_of("snapshot", "create", "-k", "notes", "monday")
    tags = list((place.layout.folder / "lance").rglob("_refs/tags/*monday.json"))
    assert len(tags) == len(TABLES)
    for tag in tags:
        named = only(steps, lambda step, tag=tag: step.step == "rename" and step.path == str(tag))
        assert synced(steps[:named], steps[named].old), f"what {tag} says is not durable"
        for folder in (tag.parent, tag.parent.parent, tag.parents[2]):
            assert synced(steps[named:], folder), f"the name of {tag} is not durable"

"""After whatever people do the doctor has nothing to say: a warning must mean something."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.acts import NOTES_KB, Command, home_at, made_ready, put, require_sound, with_ids
from waiting import PATIENCE, wait_for
from watched import Place, command, memctl

Step = Command | Callable[[Path], object]


def letters(home: Path) -> Path:
    """A folder of the user's own, with a page that links to others."""
    folder = home.parent / "letters"
    folder.mkdir(exist_ok=True)
    return folder


def write(text: str) -> Callable[[Path], object]:
    return lambda home: (letters(home) / "letter.md").write_text(text)


def drop(home: Path) -> None:
    inbox = home / "kb/notes/inbox"
    (inbox / "new.md").write_text("# Paint\n\nCleo Marsh paints [[Harbour Street]] in June.")
    (inbox / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")


def watch_until_stopped(home: Path) -> None:
    drop(home)
    place = Place(home_at(home), home_at(home).layout("notes"))
    with memctl(place, "watch") as watcher:
        wait_for(lambda: not any(place.layout.inbox.iterdir()))
        watcher.send_signal(signal.SIGTERM)
        watcher.communicate(timeout=PATIENCE)


def doing(*words: str) -> Command:
    return (*words, *NOTES_KB)


LETTER = "Zoltan Weiss wrote to the Danube Shipping Company. See [[Lost Letters]]."
FIRST = (write(LETTER), doing("ingest", "@folder/letters"))
ORDINARY: dict[str, tuple[Step, ...]] = {
    "ingest": FIRST,
    "ingest what has changed": (
        *FIRST,
        write("Ida Berg answers from Bergen. See [[Answers]]."),
        doing("ingest", "@folder/letters"),
        doing("document", "delete", "@letter", "--yes"),
    ),
    "query and context": (
        doing("query", "Who keeps the keys?"),
        doing("query", "--feedback", "last", "good"),
        doing("context", "Who keeps the keys?"),
    ),
    "consolidate and delete": (
        doing("consolidate"),
        doing("document", "delete", "@keys", "--yes"),
        doing("consolidate"),
    ),
    "document delete": (*FIRST, doing("document", "delete", "@letter", "--yes")),
    "the last word on a name": (
        doing("memory", "add", "Zoltan Weiss has the boat.", "-o", "json"),
        *FIRST,
        doing("document", "delete", "@letter", "--yes"),
        doing("memory", "delete", "@stated", "--yes"),
    ),
    "document reprocess": (doing("document", "reprocess", "@keys"),),
    "memory": (
        doing("memory", "edit", "@boat", "--text", "The boat is red."),
        doing("memory", "delete", "@boat", "--yes"),
    ),
    "graph": (
        doing("graph", "merge", "Bo Lind", "Ann Keller"),
        doing("document", "delete", "@keys", "--yes"),
        doing("graph", "unmerge", "Bo Lind", "Ann Keller"),
    ),
    "kb": (
        ("kb", "set", "notes", "--private"),
        ("kb", "pause", "notes"),
        ("kb", "resume", "notes"),
        ("kb", "rename", "notes", "letters"),
    ),
    "snapshot": (
        *FIRST,
        doing("snapshot", "create", "two"),
        doing("document", "delete", "@letter", "--yes"),
        doing("snapshot", "restore", "two", "--yes"),
        doing("snapshot", "delete", "one", "--yes"),
        doing("snapshot", "restore", "two", "--yes"),
    ),
    "forget": (
        *FIRST,
        doing("forget", "--entity", "Zoltan Weiss", "--snapshots", "--yes"),
        doing("forget", "--document", "@keys", "--yes"),
    ),
    "export and import": (
        *FIRST,
        doing("export", "all", "--to", "@folder/all.memctl"),
        doing("document", "delete", "@letter", "--yes"),
        ("import", "@folder/all.memctl", "-k", "copy"),
    ),
    "rebuild": (*FIRST, ("doctor", "--rebuild", "--yes")),
    "compact": (*FIRST, doing("document", "delete", "@letter", "--yes"), doing("compact")),
    "watch": (watch_until_stopped,),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_ready(tmp_path_factory.mktemp("ordinary"))


@pytest.fixture
def home(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMCTL_HOME", str(filled / "home"))
    put(filled / "filled", filled / "home")
    return filled / "home"


@pytest.mark.parametrize("name", ORDINARY)
def test_the_doctor_is_silent_after_each_step_of_ordinary_use(home: Path, name: str) -> None:
    for step in ORDINARY[name]:
        if callable(step):
            step(home)
        else:
            assert command(home, *with_ids(step, home)) == 0, step
        require_sound(home, silent=True)

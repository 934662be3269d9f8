"""A knowledge base that the watcher has filled, made once and copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from memctl.config import load_config
from memctl.doctor.doctor import Doctor
from memctl.doctor.findings import Finding
from memctl.home import Home
from memctl.store.tables.filter_expressions import col
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.service import WatchedBases, WatchService

FILES = {
    "lease.md": "# Lease\n\nThe lease with [[Harbour Street]] starts on 1 June 2026.\n\n"
    "The deposit is 4,350 euros, and Mara Lindqvist signed it.\n",
    "trips/oslo.md": "# Oslo\n\nWe decided to take the night train to Oslo on 3 March 2027.\n",
    "note.txt": "Ann Baker prefers tea. Ann Baker lives in Leeds.\n",
}


def home_in(folder: Path) -> Home:
    return Home(load_config({}, {"MEMCTL_HOME": str(folder)}))


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the knowledge base ``notes``: three files, a text, a stated memory."""
    folder = tmp_path_factory.mktemp("filled") / "home"
    home = home_in(folder)
    home.create("notes")
    for name, text in FILES.items():
        path = home.layout("notes").inbox / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    options = WatchOptions(settle_seconds=0.05, rescan_seconds=0.1, poll=True, once=True)
    WatchService(WatchedBases(home), options, lambda _: None).run()
    with home.open("notes") as base:
        base.ingest(text="The spare key hangs behind the boiler.")
        base.memories.add("The door code is 4711.")
    return folder


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Home:
    return home_in(Path(shutil.copytree(filled, tmp_path / "home")))


@pytest.fixture
def doctor(home: Home) -> Doctor:
    return Doctor(home)


def leave_names(home: Home) -> None:
    """Delete a document past what lets go of its names, as memctl of before did."""
    with home.open("notes") as base:
        id_ = base.ingest(text="Ada Lovelace met [[Charles Babbage]].").outcomes[0].document_id
        with base.store.write() as transaction:
            transaction.delete("memories", col("document_id") == id_)
            transaction.delete("documents", col("id") == id_)


def not_ok(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.verdict != "ok"]

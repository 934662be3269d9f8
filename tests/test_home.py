"""Knowledge bases on disk: made whole or not at all, renamed and deleted in one step."""

from __future__ import annotations

import inspect
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint
from filelock import FileLock
from waiting import PATIENCE

from memctl.cli.main import run
from memctl.config import load_config
from memctl.doctor.doctor import Doctor
from memctl.errors import (
    ConfigError,
    KnowledgeBaseNotFound,
    KnowledgeBaseUnavailable,
    LockedError,
    UsageError,
)
from memctl.forget import ForgetReport, RemainingPlace
from memctl.home import Home
from memctl.kb_settings import Inbox, KnowledgeBaseSettings, Layout
from memctl.knowledge_base.maintenance import Erasure
from memctl.search.searcher import Searcher
from memctl.store.locks import WriteLock
from memctl.store.transfer.exports import export_batches
from memctl.validation import setting_rules

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    environ = {"MEMCTL_HOME": str(tmp_path / "home")}
    return Home(load_config({}, environ), lambda: NOW)


def home_with(tmp_path: Path, **environ: str) -> Home:
    return Home(load_config({}, {"MEMCTL_HOME": str(tmp_path / "home"), **environ}), lambda: NOW)


def test_a_new_knowledge_base_has_its_folders_and_nobody_else_may_look(home: Home) -> None:
    settings = home.create("notes")
    layout = home.layout("notes")
    for folder in (layout.inbox, layout.processing, layout.processed, layout.failed):
        assert folder.is_dir()
    if os.name != "nt":
        assert stat.S_IMODE(layout.folder.stat().st_mode) == 0o700
    assert settings.created_at == NOW
    assert settings.inboxes == (Inbox(layout.inbox, "move"),)
    assert home.names() == ["notes"]


def test_settings_are_pinned_when_it_is_made(tmp_path: Path) -> None:
    before = home_with(tmp_path, MEMCTL_NEW_KB_CHUNK_SIZE="500")
    before.create("notes", consolidate_interval=5)
    after = home_with(tmp_path, MEMCTL_NEW_KB_CHUNK_SIZE="900")
    settings = after.settings("notes")
    assert (settings.chunk_size, settings.consolidate_interval) == (500, 5)


@pytest.mark.parametrize("name", ["../evil", "con", "Ü", "", "a/b", "x" * 300])
def test_a_name_that_cannot_be_used_creates_nothing(home: Home, name: str) -> None:
    with pytest.raises(UsageError):
        home.create(name)
    assert not home.config.home.exists()


def test_a_setting_that_cannot_be_used_creates_nothing(home: Home) -> None:
    with pytest.raises(ConfigError, match="chunk_size"):
        home.create("notes", chunk_size=1)
    assert list((home.config.home / "kb").iterdir()) == []


def test_a_failure_half_way_leaves_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memctl.home.kb_folders.save_settings", full)
    with pytest.raises(KnowledgeBaseUnavailable, match="No space"):
        home.create("notes")
    assert home.names() == []
    assert list((home.config.home / "kb").iterdir()) == []


def test_a_name_is_taken_only_once(home: Home) -> None:
    home.create("notes")
    with pytest.raises(UsageError, match="is there already"):
        home.create("notes")


def test_an_unknown_name_suggests_the_nearest(home: Home) -> None:
    home.create("notes")
    with pytest.raises(KnowledgeBaseNotFound) as caught:
        home.open("note")
    assert "'notes'" in caught.value.hint
    assert caught.value.exit_code == 10


def test_reading_creates_nothing_and_writing_makes_the_default_one(home: Home) -> None:
    with pytest.raises(KnowledgeBaseNotFound):
        home.open_for_reading()
    assert not home.config.home.exists()
    with home.open_for_writing() as opened:
        assert opened.name == "default"
    assert home.names() == ["default"]


def test_only_the_default_one_is_made_by_writing(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeBaseNotFound):
        home_with(tmp_path, MEMCTL_KB="notes").open_for_writing()
    with home_with(tmp_path, MEMCTL_DEFAULT_KB="notes").open_for_writing() as opened:
        assert opened.name == "notes"


def test_reading_asks_the_named_then_the_variable_then_every_always_on_one(tmp_path: Path) -> None:
    home = home_with(tmp_path)
    home.create("a")
    home.create("b", always_on=False)
    home.create("c")
    home.set_status("c", "archived")

    def asked(home: Home, *names: str) -> list[str]:
        with home.open_for_reading(names) as opened:
            return [base.name for base in opened]

    assert asked(home) == ["a"]
    assert asked(home, "b", "c", "b") == ["b", "c"]
    assert asked(home_with(tmp_path, MEMCTL_KB="b")) == ["b"]


def test_an_archived_one_is_read_only(home: Home) -> None:
    home.create("notes")
    home.set_status("notes", "archived")
    with pytest.raises(KnowledgeBaseUnavailable, match="archived") as caught:
        home.open_for_writing("notes")
    assert "memctl kb resume notes" in caught.value.hint
    with home.open("notes") as opened, pytest.raises(KnowledgeBaseUnavailable):
        opened.memories.add("the door code is 4711")


def test_renaming_takes_everything_along(home: Home, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    home.create("notes", inboxes=[Inbox(vault, "keep")])
    with home.open("notes") as opened:
        memory = opened.memories.add("the door code is 4711")
    settings = home.rename("notes", "diary")
    assert settings.name == "diary"
    assert settings.inboxes == (Inbox(home.layout("diary").inbox), Inbox(vault, "keep"))
    assert home.names() == ["diary"]
    with home.open("diary") as opened:
        assert opened.memories.get(memory.id).memory.text == "the door code is 4711"


def test_renaming_never_overwrites(home: Home) -> None:
    home.create("notes")
    home.create("diary")
    with pytest.raises(UsageError, match="'diary' is there already"):
        home.rename("notes", "diary")
    assert home.names() == ["diary", "notes"]


def test_deleting_leaves_watched_folders_elsewhere_alone(home: Home, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "note.md").write_text("x")
    home.create("notes", inboxes=[Inbox(vault, "keep")])
    home.delete("notes")
    assert home.names() == []
    assert list((home.config.home / "kb").iterdir()) == []
    assert (vault / "note.md").exists()


def test_what_is_being_written_is_neither_deleted_nor_renamed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.home.kb_folders._EXCLUSIVE_WAIT", 0.1)
    home.create("notes")
    with home.open("notes") as opened, opened.store.write():
        with pytest.raises(LockedError):
            home.delete("notes")
        with pytest.raises(LockedError):
            home.rename("notes", "diary")
    assert home.names() == ["notes"]


def test_what_is_being_watched_is_not_deleted(home: Home) -> None:
    home.create("notes")
    with FileLock(home.layout("notes").watch_lock, thread_local=False):
        with pytest.raises(LockedError, match="'notes' is being watched"):
            home.delete("notes")
        with pytest.raises(LockedError):
            home.rename("notes", "diary")
    home.delete("notes")
    assert home.names() == []


def test_one_with_damaged_settings_is_listed_with_its_problem_and_can_be_deleted(
    home: Home,
) -> None:
    home.create("good")
    home.create("bad")
    home.layout("bad").settings.write_text("chunk_size = \n")
    entries = {entry.name: entry for entry in home.entries()}
    assert entries["good"].problem == ""
    assert "not valid TOML" in entries["bad"].problem
    assert home.names_to_read() == ["good"]
    home.delete("bad")
    assert home.names() == ["good"]


def test_what_a_crash_left_behind_is_swept_away_by_the_next_creation(home: Home) -> None:
    folder = home.config.home / "kb"
    for name in (".deleted-1", ".new-old", ".trial-old", ".new-fresh"):
        (folder / name).mkdir(parents=True)
    for name in (".new-old", ".trial-old"):
        os.utime(folder / name, (0, 0))
    os.utime(folder / ".new-fresh", (NOW.timestamp(), NOW.timestamp()))
    home.create("notes")
    assert sorted(path.name for path in folder.iterdir()) == [".new-fresh", "notes"]


def test_changing_a_setting_to_something_impossible_changes_nothing(home: Home) -> None:
    before = home.create("notes")
    with pytest.raises(ConfigError):
        home.change("notes", chunk_overlap=5000)
    assert home.settings("notes") == before


def test_after_is_that_of_the_own_inbox_alone(home: Home, tmp_path: Path) -> None:
    home.create("notes", inboxes=[Inbox(tmp_path, "keep")])
    changed = home.change("notes", after="delete")
    assert [inbox.after for inbox in changed.inboxes] == ["delete", "keep"]


def test_two_processes_may_make_the_default_one_at_once(tmp_path: Path) -> None:
    code = (
        "from memctl.home import Home; from memctl.config import load_config;"
        f"Home(load_config({{'home': {str(tmp_path)!r}}})).open_for_writing().close()"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert [path.name for path in Layout(tmp_path / "kb").folder.iterdir()] == ["default"]


def test_one_that_is_open_elsewhere_when_it_is_renamed_is_not_written_to_any_more(
    home: Home,
) -> None:
    home.create("notes")
    with home.open("notes") as opened:
        opened.memories.add("the door code is 4711")
        home.rename("notes", "diary")
        home.create("notes")
        for use in (lambda: opened.memories.add("the key is under the mat"), opened.memories.list):
            with pytest.raises(KnowledgeBaseNotFound, match="renamed, deleted or replaced"):
                use()
    with home.open("diary") as diary, home.open("notes") as notes:
        assert (diary.memories.list().num_rows, notes.memories.list().num_rows) == (1, 0)
    assert all(each.verdict == "ok" for each in Doctor(home).examine("notes"))


def test_one_that_is_renamed_while_a_writer_waits_for_it_is_not_written_to(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.create("notes")

    def rename() -> None:
        home.rename("notes", "diary")
        home.create("notes")

    with home.open("notes") as opened:
        before_it_writes(monkeypatch, rename)
        with pytest.raises(KnowledgeBaseNotFound, match="renamed, deleted or replaced"):
            opened.memories.add("the key is under the mat")
    with home.open("diary") as diary, home.open("notes") as notes:
        assert (diary.memories.list().num_rows, notes.memories.list().num_rows) == (0, 0)


def test_one_that_gets_other_vectors_while_a_writer_waits_for_it_is_not_written_to(
    home: Home, monkeypatch: pytest.MonkeyPatch, endpoint: FakeEndpoint
) -> None:
    home.create("notes")
    with home.open("notes") as opened:
        opened.memories.add("the door code is 4711")

    def reembed() -> None:
        for name, value in endpoint.settings(embed="e").items():
            monkeypatch.setenv(name, value)
        assert (
            run(
                [
                    "--home",
                    str(home.config.home),
                    "kb",
                    "reembed",
                    "notes",
                    "--embedder",
                    "endpoint/e",
                ]
            )
            == 0
        )

    with home.open("notes") as opened:
        before_it_writes(monkeypatch, reembed)
        with pytest.raises(KnowledgeBaseUnavailable, match="vectors of endpoint/e meanwhile"):
            opened.memories.add("the key is under the mat")
    with home.open("notes") as opened:
        assert opened.memories.list().num_rows == 1


def before_it_writes(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Have something done while the next writer waits for the lock."""
    held, waiting = WriteLock.hold, iter([happens])

    @contextmanager
    def late(self: WriteLock, wait: float | None) -> Iterator[None]:
        for each in waiting:
            each()
        with held(self, wait):
            yield

    monkeypatch.setattr(WriteLock, "hold", late)


@pytest.mark.parametrize("change", ["rename", "delete"])
def test_one_that_goes_while_it_is_read_is_gone_and_not_damaged(home: Home, change: str) -> None:
    home.create("notes")
    with home.open("notes") as opened:
        opened.memories.add("the door code is 4711")
        snapshot = opened.store.snapshot()
        if change == "rename":
            home.rename("notes", "diary")
        else:
            home.delete("notes")
        searcher = Searcher({"notes": snapshot}, {"notes": opened.services.embedder}, lambda: NOW)
        with pytest.raises(KnowledgeBaseNotFound, match="renamed, deleted or replaced"):
            searcher.search("the door code")


def test_one_that_goes_while_it_is_exported_is_gone_and_not_damaged(home: Home) -> None:
    home.create("notes")
    with home.open("notes") as opened:
        opened.memories.add("the door code is 4711")
        snapshot = opened.store.snapshot()
        assert snapshot.count("memories") == 1  # its table is open from here on
        home.delete("notes")
        with pytest.raises(KnowledgeBaseNotFound, match="renamed, deleted or replaced"):
            export_batches(snapshot, "memories").read_all()


def open_for_ever(home: Home) -> None:
    while True:
        home.open("notes").close()


def test_one_that_goes_while_it_is_being_opened_is_not_there(home: Home, tmp_path: Path) -> None:
    home.create("notes")
    folder = home.layout("notes").folder
    for moment in range(20):
        going = threading.Timer(moment / 1000, folder.rename, [tmp_path / "elsewhere"])
        going.start()
        with pytest.raises(KnowledgeBaseNotFound):
            open_for_ever(home)
        going.join()
        (tmp_path / "elsewhere").rename(folder)


def test_one_with_a_damaged_ledger_can_be_deleted(home: Home) -> None:
    home.create("notes")
    (home.layout("notes").folder / "ledger.sqlite").write_bytes(b"nothing")
    home.delete("notes")
    assert home.names() == []


def test_a_home_that_cannot_be_listed_is_not_taken_for_an_empty_one(home: Home) -> None:
    home.check()
    home.config.home.mkdir()
    (home.config.home / "kb").write_text("a file where a folder should be")
    with pytest.raises(KnowledgeBaseUnavailable, match="kb: Not a directory"):
        home.check()


def test_locks_left_by_one_who_waited_do_not_take_the_name(home: Home) -> None:
    home.create("notes")
    home.delete("notes")
    left = home.config.home / "kb" / "notes"
    left.mkdir()
    (left / "lock").touch()
    home.create("notes")
    assert home.names() == ["notes"]


def test_settings_that_are_changed_by_two_at_once_are_both_changed(home: Home) -> None:
    home.create("notes")
    other = threading.Thread(target=lambda: home.change("notes", always_on=False))
    reads = iter([lambda: None, other.start])  # it begins when these have been read to be changed

    def meanwhile(_: KnowledgeBaseSettings) -> bool:
        next(reads)()
        if other.ident is not None:
            other.join(1.0)
        return True

    home.change("notes", redact=meanwhile)
    other.join(PATIENCE)
    settings = home.settings("notes")
    assert (settings.redact, settings.always_on) == (True, False)


@pytest.mark.parametrize("method", [Home.create, Home.change])
def test_every_setting_with_an_option_is_a_parameter_that_help_shows(
    method: Callable[..., object],
) -> None:
    rules = {**setting_rules(KnowledgeBaseSettings), **setting_rules(Inbox)}
    optional = {key for key, rule in rules.items() if rule.option}
    parameters = inspect.signature(method).parameters
    assert optional <= parameters.keys()
    assert all(each.kind is not each.VAR_KEYWORD for each in parameters.values())
    assert all(f"{key}: " in (inspect.getdoc(method) or "") for key in optional)


def test_a_cleared_base_tells_of_each_place_that_is_left(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.create("boats")
    left = (RemainingPlace("a", "it is in use", "stop it"), RemainingPlace("b", "no rights"))
    report = ForgetReport("boats", left=left)
    monkeypatch.setattr(Erasure, "forget", lambda *_, **__: report)
    cleared = home.clear("boats", forget=True)
    assert (cleared.left, cleared.remaining) == (("a", "b"), left)
    assert (cleared.why, cleared.hint) == ("it is in use; no rights", "stop it")

"""The receipt of one file: when it was taken in, how, as what, or why not."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from memctl.config import load_config
from memctl.home import Home
from memctl.ingest import inbox as inbox_of_any
from memctl.ingest.batch import PIPELINE_VERSION
from memctl.store import receipt_book
from memctl.store.names import WAITS_FOR

from .conftest import Run

TEXT = "We decided to launch Aurora on 12 May 2026."


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "plan.md").write_text(TEXT)
    return folder


def why(memctl: Run, file: str | Path) -> list[Any]:
    found = memctl("why", str(file), "-o", "json")
    assert found.code == 0, found.err
    rows: list[Any] = found.json
    return rows


def receipts(kb: str = "default") -> int:
    with Home(load_config({})).open(kb) as base, base.store.ledger.reading() as connection:
        (number,) = connection.execute("SELECT count(*) FROM receipts").fetchone()
    return int(number)


def test_a_file_that_was_given_tells_how_it_was_read_and_what_it_became(
    memctl: Run, notes: Path
) -> None:
    before = datetime.now(UTC)
    assert memctl("ingest", str(notes)).code == 0
    for name in (notes / "plan.md", "notes/plan.md", "plan.md"):
        (receipt,) = why(memctl, name)
        assert receipt["path"] == str(notes / "plan.md")
        assert (receipt["outcome"], receipt["is_there"]) == ("ingested", True)
        assert (receipt["reader"], receipt["pipeline_version"]) == ("markdown/2", PIPELINE_VERSION)
        assert receipt["read_seconds"] > 0
        assert before < datetime.fromisoformat(receipt["decided_at"]) < datetime.now(UTC)
        assert (receipt["passages"], receipt["facts"]) == (1, 1)
    (document,) = memctl("document", "list").rows
    assert receipt["document_id"] == document["id"]
    shown = memctl("why", "plan.md", "-o", "table").out
    assert "remembered" in shown
    assert "by markdown/2 in" in shown
    assert "1 passage, 1 fact" in shown


def test_every_reading_is_told_the_newest_first(memctl: Run, notes: Path, tmp_path: Path) -> None:
    memctl("ingest", str(notes))
    (notes / "copy.md").write_text(TEXT)
    other = tmp_path / "other"
    other.mkdir()
    (other / "plan.md").write_text("Quite another plan, for the garden of Ida.")
    memctl("ingest", str(notes))
    memctl("ingest", str(other))
    plans = why(memctl, "plan.md")
    assert [(row["outcome"], row["path"]) for row in plans] == [
        ("ingested", str(other / "plan.md")),
        ("known", str(notes / "plan.md")),
        ("ingested", str(notes / "plan.md")),
    ]
    (copy,) = why(memctl, "copy.md")
    assert (copy["outcome"], copy["document_source"]) == ("known", str(notes / "plan.md"))
    assert str(notes / "plan.md") in memctl("why", "copy.md", "-o", "table").out


def test_a_failure_tells_its_reason_and_what_to_do(memctl: Run, notes: Path) -> None:
    (notes / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    memctl("ingest", str(notes))
    (receipt,) = why(memctl, "broken.pdf")
    assert receipt["outcome"] == "failed"
    assert (bool(receipt["reason"]), bool(receipt["error"])) == (True, True)
    assert receipt["reason"] in memctl("why", "broken.pdf", "-o", "table").out.replace("\n", " ")


def test_what_has_been_deleted_since_is_told(memctl: Run, notes: Path) -> None:
    memctl("ingest", str(notes))
    (document,) = memctl("document", "list").rows
    memctl("document", "delete", document["id"], "--yes")
    (notes / "plan.md").unlink()
    (receipt,) = why(memctl, notes / "plan.md")
    assert (receipt["document_status"], receipt["is_there"]) == ("", False)
    shown = memctl("why", "plan.md", "-o", "table").out
    assert "which is not there any more" in shown
    assert f"not at {notes / 'plan.md'} any more" in shown


def test_nothing_known_is_exit_code_4_and_no_knowledge_base_10(memctl: Run, notes: Path) -> None:
    memctl("ingest", str(notes))
    nothing = memctl("why", "report.pdf")
    assert (nothing.code, "nothing is known of 'report.pdf'" in nothing.err) == (4, True)
    assert "hint: memctl document list" in nothing.err
    assert memctl("why", "plan.md", "-k", "nowhere").code == 10
    assert memctl("why", "").code == 2


def test_records_have_their_document_for_a_receipt(memctl: Run, notes: Path) -> None:
    lines = [json.dumps({"text": f"{TEXT} {n}", "source": f"chat-{n}"}) for n in range(3)]
    assert memctl("ingest", "--jsonl", "-", stdin="\n".join(lines)).code == 0
    assert memctl("ingest", "-", stdin="read from a pipe").code == 0
    assert receipts() == 0
    (receipt,) = why(memctl, "chat-1")
    assert (receipt["outcome"], receipt["reader"]) == ("remembered", "record/1")
    assert receipt["decided_at"]


def test_a_source_may_go_by_another_name_than_its_file(memctl: Run, notes: Path) -> None:
    memctl("ingest", str(notes / "plan.md"), "--source", "handbook")
    (receipt,) = why(memctl, "plan.md")
    assert receipt["document_source"] == "handbook"
    assert why(memctl, "handbook") != []


def test_upkeep_keeps_the_newest_receipts(
    memctl: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipt_book, "MOST_RECEIPTS", 3)
    for number in range(5):
        (notes / f"{number}.md").write_text(f"Note {number} of many.")
    memctl("ingest", str(notes))
    with Home(load_config({})).open("default") as base:
        base.store.upkeep()
    assert receipts() == 3
    assert why(memctl, "plan.md")[0]["outcome"] == "ingested"


def test_a_ledger_of_before_tells_what_the_documents_say(memctl: Run, notes: Path) -> None:
    memctl("ingest", str(notes))
    with (
        Home(load_config({})).open("default") as base,
        base.store.ledger.transaction() as connection,
    ):
        connection.execute("DELETE FROM receipts")
    (receipt,) = why(memctl, "plan.md")
    assert (receipt["outcome"], receipt["reader"]) == ("remembered", "markdown/2")
    assert receipt["path"] == str(notes / "plan.md")


# --- files of an inbox ---------------------------------------------------------------------------


@pytest.fixture
def inbox(memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0.1")
    memctl("kb", "create", "default")
    return tmp_path / "home/kb/default/inbox"


def test_a_file_of_an_inbox_tells_each_step_and_where_it_is_now(memctl: Run, inbox: Path) -> None:
    (inbox / "work").mkdir()
    (inbox / "work/plan.md").write_text(TEXT)
    (inbox / "empty.md").write_text("")
    assert memctl("watch", "--once").code == 0
    processed, failed = inbox.parent / "processed/work/plan.md", inbox.parent / "failed/empty.md"
    for name in (inbox / "work/plan.md", processed, "work/plan.md", "plan.md"):
        (receipt,) = why(memctl, name)
        assert (receipt["path"], receipt["place"]) == (str(inbox / "work/plan.md"), str(processed))
        steps = [receipt[f"{step}_at"] for step in ("seen", "claimed", "decided", "moved")]
        assert steps == sorted(steps)
        assert receipt["read_seconds"] > 0
        assert (receipt["outcome"], receipt["is_there"]) == ("ingested", True)
    (receipt,) = why(memctl, failed)
    assert (receipt["outcome"], receipt["place"]) == ("failed", str(failed))
    assert "empty" in receipt["reason"]
    (inbox / "plan.md").write_text(TEXT)
    memctl("watch", "--once")
    (again, first) = why(memctl, "plan.md")
    assert (again["outcome"], first["outcome"]) == ("known", "ingested")
    assert again["document_source"] == "work/plan.md"
    assert again["place"] == str(inbox.parent / "processed/plan.md")


def test_a_file_that_nobody_has_taken_yet_waits(memctl: Run, inbox: Path) -> None:
    (inbox / "plan.md").write_text(TEXT)
    for name in (inbox / "plan.md", "plan.md"):
        (receipt,) = why(memctl, name)
        assert (receipt["outcome"], "memctl watch" in receipt["hint"]) == ("waiting", True)
    memctl("watch", "--once")
    (inbox / "plan.md").write_text("another plan of the same name")
    assert [row["outcome"] for row in why(memctl, "plan.md")] == ["waiting", "ingested"]


def test_a_file_that_is_deleted_after_it_was_read_says_so(memctl: Run, inbox: Path) -> None:
    memctl("kb", "set", "default", "--after", "delete")
    (inbox / "plan.md").write_text(TEXT)
    memctl("watch", "--once")
    (receipt,) = why(memctl, "plan.md")
    assert (receipt["path"], receipt["place"]) == (str(inbox / "plan.md"), "")
    assert (receipt["is_there"], bool(receipt["moved_at"])) == (False, True)


def test_a_file_of_a_kept_inbox_tells_each_version(
    memctl: Run, inbox: Path, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    memctl("kb", "set", "default", "--inbox", str(vault))
    for text in (TEXT, "We decided to launch Aurora in June 2026."):
        (vault / "plan.md").write_text(text)
        memctl("watch", "--once")
    new, old = why(memctl, vault / "plan.md")
    assert (new["outcome"], old["outcome"]) == ("superseded", "ingested")
    assert (new["document_status"], old["document_status"]) == ("indexed", "superseded")
    assert new["is_there"]


# --- files that are never taken, and who would take the others -----------------------------------


def never_taken(inbox: Path) -> dict[str, str]:
    """Files that a watcher leaves in an inbox, each with a word of why."""
    (inbox / "folder").mkdir()
    (inbox / "folder/ignored.md").write_text(TEXT)
    (inbox / ".memctlignore").write_text("folder/\n")
    (inbox / ".secret").mkdir()
    (inbox / ".secret/deep.md").write_text(TEXT)
    (inbox / "link.md").symlink_to(inbox / "folder")
    (inbox / "nowhere.md").symlink_to(inbox / "not there")
    os.mkfifo(inbox / "pipe.md")
    for name in ("film.mp4.part", "~$report.docx", "notes.txt~", ".hidden.md", "Thumbs.db"):
        (inbox / name).write_text(TEXT)
    return {
        **dict.fromkeys(["film.mp4.part", "~$report.docx", "notes.txt~"], "half-downloaded"),
        **dict.fromkeys([".hidden.md", "deep.md"], "hidden"),
        **dict.fromkeys(["link.md", "nowhere.md"], "a link"),
        "Thumbs.db": "the system",
        "ignored.md": ".memctlignore",
        "pipe.md": "a named pipe",
    }


def test_a_file_that_is_never_taken_says_why(memctl: Run, inbox: Path) -> None:
    left = never_taken(inbox)
    memctl("watch", "--once")
    for name, word in left.items():
        (receipt,) = why(memctl, name)
        assert receipt["outcome"] == "left"
        assert word in receipt["reason"], name
        assert receipt["hint"]
        assert why(memctl, receipt["path"]) == [receipt]
        assert receipt["reason"] in memctl("why", name, "-o", "table").out
    (receipt,) = why(memctl, inbox / ".secret/deep.md")
    assert str(inbox / ".secret") in receipt["reason"]
    (receipt,) = why(memctl, "film.mp4.part")
    assert memctl("ingest", str(inbox / "film.mp4.part")).code == 0
    assert f"memctl ingest {receipt['path']}" in receipt["hint"]


def test_why_tells_of_each_file_of_an_inbox_what_the_watcher_then_does(
    memctl: Run, inbox: Path
) -> None:
    never_taken(inbox)
    for name in ("a.md", "part.md", "work/b.md", "work/.c.md", "d.tmp.md", "talk.mp3", "talk.srt"):
        (inbox / name).parent.mkdir(exist_ok=True)
        (inbox / name).write_text(f"{TEXT} {name}")
    files = [path for path in inbox.rglob("*") if path.is_symlink() or not path.is_dir()]
    told = {path: why(memctl, path)[0]["outcome"] for path in files}
    memctl("watch", "--once")
    stayed = {path for path in files if os.path.lexists(path)}
    waiting = {path for path in files if told[path] == "waiting"}
    assert waiting == set(files) - stayed - {inbox / "talk.srt"}
    assert len(waiting) == 5


def test_subtitles_beside_a_recording_are_read_with_it(memctl: Run, inbox: Path) -> None:
    (inbox / "talk.mp3").write_bytes(b"ID3")
    (inbox / "talk.srt").write_text("1\n00:00:00,000 --> 00:00:02,000\nHello\n")
    (receipt,) = why(memctl, "talk.srt")
    assert (receipt["outcome"], "talk.mp3" in receipt["reason"]) == ("left", True)


def test_a_waiting_file_tells_whether_a_watch_runs(memctl: Run, inbox: Path) -> None:
    (inbox / "plan.md").write_text(TEXT)
    (receipt,) = why(memctl, "plan.md")
    assert (receipt["watched_by"], "no watch is running" in receipt["hint"]) == (None, True)
    now = datetime.now(UTC)
    with FileLock(inbox.parent / "watch.lock"), Home(load_config({})).open("default") as base:
        base.store.ledger.daemon.register(4711, "here", now)
        (receipt,) = why(memctl, "plan.md")
        assert (receipt["watched_by"], "process 4711" in receipt["hint"]) == (4711, True)
        base.store.ledger.set_meta(WAITS_FOR, "no space is left on the disk")
        (receipt,) = why(memctl, "plan.md")
        assert receipt["reason"] == "no space is left on the disk"
    memctl("kb", "pause", "default")
    (receipt,) = why(memctl, "plan.md")
    assert (receipt["reason"], receipt["hint"]) == (
        "knowledge base 'default' is paused", "memctl kb resume default"
    )  # fmt: skip


def test_a_waiting_file_of_a_knowledge_base_that_is_watched_by_name_alone_says_so(
    memctl: Run, inbox: Path
) -> None:
    memctl("kb", "set", "default", "--on-demand")
    (inbox / "plan.md").write_text(TEXT)
    found = memctl("why", "plan.md", "-k", "default", "-o", "json")
    assert "memctl watch -k default" in found.json[0]["hint"]


def test_a_file_that_may_not_be_read_says_so(
    memctl: Run, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inbox / "plan.md").write_text(TEXT)
    monkeypatch.setattr(inbox_of_any.os, "access", lambda *_: False)
    (receipt,) = why(memctl, "plan.md")
    assert (receipt["outcome"], "permission denied" in receipt["reason"]) == ("waiting", True)


def test_a_kept_file_waits_again_once_it_has_changed(
    memctl: Run, inbox: Path, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    memctl("kb", "set", "default", "--inbox", str(vault))
    (vault / "plan.md").write_text(TEXT)
    assert why(memctl, "plan.md")[0]["outcome"] == "waiting"
    memctl("watch", "--once")
    assert [row["outcome"] for row in why(memctl, "plan.md")] == ["ingested"]
    (vault / "plan.md").write_text("We decided to launch Aurora in June 2026.")
    waiting, read = why(memctl, "plan.md")
    assert (waiting["outcome"], read["outcome"]) == ("waiting", "ingested")
    assert "changed" in waiting["reason"]


def test_an_inbox_is_asked_by_the_way_of_a_link_too(
    memctl: Run, inbox: Path, tmp_path: Path
) -> None:
    (inbox / "plan.md").write_text(TEXT)
    (tmp_path / "desktop").symlink_to(inbox)
    (receipt,) = why(memctl, tmp_path / "desktop/plan.md")
    assert (receipt["outcome"], receipt["path"]) == ("waiting", str(inbox / "plan.md"))


# --- files under other names and in other places than they were ----------------------------------


def test_a_name_that_is_not_utf_8_is_found_and_there(memctl: Run, inbox: Path) -> None:
    name = os.fsdecode(b"bad\xff\xfename.txt")
    (inbox / name).write_text(TEXT)
    for asked in (name, r"bad\xff\xfename.txt"):
        assert why(memctl, asked)[0]["outcome"] == "waiting"
    memctl("watch", "--once")
    place = inbox.parent / "processed" / name
    for asked in (name, r"bad\xff\xfename.txt", place):
        (receipt,) = why(memctl, asked)
        assert (receipt["outcome"], receipt["is_there"]) == ("ingested", True)
        assert receipt["place"] == rf"{inbox.parent}/processed/bad\xff\xfename.txt"
    place.unlink()
    assert not why(memctl, name)[0]["is_there"]


def test_a_name_with_a_backslash_is_its_own(memctl: Run, notes: Path) -> None:
    (notes / r"bad\xff.md").write_text("Ida keeps the garden of the house in June.")
    memctl("ingest", str(notes))
    (receipt,) = why(memctl, notes / r"bad\xff.md")
    assert receipt["is_there"]


def test_files_are_where_a_moved_home_has_them(
    memctl: Run, inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inbox / "work").mkdir()
    (inbox / "work/plan.md").write_text(TEXT)
    (inbox / "empty.md").write_text("")
    memctl("watch", "--once")
    moved = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "home", moved)
    monkeypatch.setenv("MEMCTL_HOME", str(moved))
    folder = moved / "kb/default"
    for asked in ("plan.md", folder / "processed/work/plan.md", folder / "inbox/work/plan.md"):
        (receipt,) = why(memctl, asked)
        assert (receipt["place"], receipt["is_there"]) == (
            str(folder / "processed/work/plan.md"), True
        )  # fmt: skip
    (receipt,) = why(memctl, folder / "failed/empty.md")
    assert receipt["place"] == str(folder / "failed/empty.md")
    memctl("kb", "rename", "default", "notes")
    (receipt,) = why(memctl, "plan.md")
    assert receipt["place"] == str(moved / "kb/notes/processed/work/plan.md")


# --- names that nothing, or too much, is known of ------------------------------------------------


def test_a_misspelt_name_is_told_those_like_it(memctl: Run, inbox: Path, notes: Path) -> None:
    (inbox / "budget.xlsx").write_text(TEXT)
    memctl("ingest", str(notes))
    for asked, there in (("plam.md", "plan.md"), ("lan", "plan.md"), ("bugdet.xlsx", "budget")):
        found = memctl("why", asked)
        assert (found.code, there in found.err) == (4, True)


def test_names_in_private_namespaces_are_not_told(memctl: Run, notes: Path) -> None:
    memctl("ingest", str(notes), "--namespace", "diary")
    assert "plan.md" in memctl("why", "plam.md").err
    memctl("kb", "set", "default", "--private-namespace", "diary")
    assert "plan.md" not in memctl("why", "plam.md").err


def test_a_file_that_nothing_has_taken_in_can_be(memctl: Run, notes: Path) -> None:
    memctl("ingest", str(notes))
    (notes / "later.md").write_text("Later.")
    assert f"memctl ingest {notes / 'later.md'}" in memctl("why", str(notes / "later.md")).err
    assert "a folder" in memctl("why", str(notes)).err
    assert memctl("why", "x" * 5_000).code == 4


def test_many_files_of_one_name_are_listed(memctl: Run, tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"notes{number}").mkdir()
        (tmp_path / f"notes{number}/plan.md").write_text(f"{TEXT} {number}")
        memctl("ingest", str(tmp_path / f"notes{number}"))
    memctl("ingest", str(tmp_path / "notes0"))
    found = memctl("why", "plan.md", "-o", "table")
    assert [str(tmp_path / f"notes{n}/plan.md") in found.out for n in range(4)] == [True] * 4
    assert found.out.count("notes0/plan.md") == 1
    assert "4 files go by that name" in found.err
    assert len(why(memctl, "plan.md")) == 5

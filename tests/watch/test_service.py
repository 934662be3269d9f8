"""The watcher as a whole, in this process, on real folders and a real store."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock
from waiting import wait_for
from watched import Daemon, put_whole

from memctl.cli.main import run
from memctl.doctor.doctor import Doctor
from memctl.errors import KnowledgeBaseNotFound, KnowledgeBaseUnavailable, LockedError
from memctl.forget import Selection
from memctl.ingest.batch_writing import OutcomeListener
from memctl.ingest.discovery import inbox_scan
from memctl.ingest.ingest_pipeline import Ingestor
from memctl.kb_settings import Inbox
from memctl.records import FileOutcome
from memctl.watch import claims, inbox_scanner, kb_watcher
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.service import WatchedBases, WatchService
from memctl.watch.watch_status import watch_status

if TYPE_CHECKING:
    from watched import Place

Said = Callable[[list], list[str]]


# --- what becomes of a file ----------------------------------------------------------------------


def test_a_file_is_remembered_and_moved_on_with_its_subfolder_as_tag(
    place: Place, said: Said
) -> None:
    place.drop("work/plans/a.md", "# Plans\n\nWe sail on Friday.")
    assert said(place.drain()) == ["ingested"]
    assert place.tree(place.layout.folder / "inbox") == []
    assert place.tree(place.layout.processed) == ["work/plans/a.md"]
    assert place.tree(place.layout.processing) == []
    (document,) = place.rows("documents", "source", "title", "tags")
    assert (document["source"], document["title"]) == ("work/plans/a.md", "Plans")
    assert set(document["tags"]) >= {"work", "plans"}


def test_a_file_that_fails_is_kept_with_its_reason(place: Place, said: Said) -> None:
    place.drop("sub/zeros.txt", "\0")
    place.drop("broken.pdf", b"%PDF-1.4 nothing more")
    place.drop("good.txt", "All is well.")
    assert sorted(said(place.drain())) == ["failed", "failed", "ingested"]
    failed = place.layout.failed
    assert place.tree(failed) == [
        "broken.pdf",
        "broken.pdf.reason.json",
        "sub/zeros.txt",
        "sub/zeros.txt.reason.json",
    ]
    reason = json.loads((failed / "sub" / "zeros.txt.reason.json").read_text())
    assert reason["error"] == "UnreadableSource"
    assert reason["source"] == str(place.layout.inbox / "sub" / "zeros.txt")
    assert all(reason[key] for key in ("message", "hint", "at"))


@pytest.mark.parametrize("after", ["move", "delete"])
def test_an_empty_file_leaves_the_inbox_as_a_remembered_one_does(place: Place, after: str) -> None:
    place.set(after=after)
    place.drop("sub/empty.txt", "")
    (event,) = (event for event in place.drain() if event.source)
    assert (event.kind, event.message) == ("empty", "empty.txt is empty")
    assert place.tree(place.layout.inbox) == place.tree(place.layout.processing) == []
    assert place.tree(place.layout.processed) == (["sub/empty.txt"] if after == "move" else [])
    assert place.tree(place.layout.failed) == []
    with place.open() as base:
        (receipt,) = base.documents.provenance("empty.txt")
    assert (receipt.outcome, receipt.reason) == ("empty", "empty.txt is empty")


def test_duplicates_are_moved_on_too_and_called_known(place: Place, said: Said) -> None:
    for name in ("a.txt", "b.txt", "sub/a.txt"):
        place.drop(name, "The same words.")
    assert sorted(said(place.drain())) == ["ingested", "known", "known"]
    assert place.tree(place.layout.processed) == ["a.txt", "b.txt", "sub/a.txt"]
    assert len(place.rows("documents", "id")) == 1


def test_a_name_that_comes_again_does_not_overwrite_the_first(place: Place) -> None:
    for text in ("one", "two", "three"):
        place.drop("a.txt", f"Number {text}.")
        place.drain()
    assert place.tree(place.layout.processed) == ["a-2.txt", "a-3.txt", "a.txt"]
    assert (place.layout.processed / "a-3.txt").read_text() == "Number three."


def test_files_taken_together_do_not_get_the_same_new_name(place: Place) -> None:
    place.drop("a.txt", "Number one.")
    place.drain()
    place.drop("a.txt", "Number two.")
    place.drop("a-2.txt", "Number three.")
    place.drain()
    texts = {path.read_text() for path in place.layout.processed.iterdir()}
    assert texts == {"Number one.", "Number two.", "Number three."}


@pytest.mark.parametrize(
    "name",
    [
        *(b"caf\xe9.txt", b"two\nlines.txt", b"n" * 251 + b".txt", b"-rf.txt"),
        *("日本語.txt".encode(), ("語" * 79 + ".txt").encode(), ("語" * 83 + ".txt").encode()),
    ],
)
@pytest.mark.parametrize(("content", "fails"), [("Something to remember.", False), ("\0", True)])
def test_names_of_every_kind_find_their_way(
    place: Place, name: bytes, content: str, fails: bool
) -> None:
    place.drop(name, content)
    place.drain()
    folder = place.layout.failed if fails else place.layout.processed
    assert name in [os.fsencode(path.name) for path in folder.iterdir()]
    assert len(list(folder.iterdir())) == (2 if fails else 1)


def test_subtitles_travel_with_their_recording(place: Place, said: Said) -> None:
    import wave

    place.drop("talk.srt", "1\n00:00:00,000 --> 00:00:02,000\nThe harbour is closed.\n")
    with wave.open(str(place.drop("talk.wav")), "wb") as writer:
        writer.setparams((1, 1, 8000, 0, "NONE", ""))
        writer.writeframes(b"\0" * 8000)
    place.drop("alone.srt", "1\n00:00:00,000 --> 00:00:02,000\nA lone subtitle.\n")
    assert said(place.drain()) == ["ingested", "ingested"]
    assert place.tree(place.layout.processed) == ["alone.srt", "talk.srt", "talk.wav"]
    texts = [row["text"] for row in place.rows("documents", "text")]
    assert any("The harbour is closed." in text for text in texts)


def test_the_log_of_a_database_travels_with_it_and_its_rows_are_read(
    place: Place, said: Said, tmp_path: Path
) -> None:
    live = tmp_path / "rents.db"
    with closing(sqlite3.connect(live)) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.execute("CREATE TABLE rents (city TEXT, rent INTEGER)")
        db.execute("PRAGMA wal_checkpoint(truncate)")
        for city, outcome in (("Oslo", "ingested"), ("Rome", "superseded")):
            with db:
                db.execute("INSERT INTO rents VALUES (?, 4)", (city,))
            for name in ("rents.db", "rents.db-wal", "rents.db-shm"):
                place.drop(name, live.with_name(name).read_bytes())
            assert said(place.drain()) == [outcome]
            assert place.tree(place.layout.failed) == []
    texts = sorted((row["text"] for row in place.rows("documents", "text")), key=len)
    assert ["Rome" in text for text in texts] == [False, True]
    with place.open() as base:
        documents = [row["id"] for row in base.store.snapshot().scan("documents").to_pylist()]
        base.forget(Selection(documents=tuple(documents)))
    assert place.tree(place.layout.processed) == []


def test_a_recording_that_comes_again_with_subtitles_is_read_with_them(
    place: Place, said: Said
) -> None:
    import wave

    def record() -> None:
        with wave.open(str(place.drop("talk.wav")), "wb") as writer:
            writer.setparams((1, 1, 8000, 0, "NONE", ""))
            writer.writeframes(b"\0" * 8000)

    record()
    place.drain()
    record()
    place.drop("talk.srt", "1\n00:00:00,000 --> 00:00:02,000\nThe harbour is closed.\n")
    assert said(place.drain()) == ["ingested"]
    (row,) = place.rows("documents", "text", "missing")
    assert "The harbour is closed." in row["text"]
    assert row["missing"] == []


def test_a_file_may_be_deleted_once_it_is_remembered(place: Place, said: Said) -> None:
    place.set(after="delete")
    place.drop("a.txt", "Remember me.")
    place.drop("zeros.txt", "\0")
    assert sorted(said(place.drain())) == ["failed", "ingested"]
    assert place.tree(place.layout.processed) == []
    assert place.tree(place.layout.failed) == ["zeros.txt", "zeros.txt.reason.json"]


BROKEN_EVENT = "BEGIN:VEVENT\nUID:2\nDTSTART:tomorrow\nSUMMARY:Tea\nEND:VEVENT\n"
WHOLE_EVENT = "BEGIN:VEVENT\nUID:1\nDTSTART:20260101\nSUMMARY:Dinner\nEND:VEVENT\n"


def mail(kind: str, attached: str) -> str:
    head = "From: a@b.org\nSubject: An offer\nContent-Type: multipart/mixed; boundary=b\n\n"
    body = "--b\nContent-Type: text/plain\n\nHere it is.\n"
    name = "Content-Disposition: attachment; filename=offer"
    return f"{head}{body}--b\nContent-Type: {kind}\n{name}\n\n{attached}\n--b--\n"


def test_a_file_of_which_something_is_not_remembered_is_moved_where_others_are_deleted(
    place: Place, said: Said
) -> None:
    place.set(after="delete")
    place.drop("one.csv", "milk,eggs,bread\n")
    place.drop("part.ics", f"BEGIN:VCALENDAR\n{WHOLE_EVENT}{BROKEN_EVENT}END:VCALENDAR\n")
    place.drop("whole.ics", f"BEGIN:VCALENDAR\n{WHOLE_EVENT}END:VCALENDAR\n")
    place.drop("chat.jsonl", '{"role": "user", "content": "Hi."}\nThe code is 7.\n')
    place.drop("offer.eml", mail("application/pdf", "%PDF-1.7 and so on"))
    place.drop("notes.eml", mail("text/plain", "The offer holds until June."))
    turn = '{"sessionId": "s", "type": "user", "message": {"role": "user", "content": "Whose?"}}\n'
    place.drop("agent.jsonl", turn)
    place.drop("more.jsonl", turn.replace("Whose", "Which") + '{"type": "summary", "text": "x"}\n')
    assert sorted(said(place.drain())) == ["empty", "failed", *["ingested"] * 7]
    kept = ["chat.jsonl", "more.jsonl", "offer.eml", "one.csv", "part.ics"]
    assert place.tree(place.layout.processed) == kept
    assert place.tree(place.layout.inbox) == place.tree(place.layout.processing) == []


def test_a_known_file_is_deleted_only_if_all_of_it_is_remembered(place: Place, said: Said) -> None:
    place.set(after="delete")
    part = f"BEGIN:VCALENDAR\n{WHOLE_EVENT}{BROKEN_EVENT}END:VCALENDAR\n"
    whole = f"BEGIN:VCALENDAR\n{WHOLE_EVENT}END:VCALENDAR\n"
    box = f"From ann@b.org Mon Jan  5 10:00:00 2026\n{mail('application/pdf', '%PDF-1.7 x')}"
    files = {"a.txt": "Remember me.", "offer.eml": mail("application/pdf", "%PDF-1.7")}
    files |= {"part.ics": part, "whole.ics": whole, "all.mbox": box}
    for name, content in files.items():
        place.drop(name, content)
    place.drain()
    for name, content in files.items():
        place.drop(f"copy/{name}", content)
    assert set(said(place.drain())) == {"known"}
    kept = ["all.mbox", "offer.eml", "part.ics"]
    assert place.tree(place.layout.processed) == sorted([*kept, *(f"copy/{n}" for n in kept)])


def test_pictures_and_films_of_which_nothing_is_known_are_never_deleted(place: Place) -> None:
    from PIL import Image

    place.set(after="delete")
    for name, comment in (("photo.png", ""), ("crane.gif", "The crane at the harbour.")):
        info = {"comment": comment.encode()} if comment else {}
        Image.new("RGB", (300, 200), "seagreen").save(place.layout.inbox / name, **info)
    place.drain()
    assert place.tree(place.layout.processed) == ["photo.png"]
    assert place.tree(place.layout.inbox) == []


def test_an_exported_note_that_is_known_is_not_deleted(
    place: Place, tmp_path: Path, said: Said
) -> None:
    place.drop("a.txt", "Ann moved to Lisbon in May.")
    place.drain()
    home, vault = str(place.home.config.home), tmp_path / "vault"
    assert run(["--home", home, "export", "-k", "notes", "markdown", "--to", str(vault)]) == 0
    place.set(after="delete")
    notes = [path for path in vault.rglob("*.md") if "Lisbon" in path.read_text()]
    for path in notes:
        place.drop(path.name, path.read_bytes())
    assert said(place.drain()) == ["known"] * len(notes) != []
    assert place.tree(place.layout.processed) == sorted(["a.txt", *(p.name for p in notes)])


def test_a_document_can_be_reprocessed_from_where_its_file_went(place: Place) -> None:
    place.drop("a.txt", "Remember me.")
    place.drain()
    (row,) = place.rows("documents", "id")
    with place.open() as base:
        assert base.documents.reprocess([row["id"]]).ingested == 1


def test_a_file_that_may_not_be_read_is_left_and_told_once(place: Place, said: Said) -> None:
    path = place.drop("secret.txt", "x")
    original = os.access
    denied = lambda p, mode: Path(p) != path and original(p, mode)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inbox_scan.os, "access", denied)
        assert said(place.drain()) == ["failed"]
    assert path.exists()
    assert "permission denied" in place.events[-3].message + place.events[-4].message


def test_an_inbox_on_another_file_system_works_too(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    outside = tmp_path / "stick"
    outside.mkdir()
    place.set(inboxes=(Inbox(place.layout.inbox), Inbox(outside)))
    rename = claims.rename_to_free

    def refuses(source: Path, target: Path) -> None:
        if outside in source.parents:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target)

    monkeypatch.setattr(claims, "rename_to_free", refuses)
    (outside / "a.txt").write_text("From a stick.")
    assert said(place.drain()) == ["ingested"]
    assert list(outside.iterdir()) == []
    assert place.tree(place.layout.processed) == ["a.txt"]


# --- files that are written to -------------------------------------------------------------------


@pytest.fixture
def told_who_writes(tmp_path: Path) -> None:
    """Skip where the system does not tell who has a file open."""
    if sys.platform != "linux":
        pytest.skip("only Linux tells who has a file open")
    import fcntl

    (tmp_path / "nobody has it open").touch()
    with (tmp_path / "nobody has it open").open("rb") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError:
            pytest.skip("the file system of temporary files knows no leases")


@pytest.mark.usefixtures("told_who_writes")
def test_a_file_that_a_program_has_open_is_taken_only_when_it_is_closed(
    place: Place, said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    """However long it has stood still: a program may pause in the middle."""
    place.drop("closed.txt", "Bo has the keys.")
    with place.drop("open.txt", "Ursula keeps bees.\n").open("a") as file:
        events = place.drain()
        assert sorted(said(events)) == ["ingested", "waiting"]
        assert place.tree(place.layout.inbox) == ["open.txt"]
        home = str(place.home.config.home)
        assert run(["--home", home, "why", "-k", "notes", "open.txt", "-o", "json"]) == 0
        event = json.loads(capsys.readouterr().out)[0]
        assert event["outcome"] == "waiting"
        assert event["reason"] == "a program still has it open for writing"
        file.write("Viktor keeps goats.\n")
    assert said(place.drain()) == ["ingested"]
    texts = [row["text"] for row in place.rows("documents", "text")]
    assert sorted(texts) == ["Bo has the keys.", "Ursula keeps bees.\nViktor keeps goats.\n"]


@pytest.mark.usefixtures("told_who_writes")
def test_a_recording_waits_for_subtitles_that_are_being_written(place: Place, said: Said) -> None:
    place.drop("talk.mp3", b"ID3")
    with place.drop("talk.srt").open("a"):
        assert said(place.drain()) == ["waiting"]
    assert place.tree(place.layout.inbox) == ["talk.mp3", "talk.srt"]


def test_a_file_that_is_written_to_after_it_was_read_is_read_again(
    place: Place, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system does not tell who has a file open."""
    monkeypatch.setattr(inbox_scanner, "is_being_written", lambda path: False)
    place.drop("talk.txt", "Ursula keeps bees.\n")
    ingest, rest = Ingestor.ingest, ["Viktor keeps goats.\n"]

    def written_to(*args: Any, on_commit: OutcomeListener, **options: Any) -> Any:
        def commit(outcomes: Sequence[FileOutcome]) -> None:
            on_commit(outcomes)
            for path in place.layout.processing.rglob("talk.txt"):
                with path.open("a") as file:
                    file.writelines(rest)
                rest.clear()

        return ingest(*args, on_commit=commit, **options)

    monkeypatch.setattr(Ingestor, "ingest", written_to)
    events = place.drain()
    assert said(events) == ["put_back", "ingested"]
    assert "it was written to while it was taken in" in [event.message for event in events]
    assert place.tree(place.layout.processed) == ["talk.txt"]
    texts = [row["text"] for row in place.rows("documents", "text")]
    assert "Ursula keeps bees.\nViktor keeps goats.\n" in texts


# --- trouble -------------------------------------------------------------------------------------


def test_a_store_that_is_full_makes_the_watcher_wait_and_no_file_fail(
    place: Place, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    place.drop("a.txt", "Remember me.")

    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Ingestor, "ingest", full)
        assert said(place.drain()) == ["waiting", "put_back"]
    assert place.tree(place.layout.inbox) == ["a.txt"]
    assert place.tree(place.layout.failed) == []
    assert said(place.drain()) == ["ingested"]


def test_a_store_that_recovers_goes_on_with_the_files_in_hand(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest = Ingestor.ingest
    failures = iter([True, True])

    def sometimes(self: Ingestor, *args: object, **options: object) -> object:
        if next(failures, False):
            raise LockedError("process 1 is writing")
        return ingest(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Ingestor, "ingest", sometimes)
    place.drop("a.txt", "Remember me.")
    with Daemon(place, retry_seconds=0.1):
        wait_for(lambda: place.tree(place.layout.processed) == ["a.txt"])
    kinds = [event.kind for event in place.events]
    assert kinds.count("waiting") == 1
    assert kinds.index("waiting") < kinds.index("ingested")
    assert "resumed" in kinds


def test_files_left_in_processing_by_a_killed_daemon_are_ingested_once(
    place: Place, said: Said
) -> None:
    place.drop("a.txt", "Remember me.")
    place.drain()
    folder = place.layout.processing / "0123456789abcdef"
    folder.mkdir()
    (folder / "b.txt").write_text("Left behind.")
    (place.layout.processing / "loose.txt").write_text("Put there by hand.")
    (folder.with_name("empty")).mkdir()
    assert said(place.drain()) == ["ingested", "ingested"]
    assert place.tree(place.layout.processed) == ["a.txt", "b.txt", "loose.txt"]
    assert list(place.layout.processing.iterdir()) == []


def test_a_crash_between_a_sidecar_and_its_recording_loses_neither(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.watch import claims

    place.drop("talk.srt", "1\n00:00:00,000 --> 00:00:02,000\nHello there.\n")
    place.drop("talk.mp3", b"ID3")
    move = claims.move_file

    def dies(source: Path, target: Path) -> None:
        if source.suffix == ".mp3":
            raise KeyboardInterrupt
        move(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(claims, "move_file", dies)
        patch.setattr(kb_watcher.KnowledgeBaseWatcher, "put_back", lambda self: None)
        with pytest.raises(KeyboardInterrupt):
            place.drain()
    assert place.tree(place.layout.inbox) == ["talk.mp3"]
    place.drain()
    everywhere = place.tree(place.layout.failed) + place.tree(place.layout.processed)
    assert {"talk.mp3", "talk.srt"} <= set(everywhere)


# --- which knowledge bases -----------------------------------------------------------------------


def test_a_second_watcher_is_refused_and_told_who_the_first_is(place: Place) -> None:
    with Daemon(place):
        wait_for(lambda: any(event.kind == "started" for event in place.events))
        with pytest.raises(LockedError, match=f"process {os.getpid()}"):
            place.service(once=True).run()
    place.service(once=True).run()


def test_paused_and_archived_ones_are_not_served(place: Place, said: Said) -> None:
    place.drop("a.txt", "x y z")
    for status in ("paused", "archived"):
        place.home.set_status("notes", status)
        assert said(place.drain()) == []
    place.home.set_status("notes", "active")
    assert said(place.drain()) == ["ingested"]


def test_one_that_is_not_always_on_is_served_only_by_name(place: Place) -> None:
    place.set(always_on=False)
    assert WatchedBases(place.home).names() == []
    assert WatchedBases(place.home, ["notes"]).names() == ["notes"]


def test_a_name_that_cannot_be_served_is_refused(place: Place) -> None:
    with pytest.raises(KnowledgeBaseNotFound):
        WatchedBases(place.home, ["nots"]).check()
    place.home.set_status("notes", "paused")
    with pytest.raises(KnowledgeBaseUnavailable, match="paused"):
        WatchedBases(place.home, ["notes"]).check()


def test_a_new_knowledge_base_is_watched_and_a_paused_one_is_not(place: Place) -> None:
    with Daemon(place, poll=True):
        wait_for(lambda: any(event.kind == "started" for event in place.events))
        place.home.create("later", consolidate_interval=0)
        put_whole(place.home.layout("later").inbox / "a.txt", "A new one.")
        wait_for(lambda: any(e.kb == "later" and e.kind == "ingested" for e in place.events))
        place.home.set_status("later", "paused")
        wait_for(lambda: any(e.kb == "later" and e.kind == "left" for e in place.events))


def test_it_goes_on_with_a_ledger_that_was_made_anew(place: Place) -> None:
    place.drop("a.txt", "The first one.")
    with Daemon(place, poll=True, retry_seconds=0.1):
        wait_for(lambda: any(event.kind == "ingested" for event in place.events))
        for path in place.layout.folder.glob("ledger.sqlite*"):
            path.unlink()
        place.drop("b.txt", "The second one.")
        wait_for(lambda: any(event.kind == "waiting" for event in place.events))
        assert list(Doctor(place.home).repair("notes"))
        wait_for(lambda: "b.txt" in place.tree(place.layout.processed))
        with place.open() as base:
            assert watch_status(base).pid == os.getpid()
    assert len(place.rows("documents", "id")) == 2
    assert place.damage() == []


def test_a_new_inbox_is_looked_at_without_a_restart(place: Place, tmp_path: Path) -> None:
    with Daemon(place, poll=True):
        wait_for(lambda: any(event.kind == "started" for event in place.events))
        vault = tmp_path / "vault"
        vault.mkdir()
        put_whole(vault / "a.md", "Kept where it is.")
        place.keep(vault)
        wait_for(lambda: any(event.kind == "ingested" for event in place.events))
    assert (vault / "a.md").exists()


def test_once_ends_though_a_file_never_stands_still(place: Place, said: Said) -> None:
    place.drop("a.txt", "Remember me.")
    growing, seconds = place.drop("growing.log", "begun"), count(step=200.0)

    def grown() -> float:
        """The time of a clock that goes fast; whenever it is looked at the file has grown."""
        with growing.open("a") as file:
            file.write("more and more")
        return next(seconds)

    options = WatchOptions(settle_seconds=3600.0, rescan_seconds=0.05, once=True)
    WatchService(WatchedBases(place.home), options, place.events.append, monotonic=grown).run()
    assert [kind for kind in said(place.events) if kind != "working"] == ["ingested"]
    assert place.tree(place.layout.inbox) == ["growing.log"]


def test_a_revised_file_dropped_under_its_name_supersedes_the_earlier_one(place: Place) -> None:
    prices = "# Prices\nThe price of a medium leech is £{}.\n"
    for price in ("8.40", "8.90"):
        place.drop("prices.md", prices.format(price))
        place.drop("scan.txt", f"This is another letter on what was said, {price * 3}, about it.")
        kinds = [event.kind for event in place.drain() if event.source == "prices.md"]
    assert kinds == ["superseded"]
    place.drop("scan.txt", "Dear Sir, we write on the matter of the roof of your house.")
    place.drop("other/prices.md", prices.format("9.10"))
    assert "superseded" not in {event.kind for event in place.drain()}
    with place.open() as base:
        live = base.documents.list().to_pylist()
        current = [row["summary"] for row in live if row["source"] == "prices.md"]
        assert len(current) == 1
        assert "8.90" in current[0]
        assert {row["source"] for row in live} >= {"prices.md", "other/prices.md", "scan.txt"}
        assert sum(row["source"] == "scan.txt" for row in live) == 2


def test_what_a_revised_file_did_not_say_before_is_of_when_it_was_edited(place: Place) -> None:
    prices = "---\ndate: 2025-01-10\n---\n# Prices\nA medium leech is £{}.\nA big one is £12.\n"
    for price, day in (("8.40", 11), ("8.90", 20)):
        dropped = place.drop("prices.md", prices.format(price))
        moment = datetime(2025, 1, day, 12, tzinfo=UTC).timestamp()
        os.utime(dropped, (moment, moment))
        place.drain()
    rows = place.rows("memories", "text", "created_at", "level", "valid_to")
    days = {
        row["text"].rpartition("\n")[2]: row["created_at"].day
        for row in rows
        if row["level"] == "evidence" and row["valid_to"] is None
    }
    assert days == {"A medium leech is £8.90.": 20, "A big one is £12.": 10}


# --- the loop ------------------------------------------------------------------------------------


@pytest.mark.parametrize("poll", [False, True])
def test_a_file_dropped_while_watching_is_taken(place: Place, poll: bool) -> None:
    with Daemon(place, poll=poll):
        wait_for(lambda: any(event.kind == "started" for event in place.events))
        place.drop("new/a.txt", "Dropped just now.")
        wait_for(lambda: place.tree(place.layout.processed) == ["new/a.txt"])


def test_events_wake_the_watcher_long_before_the_rescan(place: Place) -> None:
    options = WatchOptions(settle_seconds=0.1, rescan_seconds=3600)
    service = WatchService(WatchedBases(place.home), options, place.events.append)
    with Daemon(place, service):
        wait_for(lambda: any(event.kind == "started" for event in place.events))
        for name in ("a.txt", "b.txt"):  # the first may be there before it falls asleep
            place.drop(name, f"Dropped just now, {name}.")
            wait_for(lambda: name in place.tree(place.layout.processed))  # noqa: B023


@pytest.mark.skipif(sys.platform != "linux", reason="watches are added one by one on Linux only")
@pytest.mark.filterwarnings("error")
def test_a_folder_that_is_watched_twice_warns_of_nothing(tmp_path: Path) -> None:
    from memctl.watch.file_events import _observer

    class Callback:
        """Is told what becomes of the watch."""

        def on_watch_deleted(self, wd: object) -> None:
            """Do nothing."""

    watches: Any = _observer({})._fd  # type: ignore[attr-defined]
    try:
        for _ in range(2):
            watches.add_callback(os.fsencode(tmp_path), 2, Callback(), "events")
    finally:
        watches.stop()
        watches.join()


def test_it_looks_from_time_to_time_where_the_system_gives_no_events(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.watch import file_events

    def exhausted(silent: object) -> None:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    monkeypatch.setattr(file_events, "_observer", exhausted)
    with Daemon(place):
        place.drop("a.txt", "Dropped just now.")
        wait_for(lambda: place.tree(place.layout.processed) == ["a.txt"])
    (event,) = [event for event in place.events if event.kind == "polling"]
    assert "inotify instance limit reached" in event.message


def test_it_consolidates_on_the_interval_and_notes_when(place: Place, said: Said) -> None:
    place.set(consolidate_interval=60)
    place.drop("a.txt", "Ann Smith sails to Lisbon.\n\nAnn Smith owns a boat in Lisbon.")
    assert said(place.drain()) == ["ingested", "consolidated"]
    place.drop("b.txt", "Ann Smith sold her boat.")
    assert said(place.drain()) == ["ingested"]
    with place.open() as base:
        assert watch_status(base).last_consolidation is not None


# --- status --------------------------------------------------------------------------------------


def test_status_tells_what_waits_and_what_went_wrong(place: Place) -> None:
    place.drop("zeros.txt", "\0")
    place.drain()
    old = place.drop("old.txt", "waits")
    place.drop(".hidden", "does not wait")
    with place.open() as base:
        status = watch_status(base)
    assert (status.alive, status.pid, status.backlog) == (False, None, 1)
    assert (status.oldest_waiting, status.failed) == (str(old), 1)
    assert "zero bytes" in status.last_error


def test_status_knows_a_living_daemon_by_its_lock(place: Place) -> None:
    with Daemon(place), place.open() as base:
        wait_for(lambda: any(event.kind == "started" for event in place.events))
        status = watch_status(base)
        assert (status.alive, status.pid) == (True, os.getpid())
    with place.open() as base:
        assert watch_status(base).alive is False
        base.store.ledger.daemon.register(os.getpid(), "here", status.since)
        assert watch_status(base).alive is False
    with FileLock(place.layout.watch_lock), place.open() as base:
        assert watch_status(base).alive is True

"""The receipt of one file: when it was taken in, how, as what, or why not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memctl.config import load_config
from memctl.home import Home
from memctl.ingest.batch import PIPELINE_VERSION
from memctl.store import receipt_book

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
    nothing = memctl("why", "lan.md")
    assert (nothing.code, "nothing is known of 'lan.md'" in nothing.err) == (4, True)
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

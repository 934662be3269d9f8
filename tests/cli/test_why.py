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

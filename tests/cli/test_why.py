"""The receipt of one file: when it was taken in, how, as what, or why not."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import zipfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint
from filelock import FileLock

from memctl.config import load_config
from memctl.home import Home
from memctl.ingest.batches import PIPELINE_VERSION
from memctl.ingest.discovery import inbox_scan as inbox_of_any
from memctl.ingest.discovery.inbox_scan import scan_inbox
from memctl.ingest.discovery.skip_rules import DEEPEST_FOLDER
from memctl.schema.table_names import WAITS_FOR
from memctl.store.ledger import log_repositories
from memctl.store.ledger.work_repositories import Event
from memctl.watch.claims import CUT_OFF, Claims

from .conftest import Run, ledger_before

SAMPLES = Path(__file__).parents[2] / "sample_inbox"
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
    assert "1 passage, 1 decision" in shown


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


def test_a_file_that_was_read_before_is_unchanged(memctl: Run, notes: Path) -> None:
    for _ in range(2):
        memctl("ingest", str(notes))
    again, first = why(memctl, "plan.md")
    assert (again["outcome"], first["outcome"]) == ("known", "ingested")
    shown = memctl("why", "plan.md", "-o", "table").out
    assert "unchanged" in shown
    assert "its content is that of" not in shown


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
    assert "memctl insight show i_83fe9659" in memctl("why", "i_83fe9659").err
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
    monkeypatch.setattr(log_repositories, "MAX_PROVENANCE_ENTRIES", 3)
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


# --- models --------------------------------------------------------------------------------------


@pytest.fixture
def model(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> FakeEndpoint:
    """A model that is configured, and states one fact of each document."""
    fact = {"type": "decision", "quote": TEXT, "why": "decided", "subject": "we"}
    fact |= {"relation": "decided", "object": "launch"}
    reading = {"gist": "A plan.", "entities": [], "topics": [], "importance": 0.5, "dates": []}
    endpoint.on("DocumentReply", {**reading, "importance_reason": "", "facts": [fact]})
    settings = {"MEMCTL_BUDGET_INPUT_PRICE": "1000", "MEMCTL_BUDGET_OUTPUT_PRICE": "5000"}
    for name, value in (endpoint.settings(understand="m") | settings).items():
        monkeypatch.setenv(name, value)
    return endpoint


def test_what_models_used_for_a_document_is_told(
    memctl: Run, notes: Path, model: FakeEndpoint
) -> None:
    (notes / "garden.md").write_text("Ida keeps the garden in June.")
    memctl("ingest", str(notes))
    (receipt,) = why(memctl, "plan.md")
    (use,) = receipt["models"]
    assert (use["task"], use["model"], use["calls"]) == ("understand", "m", 1)
    assert (use["cached"], use["failed"]) == (0, 0)
    assert use["cost"] == pytest.approx(
        use["input_tokens"] * 1000 / 1e6 + use["output_tokens"] * 5000 / 1e6
    )
    (other,) = why(memctl, "garden.md")
    whole = memctl("sql", "select * from model_usage", "-o", "json").json
    spent = sum(row["input_tokens"] for row in whole if row["task"] == "understand")
    assert spent == use["input_tokens"] + other["models"][0]["input_tokens"]
    shown = memctl("why", "plan.md", "-o", "table").out
    assert f"m: 1 call; {use['input_tokens']:,} tokens in" in shown


def test_a_reply_that_was_known_and_a_call_that_failed_count_for_the_document(
    memctl: Run, notes: Path, model: FakeEndpoint
) -> None:
    model.fail(500)
    assert memctl("ingest", str(notes)).code == 1
    model.mend()
    memctl("ingest", str(notes))
    (document,) = memctl("document", "list").rows
    memctl("document", "reprocess", document["id"])
    use = why(memctl, "plan.md")[0]["models"][0]
    assert (use["calls"], use["cached"], use["failed"]) == (1, 1, 1)
    assert "1 reply known before; 1 failed" in memctl("why", "plan.md", "-o", "table").out


def test_without_a_model_nothing_is_said_of_one(memctl: Run, notes: Path) -> None:
    memctl("ingest", str(notes))
    assert why(memctl, "plan.md")[0]["models"] == []
    assert "by model" not in memctl("why", "plan.md", "-o", "table").out


def test_the_account_of_a_document_is_forgotten_with_it(
    memctl: Run, notes: Path, model: FakeEndpoint
) -> None:
    memctl("ingest", str(notes))
    (document,) = memctl("document", "list").rows
    assert memctl("forget", "--document", document["id"], "--yes").code == 0
    with Home(load_config({})).open("default") as base:
        assert base.store.ledger.usage.of_documents([document["id"]]) == {}
    memctl("ingest", str(notes))
    assert why(memctl, "plan.md")[0]["models"][0]["calls"] == 1


def test_a_ledger_of_before_such_accounts_is_brought_up_to_date(
    memctl: Run, notes: Path, tmp_path: Path
) -> None:
    memctl("ingest", str(notes))
    with closing(sqlite3.connect(tmp_path / "home/kb/default/ledger.sqlite")) as ledger:
        for column in ("tries", "understand_seconds", "redacted"):
            ledger.execute(f"ALTER TABLE receipts DROP COLUMN {column}")
        ledger.executescript(ledger_before("document_usage"))
    (receipt,) = why(memctl, "plan.md")
    assert (receipt["outcome"], receipt["models"], receipt["tries"]) == ("ingested", [], [])


# --- what was read, and what became of it since --------------------------------------------------


def memories(memctl: Run, **wanted: str) -> list[Any]:
    rows = memctl("memory", "list", "-n", "0").rows
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def test_what_was_made_of_a_file_is_told_by_kinds_and_with_what_came_of_it(
    memctl: Run, notes: Path
) -> None:
    more = "Remember: the door code is 4711. I prefer tea to coffee. We plan to sail in June."
    (notes / "plan.md").write_text(f"{TEXT} {more}")
    memctl("ingest", str(notes))
    (receipt,) = why(memctl, "plan.md")
    made = receipt["memories"]
    assert sum(made["types"].values()) == receipt["passages"] + receipt["facts"]
    assert made["types"]["decision"] == made["types"]["preference"] == 1
    still = {"edited": 0, "superseded": 0, "expired": 0, "gone": 0, "insights": 0}
    assert made == {"types": made["types"], **still}
    assert "since then" not in memctl("why", "plan.md", "-o", "table").out
    (decision,) = memories(memctl, type="decision")
    (preference,) = memories(memctl, type="preference")
    memctl("memory", "edit", decision["id"], "--text", "Aurora starts on 13 May 2026.")
    memctl("memory", "delete", preference["id"], "--yes")
    (now,) = why(memctl, "plan.md")
    types = {name: number for name, number in made["types"].items() if name != "preference"}
    assert now["memories"]["types"] == types
    assert (now["memories"]["edited"], now["memories"]["gone"]) == (1, 1)
    assert now["facts"] == receipt["facts"] - 1
    assert "1 edited, 1 deleted" in memctl("why", "plan.md", "-o", "table").out


def test_insights_that_rest_on_a_file_are_counted(memctl: Run, notes: Path) -> None:
    (notes / "plan.md").write_text("The launch of Aurora is on 12 May 2026.")
    moved = "The launch of Aurora moved from 12 May 2026 to 19 June 2026."
    (notes / "later.md").write_text(moved)
    memctl("ingest", str(notes))
    memctl("consolidate")
    insights = memctl("insight", "list", "-o", "json").json
    assert insights
    counts = [row["memories"]["insights"] for row in why(memctl, "later.md")]
    ids = {row["id"] for row in memctl("memory", "list", "--source", "*later.md", "-n", "0").rows}
    assert counts == [sum(not ids.isdisjoint(each["source_ids"]) for each in insights)]
    assert counts[0] > 0


def test_how_much_there_was_to_read_is_told(memctl: Run, notes: Path) -> None:
    Path(notes / "fit-out budget.pdf").write_bytes((SAMPLES / "fit-out budget.pdf").read_bytes())
    (notes / "budget.eml").write_text(
        "From: ann@example.com\nSubject: Budget\nMIME-Version: 1.0\n"
        'Content-Type: multipart/mixed; boundary="b"\n\n'
        "--b\nContent-Type: text/plain\n\nThe budget is attached.\n"
        '--b\nContent-Type: text/plain; name="sums.txt"\n'
        'Content-Disposition: attachment; filename="sums.txt"\n\nTea 40\n--b--\n'
    )
    memctl("ingest", str(notes))
    (book,) = why(memctl, "fit-out budget.pdf")
    assert (book["content"]["pages"], book["content"]["parts"]) == (2, 1)
    assert "; 2 pages" in memctl("why", "fit-out budget.pdf", "-o", "table").out
    (mail,) = why(memctl, "budget.eml")
    assert mail["content"]["attachments"] == ["sums.txt"]
    assert "attached: sums.txt" in memctl("why", "budget.eml", "-o", "table").out
    (note,) = why(memctl, "plan.md")
    assert note["content"] == {
        "parts": 1, "pages": None, "seconds": None, "attachments": [], "holds": {}
    }  # fmt: skip
    assert note["understand_seconds"] > 0


def test_how_much_of_an_archive_could_not_be_read_is_told(memctl: Run, notes: Path) -> None:
    with zipfile.ZipFile(notes / "old.zip", "w") as archive:
        archive.writestr("plan.txt", TEXT)
        for number in range(30):
            archive.writestr(f"empty{number}.pdf", b"%PDF-1.7 cut")
    memctl("ingest", str(notes / "old.zip"))
    (old,) = why(memctl, "old.zip")
    assert (old["content"]["holds"], old["missing"]) == ({"files": 1}, ["30 files"])
    shown = memctl("why", "old.zip", "-o", "table").out
    assert "holds 1 file" in shown
    assert "30 files" in shown
    (listing,) = memctl("document", "list", "--source", "*old.zip", "-o", "json").json
    text = memctl("document", "show", listing["id"], "--text").out
    assert text.startswith("old.zip holds 1 file. 30 could not be read: ")


def test_secrets_that_were_taken_out_are_counted(memctl: Run, notes: Path) -> None:
    memctl("kb", "create", "default", "--redact")
    (notes / "keys.md").write_text(
        "Here [redacted] stands already.\npassword: hunter2-9f8e7d\napi_key=4f9d8c7b6a5e4d3c\n"
    )
    memctl("ingest", str(notes))
    assert [why(memctl, name)[0]["redacted"] for name in ("keys.md", "plan.md")] == [2, 0]
    assert "2 secrets redacted" in memctl("why", "keys.md", "-o", "table").out


def test_a_duplicate_tells_where_the_file_is_that_it_is_one_of(memctl: Run, inbox: Path) -> None:
    (inbox / "plan.md").write_text(TEXT)
    memctl("watch", "--once")
    (inbox / "copy.md").write_text(TEXT)
    memctl("watch", "--once")
    (receipt,) = why(memctl, "copy.md")
    assert receipt["same_as"] == str(inbox.parent / "processed/plan.md")
    assert why(memctl, "plan.md")[0]["same_as"] == ""
    assert f"that of {receipt['same_as']}" in memctl("why", "copy.md", "-o", "table").out


def test_the_title_of_what_is_private_is_not_told(memctl: Run, notes: Path) -> None:
    (notes / "plan.md").write_text(f"# The cure of Ida\n\n{TEXT}")
    memctl("ingest", str(notes), "--namespace", "diary")
    assert why(memctl, "plan.md")[0]["title"] == "The cure of Ida"
    memctl("kb", "set", "default", "--private-namespace", "diary")
    assert why(memctl, "plan.md")[0]["title"] == ""


# --- files that had to be tried again ------------------------------------------------------------


def test_a_file_that_a_killed_watch_left_says_so_and_goes_on(memctl: Run, inbox: Path) -> None:
    (inbox / "plan.md").write_text(TEXT)
    with Home(load_config({})).open("default") as base:
        claims = Claims(base.layout, base.store.ledger, base.clock)
        assert len(claims.claim(scan_inbox(inbox).files, lambda file, error: None)) == 1
    (receipt,) = why(memctl, "plan.md")
    assert (receipt["outcome"], "takes it up again" in receipt["hint"]) == ("processing", True)
    assert receipt["is_there"]
    assert Path(receipt["place"]).read_text() == TEXT
    memctl("watch", "--once")
    (receipt,) = why(memctl, "plan.md")
    (tried,) = receipt["tries"]
    assert (receipt["outcome"], tried["reason"], tried["times"]) == ("ingested", CUT_OFF, 1)
    assert receipt["claimed_at"] <= tried["first_at"] <= receipt["decided_at"]


def test_a_failed_file_says_how_to_try_again_and_that_works(memctl: Run, inbox: Path) -> None:
    (inbox / "work").mkdir()
    (inbox / "work/plan v1.md").write_text("\0")
    memctl("watch", "--once")
    (failed,) = why(memctl, "plan v1.md")
    Path(failed["place"]).write_text(TEXT)
    subprocess.run(shlex.split(failed["retry"]), check=True)
    memctl("watch", "--once")
    again, first = why(memctl, "plan v1.md")
    assert (again["outcome"], again["path"]) == ("ingested", failed["path"])
    assert (first["outcome"], first["is_there"], first["retry"]) == ("failed", False, "")


def test_a_failed_file_that_was_given_is_given_again(memctl: Run, notes: Path) -> None:
    (notes / "plan.md").write_text("\0")
    memctl("ingest", str(notes))
    (receipt,) = why(memctl, "plan.md")
    assert receipt["retry"] == f"memctl ingest {notes / 'plan.md'}"


def test_what_a_file_had_to_wait_for_is_told_while_it_waits_and_after(
    memctl: Run, inbox: Path, model: FakeEndpoint
) -> None:
    (inbox / "plan.md").write_text(TEXT)
    model.fail(503, times=-1)
    for _ in range(2):
        memctl("watch", "--once")
    (waiting,) = why(memctl, "plan.md")
    (tried,) = waiting["tries"]
    assert (waiting["outcome"], tried["times"]) == ("waiting", 2)
    assert "503" in tried["reason"]
    model.mend()
    memctl("watch", "--once")
    (receipt,) = why(memctl, "plan.md")
    assert (receipt["outcome"], receipt["tries"]) == ("ingested", [tried])
    assert "(2 times)" in memctl("why", "plan.md", "-o", "table").out
    (inbox / "plan.md").write_text("Another plan, for the garden of Ida.")
    memctl("watch", "--once")
    assert [row["tries"] for row in why(memctl, "plan.md")] == [[], [tried]]


# --- files of an inbox ---------------------------------------------------------------------------


@pytest.fixture
def inbox(memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0.1")
    memctl("kb", "create", "default")
    return tmp_path / "home/kb/default/inbox"


def test_a_file_of_an_inbox_tells_each_step_and_where_it_is_now(memctl: Run, inbox: Path) -> None:
    (inbox / "work").mkdir()
    (inbox / "work/plan.md").write_text(TEXT)
    (inbox / "zeros.md").write_text("\0")
    assert memctl("watch", "--once").code == 0
    processed, failed = inbox.parent / "processed/work/plan.md", inbox.parent / "failed/zeros.md"
    for name in (inbox / "work/plan.md", processed, "work/plan.md", "plan.md"):
        (receipt,) = why(memctl, name)
        assert (receipt["path"], receipt["place"]) == (str(inbox / "work/plan.md"), str(processed))
        steps = [receipt[f"{step}_at"] for step in ("seen", "claimed", "decided", "moved")]
        assert steps == sorted(steps)
        assert receipt["read_seconds"] > 0
        assert (receipt["outcome"], receipt["is_there"]) == ("ingested", True)
    (receipt,) = why(memctl, failed)
    assert (receipt["outcome"], receipt["place"]) == ("failed", str(failed))
    assert "zero bytes" in receipt["reason"]
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
    outcomes = {path: why(memctl, path)[0]["outcome"] for path in files}
    memctl("watch", "--once")
    stayed = {path for path in files if os.path.lexists(path)}
    waiting = {path for path in files if outcomes[path] == "waiting"}
    assert waiting == set(files) - stayed - {inbox / "talk.srt"}
    assert len(waiting) == 5


def test_status_names_what_somebody_may_think_is_taken(memctl: Run, inbox: Path) -> None:
    left = never_taken(inbox)
    (row,) = memctl("status", "-o", "json").json
    missed = {"film.mp4.part", "~$report.docx", "notes.txt~", "link.md", "nowhere.md", "pipe.md"}
    assert {Path(path).name for path in row["never_taken"]} == missed < set(left)
    shown = " ".join(memctl("status", "-o", "table").out.split())
    assert "6 files in inboxes are never taken as things are" in shown
    assert "memctl why" in shown
    for name in missed:
        (inbox / name).unlink()
    assert memctl("status", "-o", "json").json[0]["never_taken"] == []
    assert "never taken" not in memctl("status", "-o", "table").out


def test_subtitles_beside_a_recording_are_read_with_it(memctl: Run, inbox: Path) -> None:
    (inbox / "talk.mp3").write_bytes(b"ID3")
    (inbox / "talk.srt").write_text("1\n00:00:00,000 --> 00:00:02,000\nHello\n")
    (receipt,) = why(memctl, "talk.srt")
    assert (receipt["outcome"], "talk.mp3" in receipt["reason"]) == ("left", True)


@pytest.mark.skipif(os.name == "nt", reason="there a file says no other time")
def test_what_the_watcher_has_against_a_file_of_the_future_is_told(
    memctl: Run, inbox: Path, tmp_path: Path
) -> None:
    path = inbox / "plan.md"
    path.write_text("# Plan\n\nWe decided to paint the hall.")
    os.utime(path, (4_000_000_000, 4_000_000_000))
    home = Home(load_config({"home": str(tmp_path / "home")}))
    with home.open("default") as base:
        at = datetime.now(UTC) + timedelta(seconds=1)
        base.store.ledger.events.add(Event(at, "problem", "it changes", "wait", str(path)))
    (waiting,) = why(memctl, "plan.md")
    assert (waiting["outcome"], waiting["reason"]) == ("waiting", "it changes")


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
    (inbox / "zeros.md").write_text("\0")
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
    (receipt,) = why(memctl, folder / "failed/zeros.md")
    assert receipt["place"] == str(folder / "failed/zeros.md")
    memctl("kb", "rename", "default", "notes")
    (receipt,) = why(memctl, "plan.md")
    assert receipt["place"] == str(moved / "kb/notes/processed/work/plan.md")


def test_the_ledger_follows_its_knowledge_base_where_it_goes(
    memctl: Run, inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def done(home: str, name: str) -> str:
        monkeypatch.setenv("MEMCTL_HOME", str(tmp_path / home))
        memctl("watch", "--once")
        with Home(load_config({})).open(name) as base:
            (entry,) = base.store.ledger.files.entries(["done"])
        return str(Path(entry.path).relative_to(tmp_path))

    (inbox / "plan.md").write_text(TEXT)
    assert done("home", "default") == "home/kb/default/processed/plan.md"
    memctl("kb", "rename", "default", "notes")
    with Home(load_config({})).open("notes") as base:
        assert base.store.ledger.files.find(str(tmp_path / "home/kb/notes/processed/plan.md"))
    (tmp_path / "alias").symlink_to(tmp_path / "home")
    assert done("alias", "notes") == "home/kb/notes/processed/plan.md", "it has not been moved"
    shutil.copytree(tmp_path / "home", tmp_path / "copy", symlinks=True)
    assert done("copy", "notes") == "copy/kb/notes/processed/plan.md"
    shutil.move(tmp_path / "copy", tmp_path / "elsewhere")
    assert done("elsewhere", "notes") == "elsewhere/kb/notes/processed/plan.md"


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


def test_a_file_in_folders_that_are_too_deep_says_so(memctl: Run, inbox: Path) -> None:
    deep = inbox.joinpath(*["d"] * (DEEPEST_FOLDER + 1), "deep.md")
    deep.parent.mkdir(parents=True)
    deep.write_text(TEXT)
    (receipt,) = why(memctl, "deep.md")
    assert (receipt["outcome"], receipt["is_there"]) == ("waiting", True)
    assert f"more than {DEEPEST_FOLDER} folders deep" in receipt["reason"]
    assert receipt["hint"].startswith("move it further up")

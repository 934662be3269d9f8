"""Forgetting for good: nothing of it is left in any file, and what is left is told."""

from __future__ import annotations

import bz2
import json
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import docx
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from fake_endpoint import FakeEndpoint
from killed import kill_at_call
from waiting import PATIENCE

from memctl.cli.main import run
from memctl.config import load_config
from memctl.errors import CoverageLost
from memctl.forget.search_patterns import SearchPattern
from memctl.home import Home
from memctl.instants import utc_now
from memctl.kb_settings import reason_path
from memctl.store.ledger.ledger import job_context

from .conftest import Run
from .test_facts import understood, understood_nothing

PLAN = (
    "We decided that Aurora sails to Svalbard on 12 May 2026. Its skipper Anna Berg pays 4200"
    " crowns for the berth.\n\nThe crane of the harbour was painted green in March."
)
OTHER = "The garden of Ida has nine apple trees. We decided to prune them in February."
SECRETS = ("Svalbard", "4200 crowns", "Anna Berg")


@pytest.fixture(scope="module")
def taken_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose knowledge base has two documents from its inbox."""
    folder = tmp_path_factory.mktemp("taken_in") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMCTL_HOME", str(folder))
        patch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
        assert run(("kb", "create", "default")) == 0
        inbox = folder / "kb/default/inbox"
        (inbox / "plan.md").write_text(PLAN)
        (inbox / "garden.md").write_text(OTHER)
        assert run(("watch", "--once")) == 0
    return folder


@pytest.fixture
def home(memctl: Run, taken_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, for one test."""
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    shutil.copytree(taken_in, tmp_path / "home", symlinks=True)
    return tmp_path / "home"


def ask(memctl: Run, question: str) -> list[Any]:
    found = memctl("query", question, "--no-answer", "-o", "json")
    assert found.code == 0, found.err
    hits: list[Any] = found.json["hits"]
    return hits


def document(memctl: Run, name: str) -> str:
    (id_,) = (row["id"] for row in memctl("document", "list").rows if name in row["source"])
    return str(id_)


def forget(memctl: Run, *arguments: str, code: int = 0) -> Any:
    done = memctl("forget", *arguments, "--yes", "-o", "json")
    assert done.code == code, done.err
    return done.json


def files_with(folder: Path, words: Sequence[str]) -> list[str]:
    """Every file below a folder with one of the words, byte by byte."""
    wanted = [word.encode() for word in words]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(word in path.read_bytes() for word in wanted)]


def rows_with(words: Sequence[str], kb: str = "default") -> list[str]:
    """Every row, of any version of any table and of the ledger, with one of the words."""
    import lance

    found = []
    with Home(load_config({})).open(kb) as base:
        for path in (base.layout.folder / "lance").glob("*.lance"):
            for item in lance.dataset(str(path)).versions():
                rows = lance.dataset(str(path), version=item["version"]).to_table().to_pylist()
                found += [row["id"] for row in rows if any(word in str(row) for word in words)]
        with base.store.ledger.reading() as connection:
            dump = list(connection.iterdump())
    return found + [line for line in dump if any(word in line for word in words)]


# --- documents -----------------------------------------------------------------------------------


def test_a_document_goes_with_everything_that_is_of_it(memctl: Run, home: Path) -> None:
    hits = ask(memctl, "where does Aurora sail?")
    memctl("query", "what does Anna Berg pay?", "--mode", "graph")  # which keeps names on disk
    assert files_with(home, SECRETS)
    report = forget(memctl, "--document", document(memctl, "plan"))
    assert (report["documents"], report["left"]) == (1, [])
    assert report["files"] == [str(home / "kb/default/processed/plan.md")]
    assert files_with(home, SECRETS) == []
    assert rows_with(SECRETS) == []
    assert [row["source"] for row in memctl("document", "list").rows] == ["garden.md"]
    gone = {hit["memory_id"] for hit in hits if "Aurora" in hit["text"]}
    assert gone.isdisjoint(hit["memory_id"] for hit in ask(memctl, "where does it sail?"))
    assert ask(memctl, "apple trees")[0]["text"].startswith("The garden of Ida")
    assert memctl("doctor").code == 0
    with Home(load_config({})).open("default") as base:
        assert base.store.ledger.queries.recent()[-1].question == ""
    assert memctl("why", "plan.md").code == 4


def test_earlier_versions_of_a_document_go_too(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    vault = tmp_path / "vault"
    vault.mkdir()
    memctl("kb", "create", "default", "--inbox", str(vault))
    for text in (PLAN, PLAN + " It will rain."):
        (vault / "plan.md").write_text(text)
        memctl("watch", "--once")
    (live,) = (row["id"] for row in memctl("document", "list").rows if row["status"] == "indexed")
    report = forget(memctl, "--document", live)
    assert report["documents"] == 2
    assert report["yours"] == [str(vault / "plan.md")]
    assert (vault / "plan.md").read_text().startswith("We decided")
    assert rows_with(SECRETS) == files_with(tmp_path / "home", SECRETS) == []
    memctl("watch", "--once")
    assert memctl("document", "list").rows == []


def test_of_two_files_of_one_name_the_other_keeps_its_receipt_and_its_file(
    memctl: Run, home: Path
) -> None:
    base = home / "kb/default"
    first = document(memctl, "plan")
    (base / "inbox/plan.md").write_text("\0")  # fails, and is of the one that comes after it
    memctl("watch", "--once")
    (base / "inbox/plan.md").write_text("The lighthouse of Ida is white.")
    memctl("watch", "--once")
    history = memctl("why", "plan.md", "-o", "json").json
    assert [each["outcome"] for each in history] == ["ingested", "failed", "ingested"]
    report = forget(memctl, "--document", first)
    assert report["files"] == [str(base / "processed/plan.md")]
    assert memctl("why", "plan.md", "-o", "json").json == history[:2]
    assert Path(history[0]["place"]).read_text() == "The lighthouse of Ida is white."
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []
    forget(memctl, "--document", document(memctl, "plan"))
    assert memctl("why", "plan.md").code == 4


def test_files_given_as_paths_are_named_and_left_alone(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text(PLAN)
    memctl("ingest", str(tmp_path / "plan.md"))
    report = forget(memctl, "--document", document(memctl, "plan"))
    assert (report["yours"], report["left"]) == ([str(tmp_path / "plan.md")], [])
    assert (tmp_path / "plan.md").read_text() == PLAN


def test_every_copy_in_processed_and_failed_goes(memctl: Run, home: Path) -> None:
    base = home / "kb/default"
    (base / "inbox/again.md").write_text(PLAN)
    memctl("watch", "--once")
    (base / "failed/copy.md").write_text(PLAN)
    (base / "failed/copy.md.reason.json").write_text('{"message": "of before"}')
    report = forget(memctl, "--document", document(memctl, "plan"))
    assert len(report["files"]) == 4
    assert files_with(home, SECRETS) == []
    assert (base / "processed/garden.md").exists()


def test_the_reason_of_a_copy_with_a_long_name_goes_too(memctl: Run, home: Path) -> None:
    copy = home / "kb/default/failed" / f"{'plan' * 62}.md"
    copy.write_text(PLAN)
    reason_path(copy).write_text('{"message": "of before"}')
    report = forget(memctl, "--document", document(memctl, "plan"))
    assert str(reason_path(copy)) in report["files"]
    assert not reason_path(copy).exists()


def test_memories_that_rest_only_on_what_is_forgotten_go_and_others_stay(
    memctl: Run, home: Path
) -> None:
    with Home(load_config({})).open("default") as base:
        mine = base.documents.get(document(memctl, "plan")).memories[0].id
        other = base.documents.get(document(memctl, "garden")).memories[0].id
        base.memories.add("Svalbard is far away.", source_ids=(mine,))
        both = base.memories.add("Both are in spring.", source_ids=(mine, other))
    forget(memctl, "--document", document(memctl, "plan"))
    with Home(load_config({})).open("default") as base:
        assert base.memories.get(both.id).memory.source_ids == (other,)
    assert rows_with(["Svalbard"]) == []


# --- trying, asking, refusing --------------------------------------------------------------------


def test_nothing_goes_where_it_is_only_tried_or_nobody_agrees(memctl: Run, home: Path) -> None:
    plan = document(memctl, "plan")
    memctl("snapshot", "create", "one")
    tried = memctl("forget", "--document", plan, "--dry-run", "-o", "json").json
    assert (tried["dry_run"], tried["documents"], tried["snapshots"]) == (True, 1, ["one"])
    assert tried["files"] == [str(home / "kb/default/processed/plan.md")]
    assert (
        "would forget 1 document"
        in memctl("forget", "--document", plan, "--dry-run", "-o", "table").out
    )
    assert memctl("forget", "--document", plan).code == 2
    assert len(memctl("document", "list").rows) == 2
    assert (home / "kb/default/processed/plan.md").exists()


@pytest.mark.usefixtures("home")
def test_a_dry_run_deletes_no_snapshot(memctl: Run) -> None:
    memctl("snapshot", "create", "one")
    tried = memctl("forget", "--snapshots", "--dry-run", "--yes", "-o", "json").json
    assert (tried["dry_run"], tried["snapshots"]) == (True, ["one"])
    assert [row["name"] for row in memctl("snapshot", "list").rows] == ["one"]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("option", ["--dry-run", "--yes"])
def test_it_says_that_there_is_no_snapshot(memctl: Run, option: str) -> None:
    tried = memctl("forget", "--snapshots", option)
    assert (tried.code, "there is no snapshot of default" in tried.err) == (2, True)


def test_a_dry_run_completes_nothing(home: Path, memctl: Run) -> None:
    cut_off(home, "memctl.store.store.Store.purge", document(memctl, "plan"))
    tried = memctl("forget", "--dry-run", "-o", "json").json
    assert (tried["dry_run"], tried["completed"]) == (True, 1)
    assert memctl("forget", "-o", "json").json["completed"] == 1


def test_without_a_name_it_says_where_it_looked(memctl: Run) -> None:
    memctl("kb", "create", "notes")
    ingested = memctl("ingest", "--text", "Zorba has the code.", "-k", "notes", "-o", "json")
    assert ingested.code == 0
    memctl("memory", "add", "Tea.")
    elsewhere = memctl("forget", "--entity", "Zorba", "--yes")
    assert "nothing names 'Zorba' in default" in elsewhere.err
    assert (elsewhere.code, "-k: notes" in elsewhere.err) == (1, True)
    (row,) = memctl("document", "list").rows
    done = memctl("forget", "--document", row["id"], "--yes", "-o", "json")
    assert (done.code, done.json["kb"]) == (0, "notes")
    assert "of notes alone; name others with -k: default" in done.err


def test_what_cannot_be_forgotten_is_told(memctl: Run, home: Path) -> None:
    plan = document(memctl, "plan")
    for arguments, code in (
        ((), 2),
        (("--document", plan, "--entity", "Ida"), 2),
        (("--before", "yesteryear"), 2),
        (("--entity", ""), 2),
        (("--document", "d_000000000000"), 1),
        (("--entity", "Nobody Here"), 1),
        (("--namespace", "nowhere"), 1),
        (("--before", "1999-01-01"), 1),
        (("--entity", "Ida", "-k", "nowhere"), 10),
    ):
        assert memctl("forget", *arguments, "--yes").code == code, arguments
    assert len(memctl("document", "list").rows) == 2


# --- memories, names, namespaces, dates ----------------------------------------------------------


def test_a_stated_memory_goes_with_its_versions(memctl: Run) -> None:
    added = memctl("memory", "add", "The door is heliotrope.").rows[0]
    edited = memctl("memory", "edit", added["id"], "--text", "The door is vermilion.").rows[0]
    memctl("memory", "add", "The window is open.")
    report = forget(memctl, "--memory", edited["id"])
    assert (report["memories"], report["left"]) == (2, [])
    assert rows_with(["heliotrope", "vermilion"]) == []
    assert len(memctl("memory", "list").rows) == 1


def test_forgetting_a_memory_removes_only_its_words_from_the_document(
    memctl: Run, home: Path
) -> None:
    plan = document(memctl, "plan")
    with Home(load_config({})).open("default") as base:
        statements = [m for m in base.documents.get(plan).memories if m.level == "memory"]
        (fact,) = (m for m in statements if "Svalbard" in m.text)
        passages = [m for m in base.documents.get(plan).memories if m.level == "evidence"]
    report = forget(memctl, "--memory", fact.id)
    assert (report["documents"], report["redacted"], report["left"]) == (0, [plan], [])
    assert report["files"] == [str(home / "kb/default/processed/plan.md")]
    with Home(load_config({})).open("default") as base:
        view = base.documents.get(plan)
        text = view.document.text
        assert "Svalbard" not in text
        assert len(text) == len(PLAN)
        assert text.endswith("The crane of the harbour was painted green in March.")
        kept = [m for m in view.memories if m.level == "evidence"]
        assert [(m.id, m.start, m.end) for m in kept] == [(m.id, m.start, m.end) for m in passages]
        assert all(m.text == text[m.start : m.end] for m in kept)
    assert ask(memctl, "crane of the harbour")[0]["text"].endswith("green in March.")
    assert "Svalbard" not in str(ask(memctl, "where does it sail?"))
    assert files_with(home, ["Svalbard"]) == []
    assert memctl("doctor").code == 0
    assert memctl("document", "reprocess", plan).code == 0
    assert rows_with(["Svalbard"]) == []


def test_what_was_forgotten_of_a_file_that_is_yours_does_not_come_back_with_a_repair(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "plan.md").write_text(PLAN)
    memctl("kb", "create", "default", "--inbox", str(vault))
    memctl("watch", "--once")
    (fact,) = (row for row in memctl("memory", "list").rows if row["type"] == "decision")
    assert forget(memctl, "--memory", fact["id"])["yours"] == [str(vault / "plan.md")]
    for path in tmp_path.glob("home/kb/default/lance/documents.lance/data/*"):
        path.write_bytes(b"")
    memctl("doctor", "--repair", "--yes")
    (row,) = memctl("document", "list").rows
    assert "painted green" in memctl("document", "show", row["id"], "--text").out
    memctl("watch", "--once")
    assert memctl("doctor", "--rebuild", "--yes").code == 0
    memctl("document", "reprocess", row["id"])
    assert files_with(tmp_path / "home", ["Svalbard"]) == []
    assert "Svalbard" not in memctl("export", "documents").out + memctl("export", "memories").out
    memctl("document", "delete", row["id"], "--yes")
    assert forget(memctl, "--document", row["id"])["left"] == []


def test_words_that_go_with_a_memory_go_from_topics_and_questions_and_dates_stay(
    memctl: Run,
) -> None:
    text = (
        "# House\n\nWe decided to sell the Zanzibar flat. remember: the alarm code is Xylophone77."
        "\n\nThe fee is 12 euros since 3 March 2025. I prefer tea in the morning.\n"
    )
    memctl("ingest", "--text", text)
    memctl("query", "xylophone77")
    memctl("query", "tea")
    assert len(rows_with(["xylophone77"])) > 3
    (fact,) = (row for row in memctl("memory", "list").rows if row["type"] == "important_fact")
    assert forget(memctl, "--memory", fact["id"])["left"] == []
    assert rows_with(["xylophone77", "Xylophone77"]) == []
    (row,) = memctl("sql", "select dates, topics, metadata from documents").rows
    assert row["dates"] == ["2025-03-03"]
    assert row["topics"]


def test_a_models_summary_of_a_document_goes_with_a_forgotten_memory_of_it(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(understand="m").items():
        monkeypatch.setenv(name, value)
    fact = {"type": "decision", "quote": PLAN.split(". ")[0], "why": "decided", "subject": "we"}
    fact |= {"relation": "sail to", "object": "Svalbard"}
    reading = {
        "gist": "Aurora sails with its skipper towards arctic waters.",
        "importance_reason": "Polar voyage",
    }
    endpoint.on("DocumentReply", {**understood_nothing(), **reading, "facts": [fact]})
    memctl("ingest", "--text", PLAN + "\n\nThe harbour is open all year round." * 60)
    assert len(rows_with(["arctic", "Polar"])) == 2, "the document, and a gist of several passages"
    (made,) = (row for row in memctl("memory", "list").rows if row["type"] == "decision")
    forget(memctl, "--memory", made["id"])
    assert rows_with(["arctic", "Polar", "Svalbard"]) == []


def test_a_name_goes_from_memories_passages_and_the_graph(memctl: Run, home: Path) -> None:
    plan = document(memctl, "plan")
    memctl("memory", "add", "anna  berg likes tea.")
    with Home(load_config({})).open("default") as base:
        base.graph.merge_names("Anna Berg", "Ida")
    report = forget(memctl, "--entity", "Anna Berg")
    assert (report["redacted"], report["left"]) == ([plan], [])
    assert rows_with(["Anna Berg", "anna", "Anna"]) == []
    assert files_with(home, ["Anna Berg"]) == []
    with Home(load_config({})).open("default") as base:
        assert len(base.graph.name_decisions().same) == 0
        assert base.documents.get(plan).document.text == PLAN.replace("Anna Berg", "█████████")
    assert "painted green" in ask(memctl, "crane of the harbour")[0]["text"]
    assert memctl("doctor").code == 0


def test_a_name_goes_from_sessions_that_are_called_by_it(memctl: Run, home: Path) -> None:
    line = {"text": "Zelda Quixote likes the crane.", "session_id": "Zelda Quixote"}
    assert memctl("ingest", "--jsonl", "-", stdin=json.dumps(line)).code == 0
    report = forget(memctl, "--entity", "Zelda Quixote")
    assert (len(report["redacted"]), report["left"]) == (1, [])
    assert rows_with(["Zelda Quixote"]) == files_with(home, ["Zelda Quixote"]) == []


def test_a_name_goes_from_a_summary_where_a_line_broke_inside_it(memctl: Run, home: Path) -> None:
    torn = "# Other\n\nThe committee met. Later Zelda\nQuixote spoke of the harvest.\n"
    (home / "kb/default/inbox/torn.md").write_text(torn)
    memctl("watch", "--once")
    assert forget(memctl, "--entity", "Zelda Quixote")["left"] == []
    assert rows_with(["Zelda", "Quixote"]) == files_with(home, ["Quixote spoke"]) == []


def test_a_name_does_not_span_two_items_of_a_list(memctl: Run) -> None:
    memctl("ingest", "--jsonl", "-", stdin='{"text": "Tea is hot.", "tags": ["ann", "lee"]}')
    memctl("ingest", "--text", "Ann Lee drinks tea.")
    report = forget(memctl, "--entity", "Ann Lee")
    assert (len(report["redacted"]), report["left"]) == (1, [])
    assert ["ann", "lee"] in [row["tags"] for row in memctl("document", "list").rows]


def test_a_name_in_capitals_goes_though_they_are_other_letters(memctl: Run, home: Path) -> None:
    memctl("ingest", "--text", "Straßer Weiß lives here. STRASSER WEISS lives alone.")
    assert forget(memctl, "--entity", "Straßer Weiß")["left"] == []
    assert files_with(home, ["Straßer", "STRASSER", "strasser"]) == []


def test_an_address_that_is_the_name_goes_with_it(memctl: Run, home: Path) -> None:
    text = "The crane is green. Write to zelda.quixote@example.org about the crane."
    assert memctl("ingest", "--text", text).code == 0
    assert rows_with(["zelda.quixote"])
    report = forget(memctl, "--entity", "Zelda Quixote")
    assert (len(report["redacted"]), report["left"]) == (1, [])
    (id_,) = report["redacted"]
    kept = memctl("document", "show", id_, "--text").out.strip()
    assert kept == text.replace("zelda.quixote", "█████████████")
    assert rows_with(["zelda", "quixot"]) == []
    assert packed_with(home, "quixot") == []
    assert memctl("doctor").code == 0


@pytest.mark.parametrize("form", ["Quixote, Zelda", "QUIXOTE Zelda", "Quixote,\nZelda"])
def test_a_name_with_the_last_word_first_goes_with_it(memctl: Run, home: Path, form: str) -> None:
    memctl("ingest", "--text", f'From: "{form}" <office@example.org>. The crane is green.')
    memctl("ingest", "--text", "Zelda Quixote likes tea.")
    report = forget(memctl, "--entity", "Zelda Quixote")
    assert (len(report["redacted"]), report["left"]) == (2, [])
    assert rows_with([form]) == files_with(home, [form]) == []
    assert not SearchPattern("Zelda Quixote", is_name=True).is_in("Quixote Zelda sings.")


@pytest.mark.parametrize("form", ["de Vries, Jan", "DE VRIES Jan", "de VRIES Jan", "Vries, Jan de"])
def test_a_surname_that_begins_with_small_words_stands_first_with_them(
    memctl: Run, home: Path, form: str
) -> None:
    memctl("ingest", "--text", f"The list names {form}. The crane is green.")
    report = forget(memctl, "--entity", "Jan de Vries")
    assert (len(report["redacted"]), report["left"]) == (1, [])
    assert rows_with([form]) == files_with(home, [form]) == []


def test_a_surname_before_a_comma_that_is_of_another_name_stays(memctl: Run) -> None:
    text = "Guests were Rose Lee, Ann and Bob. The list has Lee, Ann on it."
    memctl("ingest", "--text", text)
    report = forget(memctl, "--entity", "Ann Lee")
    (id_,) = report["redacted"]
    kept = memctl("document", "show", id_, "--text").out.strip()
    assert (kept, report["left"]) == (text.replace("has Lee, Ann", "has ████████"), [])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("name", "text", "is_there"),
    [
        ("Ludwig van der Berg", "We call van der Berg, Ludwig.", True),
        ("Ludwig van der Berg", "Van Der Berg, Ludwig", True),
        ("Charles d'Artagnan", "(d'Artagnan, Charles)", True),
        ("zelda quixote", "Quixote, Zelda", True),
        ("Émile Ørsted", "Dear all: ØRSTED, ÉMILE", True),
        ("Ann Lee", "It rained. Lee, Ann", True),
        ("Ann Lee", "and Rose Lee, Ann", False),
        ("Ann Lee", "and R. Lee, Ann", False),
        ("Ann Lee", "and Émilie Lee, Ann", False),
        ("Ann Lee", "and Rose-Lee, Ann", False),
        ("Will May", "I may, will you?", False),
    ],
)
def test_a_surname_before_a_comma_is_found_in_capitals_and_after_no_other_name(
    name: str, text: str, is_there: bool, encoding: str
) -> None:
    pattern = SearchPattern(name, is_name=True)
    content = text.encode(encoding)
    assert pattern.is_in(text) == is_there
    assert pattern.is_in_bytes(content) == pattern.is_written_in(content) == is_there
    column = pa.chunked_array([pa.array([text])])
    assert pc.match_substring_regex(column, pattern.in_tables).to_pylist() == [is_there]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "name", ["Quixote, Zelda", "zelda.quixote", "Zelda. Quixote", "Zelda.\nQUIXOTE"]
)
def test_a_file_that_failed_goes_where_a_full_stop_is_in_the_name(
    memctl: Run, home: Path, name: str, encoding: str
) -> None:
    base = home / "kb/default"
    (base / "inbox/broken.pdf").write_bytes(b"%PDF-1.4 " + f" {name} ".encode(encoding))
    memctl("watch", "--once")
    memctl("memory", "add", "Zelda Quixote likes tea.")
    report = forget(memctl, "--entity", "Zelda Quixote")
    assert {Path(path).name for path in report["files"]} == {"broken.pdf", "broken.pdf.reason.json"}
    assert report["left"] == []


def test_a_name_is_not_the_beginning_of_another_word(memctl: Run) -> None:
    memctl(
        "ingest", "--text", "The Annual report of Ånn is due. Ann signs it, and Annika reads it."
    )
    memctl("query", "who reads the Annual report?", "--no-answer")
    report = forget(memctl, "--entity", "ANN")
    assert report["left"] == []
    (row,) = memctl("document", "list").rows
    text = memctl("document", "show", row["id"], "--text").out
    assert text.strip() == "The Annual report of Ånn is due. ███ signs it, and Annika reads it."
    with Home(load_config({})).open("default") as base:
        (asked,) = base.store.ledger.queries.recent()
    assert asked.question == "who reads the Annual report?"
    assert memctl("doctor").code == 0


def test_other_names_of_a_forgotten_person_are_told(memctl: Run, tmp_path: Path) -> None:
    page = "---\naliases: [Annie]\n---\n# Ann Lee\nAnn Lee runs the shop. Annie likes tea.\n"
    (tmp_path / "Ann Lee.md").write_text(page)
    memctl("ingest", str(tmp_path / "Ann Lee.md"))
    dry = memctl("forget", "--entity", "Ann Lee", "--dry-run", "-o", "json").json
    assert dry["joined"] == ["Annie"]
    shown = memctl("forget", "--entity", "Ann Lee", "--yes", "-o", "table").out
    assert "nothing of it is left" not in shown
    assert "memctl forget -k default --entity Annie" in shown
    assert (
        "nothing of it is left" in memctl("forget", "--entity", "Annie", "--yes", "-o", "table").out
    )


def test_what_a_page_is_called_besides_is_no_other_name_of_a_place(
    memctl: Run, tmp_path: Path
) -> None:
    page = "---\ntitle: Summer Trips\naliases: [Rome, Paris]\n---\nIdeas for July.\n"
    (tmp_path / "trips.md").write_text(page)
    memctl("ingest", str(tmp_path / "trips.md"))
    memctl("ingest", "--text", "Dana Petrov flew to Rome.")
    memctl("ingest", "--text", "Tom Baker lives in Paris.")
    for name in ("Paris", "Summer Trips"):
        dry = memctl("forget", "--entity", name, "--dry-run", "-o", "json").json
        assert not dry["joined"]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("Tea is hot.", {"Niemi", "Karl N"}),
        ("Anna Niemi likes tea.", {"Karl N"}),
        ("Anna Niemi likes tea, and so does Karl Norling.", set()),
    ],
)
def test_short_forms_of_a_forgotten_name_that_stay_are_told(
    memctl: Run, other: str, expected: set[str]
) -> None:
    for text in (
        "Karl Niemi runs the shop.", "Niemi does the books then.", "karl n passed his test.", other,
    ):  # fmt: skip
        memctl("ingest", "--text", text)
    dry = memctl("forget", "--entity", "Karl Niemi", "--dry-run", "-o", "json").json
    assert set(dry["joined"]) == expected
    done = forget(memctl, "--entity", "Karl Niemi")
    assert set(done["joined"]) == expected
    assert bool(done["joined_documents"]) == bool(expected)


def test_nothing_is_an_entity_that_was_blocked_out(memctl: Run, tmp_path: Path) -> None:
    page = "---\ntitle: Ann Lee\naliases: [Annie]\n---\nRuns the shop of [[Bo Lind]].\n"
    (tmp_path / "shop.md").write_text(page)
    (tmp_path / "bo.md").write_text("# Bo Lind\n\nOwes [[Annie]] and [[Ann Lee]] forty pounds.\n")
    memctl("ingest", str(tmp_path / "shop.md"), str(tmp_path / "bo.md"))
    forget(memctl, "--entity", "Ann Lee")
    names = [row["name"] for row in memctl("graph", "show").json["best_connected"]]
    assert "Bo Lind" in names
    assert not [name for name in names if "█" in name]


def test_what_names_a_forgotten_person_otherwise_is_listed(memctl: Run, tmp_path: Path) -> None:
    card = "BEGIN:VCARD\nVERSION:3.0\nFN:{}\nNICKNAME:{}\nEMAIL:{}\nEMAIL:al@b.example\nEND:VCARD\n"
    files = {
        "her.vcf": card.format("Annabel Lee", "Nelly,Bells", "annabel@b.example"),
        "other.vcf": card.format("A. L.", "Skipper", "skipper@b.example"),
        "a.txt": "Annabel Lee signed the lease.",
        "b.txt": "Bells will be at the harbour on Friday.",
        "c.txt": "Bo Lind will be at the harbour on Sunday.",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        memctl("ingest", str(tmp_path / name))
    sources = {row["id"]: Path(row["source"]).name for row in memctl("document", "list").rows}
    dry = memctl("forget", "--entity", "Annabel Lee", "--dry-run", "-o", "json").json
    assert set(dry["joined"]) >= {"Nelly", "Bells", "annabel@b.example", "al@b.example"}
    named = {sources[id_] for id_ in dry["joined_documents"]}
    assert {"her.vcf", "other.vcf", "b.txt"} <= named
    assert "c.txt" not in named
    shown = memctl("forget", "--entity", "Annabel Lee", "--dry-run", "-o", "table").out
    assert f"documents that have them: {dry['joined_documents'][0]}" in shown
    done = forget(memctl, "--entity", "Annabel Lee", "--whole-documents")
    left = {sources[id_] for id_ in done["joined_documents"]}
    assert left == {"other.vcf", "b.txt"}


def test_whole_documents_go_with_a_name_where_that_is_asked_for(memctl: Run, home: Path) -> None:
    report = forget(memctl, "--entity", "Anna Berg", "--whole-documents")
    assert (report["documents"], report["redacted"]) == (1, [])
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []


def test_a_namespace_and_what_is_old_go(memctl: Run, home: Path) -> None:
    memctl("ingest", "--text", PLAN, "--namespace", "user:ann")
    memctl("memory", "add", "Quartz is hard.", "--namespace", "user:ann")
    memctl("watch", "--once")  # which learns that the home was moved
    old = '{"text": "In 1999 the ferry Basalt sank.", "created_at": "1999-05-01"}'
    memctl("ingest", "--jsonl", "-", stdin=old)
    report = forget(memctl, "--before", "2000-01-01")
    assert (report["documents"], rows_with(["Basalt"])) == (1, [])
    report = forget(memctl, "--namespace", "user:ann", code=3)
    assert report["documents"] == 1
    assert {left["place"] for left in report["left"]} >= {"documents", "processed/plan.md"}
    assert rows_with(["Quartz", "user:ann"]) == []
    assert len(memctl("document", "list").rows) == 2


def test_what_failed_or_was_noted_before_a_date_goes_with_what_is_old(
    memctl: Run, home: Path, tmp_path: Path
) -> None:
    base, vault = home / "kb/default", tmp_path / "vault"
    vault.mkdir()
    memctl("kb", "set", "default", "--inbox", str(vault))
    for name in ("old.pdf", "new.pdf"):
        (base / "inbox" / name).write_bytes(b"%PDF-1.7 broken Svalbard")
    (vault / "kept.pdf").write_bytes(b"%PDF-1.7 broken")
    os.utime(base / "inbox/old.pdf", (0, 946_684_800))  # 2000
    os.utime(vault / "kept.pdf", (0, 946_684_800))
    memctl("watch", "--once")
    memctl("query", "Who prunes the trees?")
    preview = memctl("forget", "--before", "2001-01-01", "--dry-run", "-o", "json").json
    report = forget(memctl, "--before", "2001-01-01")
    assert (
        report["files"]
        == preview["files"]
        == [str(base / f"failed/old.pdf{end}") for end in ("", ".reason.json")]
    )
    assert report["yours"] == [str(vault / "kept.pdf")]
    assert memctl("why", "old.pdf").code == 4
    (receipt,) = memctl("why", "new.pdf", "-o", "json").json
    assert receipt["is_there"]
    assert len(memctl("document", "list").rows) == 2
    forget(memctl, "--before", "2100-01-01")
    assert memctl("why", "new.pdf").code == memctl("why", "garden.md").code == 4
    assert files_with(home, SECRETS) == files_with(home, ["prunes"]) == []


def test_memories_ingested_before_a_date_are_forgotten_whatever_their_own_date(
    memctl: Run, home: Path
) -> None:
    memctl("ingest", "--jsonl", "-", stdin='{"text": "Basalt sails.", "created_at": "2199-05-01"}')
    memctl("memory", "add", "Quartz is hard.")
    report = forget(memctl, "--before", "2100-01-01")
    assert (report["documents"], report["memories"] > 3) == (3, True)
    assert rows_with(["Basalt", "Quartz"]) == []


# --- what holds it -------------------------------------------------------------------------------


def test_a_snapshot_that_has_it_is_told_and_deleted_when_asked(memctl: Run, home: Path) -> None:
    memctl("snapshot", "create", "one")
    done = memctl("forget", "--document", document(memctl, "plan"), "--yes", "-o", "json")
    assert done.code == 3
    report = done.json
    assert {left["why"] for left in report["left"]} == {"the snapshot one has it"}
    assert "error: some of it is left in documents, " in done.err
    assert ": the snapshot one has it\nhint: memctl forget --snapshots" in done.err
    hint = "memctl forget --snapshots -k default deletes all snapshots"
    assert {left["hint"] for left in report["left"]} == {hint}
    report = forget(memctl, "--snapshots")
    assert (report["snapshots"], report["left"]) == (["one"], [])
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []


def of_decision(memctl: Run) -> str:
    rows = memctl("memory", "list").rows
    (fact,) = (row for row in rows if row["type"] == "decision" and "Svalbard" in row["text"])
    return str(fact["id"])


@pytest.mark.parametrize("kind", ["--document", "--memory", "--entity", "--before"])
def test_what_was_forgotten_since_does_not_come_back_with_a_snapshot(
    memctl: Run, home: Path, kind: str
) -> None:
    memctl("memory", "add", "The mast of the ferry is of spruce.")
    memctl("query", "where does Aurora sail?", "--mode", "graph")
    memctl("snapshot", "create", "one")
    memctl("memory", "add", "The keel of the ferry is of oak.")
    what = {
        "--document": lambda: document(memctl, "plan"),
        "--memory": lambda: of_decision(memctl),
        "--entity": lambda: "Svalbard",
        "--before": lambda: "2100-01-01",
    }[kind]()
    forget(memctl, kind, what, code=3)
    known = {row["source"] for row in memctl("document", "list").rows}
    restored = memctl("snapshot", "restore", "one", "--yes", "-o", "json")
    assert restored.code == 0, restored.err
    assert "forgotten since" in restored.err
    assert {row["source"] for row in memctl("document", "list").rows} == known
    exported = [memctl("export", table).out for table in ("documents", "memories", "entities")]
    assert "Svalbard" not in "".join(exported)
    assert "oak" not in exported[1]  # which was no part of it
    assert ("spruce" in exported[1]) is ("apple trees" in exported[0]) is (kind != "--before")
    assert memctl("doctor").code == 0
    memctl("snapshot", "restore", restored.json["saved_as"], "--yes")
    assert "Svalbard" not in memctl("export", "memories").out
    report = forget(memctl, "--snapshots")
    assert report["left"] == []
    assert rows_with(["Svalbard"]) == files_with(home, ["Svalbard"]) == []
    with Home(load_config({})).open("default") as base:
        assert (
            base.store.ledger.forgotten.gone_ids()
            == base.store.ledger.forgotten.blocked_ids()
            == set()
        )


def test_what_stays_of_a_document_has_vectors_of_the_embedder_that_it_goes_back_to(
    memctl: Run, home: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("snapshot", "create", "one")
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    memctl("kb", "reembed", "default", "--embedder", "endpoint/e")
    forget(memctl, "--memory", of_decision(memctl), code=3)
    restored = memctl("snapshot", "restore", "one", "--yes", "-o", "json")
    assert restored.json["redacted"] == [document(memctl, "plan")]
    found = memctl("query", "the crane of the harbour", "--mode", "vector", "-o", "json").json
    assert "painted green" in found["hits"][0]["text"]
    assert "Svalbard" not in memctl("export", "memories").out
    assert memctl("doctor").code == 0


def test_a_document_that_is_forgotten_stays_away_though_a_word_of_it_is_forgotten_later(
    memctl: Run, home: Path
) -> None:
    memctl("snapshot", "create", "one")
    forget(memctl, "--document", document(memctl, "plan"), code=3)
    forget(memctl, "--entity", "Svalbard", code=3)
    restored = memctl("snapshot", "restore", "one", "--yes", "-o", "json").json
    assert (restored["forgotten_documents"], restored["redacted"]) == (1, [])
    assert "plan.md" not in memctl("document", "list", "-o", "csv").out


def test_a_file_of_yours_that_was_forgotten_is_not_taken_in_again_after_going_back(
    memctl: Run, home: Path, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    memctl("kb", "set", "default", "--inbox", str(vault))
    memctl("snapshot", "create", "one")
    (vault / "trip.md").write_text("The Fram sails to Jan Mayen in June.")
    memctl("watch", "--once")
    assert forget(memctl, "--document", document(memctl, "trip"))["yours"]
    memctl("snapshot", "restore", "one", "--yes")
    memctl("watch", "--once")
    assert "trip.md" not in memctl("document", "list", "-o", "csv").out


def test_what_is_taken_in_again_after_it_was_forgotten_comes_back_with_a_snapshot(
    memctl: Run, home: Path
) -> None:
    memctl("snapshot", "create", "one")
    forget(memctl, "--document", document(memctl, "plan"), code=3)
    (home / "kb/default/inbox/plan.md").write_text(PLAN)
    memctl("watch", "--once")
    memctl("snapshot", "restore", "one", "--yes")
    assert "Svalbard" in memctl("document", "show", document(memctl, "plan"), "--text").out
    assert memctl("doctor").code == 0


@pytest.mark.parametrize("kind", ["--document", "--memory"])
def test_a_repair_brings_nothing_back_that_a_snapshot_alone_has(
    memctl: Run, home: Path, kind: str
) -> None:
    what = document(memctl, "plan") if kind == "--document" else of_decision(memctl)
    tables = [home / f"kb/default/lance/{table}.lance/data" for table in ("documents", "memories")]
    memctl("snapshot", "create", "one")
    had = {path for folder in tables for path in folder.iterdir()}
    forget(memctl, kind, what, code=3)
    new = {path for folder in tables for path in folder.iterdir()} - had
    assert {path.parent for path in new} == set(tables)
    for path in new:
        path.write_bytes(b"")
    memctl("doctor", "--repair", "--yes")
    assert "Svalbard" not in memctl("export", "documents").out + memctl("export", "memories").out
    assert "apple trees" in memctl("export", "documents").out


@pytest.mark.parametrize("by_id", [True, False], ids=["by its id", "snapshots alone"])
def test_what_snapshots_alone_have_is_told_again_and_can_be_forgotten(
    memctl: Run, home: Path, by_id: bool
) -> None:
    plan = document(memctl, "plan")
    memctl("snapshot", "create", "one")
    forget(memctl, "--document", plan, code=3)
    again = forget(memctl, "--document", plan, code=3)
    assert again["documents"] == 0
    assert {left["why"] for left in again["left"]} == {"the snapshot one has it"}
    report = forget(memctl, *(("--document", plan) if by_id else ()), "--snapshots")
    assert (report["snapshots"], report["left"]) == (["one"], [])
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []
    assert memctl("forget", "--document", plan, "--yes").code == 1
    assert memctl("forget", "--snapshots", "--yes").code == 2


def test_a_document_that_was_deleted_is_forgotten_out_of_snapshots(memctl: Run, home: Path) -> None:
    plan = document(memctl, "plan")
    memctl("snapshot", "create", "one")
    memctl("document", "delete", plan, "--yes")
    report = forget(memctl, "--document", plan, "--snapshots")
    assert report["files"] == [str(home / "kb/default/processed/plan.md")]
    assert report["left"] == []
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []
    assert memctl("why", "plan.md").code == 4


def test_a_document_that_was_deleted_can_still_be_forgotten(memctl: Run, home: Path) -> None:
    plan = document(memctl, "plan")
    memctl("document", "delete", plan, "--yes")
    assert files_with(home, SECRETS)
    report = forget(memctl, "--document", plan)
    assert report["files"] == [str(home / "kb/default/processed/plan.md")]
    assert report["left"] == []
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []
    assert memctl("why", "plan.md").code == 4
    assert memctl("why", "garden.md").code == 0
    memctl("doctor", "--repair")
    assert [row["source"] for row in memctl("document", "list").rows] == ["garden.md"]


def test_replies_of_models_and_former_vectors_go(
    memctl: Run, home: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    assert memctl("kb", "reembed", "default", "--embedder", "endpoint/e").code == 0
    with Home(load_config({})).open("default") as base:
        replies = base.store.ledger.replies
        replies.put("k", "understand", "m", PLAN.encode(), base.clock())
    forget(memctl, "--document", document(memctl, "plan"))
    with Home(load_config({})).open("default") as base:
        assert base.store.ledger.replies.get("k") is None
    assert list((home / "kb/default/vectors").glob("*/shelf.json")) == []


def test_a_reader_is_not_disturbed_and_the_next_run_completes_it(
    memctl: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.store.store._READERS_PAUSE", 0)  # this one does not finish
    program = (
        "import sys\nfrom memctl.config import load_config\nfrom memctl.home import Home\n"
        "with Home(load_config({})).open('default') as base:\n"
        "    snapshot = base.store.snapshot()\n"
        "    print('ready', flush=True)\n    sys.stdin.readline()\n"
        "    print(snapshot.scan('documents', columns=['text'])['text'].to_pylist(), flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin
        assert reader.stdout
        assert reader.stdout.readline() == "ready\n"
        report = forget(memctl, "--document", document(memctl, "plan"), code=3)
        assert any("may be reading" in left["why"] for left in report["left"])
        assert "Svalbard" not in str(ask(memctl, "where does it sail?"))
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert "Svalbard" in reader.stdout.readline()
        assert reader.wait(PATIENCE) == 0
    report = forget(memctl)
    assert (report["completed"], report["left"]) == (1, [])
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []
    assert memctl("forget", "--yes").code == 2


def cut_off(home: Path, step: str, id_: str, *options: str) -> None:
    """Forget a document in a process that is killed where it would call ``step``."""
    module, owner, name = step.rsplit(".", 2)
    words = ("forget", "--document", id_, *options, "--yes")
    kill_at_call(module, f"{owner}.{name}", "before", home, *words)


@pytest.mark.parametrize(
    ("step", "is_done"),
    [
        ("memctl.store.ledger.ledger.Ledger.set_head", False),
        ("memctl.forget.source_copies.SourceCopies.remove", True),
        ("memctl.store.store.Store.purge", True),
        ("memctl.store.ledger.ledger.Ledger.rewrite", True),
    ],
)
def test_killed_at_any_step_it_is_undone_or_completed_by_the_next_run(
    memctl: Run, home: Path, step: str, is_done: bool
) -> None:
    plan = document(memctl, "plan")
    cut_off(home, step, plan)
    assert len(memctl("document", "list").rows) == (1 if is_done else 2)
    report = forget(memctl, *(() if is_done else ("--document", plan)))
    assert (report["completed"], report["left"]) == (is_done, [])
    assert memctl("forget", "--yes").code == 2
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []


def test_one_that_was_cut_off_is_reported_and_completed_by_a_repair(
    memctl: Run, home: Path
) -> None:
    cut_off(home, "memctl.store.store.Store.purge", document(memctl, "plan"))
    (status,) = memctl("status").rows
    assert status["forgets_unfinished"] == 1
    assert "memctl forget -k default" in memctl("status", "-o", "table").out
    findings = [row for row in memctl("doctor").rows if row["subject"] == "forget"]
    assert [row["verdict"] for row in findings] == ["warning"]
    assert "memctl forget -k default" in findings[0]["hint"]
    tried = [row["message"] for row in memctl("doctor", "--repair", "--dry-run").rows]
    assert tried == ["would complete 1 forget that had been cut off"]
    done = [row["message"] for row in memctl("doctor", "--repair").rows]
    assert done == ["completed 1 forget that had been cut off"]
    assert [row for row in memctl("doctor").rows if row["verdict"] != "ok"] == []
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []


def test_snapshots_that_were_to_go_when_it_was_killed_go_when_it_is_completed(
    memctl: Run, home: Path
) -> None:
    memctl("snapshot", "create", "before")
    step = "memctl.forget.source_copies.SourceCopies.remove"
    cut_off(home, step, document(memctl, "plan"), "--snapshots")
    assert memctl("snapshot", "create", "after").code == 0  # which completes it first
    assert [row["name"] for row in memctl("snapshot", "list").rows] == ["after"]
    assert rows_with(SECRETS) == files_with(home, SECRETS) == []


def test_files_that_a_killed_writer_left_in_the_tables_go_too(memctl: Run, home: Path) -> None:
    with Home(load_config({})).open("default") as base:
        stray = base.layout.folder / "lance/memories.lance/data/stray.lance"
    stray.write_text(PLAN)
    assert forget(memctl, "--document", document(memctl, "plan"))["left"] == []
    assert not stray.exists()


MARK = "Xylophagou7"


def everywhere(memctl: Run, endpoint: FakeEndpoint, home: Path) -> None:
    """Put a word into every place that a knowledge base has for one."""
    inbox = home / "kb/default/inbox"
    text = f"Ann lives in {MARK}. Bob was in {MARK} on 12 May 2026."
    (inbox / "letter.md").write_text(f"# {MARK}\n\n{text}\n\nSee [[{MARK}]] for more.\n")
    assert memctl("watch", "--once").code == 0
    endpoint.fail(path="completions", times=-1, after=1)  # so that facts wait to be compared
    later = f"Ann lives in {MARK} no more."
    line = f'{{"text": "{later}", "id": "{MARK}", "session_id": "{MARK}", "source": "{MARK}.txt"}}'
    memctl("ingest", "--jsonl", "-", "--tag", MARK, stdin=line)
    endpoint.mend()
    stated = memctl("memory", "add", f"The ferry to {MARK} is slow", "-o", "json").json
    memctl("memory", "edit", stated["id"], "--text", f"The ferry to {MARK} is fast")
    (inbox / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    memctl("watch", "--once")
    memctl("consolidate")
    for mode in ("hybrid", "graph", "agentic"):
        memctl("query", f"Who lives in {MARK}?", "--mode", mode, "--source", f"{MARK}*")
    memctl("query", f"{MARK}", "--mode", "graph")
    memctl("query", "--feedback", "last", "good")
    memctl("graph", "merge", MARK, "Ann")
    memctl("snapshot", "create", "then")
    memctl("kb", "reembed", "default", "--embedder", "endpoint/e")
    memctl("kb", "reembed", "default", "--back")
    memctl("context", f"What about {MARK}?", "--mode", "graph")
    with (
        Home(load_config({})).open("default") as base,
        suppress(CoverageLost),
        job_context(base.store.ledger, "upkeep", utc_now),
    ):
        raise CoverageLost(f"what is said of {MARK} is not found any more")


def test_a_word_that_stood_in_every_place_is_in_no_byte_of_the_home_afterwards(
    memctl: Run, endpoint: FakeEndpoint, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(understand="m", answer="m").items():
        monkeypatch.setenv(name, value)
    endpoint.on("DocumentReply", understood)
    everywhere(memctl, endpoint, home)
    held = {path.removeprefix(f"{home}/").split("/")[2] for path in files_with(home, [MARK])}
    assert held >= {"lance", "processed", "ledger.sqlite"}
    worked_out = set((home / "kb/default/derived").iterdir())
    assert worked_out
    assert rows_with([MARK])
    report = forget(memctl, "--entity", MARK, "--whole-documents", "--snapshots")
    assert report["left"] == []
    for path in home.rglob("*"):
        assert MARK not in path.name
    assert files_with(home, [MARK, MARK.lower()]) == []
    assert rows_with([MARK, MARK.lower(), MARK.upper()]) == []
    assert packed_with(home, MARK) == []
    assert worked_out.isdisjoint((home / "kb/default/derived").iterdir())


def packed_with(home: Path, word: str) -> list[str]:
    """Every reply of a model that is kept, and row of the full-text index, with a word."""
    import lance

    with Home(load_config({})).open("default") as base:
        with base.store.ledger.reading() as connection:
            replies = connection.execute("SELECT reply FROM model_replies").fetchall()
        found = [str(zlib.decompress(reply)) for (reply,) in replies]
    for path in home.rglob("*.lance"):
        with suppress(ValueError, OSError):  # a file of an index is one of another kind
            found.append(
                str(lance.file.LanceFileReader(str(path)).read_all().to_table().to_pydict())
            )
    assert len(found) > 4
    return [text[:200] for text in found if word.casefold() in text.casefold()]


def test_what_is_too_short_to_be_looked_for_in_bytes_is_told(memctl: Run, home: Path) -> None:
    memctl("ingest", "--text", "Bo met Ann Lee in Oslo. Bo likes tea.")
    shown = memctl("forget", "--entity", "Bo", "--yes", "-o", "table").out
    assert "1 text of less than 5 bytes looked for in tables and ledger alone" in shown
    memctl("ingest", "--text", "Ann Lee met Carla Sato in Oslo.")
    assert forget(memctl, "--entity", "Carla Sato")["too_short"] == 0


# --- files that are called by a name -------------------------------------------------------------

NAME = "Zelda Quixote"


def called(memctl: Run, home: Path) -> Path:
    """Take in files that are called by a name, one of which fails; return the folder."""
    base = home / "kb/default"
    (base / "inbox/on Zelda Quixote").mkdir()
    (base / "inbox/on Zelda Quixote/report.md").write_text(f"{NAME} has a crane.")
    (base / "inbox/zelda_quixote-notes.txt").write_text("The crane of the harbour is tall.")
    (base / "inbox/copy of Zelda Quixote.md").write_text(OTHER)
    (base / f"inbox/{NAME} cv.pdf").write_bytes(b"%PDF-1.4 broken")
    (base / "inbox/broken.pdf").write_bytes(b"%PDF-1.4 " + NAME.encode("utf-16-le"))
    memctl("watch", "--once")
    memctl("query", "what has ZELDA  QUIXOTE?")
    return base


def names_in(home: Path) -> list[str]:
    """Every path below a home, and file by its bytes, that has the name in some way."""
    import re

    name = re.compile(rb"(?i)zelda.{0,3}quixote|z.e.l.d.a. .q.u.i")
    paths = list(home.rglob("*"))
    return [
        str(path)
        for path in paths
        if name.search(os.fsencode(path.name))
        or (path.is_file() and name.search(path.read_bytes()))
    ]


def test_a_name_goes_from_files_that_are_called_by_it_and_their_receipts(
    memctl: Run, home: Path
) -> None:
    base = called(memctl, home)
    assert names_in(home)
    report = forget(memctl, "--entity", NAME)
    assert report["left"] == []
    assert {Path(path).name for path in report["files"]} == {
        "report.md",
        "zelda_quixote-notes.txt",
        "copy of Zelda Quixote.md",
        f"{NAME} cv.pdf",
        f"{NAME} cv.pdf.reason.json",
        "broken.pdf",
        "broken.pdf.reason.json",
    }
    assert names_in(home) == []
    assert rows_with([NAME, NAME.lower(), "zelda_quixote"]) == []
    assert (base / "processed/garden.md").exists()
    assert memctl("why", "garden.md").code == 0
    assert memctl("doctor").code == 0
    again = memctl("forget", "--entity", NAME, "--yes")
    assert (again.code, "nothing names" in again.err) == (1, True)


def test_the_files_that_go_with_a_name_are_told_before(memctl: Run, home: Path) -> None:
    called(memctl, home)
    tried = memctl("forget", "--entity", NAME, "--dry-run", "-o", "json").json
    assert tried["files"] == forget(memctl, "--entity", NAME)["files"]


def test_what_is_left_of_a_name_is_told_until_the_hint_is_followed(memctl: Run, home: Path) -> None:
    base = home / "kb/default"
    waiting = base / f"inbox/{NAME}.bin"
    waiting.write_bytes(b"waits")
    line = {"text": "The crane is green.", "namespace": f"user:{NAME}"}
    assert memctl("ingest", "--jsonl", "-", stdin=json.dumps(line)).code == 0
    for _ in range(2):
        report = forget(memctl, "--entity", NAME, code=3)
        hints = {left["place"]: left["hint"] for left in report["left"]}
        assert hints.keys() == {"documents", "memories", f"inbox/{NAME}.bin"}
        assert hints[f"inbox/{NAME}.bin"] == f"delete it: rm '{waiting}'"
        command = f"memctl forget --namespace 'user:{NAME}' -k default"
        assert hints["documents"].endswith(command)
    waiting.unlink()
    assert memctl(*shlex.split(command)[1:], "--yes").code == 0
    assert names_in(home) == []
    assert memctl("forget", "--entity", NAME, "--yes").code == 1


def test_a_name_in_the_id_of_a_document_is_told_and_goes_with_whole_documents(
    memctl: Run, home: Path
) -> None:
    line = {"text": "The crane is green.", "id": f"{NAME} 12"}
    assert memctl("ingest", "--jsonl", "-", stdin=json.dumps(line)).code == 0
    report = forget(memctl, "--entity", NAME, code=3)
    assert all(left["hint"].startswith("memctl forget --document d_") for left in report["left"])
    assert forget(memctl, "--entity", NAME, "--whole-documents")["documents"] == 1
    assert names_in(home) == []


def test_a_file_in_an_inbox_that_keeps_its_files_is_reported_until_it_has_another_name(
    memctl: Run, home: Path, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    mine = vault / f"{NAME}.md"
    mine.write_text("The crane is green.")
    memctl("kb", "set", "default", "--inbox", str(vault))
    memctl("watch", "--once")
    report = forget(memctl, "--entity", NAME, code=3)
    assert report["yours"] == [str(mine)]
    (left,) = report["left"]
    assert (left["place"], str(mine) in left["why"]) == ("ledger.sqlite: files", True)
    mine.rename(vault / "crane.md")
    memctl("watch", "--once")
    assert memctl("forget", "--entity", NAME, "--yes").code == 1
    assert names_in(home) == []


def test_what_is_packed_in_the_file_of_another_document_is_told(memctl: Run, home: Path) -> None:
    page = home / "kb/default/inbox/crane.docx"
    written = docx.Document()
    written.add_paragraph("The crane is green.")
    written.save(str(page))
    with zipfile.ZipFile(page, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("media/picture.raw", b"\x00\x01" + f"{NAME} ".encode() * 9)
    memctl("watch", "--once")
    memctl("memory", "add", f"{NAME} likes tea.")
    (left,) = forget(memctl, "--entity", NAME, code=3)["left"]
    assert left["place"] == "processed/crane.docx"
    assert memctl(*shlex.split(left["hint"])[1:], "--yes").code == 0
    assert not (home / "kb/default" / left["place"]).exists()


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(lambda said: b"%PDF-1.4 stream\n" + zlib.compress(said), id="pdf"),
        pytest.param(bz2.compress, id="bzip2"),
        pytest.param(lzma.compress, id="xz"),
    ],
)
def test_a_file_that_failed_goes_where_what_is_packed_in_it_has_a_name(
    memctl: Run, home: Path, packed: Callable[[bytes], bytes]
) -> None:
    broken = home / "kb/default/inbox/broken.pdf"
    broken.write_bytes(packed(f"{NAME} is told of {NAME}. ".encode() * 9))
    memctl("watch", "--once")
    memctl("memory", "add", f"{NAME} likes tea.")
    report = forget(memctl, "--entity", NAME)
    assert {Path(path).name for path in report["files"]} == {"broken.pdf", "broken.pdf.reason.json"}
    assert report["left"] == []


def test_a_damaged_ledger_that_a_repair_kept_is_named_until_it_is_deleted(
    memctl: Run, home: Path
) -> None:
    ledger = home / "kb/default/ledger.sqlite"
    ledger.write_bytes(b"XXXXXXXX" + ledger.read_bytes()[8:])
    assert memctl("doctor", "--repair", "--yes").code in (0, 3)
    (kept,) = home.glob("kb/default/ledger.sqlite.damaged-*")
    report = forget(memctl, "--document", document(memctl, "plan"), code=3)
    assert [left["place"] for left in report["left"]].count(kept.name) == 1
    for each in report["left"]:
        subprocess.run(shlex.split(each["hint"].split(": ", 1)[1]), check=True)
    assert not kept.exists()
    assert forget(memctl, "--document", document(memctl, "garden"))["left"] == []
    assert files_with(home, SECRETS) == []


def test_where_the_home_stands_is_no_name(memctl: Run, home: Path, tmp_path: Path) -> None:
    memctl("memory", "add", f"{tmp_path.name} likes tea.")
    report = forget(memctl, "--entity", tmp_path.name)
    assert (report["left"], report["files"]) == ([], [])
    assert memctl("why", "garden.md").code == 0
    assert (home / "kb/default/processed/garden.md").exists()


def test_a_nickname_of_two_is_neither_forgotten_nor_merged_in_silence(
    memctl: Run, tmp_path: Path
) -> None:
    notes = tmp_path / "people"
    notes.mkdir()
    for name, says in (("Tomasz Bereza", "likes tea"), ("Karl Meyer", "plays chess")):
        text = f"---\naliases: [Beans]\n---\n# {name}\n\n{name} lives in York. Beans {says}.\n"
        (notes / f"{name[0]}.md").write_text(text)
    memctl("ingest", str(notes))
    merged = memctl("graph", "merge", "Beans", "Tomasz Bereza")
    assert merged.code == 2
    assert "'Beans' may mean Karl Meyer (e_" in merged.err
    tried = memctl("forget", "--entity", "Beans", "--dry-run", "-o", "json")
    assert tried.code == 0
    assert "note: 'Beans' may mean Karl Meyer, Tomasz Bereza" in tried.err
    refused = memctl("forget", "--entity", "Beans", "--yes")
    assert refused.code == 2
    assert "'Beans' may mean Karl Meyer, Tomasz Bereza" in refused.err
    texts = json.dumps(memctl("memory", "list", "-o", "json").json)
    assert "Beans likes tea" in texts
    assert "Beans plays chess" in texts
    named = ("--entity", "Karl Meyer", "--entity", "Tomasz Bereza")
    assert memctl("forget", "--entity", "Beans", *named, "--yes").code == 0
    assert "Beans" not in json.dumps(memctl("memory", "list", "-o", "json").json)


def test_a_nickname_of_two_that_is_a_name_of_its_own_is_not_forgotten_in_silence(
    memctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "choir.md").write_text('Robert "Bobby" Lang sings. Bobby bought the scores.\n')
    (tmp_path / "chess.md").write_text('Roberta "Bobby" Klein plays. Bobby lost a game.\n')
    assert memctl("ingest", "choir.md", "chess.md").code == 0
    refused = memctl("forget", "--entity", "Bobby", "--yes")
    assert refused.code == 2
    assert "'Bobby' may mean Robert Lang, Roberta Klein" in refused.err
    named = ("--entity", "Robert Lang", "--entity", "Roberta Klein")
    assert memctl("forget", "--entity", "Bobby", *named, "--yes").code == 0
    assert "Bobby" not in json.dumps(memctl("memory", "list", "-o", "json").json)

"""Knowledge bases are switched on in one step, and cleared with a way back."""

from __future__ import annotations

from pathlib import Path

from access.conftest import done
from cli.conftest import Run
from grown import sample_home

from memctl.store.store import Store


def test_using_a_base_twice_changes_nothing_the_second_time(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    words = ("kb", "use", "x", "--interval", "30", "--inbox", str(tmp_path / "notes"))
    assert "created x" in done(memctl(*words)).err
    before = memctl("kb", "show", "x").json
    assert before["consolidate_interval"] == 30
    assert str(tmp_path / "notes") in [inbox["path"] for inbox in before["inboxes"]]
    assert "x is always on already" in done(memctl(*words)).err
    assert memctl("kb", "show", "x").json == before
    done(memctl("kb", "archive", "x"))
    done(memctl("kb", "set", "x", "--on-demand"))
    again = done(memctl(*words)).err
    assert "x was archived and is active now" in again
    assert "x is always on now" in again
    assert memctl("kb", "show", "x").json == before


def test_clearing_a_base_keeps_its_settings_and_its_snapshot_brings_all_back(
    memctl: Run, tmp_path: Path
) -> None:
    done(memctl("kb", "create", "x", "--half-life", "7"))
    (tmp_path / "home/kb/x/inbox/a.md").write_text("# Harbour\n\nAnn Keller keeps the keys.\n")
    done(memctl("watch", "--once", "-k", "x"))
    done(memctl("memory", "add", "The boat is red.", "-k", "x"))
    settings = memctl("kb", "show", "x").json
    memories = sorted(row["id"] for row in memctl("memory", "list", "-k", "x").rows)
    assert len(memories) == 3
    done(memctl("kb", "clear", "x", "--dry-run"))
    assert len(memctl("memory", "list", "-k", "x").rows) == 3
    assert memctl("kb", "clear", "x").code == 2, "there is no terminal to ask on"
    report = done(memctl("kb", "clear", "x", "--yes", "--keep-files", "-o", "json")).json
    assert report["deleted"]["memories"] == 3
    assert memctl("memory", "list", "-k", "x").rows == []
    assert memctl("document", "list", "-k", "x").rows == []
    assert memctl("sql", "from entities", "-k", "x").rows == []
    assert memctl("kb", "show", "x").json == settings
    assert [path.name for path in (tmp_path / "home/kb/x/processed").rglob("*.md")] == ["a.md"]
    done(memctl("doctor", "-k", "x"))
    done(memctl("snapshot", "restore", report["snapshot"], "-k", "x", "--yes"))
    assert sorted(row["id"] for row in memctl("memory", "list", "-k", "x").rows) == memories
    done(memctl("kb", "clear", "x", "--yes"))
    assert not [*(tmp_path / "home/kb/x/processed").rglob("*.md")]


def test_a_base_that_is_forgotten_leaves_neither_snapshots_nor_words(
    memctl: Run, tmp_path: Path
) -> None:
    done(memctl("ingest", "--text", "The alarm code is quince-4711-harbour."))
    done(memctl("snapshot", "create", "before"))
    done(memctl("kb", "clear", "default", "--forget", "--yes"))
    assert memctl("memory", "list").rows == []
    assert memctl("snapshot", "list").rows == []
    files = [path for path in (tmp_path / "home/kb/default").rglob("*") if path.is_file()]
    assert not [path for path in files if b"quince-4711" in path.read_bytes()]


def test_a_file_that_another_process_still_reads_is_reported_as_left(
    memctl: Run, tmp_path: Path
) -> None:
    done(memctl("ingest", "--text", "The alarm code is quince-4711-harbour."))
    with Store.open(tmp_path / "home/kb/default") as store:
        snapshot = store.snapshot()
        refused = memctl("kb", "clear", "default", "--forget", "--yes")
        assert snapshot.count("memories")
    assert refused.code == 3
    assert "another process may be reading an earlier state" in refused.err
    assert "whatever writes next" in refused.err


def test_lists_come_in_pages_and_in_the_order_that_is_asked_for(memctl: Run) -> None:
    for number, text in enumerate(("The boat is red.", "The pier is long.", "Rope is blue.")):
        done(
            memctl(
                "memory", "add", text, "--type", "fact", "--importance", f"0.{2 + 2 * number}",
                "--date", f"202{5 - number}-01-01",
            )
        )  # fmt: skip

    def texts(*words: str) -> list[str]:
        return [row["text"].split()[1] for row in memctl("memory", "list", *words).rows]

    assert texts() == ["boat", "pier", "is"]
    assert texts("--offset", "1") == ["pier", "is"]
    assert texts("--offset", "1", "-n", "1") == ["pier"]
    assert texts("--sort", "importance") == ["boat", "pier", "is"]
    assert texts("--sort", "importance", "--desc") == ["is", "pier", "boat"]
    assert texts("--sort", "created") == ["is", "pier", "boat"]
    assert texts("--sort", "relevance", "--desc", "-n", "2") == ["boat", "pier"]
    assert texts("--sort", "relevance", "--offset", "1") == ["pier", "boat"]
    assert len(texts("--sort", "accessed", "--desc")) == 3


def test_documents_are_told_apart_by_what_they_are(memctl: Run, tmp_path: Path) -> None:
    files = {
        "notes.md": "# Harbour\n\nThe harbour office is blue.\n",
        "office.txt": "The harbour office has a door.\n",
        "harbour.csv": "what,colour\noffice,blue\ndoor,green\n",
        "chat.txt": "[2024-01-01, 10:00:00] Ann: Where is the harbour office?\n"
        "[2024-01-01, 10:01:00] Bob: The harbour office is at the pier.\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done(memctl("ingest", *(str(tmp_path / name) for name in files)))
    found = {
        each: [row["source"].rsplit("/")[-1] for row in memctl(
            "document", "list", "--doc-type", each
        ).rows]
        for each in ("markdown", "text", "table", "conversation", "pdf")
    }  # fmt: skip
    assert found == {
        "markdown": ["notes.md"],
        "text": ["office.txt"],
        "table": ["harbour.csv"],
        "conversation": ["chat.txt"],
        "pdf": [],
    }
    hits = memctl("query", "harbour office", "--doc-type", "markdown", "--no-answer").json["hits"]
    assert {hit["doc_type"] for hit in hits} == {"markdown"}
    context = memctl("context", "Where is the harbour office?", "--doc-type", "conversation")
    assert "pier" in context.out
    assert memctl("query", "x", "--doc-type", "novel").code == 2


def test_documents_of_before_there_were_types_are_found_by_their_format(
    memctl: Run, tmp_path: Path
) -> None:
    home = str(sample_home(1, tmp_path))

    def sources(*words: str) -> set[str]:
        rows = done(memctl("--home", home, *words, "-k", "notes")).rows
        hits = rows[0]["hits"] if words[0] == "query" else rows
        return {hit["source"].rsplit("/")[-1] for hit in hits}

    assert sources("document", "list", "--doc-type", "markdown") == {"lease.md"}
    assert sources("query", "harbour office", "--doc-type", "markdown") == {"lease.md"}
    texts = {"keys.txt", "visit.txt", "move.txt"}
    assert sources("document", "list", "--doc-type", "text", "--doc-type", "pdf") == texts

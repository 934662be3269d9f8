"""memctl doctor finds damage, says so with its exit code, and puts it right."""

from __future__ import annotations

from pathlib import Path

import pytest
from damaged import manifests
from fake_endpoint import FakeEndpoint

from memctl.instants import utc_now
from memctl.store.locks import WriteLock

from .conftest import Run


def newest_manifest(home: Path, name: str = "default") -> Path:
    return manifests(home / "kb" / name, "memories")[0]


def test_a_whole_knowledge_base_passes(memctl: Run) -> None:
    memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    done = memctl("doctor", "-o", "json")
    assert done.code == 0
    assert {finding["verdict"] for finding in done.json} == {"ok"}
    assert "0 warnings" in done.err
    assert "1 knowledge base whole" in done.err
    assert "1 knowledge base whole" in memctl("doctor", "-k", "default", "-k", "default").err


def test_documents_of_an_earlier_version_are_reported_with_how_to_read_them_again(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("memctl.ingest.document_records.PIPELINE_VERSION", 1)
        memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    done = memctl("doctor", "-o", "json")
    assert done.code == 0
    (finding,) = (row for row in done.json if row["verdict"] != "ok")
    assert finding["message"] == "1 document taken in by an earlier version of memctl"
    command = finding["hint"].partition(": memctl ")[2].split()
    assert memctl(*command).code == 0
    assert {row["verdict"] for row in memctl("doctor", "-o", "json").json} == {"ok"}


def test_a_misspelt_prompt_is_reported_with_the_name_that_was_meant(
    memctl: Run, tmp_path: Path
) -> None:
    memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    prompts = tmp_path / "home" / "kb" / "default" / "prompts"
    prompts.mkdir()
    (prompts / "answer.md").write_text("Answer in one word.")
    (prompts / "undrestand.md").write_text("Understand everything.")
    (finding,) = (row for row in memctl("doctor", "-o", "json").json if row["verdict"] != "ok")
    assert finding["message"] == "no prompt is called undrestand.md: ignored"
    assert finding["hint"] == "did you mean 'understand.md'?"


def test_a_torn_manifest_is_found_and_repaired(memctl: Run, tmp_path: Path) -> None:
    memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    manifest = newest_manifest(tmp_path / "home")
    manifest.write_bytes(manifest.read_bytes()[:40])

    found = memctl("doctor", "-o", "json")
    assert found.code == 12
    wrong = [finding for finding in found.json if finding["verdict"] == "damaged"]
    assert {finding["subject"] for finding in wrong} == {"memories"}
    keys = {"kb", "layer", "subject", "verdict", "message", "hint", "check"}
    assert wrong[0].keys() == keys
    assert "hint: put it right: memctl doctor --repair" in found.err

    assert memctl("doctor", "--repair").code == 0
    assert memctl("doctor").code == 0
    assert memctl("ingest", "--text", "The deposit is 4,350 euros.").code == 0
    assert "4,350 euros" in memctl("query", "How much is the deposit?").out


def test_what_is_lost_for_good_is_named_and_is_another_exit_code(
    memctl: Run, tmp_path: Path
) -> None:
    memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    stated = memctl("memory", "add", "The door code is 4711.", "-o", "json").json["id"]
    edited = memctl("memory", "edit", stated, "--text", "The code is 12.", "-o", "json").json["id"]
    folder = tmp_path / "home" / "kb" / "default" / "lance" / "memories.lance" / "data"
    (new,) = (path for path in folder.iterdir() if b"The code is 12." in path.read_bytes())
    new.unlink()  # another one says that the old version has ended

    planned = memctl("doctor", "--repair", "--dry-run", "-o", "json")
    assert planned.code == 3
    assert f"1 memory would be lost for good: {edited}" in planned.err
    done = memctl("doctor", "--repair", "-o", "json")
    assert done.code == 3
    assert f"error: 1 memory lost for good: {edited}" in done.err
    assert "hint: bring it from a backup, or ingest it again" in done.err
    named = [row for step in done.json for row in step["lost"]]
    assert named == [row for step in planned.json for row in step["lost"]]
    assert named == [{"id": edited, "document_id": None, "source": "stated"}]
    assert sum(step["lost_rows"] for step in done.json) == 1
    again = memctl("doctor", "--repair")
    assert (again.code, again.out) == (0, "")


def test_one_that_cannot_be_repaired_keeps_no_other_waiting(memctl: Run, tmp_path: Path) -> None:
    for name in ("bare", "default", "held"):
        memctl("kb", "create", name)
        memctl("ingest", "-k", name, "--text", "The lease starts on 1 June 2026.")
        newest_manifest(tmp_path / "home", name).write_bytes(b"")
    for path in (tmp_path / "home/kb/bare").rglob("*"):
        if path.is_file() and path.name != "kb.toml":
            path.write_bytes(b"")  # of which nothing can be read
    with WriteLock(tmp_path / "home/kb/held", utc_now).hold(5.0):
        done = memctl("doctor", "--repair", "-o", "json")
    assert done.code == 12, "damage is told of before a lock"
    assert {step["kb"] for step in done.json} == {"default"}
    assert "warning: bare is left out: nothing of the table" in done.err
    assert "warning: held is left out: " in done.err
    assert "error: bare, held could not be put right, and the others were" in done.err
    assert memctl("doctor", "-k", "default").code == 0


def test_a_home_without_knowledge_bases_is_no_failure(memctl: Run) -> None:
    done = memctl("doctor")
    assert done.code == 0
    assert "no knowledge base yet" in done.err


def test_a_table_shows_what_is_not_in_order_and_with_verbose_every_check(
    memctl: Run, tmp_path: Path
) -> None:
    memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    folder = tmp_path / "home" / "kb" / "default"
    (folder / "failed" / "note.txt").write_text("nobody knows why")

    short = memctl("doctor", "-o", "table")
    assert short.code == 0
    assert "without a reason: note.txt" in short.out
    assert "citations" not in short.out
    assert "1 warning" in short.err

    whole = memctl("doctor", "-o", "table", "--verbose")
    assert "without a reason: note.txt" in whole.out
    assert "citations" in whole.out


def test_subtitles_of_a_failed_recording_need_no_reason_of_their_own(
    memctl: Run, tmp_path: Path
) -> None:
    memctl("kb", "create", "default")
    folder = tmp_path / "home" / "kb" / "default"
    (folder / "inbox" / "talk.mp3").write_bytes(b"ID3" + bytes(range(256)))
    (folder / "inbox" / "talk.srt").write_text("no subtitles")
    memctl("watch", "--once", "-k", "default")
    assert {path.name for path in (folder / "failed").iterdir()} == {
        "talk.mp3",
        "talk.mp3.reason.json",
        "talk.srt",
    }
    assert "without a reason" not in memctl("doctor").out


def test_rebuilding_says_what_it_made(memctl: Run) -> None:
    memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    done = memctl("doctor", "--rebuild", "-o", "json")
    assert done.code == 0
    assert {row["subject"] for row in done.json} >= {"documents", "memories", "indexes"}
    assert memctl("doctor", "--rebuild", "--repair").code == 2
    assert memctl("doctor", "--dry-run").code == 2


def test_rebuilding_asks_before_texts_are_sent_to_an_endpoint(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(embed="vectors").items():
        monkeypatch.setenv(name, value)
    memctl("kb", "create", "notes", "--embedder", "endpoint/vectors")
    memctl("ingest", "-k", "notes", "--text", "The lease starts on 1 June 2026.")
    asked = endpoint.count("/embeddings")

    refused = memctl("doctor", "-k", "notes", "--rebuild")
    assert refused.code == 2
    assert "send the text of every memory of notes to endpoint/vectors" in refused.err
    assert "--yes" in refused.err
    assert endpoint.count("/embeddings") == asked

    assert memctl("doctor", "-k", "notes", "--rebuild", "--yes").code == 0
    assert endpoint.count("/embeddings") == asked  # what it replied once is kept
    assert memctl("doctor", "-k", "notes").code == 0

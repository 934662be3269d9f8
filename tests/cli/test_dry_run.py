"""memctl ingest --dry-run: what would become of each source, and what models would cost."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint

from .conftest import Run

WORDS = "The ferry leaves at nine from pier four. "


def use(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, **models: str) -> None:
    for name, value in endpoint.settings(**models).items():
        monkeypatch.setenv(name, value)


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_says_of_each_source_what_the_real_thing_would(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "known.md").write_text("The lease starts on 1 June 2026.\n")
    assert memctl("ingest", "known.md").code == 0
    (tmp_path / "new.md").write_text("The boat is green.\n")
    (tmp_path / "twin.md").write_text("The boat is green.\n")
    (tmp_path / "empty.pdf").write_bytes(b"%PDF-1.7 and no more")
    names = ("known.md", "new.md", "twin.md", "empty.pdf", "nowhere.md")
    dry = memctl("ingest", *names, "--dry-run", "-o", "json")
    real = memctl("ingest", *names, "-o", "json")
    assert (dry.code, dry.err) == (real.code, real.err) == (3, real.err)
    assert dry.json["dry_run"]
    assert not real.json["dry_run"]
    for key in ("ingested", "skipped", "failed"):
        assert dry.json[key] == real.json[key]

    def outcomes(report: Any) -> set[tuple[str, str, str, str]]:
        keys = ("source", "outcome", "document_id", "error")
        return {tuple(item[key] for key in keys) for item in report["outcomes"]}  # type: ignore[misc]

    assert outcomes(dry.json) == outcomes(real.json)


def test_versions_within_one_file_of_lines_are_told_apart(memctl: Run) -> None:
    lines = [{"id": "a", "text": "one"}, {"id": "a", "text": "two"}, {"id": "a", "text": "two"}]
    given = "\n".join(map(json.dumps, lines))
    dry = memctl("ingest", "--jsonl", "-", "--dry-run", "-o", "json", stdin=given).json
    real = memctl("ingest", "--jsonl", "-", "-o", "json", stdin=given).json
    for report in (dry, real):
        found = sorted(item["outcome"] for item in report["outcomes"])
        assert found == ["ingested", "known", "superseded"]


def test_nothing_is_written_and_no_model_is_asked(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    use(endpoint, monkeypatch, understand="m", image="i", transcribe="w")
    before = everything_in(tmp_path / "home")
    assert memctl("ingest", "--text", WORDS, "--dry-run").code == 0
    after = everything_in(tmp_path / "home")
    assert {name for name in after if "-wal" not in name and "-shm" not in name} == before.keys()
    assert all(after[name] == before[name] for name in before)
    assert endpoint.count() == 0
    assert len(memctl("document", "list").rows) == 1


def test_a_home_without_a_knowledge_base_stays_without(memctl: Run, tmp_path: Path) -> None:
    result = memctl("ingest", "--text", WORDS, "--dry-run", "-o", "table")
    assert result.code == 0
    assert "default: 1 to ingest" in result.out
    assert "estimated" not in result.out
    assert memctl("kb", "list").rows == []
    assert memctl("ingest", "--text", WORDS, "--dry-run", "-k", "nope").code == 10


def test_no_model_is_asked_for_a_knowledge_base_that_is_still_to_be_made(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(endpoint, monkeypatch, embed="e")
    report = memctl("ingest", "--text", WORDS, "--dry-run", "-o", "json").json
    assert [(item["task"], item["model"]) for item in report["estimates"]] == [("embed", "e")]
    assert endpoint.count() == 0


def test_the_estimate_is_near_what_it_then_takes(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(endpoint, monkeypatch, understand="m")
    monkeypatch.setenv("MEMCTL_BUDGET_INPUT_PRICE", "10")
    reply = {
        "gist": "A ferry.", "entities": [], "topics": ["ferry"], "importance": 0.5,
        "importance_reason": "ordinary", "dates": [], "facts": [],
    }  # fmt: skip
    endpoint.on("DocumentReply", reply)
    (tmp_path / "short.md").write_text(WORDS * 10)
    (tmp_path / "long.md").write_text((WORDS * 20 + "\n\n") * 50)
    dry = memctl("ingest", "short.md", "long.md", "--dry-run", "-o", "json").json
    estimate, compared = dry["estimates"]
    assert (estimate["task"], estimate["model"]) == ("understand", "m")
    assert (compared["task"], compared["model"], compared["calls"]) == ("compare", "m", 2)
    assert 0 < compared["cost"] < estimate["cost"]
    assert endpoint.count() == 0
    memctl("ingest", "short.md", "long.md")
    (used,) = memctl("stats", "--cost").rows
    assert used["calls"] == estimate["calls"] == endpoint.count()
    sent = sum(len(a.said) + len(a.instructions) for a in endpoint.asked) / 4
    assert estimate["input_tokens"] == pytest.approx(sent, rel=0.15)
    assert estimate["cost"] == pytest.approx(estimate["input_tokens"] * 10 / 1e6)


def test_recordings_are_estimated_by_the_minute(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(endpoint, monkeypatch, transcribe="w")
    monkeypatch.setenv("MEMCTL_BUDGET_TRANSCRIBE_PRICE", "0.5")
    with wave.open(str(tmp_path / "call.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(1000)
        file.writeframes(bytes(1000 * 1200))
    result = memctl("ingest", "call.wav", "--dry-run", "-o", "table")
    assert "transcribe by w: about 2 calls, paid by the minute, 10.00" in result.out
    assert "estimated cost: 10.00, less what models have replied before" in result.out

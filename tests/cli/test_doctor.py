"""memctl doctor finds damage, says so with its exit code, and puts it right."""

from __future__ import annotations

from pathlib import Path

from .conftest import Run


def newest_manifest(home: Path) -> Path:
    folder = home / "kb" / "default" / "lance" / "memories.lance" / "_versions"
    return max(folder.glob("*.manifest"), key=lambda path: path.stat().st_mtime_ns)


def test_a_whole_knowledge_base_passes(memctl: Run) -> None:
    memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    done = memctl("doctor", "-o", "json")
    assert (done.code, done.json) == (0, [])
    assert "1 knowledge base whole" in done.err
    assert "1 knowledge base whole" in memctl("doctor", "-k", "default", "-k", "default").err


def test_a_torn_manifest_is_found_and_repaired(memctl: Run, tmp_path: Path) -> None:
    memctl("ingest", "--text", "The lease starts on 1 June 2026.")
    manifest = newest_manifest(tmp_path / "home")
    manifest.write_bytes(manifest.read_bytes()[:40])

    found = memctl("doctor", "-o", "json")
    assert found.code == 12
    assert [finding["subject"] for finding in found.json] == ["memories"]
    assert found.json[0].keys() == {"kb", "subject", "message"}
    assert "hint: put it right: memctl doctor --repair" in found.err

    assert memctl("doctor", "--repair").code == 0
    assert memctl("doctor").code == 0
    assert memctl("ingest", "--text", "The deposit is 4,350 euros.").code == 0
    assert "4,350 euros" in memctl("query", "How much is the deposit?").out


def test_a_home_without_knowledge_bases_is_no_failure(memctl: Run) -> None:
    done = memctl("doctor")
    assert (done.code, done.out) == (0, "")

"""`memctl export markdown`: a vault of notes that follows what is remembered, and reads back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from cli.conftest import Run

from memctl.links.vault_files import name_key, safe_name, seal_file, seal_of

from .conftest import Write

PRICES = ("4 March 2026: the rent is 900 euros.", "From 9 April 2026 the rent is 950 euros.")


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def front(note: Path) -> dict[str, object]:
    found = yaml.safe_load(note.read_text().split("---\n")[1])
    assert isinstance(found, dict)
    return found


def export(memctl: Run, *more: str) -> str:
    result = memctl("export", "markdown", "--to", "out", *more)
    assert (result.code, result.out) == (0, ""), result.err
    return result.err


@pytest.fixture
def out(memctl: Run, write: Write, tmp_path: Path) -> Path:
    """An exported vault of two notes, two statements and what they say together."""
    write(
        a="---\ntags: [harbour]\nstatus: draft\n---\n# Alpha\n\nSee [[rp]] and [[Nowhere]].\n",
        b="---\naliases: [RP]\ndate: 2026-03-01\n---\n# Release: Plan?\n\nWe ship in [[May]].\n",
    )
    for number, text in enumerate(PRICES):
        memctl("ingest", "--text", text, "--title", f"Rent {number}")
    assert memctl("consolidate").code == 0
    export(memctl)
    return tmp_path / "out"


def test_documents_and_insights_become_notes_with_links_and_an_index(out: Path) -> None:
    names = {name for name in files(out) if name.startswith("documents/")}
    assert names == {
        f"documents/{each}.md" for each in ("Alpha", "Release Plan", "Rent 0", "Rent 1")
    }
    alpha = out / "documents/Alpha.md"
    said = front(alpha)
    assert (said["tags"], said["status"]) == (["harbour"], "draft")
    assert said["links"] == ["[[Release Plan]]"]
    assert str(said["sources"]).endswith("vault/a.md']")
    assert alpha.read_text().endswith("# Alpha\n\nSee [[rp]] and [[Nowhere]].\n")
    plan = front(out / "documents/Release Plan.md")
    assert plan["aliases"] == ["RP", "Release: Plan?"]
    assert str(plan["date"]) == "2026-03-01"
    (insight,) = (out / "insights").iterdir()
    assert "[[Rent 1]]" in str(front(insight)["sources"])
    assert "950 euros" in insight.read_text()
    index = (out / "index.md").read_text()
    assert "- [[Alpha]]: See rp and Nowhere." in index
    linked = set(re.findall(r"\[\[(.*?)\]\]", index))
    assert linked == {Path(name).stem for name in files(out)} - {"index"}


def test_written_again_nothing_changes_and_read_back_nothing_does(memctl: Run, out: Path) -> None:
    before = files(out)
    known = memctl("export", "memories").out
    assert "wrote 0 notes" in export(memctl)
    assert files(out) == before
    report = memctl("ingest", "out", "-o", "json").json
    assert (report["ingested"], report["skipped"]) == (0, len(before))
    assert memctl("ingest", "out", "--sync", "-o", "json").json["gone"] == 0
    assert memctl("export", "memories").out == known
    assert "wrote 0 notes" in export(memctl)


def test_what_was_forgotten_goes_and_what_is_not_ours_stays(memctl: Run, out: Path) -> None:
    (out / "documents/Mine.md").write_text("# Mine\n")
    (out / "picture.png").write_bytes(b"png")
    alpha = out / "documents/Alpha.md"
    alpha.write_text(alpha.read_text() + "\nMy own words.\n")
    rows = {row["title"]: row["id"] for row in memctl("document", "list").rows}
    for title in ("Rent 1", "Alpha"):
        assert memctl("document", "delete", rows[title], "--yes").code == 0
    before = files(out)
    report = export(memctl, "--dry-run")
    assert "would have removed 2" in report
    assert files(out) == before
    report = export(memctl)
    assert "left alone 1 that were edited: documents/Alpha.md" in report
    left = files(out).keys()
    assert {"documents/Mine.md", "picture.png", "documents/Alpha.md"} <= left
    assert "documents/Rent 1.md" not in left
    assert not any(name.startswith("insights/") for name in left)


def test_a_note_that_was_edited_is_read_as_a_new_document(memctl: Run, out: Path) -> None:
    plan = out / "documents/Release Plan.md"
    plan.write_text(plan.read_text().replace("in [[May]]", "in June"))
    report = memctl("ingest", "out", "-o", "json").json
    assert report["ingested"] == 1
    assert "in June" in memctl("query", "when do we ship?", "-o", "json").out


def test_another_knowledge_base_takes_the_notes_in(memctl: Run, out: Path) -> None:
    assert memctl("kb", "create", "other").code == 0
    report = memctl("ingest", "out/documents", "-k", "other", "-o", "json").json
    assert report["ingested"] == 4
    (row,) = memctl("document", "backlinks", "RP", "-k", "other").rows
    assert row["title"] == "Alpha"


def test_names_keep_to_their_documents(memctl: Run, out: Path) -> None:
    memctl("ingest", "--text", "Another rent.", "--title", "rent 0")
    export(memctl)
    names = sorted(file.stem for file in (out / "documents").iterdir())
    assert "Rent 0" in names
    (other,) = (name for name in names if re.fullmatch(r"rent 0 \(d_[0-9a-f]{8}\)", name))
    first = next(row for row in memctl("document", "list").rows if row["title"] == "Rent 0")
    memctl("document", "delete", first["id"], "--yes")
    export(memctl)
    assert (out / f"documents/{other}.md").exists()
    assert not (out / "documents/Rent 0.md").exists()


def test_a_title_that_is_a_file_name_keeps_its_ending_once(memctl: Run, tmp_path: Path) -> None:
    memctl("ingest", "--text", "Ann has the keys.", "--title", "ann.md")
    export(memctl)
    assert (tmp_path / "out/documents/ann.md").exists()


def test_private_namespaces_are_left_out_unless_named(memctl: Run, out: Path) -> None:
    memctl("ingest", "--text", "A secret.", "--title", "Secret", "--namespace", "me")
    memctl("kb", "set", "default", "--private-namespace", "me")
    export(memctl)
    assert not (out / "documents/Secret.md").exists()
    assert "Secret" not in (out / "index.md").read_text()
    result = memctl("export", "markdown", "--to", "mine", "--namespace", "me")
    assert result.code == 0
    assert (out.parent / "mine/documents/Secret.md").exists()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("export", "markdown"), "Markdown goes into a folder"),
        (("export", "markdown", "--to", "-"), "Markdown goes into a folder"),
        (("export", "markdown", "--to", "file"), "file is not a folder"),
        (("export", "markdown", "--to", "home/x"), "is a folder of memctl's own"),
        (("export", "markdown", "--to", "linked"), "documents is a link"),
        (("export", "markdown", "--to", "x", "-f", "csv"), "Markdown has no other format"),
        (("export", "memories", "--dry-run"), "--dry-run is for markdown"),
    ],
)
def test_where_no_vault_can_be_is_refused(
    memctl: Run, tmp_path: Path, words: tuple[str, ...], error: str
) -> None:
    memctl("ingest", "--text", "Something.")
    (tmp_path / "file").write_text("x")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/documents").symlink_to(tmp_path)
    result = memctl(*words)
    assert result.code == 2
    assert error in result.err


def test_a_folder_with_files_of_others_is_left_alone_unless_a_vault_was_written_into_it(
    memctl: Run, out: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "deep").mkdir(parents=True)
    (other / "Mine.md").write_text("# Mine\n")
    for more in ((), ("--dry-run",)):
        refused = memctl("export", "markdown", "--to", "other", *more)
        assert refused.code == 2
        assert "other has files already" in refused.err
        assert "hint: name a new or an empty folder" in refused.err
    assert set(files(other)) == {"Mine.md"}
    (out / "Mine.md").write_text("# Mine\n")
    assert "wrote 0 notes" in export(memctl)
    (tmp_path / "new" / ".obsidian").mkdir(parents=True)
    assert memctl("export", "markdown", "--to", "new").code == 0
    assert (tmp_path / "new/index.md").exists()


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("a/b\\c:d", "a b c d"),
        ("CON", "CON_"),
        ("nul.txt", "nul.txt_"),
        ("  .. ", "Untitled"),
        ("[[x]]|#^", "x"),
        ("東京\u202e計画\x00", "東京 計画"),
    ],
)
def test_file_names_are_safe_everywhere(title: str, name: str) -> None:
    assert safe_name(title) == name


def test_long_names_are_cut_between_characters() -> None:
    name = safe_name("é" * 500)
    assert set(name) == {"é"}
    assert len(name.encode()) <= 120
    assert name_key("Ä.md") == name_key("a\u0308.md")


def test_a_seal_fits_only_what_was_written() -> None:
    content = seal_file({"title": "x"}, "Text.\n", "d_1", "notes")
    seal = seal_of(content)
    assert seal is not None
    assert (seal.id, seal.kb, seal.is_intact) == ("d_1", "notes", True)
    changed = seal_of(content.replace(b"Text", b"Test"))
    assert changed is not None
    assert not changed.is_intact
    assert seal_of(b"---\nid: d_1\n---\n\nText.\n") is None

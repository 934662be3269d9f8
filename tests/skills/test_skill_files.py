"""Skills imported from files and written out again, verbatim, whatever is in the files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from memctl.knowledge_base import KnowledgeBase
from memctl.skills.skill_files import MAX_TEXT_BYTES, path_problem
from memctl.store.ledger.skill_repositories import SkillFile

from .conftest import Run, Write


def test_a_folder_is_imported_verbatim_and_again_changes_nothing(
    memctl: Run, write: Write, tmp_path: Path
) -> None:
    folder = write("deploy-app", "Deploy an application to a cluster.", category="deployment")
    content = (folder / "SKILL.md").read_bytes().replace(b"\n", b"\r\n")
    (folder / "SKILL.md").write_bytes(content)
    (folder / "scripts").mkdir()
    (folder / "scripts/go.sh").write_bytes(b"#!/bin/sh\ntouch /tmp/never-run\n")
    (folder / "logo.png").write_bytes(b"\x89PNG\0\xff\xfe")
    (tmp_path / "skills/plain.md").write_text("# Plain notes\n\nKeep meeting notes short.\n")
    first = memctl("skill", "add", str(tmp_path / "skills"))
    assert first.code == 0, first.err
    assert [(each["outcome"], each["slug"]) for each in first.rows] == [
        ("added", "deploy-app"),
        ("added", "plain-notes"),
    ]
    again = memctl("skill", "add", str(tmp_path / "skills"))
    assert [each["outcome"] for each in again.rows] == ["unchanged", "unchanged"]
    assert memctl("skill", "version", "list", "deploy-app").rows[0]["number"] == 1
    shown = memctl("skill", "show", "deploy-app", "-o", "json").json
    assert {each["path"]: each["sha256"] for each in shown["files"]} == {
        path: hashlib.sha256((folder / path).read_bytes()).hexdigest()
        for path in ("logo.png", "scripts/go.sh")
    }
    out = tmp_path / "out"
    assert memctl("skill", "export", "--to", str(out)).code == 0
    for path in ("SKILL.md", "logo.png", "scripts/go.sh"):
        assert (out / "deploy-app" / path).read_bytes() == (folder / path).read_bytes()
    assert not Path("/tmp/never-run").exists()


def test_a_changed_file_is_the_next_version_and_the_old_one_is_kept(
    memctl: Run, write: Write
) -> None:
    folder = write("tidy-up", "Tidy up a folder of downloads by kind.", "First text.")
    memctl("skill", "add", str(folder))
    write("tidy-up", "Tidy up a folder of downloads by age.", "Second text.")
    done = memctl("skill", "add", str(folder), "--type", "major", "--notes", "by age")
    assert [(e["outcome"], e["version"], e["is_active"]) for e in done.rows] == [
        ("version", 2, True)
    ]
    rows = memctl("skill", "version", "list", "tidy-up").rows
    assert [(e["number"], e["share"], e["change_type"]) for e in rows] == [
        (1, 0, "major"),
        (2, 100, "major"),
    ]
    assert "by age" in memctl("skill", "search", "tidy up").rows[0]["description"]
    assert "First text." in memctl("skill", "show", "tidy-up", "--version", "1").out
    write("tidy-up", "Tidy up a folder of downloads by kind.", "First text.")
    back = memctl("skill", "add", str(folder)).rows[0]
    assert (back["outcome"], back["version"], back["is_active"]) == ("unchanged", 1, False)


def test_front_matter_says_how_it_is_run_and_what_it_requires(memctl: Run, tmp_path: Path) -> None:
    path = tmp_path / "SKILL.md"
    path.write_text(
        "---\nname: mail-merge\ndescription: Send letters to many.\nlicense: MIT\n"
        "allowed-tools: Bash(git:*) Read\nmetadata:\n  category: communication\n"
        "  tags: mail, letters\n  requires: read-table@2, send-mail\n---\n# Mail merge\n"
    )
    memctl("skill", "add", str(path))
    shown = memctl("skill", "show", "mail-merge", "-o", "json").json
    assert shown["execution"] == {"allowed-tools": "Bash(git:*) Read", "license": "MIT"}
    assert shown["skill"]["category"] == "communication"
    assert shown["skill"]["tags"] == ["mail", "letters"]
    assert shown["skill"]["requires"] == ["read-table@2", "send-mail"]
    assert shown["missing"] == ["read-table@2", "send-mail"]


@pytest.mark.parametrize(
    ("name", "description", "category"),
    [
        ("release-it", "Deploy to kubernetes with helm and roll back.", "deployment"),
        ("find-bugs", "Debug a crash from its stack trace.", "debugging"),
        ("csv-cleaner", "Parse and clean csv data.", "data_processing"),
        ("write-minutes", "Write minutes of a meeting, with its decisions.", "communication"),
        ("write-parser", "Write a function that reads a program.", "code_generation"),
        ("hello", "Say hello.", "operations"),
    ],
)
def test_a_category_that_is_not_given_is_inferred(
    memctl: Run, write: Write, name: str, description: str, category: str
) -> None:
    assert memctl("skill", "add", str(write(name, description))).rows[0]["category"] == category


def test_a_description_with_a_colon_that_is_not_quoted_is_read_as_it_is_written(
    memctl: Run, write: Write
) -> None:
    folder = write("api-design", "placeholder")
    (folder / "SKILL.md").write_text(
        "---\nname: api-design\ndescription: Design an API: it's paths, errors # and paging\n"
        "category: design\ntags: [http]\n---\n# API\n\nStart with resources.\n"
    )
    done = memctl("skill", "add", str(folder))
    assert done.code == 0, done.err
    shown = memctl("skill", "show", "api-design", "-o", "json").json["skill"]
    assert shown["description"] == "Design an API: it's paths, errors # and paging"
    assert (shown["category"], shown["tags"]) == ("design", ["http"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x" * (MAX_TEXT_BYTES + 1), "larger than"),
        (b"---\nname: a\n---\n\0\1\2", "binary"),
        (b"---\nname: caf\xe9\n---\n", "not UTF-8 at byte 13"),
        (b"  \n\n", "empty"),
        (b"---\nname: [a\n---\ntext", "not YAML"),
        (b"---\nname: a\ntags: [a, ]]\n---\ntext", "at line 3 column 12"),
        (b"---\nname: a\nnever closed", "does not end"),
        (b"---\n- a\n- b\n---\ntext", "no mapping"),
        (b"---\nname: " + b"n" * 200 + b"\n---\ntext", "cannot be the name"),
        (b"---\nname: a\ncategory: cooking\n---\ntext", "no category"),
        (b"---\nname: a\nrequires: '@'\n---\ntext", "names no skill"),
        (b"---\na: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
         b"d: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n---\n",
         "aliases"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_skill_is_told_and_stops_no_other(
    memctl: Run, write: Write, content: bytes, reason: str
) -> None:
    root = write("good", "Do something good for everybody here.").parent
    (root / "bad").mkdir()
    (root / "bad/SKILL.md").write_bytes(content)
    done = memctl("skill", "add", str(root))
    assert done.code == 3
    assert [each["outcome"] for each in done.rows] == ["failed", "added"]
    assert reason in done.rows[0]["reason"]
    assert [each["slug"] for each in memctl("skill", "list").rows] == ["good"]


def test_two_files_of_one_name_are_told_and_two_of_one_slug_are_two_skills(
    memctl: Run, write: Write
) -> None:
    one = write("send mail", "Send a mail to one person.")
    other = write("Send-Mail", "Send a mail to a whole list of people.")
    same = one.parent / "zzz"
    same.mkdir()
    (same / "SKILL.md").write_bytes((one / "SKILL.md").read_bytes())
    done = memctl("skill", "add", str(one.parent))
    assert (done.code, [each["outcome"] for each in done.rows]) == (
        3,
        ["added", "added", "failed"],
    )
    assert "is called 'send mail' too" in done.err
    assert other.exists()
    asked = memctl("skill", "show", "send-mail")
    assert asked.code == 2
    assert "2 skills are called 'send-mail'" in asked.err
    assert memctl("skill", "show", done.rows[0]["skill_id"], "-o", "json").code == 0


def test_links_pipes_and_odd_names_in_a_folder_are_left_out_and_told(
    memctl: Run, write: Write, tmp_path: Path
) -> None:
    folder = write("careful", "Be careful with files that lie about.")
    (tmp_path / "secret.txt").write_text("outside of the folder")
    (folder / "leak.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "back\\slash.txt").write_text("odd")
    (folder / "con.txt").write_text("odd")
    (folder / "fine.txt").write_text("fine")
    done = memctl("skill", "add", str(folder))
    assert done.code == 0
    assert len(done.rows[0]["left_out"]) == 5
    shown = memctl("skill", "show", "careful", "-o", "json").json
    assert [each["path"] for each in shown["files"]] == ["fine.txt"]
    assert "outside of the folder" not in memctl("export", "skill_files", "-o", "ndjson").out


@pytest.mark.parametrize(
    "name",
    ["../up.txt", "/etc/passwd", "a/../../b", "a\\b", "c:x", "a//b", "./a", "a/.", "", "x\0y",
     "NUL", "dot. ", "line\nbreak"],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_never_written(
    memctl: Run, kb: KnowledgeBase, write: Write, tmp_path: Path, name: str
) -> None:
    """Rows may come from an export that somebody made by hand."""
    assert path_problem(name)
    memctl("skill", "add", str(write("tricky", "A skill with tricks in the names of its files.")))
    skill = kb.skills.acting_as().find("tricky")
    kb.store.ledger.skills.files.save(
        SkillFile(skill.skill_id, 1, name, "gotcha", "utf-8", kb.resources.clock())
    )
    done = memctl("skill", "export", "--to", str(tmp_path / "deep/out"))
    assert done.code == 0
    assert "left out" in done.err
    found = [p for p in tmp_path.rglob("*") if p.is_file() and p.read_bytes() == b"gotcha"]
    assert found == []


def test_an_export_goes_through_no_link(memctl: Run, write: Write, tmp_path: Path) -> None:
    memctl("skill", "add", str(write("linked", "A skill whose export would go elsewhere.")))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/linked").symlink_to(tmp_path / "elsewhere")
    done = memctl("skill", "export", "--to", str(tmp_path / "out"))
    assert "a link stands in its way" in done.err
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_dry_run_writes_nothing(memctl: Run, write: Write) -> None:
    done = memctl("skill", "add", str(write("maybe", "Perhaps do this one day.")), "--dry-run")
    assert [each["outcome"] for each in done.rows] == ["added"]
    assert memctl("skill", "list").rows == []


def test_an_import_without_skills_is_reported(memctl: Run, tmp_path: Path) -> None:
    assert memctl("skill", "add", str(tmp_path)).code == 4
    assert memctl("skill", "add", str(tmp_path / "nowhere")).code == 2


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("部署到集群", "部署到集群"),
        ("Дай отчёт", "дай-отчёт"),
        ("測試 App", "測試-app"),
        ("Résumé – don’t Panic_2", "resume-dont-panic-2"),
    ],
)
def test_a_slug_keeps_letters_of_every_script(
    memctl: Run, write: Write, tmp_path: Path, name: str, slug: str
) -> None:
    root = write(name, "Do what this name says.").parent
    write("after", "Do what comes after.", requires=name)
    assert memctl("skill", "add", str(root)).code == 0
    assert memctl("skill", "show", slug, "-o", "json").json["skill"]["name"] == name
    assert memctl("skill", "context", "after", "-o", "json").json["requires"] == [slug]
    assert memctl("skill", "export", "--to", str(tmp_path / "all")).code == 0
    assert (tmp_path / "all" / slug / "SKILL.md").exists()

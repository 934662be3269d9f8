"""memctl ingest: what came of each input, and the exit code that says so."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from limited import permissions_that_hold
from waiting import wait_for

from .conftest import Result, Run


def test_the_summary_has_the_promised_keys(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The budget is 40,000 euros.")
    result = memctl("ingest", "a.txt", "-o", "json")
    assert result.code == 0
    assert {"ingested", "skipped", "failed", "memories", "seconds"} <= result.json.keys()
    assert result.json["ingested"] == 1
    assert memctl("ingest", "a.txt", "-o", "json").json["skipped"] == 1


def test_in_a_pipe_the_summary_is_one_line(memctl: Run) -> None:
    assert len(memctl("ingest", "--text", "tea, not coffee").rows) == 1


def test_quietly_there_is_a_summary_only_if_asked_for(memctl: Run) -> None:
    assert memctl("ingest", "--text", "The boat is blue.", "-q").out == ""
    assert memctl("ingest", "--text", "The boat is red.", "-q", "-o", "json").json["ingested"] == 1


def test_standard_input_is_one_document(memctl: Run) -> None:
    assert memctl("ingest", "-", stdin="# Notes\n\nThe door code is 4711.\n").code == 0
    (row,) = memctl("document", "list").rows
    assert row["source"] == "stdin"


@contextmanager
def half_given(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An ingest of standard input that has had some of it, and waits for the rest."""
    before = spools(tmp_path)
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    command = [sys.executable, "-m", "memctl", "ingest", "-"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(b"The door code is 4711.\n" * 15_000)
        process.stdin.flush()
        wait_for(lambda: any(path.stat().st_size for path in spools(tmp_path) - before))
        yield process
        process.stdin.close()


def spools(tmp_path: Path) -> set[Path]:
    return set((tmp_path / "home/kb/default").glob(".stdin.*"))


def test_standard_input_that_a_kill_has_left_is_in_the_home_and_goes_at_the_next_start(
    memctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "tmp").mkdir()
    memctl("ingest", "--text", "Ann drinks tea.")
    with half_given(tmp_path) as killed:
        killed.kill()
    [left] = spools(tmp_path)
    assert left.stat().st_mode & 0o777 == 0o600
    assert list((tmp_path / "tmp").iterdir()) == []
    content = left.read_bytes()
    with half_given(tmp_path) as alive:
        [its_own] = spools(tmp_path) - {left}
        forget = ["forget", "--before", "2100-01-01", "--yes"]
        for start in (["ingest", "--text", "tea"], ["watch", "--once"], forget):
            left.write_bytes(content)
            assert memctl(*start, "-k", "default").code == 0
            assert spools(tmp_path) == {its_own}
    assert alive.returncode == 0
    assert spools(tmp_path) == set()


def test_a_bad_file_among_others_is_exit_code_3_and_stays(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("The budget is 40,000 euros.")
    (tmp_path / "zeros.txt").write_text("\0")
    result = memctl("ingest", "good.txt", "zeros.txt", "-o", "json")
    assert result.code == 3
    assert (result.json["ingested"], result.json["failed"]) == (1, 1)
    assert "error: zeros.txt holds nothing but zero bytes\nhint: " in result.err
    assert (tmp_path / "zeros.txt").exists()


def test_an_empty_file_is_skipped_with_a_note(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/good.txt").write_text("The budget is 40,000 euros.")
    (tmp_path / "notes/empty.txt").write_text(" \n")
    result = memctl("ingest", "notes")
    assert (result.code, result.json["ingested"], result.json["empty"]) == (0, 1, 1)
    assert (result.json["skipped"], result.json["failed"]) == (0, 0)
    assert result.err == "note: empty.txt is empty; skipped\n"
    alone = memctl("ingest", "notes/empty.txt", "-o", "table")
    assert (alone.code, alone.err) == (0, "note: empty.txt is empty; skipped\n")
    assert alone.out.startswith("default: 1 empty, in ")
    output = memctl("why", "notes/empty.txt", "-o", "table").out
    assert "skipped: there is nothing in it" in output
    assert "empty.txt is empty" in output


def test_a_file_that_is_empty_now_keeps_what_was_remembered_of_it(
    memctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "plan.txt").write_text("The budget is 40,000 euros.")
    memctl("ingest", "plan.txt")
    (tmp_path / "plan.txt").write_text("")
    assert memctl("ingest", "plan.txt", "--dry-run").json["empty"] == 1
    assert memctl("ingest", "plan.txt").code == 0
    assert [row["status"] for row in memctl("document", "list").rows] == ["indexed"]


def test_the_only_file_being_bad_is_exit_code_1(memctl: Run, tmp_path: Path) -> None:
    result = memctl("ingest", "nothing.txt")
    assert result.code == 1
    assert result.err.startswith("error: no such file or folder: nothing.txt\nhint: ")


def odd_folder(folder: Path) -> None:
    """Make a folder with one file, and with links, pipes, hidden and ignored ones around it."""
    (folder / "sub").mkdir(parents=True)
    (folder / "note.md").write_text("The door code is 4711.")
    (folder / "link.md").symlink_to("note.md")
    (folder / "sub" / "loop").symlink_to("..")
    os.mkfifo(folder / "sub" / "pipe")
    (folder / ".env").write_text("secret")
    (folder / ".gitignore").write_text("*.tmp\n")
    (folder / "draft.tmp").write_text("later")


def test_links_and_special_files_of_a_folder_are_counted(memctl: Run, tmp_path: Path) -> None:
    odd_folder(tmp_path / "mine")
    result = memctl("ingest", "mine", "-o", "json")
    assert (result.code, result.json["ingested"]) == (0, 1)
    assert result.err == "skipped 3 links and special files (use --verbose to see them)\n"
    assert memctl("ingest", "mine", "--quiet").err == ""
    assert memctl("ingest", "mine/note.md").err == ""
    assert memctl("ingest", "mine/sub", "mine/link.md").err.startswith("skipped 2 links")


def test_what_is_left_out_of_a_folder_is_named_when_asked_for(memctl: Run, tmp_path: Path) -> None:
    odd_folder(tmp_path / "mine")
    result = memctl("ingest", "mine", "--verbose", "-o", "json")
    assert result.json["ingested"] == 1
    skipped = [line for line in result.err.splitlines() if line.startswith("skipped ")]
    assert skipped == [
        f"skipped {tmp_path}/mine/{line}"
        for line in (
            ".env: hidden",
            ".gitignore: hidden",
            "draft.tmp: named in .gitignore or .memctlignore",
            "link.md: a link, which is not followed",
            "sub/loop: a link, which is not followed",
            "sub/pipe: a named pipe",
        )
    ]


def test_json_lines_report_a_bad_line_by_number(memctl: Run, tmp_path: Path) -> None:
    lines = [
        {"id": "a", "text": "tea is nice", "tags": ["drink"], "namespace": "user:ann"},
        {"id": "b"},
        {"id": "c", "text": "coffee is nicer"},
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\nbroken\n")
    result = memctl("ingest", "--jsonl", "x.jsonl", "-o", "json")
    assert result.code == 3
    assert (result.json["ingested"], result.json["failed"]) == (2, 2)
    assert "line 2" in result.err
    assert "line 4" in result.err
    assert {row["external_id"] for row in memctl("document", "list").rows} == {"a", "c"}
    found = memctl("memory", "list", "--namespace", "user:ann").rows
    assert [row["tags"] for row in found] == [["drink"]]


BAD_LINES = '{"name": "Ann", "city": "Rome"}\noops\n{"name": "Bob", "city": "Oslo"}\n{"na'


def test_a_file_of_json_lines_says_which_are_none_and_keeps_all(
    memctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "people.jsonl").write_text(BAD_LINES)
    result = memctl("ingest", "people.jsonl", "-o", "json")
    assert (result.code, result.json["ingested"], result.json["failed"]) == (0, 1, 0)
    expected = "records of 2 lines: 2, 4 (not JSON, kept as text)"
    assert result.json["outcomes"][0]["missing"] == [expected]
    assert result.err == f"note: {tmp_path}/people.jsonl: no {expected} yet\n"
    (row,) = memctl("document", "list", "--incomplete").rows
    text = memctl("document", "show", row["id"], "--text").out
    assert [word in text for word in ("Ann", "oops", "Oslo", '{"na')] == [True] * 4


def test_lines_that_are_no_json_are_not_looked_for_again(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "people.jsonl").write_text(BAD_LINES)
    memctl("ingest", "people.jsonl")
    again = memctl("document", "reprocess", "--incomplete", "-o", "json")
    assert (again.code, again.json["ingested"], again.json["outcomes"]) == (0, 0, [])


def test_an_inbox_says_which_json_lines_are_none(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    memctl("kb", "create", "notes")
    (tmp_path / "home/kb/notes/inbox/people.jsonl").write_text(BAD_LINES)
    taken = [row for row in memctl("watch", "--once").rows if row["kind"] == "ingested"]
    assert taken[0]["detail"]["missing"] == ["records of 2 lines: 2, 4 (not JSON, kept as text)"]
    assert (tmp_path / "home/kb/notes/processed/people.jsonl").read_text() == BAD_LINES


def test_a_file_that_is_called_json_lines_and_has_none_fails(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "prose.jsonl").write_text("It was a dark night.\nThe rain fell.\n")
    result = memctl("ingest", "prose.jsonl")
    assert result.code == 1
    assert "it is not JSON: Expecting value at line 1 column 1" in result.err


def test_labels_are_kept(memctl: Run) -> None:
    memctl(
        "ingest", "--text", "tea, not coffee", "--tag", "#drink", "--namespace", "user:ann",
        "--source", "kitchen", "--session", "s1",
    )  # fmt: skip
    (row,) = memctl("document", "list").rows
    assert (row["tags"], row["namespace"]) == (["drink"], "user:ann")
    assert (row["source"], row["session_id"]) == ("kitchen", "s1")


def test_a_wrong_combination_is_a_usage_error(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for words in (
        [], ["--text", "a", "--jsonl", "b"], ["-", "b"], ["--text", "  "],
        ["--jsonl", "folder"], ["--jsonl", "nothing.jsonl"],
    ):  # fmt: skip
        result = memctl("ingest", *words)
        assert result.code == 2, words
        assert "\nhint: " in result.err
    assert not (tmp_path / "home" / "kb").exists()


def pdf(password: str = "") -> bytes:
    from pypdf import PdfWriter

    made, writer = io.BytesIO(), PdfWriter()
    writer.add_blank_page(200, 200)
    if password:
        writer.encrypt(password, algorithm="AES-256")
    writer.write(made)
    return made.getvalue()


def errors_of(result: Result) -> list[str]:
    """Return the class of each failure, and see to it that nothing else has one."""
    for outcome in result.json["outcomes"]:
        assert bool(outcome["error"]) == (outcome["outcome"] == "failed")
    return [outcome["error"] for outcome in result.json["outcomes"] if outcome["error"]]


def test_a_failure_says_by_its_class_what_went_wrong(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "locked.pdf").write_bytes(pdf("secret"))
    (tmp_path / "cut.pdf").write_bytes(pdf()[:200])
    (tmp_path / "zeros.txt").write_text("\0")
    (tmp_path / "good.txt").write_text("The budget is 40,000 euros.")
    (tmp_path / "bad.json").write_text('{"a": oops}')
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    expected = {
        "nothing.txt": "FileNotFoundError",
        "good.txt/x": "NotADirectoryError",
        "loop": "OSError",
        "pipe": "UnreadableSource",
        "locked.pdf": "EncryptedSource",
        "cut.pdf": "UnreadableSource",
        "bad.json": "UnreadableSource",
        "zeros.txt": "UnreadableSource",
    }
    result = memctl("ingest", "good.txt", *expected, "-o", "json")
    failed = [outcome for outcome in result.json["outcomes"] if outcome["outcome"] == "failed"]
    found = {os.path.relpath(item["source"], tmp_path): item["error"] for item in failed}
    assert found == expected
    assert sorted(errors_of(result)) == sorted(expected.values())


def test_a_bad_line_says_by_its_class_what_went_wrong(memctl: Run) -> None:
    lines = 'broken\n{"text": ""}\n[1]\n{"text": "tea"}\n'
    result = memctl("ingest", "--jsonl", "-", "-o", "json", stdin=lines)
    assert errors_of(result) == ["BadRecord"] * 3


def test_a_file_without_read_permission_is_reported_as_a_permission_error(
    memctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "closed.txt").write_text("x")
    (tmp_path / "closed.txt").chmod(0)
    with permissions_that_hold():
        result = memctl("ingest", "closed.txt", "-o", "json")
    assert errors_of(result) == ["PermissionError"]
    assert "hint: check its permissions" in result.err


def test_reading_again_what_is_gone_or_changed_says_so_by_its_class(
    memctl: Run, tmp_path: Path
) -> None:
    for name in ("gone.txt", "changed.txt"):
        (tmp_path / name).write_text(f"This is {name}.")
        memctl("ingest", name)
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "changed.txt").write_text("something else")
    ids = [row["id"] for row in memctl("document", "list").rows]
    result = memctl("document", "reprocess", *ids, "-o", "json")
    assert sorted(errors_of(result)) == ["ChangedSource", "FileNotFoundError"]


def test_failures_can_be_listed_as_rows(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "zeros.txt").write_text("\0")
    out = memctl("ingest", "zeros.txt", "-o", "csv").out
    assert out.splitlines()[1].startswith("zeros.txt,failed") or ",failed," in out


def test_a_recording_without_a_transcript_is_reported(memctl: Run, tmp_path: Path) -> None:
    import wave

    with wave.open(str(tmp_path / "memo.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\0\0" * 8000)
    result = memctl("ingest", "memo.wav")
    assert result.code == 0
    assert "note: " in result.err
    assert "transcript" in result.err
    assert len(memctl("document", "list", "--incomplete").rows) == 1
    (tmp_path / "memo.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nThe code is 4711.\n")
    again = memctl("document", "reprocess", "--incomplete", "-o", "json")
    assert again.code == 0
    assert memctl("document", "list", "--incomplete").rows == []


MAIL = (
    "From: {0} <{0}@x.org>\nTo: {1} <{1}@x.org>\nDate: Mon, {2} May 2026 10:00:00 +0000\n"
    "Subject: Crane\nMessage-ID: <{2}@x.org>\n{3}\n{4}\n"
)
ORIGINAL = MAIL.format("Bob", "Ann", 3, "", "Tom Baker mended the crane. We decided to keep it.")
REPLY = MAIL.format(
    "Ann", "Bob", 4, "In-Reply-To: <3@x.org>\n",
    "Yes, that is fine with me.\n\nOn 3 May 2026, Bob <Bob@x.org> wrote:\n"
    "> Tom Baker mended the crane. We decided to keep it.\n\n-- \nAnn Lee\nAnn@x.org, Harbour St.",
)  # fmt: skip


def test_what_a_mail_quotes_is_found_where_the_message_itself_is_not_there(
    memctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "reply.eml").write_text(REPLY)
    memctl("ingest", "reply.eml")
    found = memctl("query", "Who mended the crane?", "-o", "json").json
    (quoted,) = [hit for hit in found["hits"] if hit["type"] == "quoted"]
    assert "> Tom Baker mended the crane." in quoted["text"]
    assert quoted["heading"] == "Quoted message"
    assert not found["answer"]["found"]
    stated = "select * from memories where level <> 'evidence' and type <> 'gist'"
    assert memctl("sql", stated).rows == []
    assert memctl("graph", "search", "Tom Baker").rows == []
    (document,) = memctl("document", "list", "-o", "json").json
    memctl("document", "reprocess", document["id"])
    again = memctl("memory", "list", "-o", "json").json
    assert sorted(row["type"] for row in again) == ["gist", "passage", "passage", "quoted"]


def _quoted(memctl: Run, *options: str) -> list[str]:
    """Return the hits that are quotations."""
    found = memctl("query", "Who mended the crane?", *options, "-o", "json").json
    return [hit["text"] for hit in found["hits"] if hit["type"] == "quoted"]


def test_what_a_mail_quotes_is_no_hit_of_its_own_while_the_message_is_there(
    memctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "original.eml").write_text(ORIGINAL)
    (tmp_path / "reply.eml").write_text(REPLY.replace("In-Reply-To: <3@x.org>\n", ""))
    memctl("ingest", "reply.eml")
    memctl("ingest", "original.eml")
    assert _quoted(memctl) == []
    assert len(_quoted(memctl, "--duplicates", "keep")) == 1
    found = memctl("query", "Who mended the crane?", "-o", "json").json["hits"]
    (original,) = [hit for hit in found if hit["text"].startswith("Tom Baker mended")]
    assert len(original["also_in"]) == 1
    original = memctl("sql", "select id from documents where source like '%original.eml'").rows
    memctl("forget", "--document", original[0]["id"], "--yes")
    assert len(_quoted(memctl)) == 1


def test_a_message_of_another_namespace_hides_no_quotation(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "original.eml").write_text(ORIGINAL)
    (tmp_path / "reply.eml").write_text(REPLY)
    memctl("ingest", "original.eml", "--namespace", "private")
    memctl("ingest", "reply.eml", "--namespace", "team")
    assert len(_quoted(memctl, "--namespace", "team")) == 1


def test_a_quotation_within_one_stands_by_itself(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "original.eml").write_text(ORIGINAL)
    deeper = ">> Nora mended the old crane of the harbour with two spare wheels.\n"
    (tmp_path / "reply.eml").write_text(REPLY.replace("keep it.\n", f"keep it.\n{deeper}"))
    memctl("ingest", "original.eml", "reply.eml")
    (quoted,) = _quoted(memctl)
    assert quoted == deeper.strip()


def test_a_signature_of_a_long_line_of_numbers_is_read_in_no_time(
    memctl: Run, tmp_path: Path
) -> None:
    signed = f"{REPLY.partition('On 3 May')[0]}-- \n{'1 2 3 4 ' * 100_000}\n"
    (tmp_path / "signed.eml").write_text(signed)
    assert memctl("ingest", "signed.eml").code == 0


@pytest.mark.parametrize(
    "signature",
    [
        "Ann Lee\nAnn@x.org, Harbour Street 3, Lisbon",
        "Phone: 123 456\nMobile: 789 012\nEmail: Ann@x.org",
        f"This message is confidential. {'It is for those who were meant to get it. ' * 12}",
    ],
)
def test_a_signature_is_no_quotation(memctl: Run, tmp_path: Path, signature: str) -> None:
    signed = f"{REPLY.partition('On 3 May')[0]}-- \n{signature}\n"
    (tmp_path / "signed.eml").write_text(signed)
    memctl("ingest", "signed.eml")
    types = memctl("sql", "select distinct type from memories").rows
    assert "quoted" not in {row["type"] for row in types}

"""Paths, folders and JSON lines as sources."""

from __future__ import annotations

import io
import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from limited import permissions_that_hold

from memctl.ingest.discovery.ingest_inputs import LINE_LIMIT, from_jsonl
from memctl.ingest.discovery.skip_rules import DEEPEST_FOLDER
from memctl.ingest.discovery.sources import NO_LABELS, Labels, Source, from_paths, from_text
from memctl.records import FileOutcome, SkippedSource


def write(path: Path, text: str = "something") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def names(folder: Path) -> list[str]:
    """What is found in a folder, by path within it."""
    found = list(from_paths([folder]))
    assert all(isinstance(source, Source) for source in found)
    return [Path(source.source).relative_to(folder).as_posix() for source in found]


# --- folders -------------------------------------------------------------------------------------


def test_a_folder_gives_its_files_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/b.txt"):
        write(tmp_path / name)
    assert names(tmp_path) == ["a/b.txt", "a/z.txt", "b.txt"]


def test_hidden_files_and_folders_are_passed_over(tmp_path: Path) -> None:
    for name in (".env", ".obsidian/app.json", "note.md"):
        write(tmp_path / name)
    assert names(tmp_path) == ["note.md"]


def test_ignored_files_are_passed_over_and_a_later_rule_takes_one_back(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "*.log\n/build/\n")
    write(tmp_path / "sub" / ".gitignore", "!keep.log\n")
    for name in ("a.log", "build/out.txt", "sub/keep.log", "sub/other.log", "sub/build/in.txt"):
        write(tmp_path / name)
    assert names(tmp_path) == ["sub/build/in.txt", "sub/keep.log"]


def test_memctlignore_weighs_more_than_gitignore(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "drafts/\n")
    write(tmp_path / ".memctlignore", "!drafts/\nprivate.md\n")
    for name in ("drafts/a.md", "private.md", "b.md"):
        write(tmp_path / name)
    assert names(tmp_path) == ["b.md", "drafts/a.md"]


def test_subtitles_are_left_to_the_recording_beside_them(tmp_path: Path) -> None:
    for name in (
        "a/site visit.ogg", "a/site visit.srt", "a/talk.mp4", "a/talk.en.vtt",
        "b/talk.srt", "c/talk.md", "c/talk.srt", "c/talk2.ogg",
        "a/talk.de.srt", "a/talk.part two.srt",
    ):  # fmt: skip
        write(tmp_path / name)
    assert names(tmp_path) == [
        "a/site visit.ogg", "a/talk.mp4", "a/talk.part two.srt",
        "b/talk.srt", "c/talk.md", "c/talk.srt", "c/talk2.ogg",
    ]  # fmt: skip


def test_subtitles_of_an_ignored_recording_are_taken_by_themselves(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "*.mp4\n")
    for name in ("talk.mp4", "talk.srt"):
        write(tmp_path / name)
    assert names(tmp_path) == ["talk.srt"]


def test_subtitles_that_are_named_are_taken(tmp_path: Path) -> None:
    paths = [write(tmp_path / name) for name in ("talk.mp4", "talk.srt")]
    assert [source.path for source in from_paths(paths) if isinstance(source, Source)] == paths


def test_the_rules_of_the_repository_around_a_folder_hold_in_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path / ".gitignore", "*.tmp.md\n/docs/out/\n")
    for name in ("docs/a.md", "docs/b.tmp.md", "docs/out/c.md"):
        write(tmp_path / name)
    found = [Path(source.source).name for source in from_paths([tmp_path / "docs"])]
    assert found == ["a.md"]


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path / "elsewhere" / "secret.txt")
    folder = tmp_path / "folder"
    write(folder / "own.txt")
    (folder / "link.txt").symlink_to(secret)
    (folder / "links").symlink_to(secret.parent)
    (folder / "loop").symlink_to(folder)
    assert names(folder) == ["own.txt"]


def test_pipes_and_sockets_in_a_folder_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.txt"))
        left_out: list[SkippedSource] = []
        assert list(from_paths([tmp_path], left_out=left_out.append)) == []
    assert [(Path(item.source).name, item.reason) for item in left_out] == [
        ("pipe.txt", "pipe"), ("s.txt", "socket"),
    ]  # fmt: skip


def test_a_folder_that_cannot_be_listed_fails_and_the_others_go_on(tmp_path: Path) -> None:
    write(tmp_path / "closed" / "a.txt")
    write(tmp_path / "open" / "b.txt")
    (tmp_path / "closed").chmod(0)
    with permissions_that_hold():
        found = list(from_paths([tmp_path]))
    (tmp_path / "closed").chmod(0o700)
    assert [type(item) for item in found] == [FileOutcome, Source]


def test_a_folder_that_is_named_and_cannot_be_listed_fails_alone(tmp_path: Path) -> None:
    write(tmp_path / "closed" / "a.txt")
    write(tmp_path / "open" / "b.txt")
    (tmp_path / "closed").chmod(0)
    with permissions_that_hold():
        found = list(from_paths([tmp_path / "closed", tmp_path / "open"]))
    (tmp_path / "closed").chmod(0o700)
    assert [type(item) for item in found] == [FileOutcome, Source]


# --- single paths --------------------------------------------------------------------------------


def test_a_pipe_given_as_a_path_is_refused_and_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (outcome,) = from_paths([tmp_path / "pipe"])
    assert isinstance(outcome, FileOutcome)
    assert (outcome.outcome, outcome.hint != "") == ("failed", True)
    assert "not a regular file" in outcome.reason


def test_a_path_that_is_not_there_fails_and_the_next_one_goes_on(tmp_path: Path) -> None:
    here = write(tmp_path / "here.txt")
    missing, source = from_paths([tmp_path / "gone.txt", here])
    assert isinstance(missing, FileOutcome)
    assert "no such file" in missing.reason
    assert isinstance(source, Source)


def test_a_link_to_nothing_says_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    (outcome,) = from_paths([tmp_path / "link"])
    assert isinstance(outcome, FileOutcome)
    assert outcome.reason == f"{tmp_path}/link is a link to nowhere, which is not there"
    assert outcome.error == "FileNotFoundError"


def test_a_name_that_is_not_utf8_is_remembered_escaped(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    path.write_text("x")
    (source,) = from_paths([tmp_path])
    assert isinstance(source, Source)
    assert source.source.endswith("/caf\\xe9.txt")
    assert source.path == path


def test_labels_apply_to_every_source(tmp_path: Path) -> None:
    labels = Labels("user:ann", ("work",), "s1", "")
    (source,) = from_paths([write(tmp_path / "a.txt")], labels)
    assert isinstance(source, Source)
    assert (source.namespace, source.tags, source.session_id) == ("user:ann", ("work",), "s1")


def test_text_from_a_terminal_that_is_not_utf8_is_cleaned() -> None:
    assert from_text("caf\udce9").text == "caf?"


# --- JSON lines ----------------------------------------------------------------------------------


def read(*lines: object, labels: Labels = NO_LABELS) -> list[Source | FileOutcome]:
    encoded = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    return list(from_jsonl(io.BytesIO(b"\n".join(encoded)), "records.jsonl", labels))


def record(**fields: object) -> Source:
    (source,) = read({"text": "t", **fields})
    assert isinstance(source, Source), source
    return source


def problem(line: object) -> str:
    outcome, after = read(line, {"text": "the next one"})
    assert isinstance(outcome, FileOutcome)
    assert isinstance(after, Source)
    assert (outcome.line, after.line) == (1, 2)
    return outcome.reason


def test_a_record_carries_all_its_fields() -> None:
    source = record(
        id="a1",
        namespace="user:ann",
        title="Plans",
        created_at="2024-05-01T10:00:00+02:00",
        session_id="s1",
        turn=3,
        tags=["x", "y"],
        metadata={"k": 1},
        source="chat",
        speaker="Ann",
    )
    assert source.created_at == datetime(2024, 5, 1, 8, tzinfo=UTC)
    assert (source.external_id, source.namespace, source.title) == ("a1", "user:ann", "Plans")
    assert (source.session_id, source.turn, source.speaker) == ("s1", 3, "Ann")
    assert (source.tags, source.metadata, source.source) == (("x", "y"), {"k": 1}, "chat")


def test_a_field_that_is_not_known_is_kept_as_metadata() -> None:
    assert record(mood="good", metadata={"k": 1}).metadata == {"mood": "good", "k": 1}


def test_ids_may_be_numbers() -> None:
    source = record(id=17, session_id=4)
    assert (source.external_id, source.session_id) == ("17", "4")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024-05-01T10:00:00Z", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1_700_000_000_000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("", None),
        (None, None),
    ],
)
def test_a_date_may_be_iso_or_seconds_or_milliseconds(value: object, expected: object) -> None:
    assert record(created_at=value).created_at == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{broken", "not JSON"),
        (b'{"text": "\xff"}', "not UTF-8"),
        ([1, 2], "not a JSON object"),
        ({"id": 1}, 'no "text"'),
        ({"text": "  "}, '"text" is empty'),
        ({"text": 5}, '"text" is not a string'),
        ({"text": "t", "tags": [1]}, '"tags" is not a list of strings'),
        ({"text": "t", "turn": "one"}, '"turn" is not a whole number'),
        ({"text": "t", "turn": True}, '"turn" is not a whole number'),
        ({"text": "t", "created_at": "yesterday"}, '"created_at" is no date'),
        ({"text": "t", "created_at": 1e300}, '"created_at" is no date'),
        ({"text": "t", "metadata": "m"}, '"metadata" is not an object'),
        ({"text": "t", "type": "poem"}, '"type" is none of'),
        (b"[" * 100_000, "not JSON"),
        (b'{"text": "t", "metadata": {"n": ' + b"9" * 5000 + b"}}", "number that is too long"),
    ],
)
def test_a_bad_line_is_reported_with_its_number_and_the_next_one_goes_on(
    line: object, reason: str
) -> None:
    message = problem(line)
    assert reason in message
    assert "line 1" in message


def test_a_line_that_is_too_long_is_skipped_without_taking_the_next_for_its_end() -> None:
    long = b'{"text": "' + b"x" * LINE_LIMIT + b'"}'
    assert "longer than 64 MiB" in problem(long)


def test_blank_lines_and_a_byte_order_mark_are_no_problem() -> None:
    found = read(b"\xef\xbb\xbf" + b'{"text": "a"}', b"", b"  ", {"text": "b"})
    assert [source.line for source in found] == [1, 4]


def test_a_lone_surrogate_in_a_record_becomes_a_question_mark() -> None:
    assert record(text="a\ud800b").text == "a?b"


def test_labels_stand_where_a_record_says_nothing() -> None:
    labels = Labels("ns", ("all",), "s0", "import")
    own, other = read({"text": "a", "tags": "b", "namespace": "x"}, {"text": "c"}, labels=labels)
    assert isinstance(own, Source)
    assert isinstance(other, Source)
    assert (own.namespace, own.tags, own.session_id, own.source) == (
        "x",
        ("all", "b"),
        "s0",
        "import",
    )
    assert (other.namespace, other.tags) == ("ns", ("all",))


def test_folders_that_are_too_deep_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "a.txt")
    write(tmp_path.joinpath(*["d"] * (DEEPEST_FOLDER + 1), "deep.txt"))
    taken, deep = from_paths([tmp_path])
    assert isinstance(taken, Source)
    assert isinstance(deep, FileOutcome)
    assert f"more than {DEEPEST_FOLDER} folders deep" in deep.reason

"""Small files made to keep an ingest busy: the work grows with their size, and no faster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest
from ingest.conftest import bench, embedder
from pathspec import GitIgnoreSpec

from memctl.graph.derivation import relations_of
from memctl.ingest import document_processing
from memctl.ingest.discovery.skip_rules import IgnoreRules
from memctl.ingest.discovery.sources import Labels
from memctl.ingest.document_records import MOST_LINKS, MOST_TAGS
from memctl.language.inline_tags import find_hashtags, find_wikilinks
from memctl.readers.pieces import MAX_HEADING_LENGTH

if TYPE_CHECKING:
    from cli.conftest import Run
    from ingest.conftest import Bench

    from memctl.ingest.batches import PreparedDocument

__all__ = ["bench", "embedder"]

MAX_SECONDS = 20
"""Of this process; what grows with the square of a file's size takes a hundred of them."""


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python are run; the same every time, however busy the machine is."""
    count = 0

    def counting(_frame: FrameType, _event: str, _arg: object) -> Any:
        nonlocal count
        count += 1
        return counting

    before = sys.gettrace()
    sys.settrace(counting)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def grows_with(make: Callable[[int], Callable[[], object]]) -> float:
    """How many times as many steps four times as much takes."""
    return steps(make(400)) / steps(make(100))


def test_links_and_tags_beside_code_are_found_in_one_pass() -> None:
    assert find_hashtags("`#a` #b `#c` #d", [(0, 6)]) == ("d",)
    assert find_wikilinks("`[[a]]` [[b]] ~~~\n[[c]]") == ("b", "c")
    for find in (find_wikilinks, find_hashtags):  # with their patterns compiled by now
        assert grows_with(lambda count, find=find: lambda: find("`a` [[b]] #c\n" * count)) < 6


HEAVY = {
    "a.md": ("# ", "[["),
    "b.md": ("# ", "[]("),
    "a.adoc": ("== ", "[["),
    "b.adoc": ("", "_"),
    "a.txt": ("See ", "[["),
}
"""What a line begins with, and what it goes on with for ever."""


@pytest.mark.parametrize("name", HEAVY)
def test_a_mark_that_is_opened_again_and_again_keeps_nobody_busy(name: str, bench: Bench) -> None:
    """With patterns that look for its end from each of them, this would take many minutes."""
    start, mark = HEAVY[name]
    path = bench.file(name, f"{start}{mark * 100_000} end\n\nThe boat is blue.\n")
    began = time.process_time()
    bench.paths(path)
    assert time.process_time() - began < MAX_SECONDS
    assert any("The boat is blue." in row["text"] for row in bench.rows("memories", "text"))


def test_a_document_links_to_a_bounded_number_of_pages_and_says_so(bench: Bench) -> None:
    text = "".join(f"[[page {number}]]\n" for number in range(MOST_LINKS + 500))
    bench.paths(bench.file("index.md", text))
    (document,) = bench.rows("documents")
    assert len(document["links"]) == MOST_LINKS
    assert document["missing"] == ["links beyond the first 2,000"]
    assert len(bench.rows("relations")) <= MOST_LINKS


def test_the_passages_are_looked_through_once_for_all_the_pages_they_link_to(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Sequence[PreparedDocument]] = []
    monkeypatch.setattr(document_processing, "relations_of", lambda items: made.append(items) or [])

    def linking(pages: int) -> Callable[[], object]:
        text = "".join(f"Page {n} tells of [[page {n}]] and ships.\n\n" for n in range(pages))
        bench.paths(bench.file(f"{pages}.md", text))
        items = made[-1]
        return lambda: relations_of(items)

    assert grows_with(linking) < 6
    relations = relations_of(made[0])
    texts = {memory.id: memory.text for item in made[0] for memory in item.memories}
    assert len(relations) == 400
    for relation in relations:
        assert relation.memory_ids
        assert all(f"[[{relation.text}]]" in texts[id_] for id_ in relation.memory_ids)


def test_a_memory_has_few_of_the_tags_of_its_document(bench: Bench) -> None:
    found = " ".join(f"#t{n}" for n in range(1_000))
    labels = Labels(tags=tuple(f"given{n}" for n in range(300)))
    bench.paths(bench.file("a.md", f"Of ships. {found}\n"), labels=labels)
    given = [f"given{n}" for n in range(300)]
    for row in (*bench.rows("documents", "tags"), *bench.rows("memories", "tags")):
        assert row["tags"] == [*given, *(f"t{n}" for n in range(MOST_TAGS))]


def test_a_heading_that_is_long_is_not_kept_with_all_that_stands_below_it(bench: Bench) -> None:
    bench.paths(bench.file("a.md", f"# {'x' * 100_000} end\n\n" + "Of ships.\n\n" * 100))
    headings = [row["heading"] for row in bench.rows("memories", "heading") if row["heading"]]
    assert headings
    assert all(len(heading) <= MAX_HEADING_LENGTH for heading in headings)


RULES = {
    "asterisks": "*a" * 40 + "*b\n",
    "classes": "*[!b]" * 40 + "*b\n",
    "folders": "**/a" * 40 + "/b\n",
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_what_is_left_out_keep_nobody_busy(name: str, tmp_path: Path) -> None:
    """With rules that are tried in every way that there is, this would not come to an end."""
    inbox = tmp_path / "inbox"
    deep = inbox.joinpath(*"a" * 60)
    deep.mkdir(parents=True)
    (inbox / ".memctlignore").write_text("*.tmp.txt\n!kept.tmp.txt\n" + RULES[name])
    for file in ("a" * 200, "left.tmp.txt", "kept.tmp.txt"):
        (deep / file).write_text("Of ships.")
    done = subprocess.run(
        [sys.executable, "-m", "memctl", "ingest", str(inbox), "--dry-run", "-o", "json"],
        env={**os.environ, "MEMCTL_HOME": str(tmp_path / "home")},
        capture_output=True,
        timeout=300,
        check=True,
    )
    taken = {Path(row["source"]).name for row in json.loads(done.stdout)["outcomes"]}
    assert taken == {"a" * 200, "kept.tmp.txt"}


@pytest.mark.parametrize(
    "path", ["a", "ab", "axb", "a/b", "b/a", "aab/a", "a]b", "x/axxb/y", "ba/"]
)
@pytest.mark.parametrize(
    "rule", ["*a*b", "a*b*", "*[!a]*b", "?*a*b/", "*[]a]*b", "!*a*a", "a/**/b", r"*\a*b", "/*a*/*b"]
)
def test_a_rule_leaves_out_what_it_does_in_git(rule: str, path: str, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text(f"a*\n{rule}\n")
    rules = IgnoreRules().within(tmp_path)
    expected = GitIgnoreSpec.from_lines(["a*", rule]).check_file(path).include
    assert rules.ignore(tmp_path / path, is_folder=path.endswith("/")) is bool(expected)


def test_a_pipe_in_the_place_of_rules_is_passed_over(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    os.mkfifo(tmp_path / "inbox" / ".gitignore")
    (tmp_path / "inbox" / "a.txt").write_text("Of ships.")
    assert memctl("ingest", str(tmp_path / "inbox"), "-o", "json").json["ingested"] == 1


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "large", "link to a pipe"])
@pytest.mark.parametrize("is_flag", [True, False])
def test_what_is_no_file_of_settings_is_refused_in_one_line(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_flag: bool
) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "settings"
    if kind == "folder":
        path.mkdir()
    elif kind == "large":
        path.touch()
        os.truncate(path, 10 << 30)
    elif kind != "device":
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to("pipe")
        path = path if kind == "link to a pipe" else tmp_path / "pipe"
    if not is_flag:
        monkeypatch.setenv("MEMCTL_CONFIG", str(path))
    done = memctl(*(["--config", str(path)] if is_flag else []), "kb", "list")
    problems = {"large": "has more than 1,048,576 bytes", "folder": "is a folder"}
    assert (done.code, done.out) == (2, "")
    assert problems.get(kind, "it is no regular file") in done.err
    assert ("name another file" if kind == "folder" else "name a file of settings") in done.err


def test_settings_from_the_output_of_a_program_are_refused_and_not_passed_over(
    memctl: Run,
) -> None:
    """As a shell gives them: --config <(...)."""
    reading, writing = os.pipe()
    try:
        os.write(writing, b'default_kb = "piped"\n')
        done = memctl("--config", f"/dev/fd/{reading}", "kb", "list")
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.code, done.out) == (2, "")
    assert "it is no regular file" in done.err


def test_settings_may_be_a_link(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('default_kb = "linked"\n')
    (tmp_path / "link.toml").symlink_to("settings.toml")
    assert memctl("--config", "link.toml", "ingest", "--text", "Of ships.").code == 0
    assert [row["name"] for row in memctl("kb", "list").rows] == ["linked"]

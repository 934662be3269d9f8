"""Programs of the user's add to what is known; what they print is data, bounded and checked."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

GOOD = {
    "text": "Ada Lovelace founded the Aurora observatory in 1843.",
    "source": "Wiki",
    "url": "wiki://aurora",
    "date": "2024-03-01",
}
PROGRAMS = {
    "wiki": f"import sys; sys.stdin.read(); print({json.dumps(GOOD)!r})",
    "mixed": f"print({json.dumps(GOOD | {'text': 'The dome is made of copper.'})!r})\n"
    "print('oops')",
    "garbage": "print('no JSON'); print('[1, 2]'); print('{\"text\": 3}')",
    "megabytes": "print('x' * 3_000_000)",
    "hanging": "import signal; signal.pause()",
    "failing": "import sys; sys.exit('the dump is not there')",
    "deaf": "import sys; sys.stdin.close()",
    "parent": "import subprocess, sys, signal; subprocess.Popen([sys.executable, '-c', "
    "'import signal; signal.pause()']); signal.pause()",
    "echo": 'import json, sys; print(json.dumps({"text": "You asked: " + sys.stdin.read()}))',
}


@pytest.fixture
def sources(memctl: Any, folder: Path) -> Any:
    """The command line, with programs of the user's in its settings."""
    lines = []
    for name, code in PROGRAMS.items():
        command = json.dumps(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}")
        seconds = 0.5 if name in ("hanging", "parent") else 30
        lines += [f"[sources.{name}]", f"command = {command}", f"seconds = {seconds}"]
        lines.append("megabytes = 1.0")
    lines += ["[sources.absent]", 'command = "/nowhere/program"']
    (folder / "home" / "config.toml").write_text("\n".join(lines))
    return memctl


def test_results_of_a_program_are_tagged_and_trusted_less(sources: Any) -> None:
    (done,) = sources("enrich", "who founded Aurora?", "--with", "wiki").rows
    assert (done["source"], done["texts"], done["report"]["ingested"]) == ("wiki", 1, 1)
    (document,) = [
        row for row in sources("document", "list").rows if row["source"].startswith("outside:wiki")
    ]
    assert document["tags"] == ["outside"]
    assert document["created_at"].startswith("2024-03-01")
    assert document["metadata"]["url"] == "wiki://aurora"
    assert document["metadata"]["asked"] == "who founded Aurora?"
    rows = sources("sql", "select confidence from memories where source like 'outside:%'").rows
    assert rows
    assert all(row["confidence"] <= 0.5 for row in rows)
    (again,) = sources("enrich", "who founded Aurora?", "--with", "wiki").rows
    assert again["report"]["ingested"] == 0


def test_a_query_asks_a_program_first_where_that_is_wanted(sources: Any) -> None:
    asked = sources("query", "who founded the Aurora observatory?", "--with", "wiki", "-o", "json")
    assert asked.json["answer"]["found"]
    assert "Ada Lovelace" in asked.json["answer"]["text"]


def test_a_question_reaches_the_program_as_it_is_and_no_shell(sources: Any) -> None:
    sources("enrich", "$(touch x); `id` 'who?'", "--with", "echo")
    texts = [row["text"] for row in sources("sql", "select text from documents").rows]
    assert "You asked: $(touch x); `id` 'who?'" in texts


def test_bad_lines_are_told_and_the_others_kept(sources: Any) -> None:
    done = sources("enrich", "what is the dome made of?", "--with", "mixed")
    assert (done.code, done.rows[0]["texts"], done.rows[0]["bad_lines"]) == (3, 1, [2])
    assert "line 2" in done.err


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("garbage", 1, "no line that can be read"),
        ("megabytes", 1, "more than 1 megabytes"),
        ("hanging", 1, "stopped after 0.5 seconds"),
        ("parent", 1, "stopped after 0.5 seconds"),
        ("failing", 1, "exit code 1"),
        ("absent", 2, "cannot be run"),
        ("nobody", 2, "no source"),
    ],
)
def test_a_program_that_is_of_no_use_is_told_and_nothing_is_kept(
    sources: Any, name: str, code: int, message: str
) -> None:
    before = len(sources("document", "list", "-n", "0").rows)
    done = sources("enrich", "who founded Aurora?", "--with", name)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert "hint: " in done.err
    assert len(sources("document", "list", "-n", "0").rows) == before


def test_a_program_that_reads_nothing_and_says_nothing_is_no_failure(sources: Any) -> None:
    (done,) = sources("enrich", "who founded Aurora?", "--with", "deaf").rows
    assert done["texts"] == 0


def test_no_outside_source_is_asked_for_private_knowledge_bases_or_without_settings(
    sources: Any, folder: Path
) -> None:
    sources("kb", "create", "diary", "--private")
    done = sources("enrich", "who founded Aurora?", "--with", "wiki", "-k", "diary")
    assert done.code == 2
    assert "private" in done.err
    (folder / "home" / "config.toml").write_text("")
    assert sources("enrich", "who founded Aurora?").code == 2
    (folder / "home" / "config.toml").write_text("[sources.wiki]\nseconds = 1.0\n")
    assert "command is missing" in sources("stats").err

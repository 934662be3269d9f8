"""Words made to do harm: as ids and filters they find nothing, on a terminal they do nothing."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Run

INJECTIONS = ["x' OR '1'='1", "'; DROP TABLE memories; --", 'x" OR 1=1 --', "%", "../../etc", "\\"]
ANSWERS = {
    "document show": ["document", "show", "@"],
    "document delete": ["document", "delete", "@", "--yes"],
    "document reprocess": ["document", "reprocess", "@"],
    "memory show": ["memory", "show", "@"],
    "memory edit": ["memory", "edit", "@", "--text", "mine"],
    "memory delete": ["memory", "delete", "@", "--yes"],
    "memory history": ["memory", "history", "@"],
    "insight show": ["insight", "show", "@"],
    "graph neighbors": ["graph", "neighbors", "@"],
    "a knowledge base": ["query", "ferry", "-k", "@"],
    "a knowledge base to delete": ["kb", "delete", "@", "--yes"],
    "feedback": ["query", "--feedback", "@", "good"],
}
NOTHING = {
    "namespace": ["--namespace", "@"],
    "tag": ["--tag", "@"],
    "type": ["--type", "@"],
    "session": ["--session", "@"],
    "source": ["--source", "@"],
}
NASTY = {
    "a quote": "x' OR '1'='1",
    "a climber": "../../etc/passwd",
    "a NUL": "nul\x00here",
    "a newline": "two\nlines",
    "escapes": "\x1b[2Jred",
    "right to left": "\u202egnp.exe",
    "much": "x" * 10_000,
    "no UTF-8": "\udcff",
}
EVERYWHERE = """
query ferry --level @ | query ferry --since @ | query ferry --until @ | query ferry --as-of @
query ferry --where @ | query ferry --namespace @ | query ferry --session @ | query ferry --tag @
query ferry --type @ | query ferry --source @ | query ferry -k @ | query --feedback @ good
query --batch @ | query @ | context @ | memory list --where @ | memory list --since @
document list --where @ | document list --source @ | insight list --where @ | memory show @
memory add text --namespace @ --tag @ --session @ | document reprocess @ | why @
export memories -k @ | export memories --namespace @ | export memories --to @/x.csv
import @ | import - -k @ | snapshot create @ | snapshot restore @ --yes | snapshot delete @ --yes
snapshot list -k @ | forget --document @ --yes | forget --memory @ --yes | forget --entity @ --yes
forget --namespace @ --yes | forget --before @ --yes | kb create @ | kb create new --embedder @
kb show @ | kb set @ --private | kb set default --inbox @ | kb set default --remove-inbox @
kb set default --private-namespace @ | kb set default --open-namespace none@
kb rename @ other | kb rename default @ | kb delete @ --yes | kb pause @ | kb archive @
kb resume @ | kb reembed default --embedder @ | graph neighbors @ | graph path @ Ann
graph merge @ Ann | graph unmerge @ Ann | graph export --to @/y | graph show --namespace @ | sql @
sql |select 1| --namespace @ | eval @ | config show @ | doctor -k @ | watch --once -k @
stats -k @ | status -k @ | consolidate -k @ | models test @ | ingest @ | ingest --jsonl @
"""
COMMANDS = [
    line.split()
    for line in EVERYWHERE.replace("|select 1|", "select_1").replace("\n", " | ").split(" | ")
    if line
]
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
ODD = "a\x1b[2J\n\x07\u202egnp\u200f.txt"


@pytest.fixture
def notes(memctl: Run) -> Run:
    memctl("ingest", "--text", "The ferry leaves at nine.", "--tag", "sea")
    memctl("ingest", "--text", "Tomatoes want sun.", "--namespace", "garden")
    return memctl


def rows(run: Run) -> list[tuple[str, str]]:
    found = run("memory", "list").rows
    return sorted((row["id"], row["text"]) for row in found)


@pytest.mark.parametrize("word", INJECTIONS)
def test_an_id_or_a_name_is_never_code(notes: Run, word: str) -> None:
    before = rows(notes)
    for what, words in ANSWERS.items():
        done = notes(*(word if each == "@" else each for each in words))
        assert done.code in (1, 2, 10), (what, done)
        assert done.err.startswith("error: "), what
        assert "unexpected" not in done.err, what
    assert rows(notes) == before


@pytest.mark.parametrize("word", NASTY.values(), ids=NASTY)
def test_whatever_a_name_or_a_filter_is_every_command_ends_as_it_should(
    notes: Run, word: str
) -> None:
    before = rows(notes)
    for words in COMMANDS:
        done = notes(*(each.replace("@", word).replace("_", " ", 1) for each in words))
        assert done.code in (0, 1, 2, 3, 4, 10), (words, done.code)
        assert "unexpected" not in done.err, (words, done.err)
        assert not STEERING.search(done.err), (words, done.err)
        assert len(done.err) < 5_000, words
    notes("kb", "set", "default", "--open-namespace", word)
    kept = [row for row in rows(notes) if row[1] != "text"]
    assert kept == before


@pytest.mark.parametrize("word", INJECTIONS)
def test_a_filter_is_never_code(notes: Run, word: str) -> None:
    before = rows(notes)
    for what, words in NOTHING.items():
        limits = [word if each == "@" else each for each in words]
        done = notes("query", "ferry", "-o", "json", *limits)
        if done.code == 0:  # a part of a name may match, as in a source
            assert what == "source" or done.json["hits"] == [], what
        else:
            assert done.code == 2, (what, done)
    assert rows(notes) == before


@pytest.mark.parametrize("word", INJECTIONS)
def test_what_a_text_is_filed_under_is_kept_as_it_is(notes: Run, word: str) -> None:
    filed = ["--namespace", word, "--tag", word]
    assert notes("ingest", "--text", "Filed oddly.", *filed, "--source", word).code == 0
    found = notes("query", "filed oddly", *filed, "--level", "evidence", "-o", "json")
    (hit,) = found.json["hits"]
    assert (hit["namespace"], hit["tags"], hit["source"]) == (word, [word], word)


def test_sql_changes_nothing_and_reads_no_file(notes: Run) -> None:
    before = rows(notes)
    for statement in (
        "delete from memories",
        "select 1; drop table memories",
        "copy memories to '/tmp/stolen.csv'",
        "select * from read_csv('/etc/passwd')",
        "attach '/tmp/other.db'",
        "install httpfs",
    ):
        assert notes("sql", statement).code in (1, 2), statement
    assert rows(notes) == before


def test_names_and_texts_do_nothing_to_a_terminal_and_stay_exact_in_json(
    memctl: Run, tmp_path: Path
) -> None:
    text = "The ferry \x1b[31mleaves\x1b[0m at \x9b2J nine\u202e."
    path = tmp_path / ODD
    path.write_text(text)
    (tmp_path / f"{ODD}.pdf").write_bytes(b"%PDF-1.4 broken")
    shown = []
    for words in (
        ["ingest", str(path)],
        ["ingest", f"{path}.pdf"],
        ["query", "when does the ferry leave?"],
        ["document", "list"],
        ["memory", "list"],
        ["consolidate"],
    ):
        done = memctl(*words, "-o", "table")
        shown += [done.out, done.err]
    for output in shown:
        assert not set(output) & set("\x1b\x9b\x07\u202e\u200f"), output
    (document,) = memctl("document", "list").rows
    assert document["source"] == os.fspath(path)
    exact = memctl("document", "show", document["id"], "-o", "json").json["document"]["text"]
    assert "\x1b[31mleaves" in exact

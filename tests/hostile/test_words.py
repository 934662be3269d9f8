"""Words made to do harm: as ids and filters they find nothing, on a terminal they do nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_tree import commands, takes_text
from long_form import IS_LONG

from memctl.cli.main import run

if TYPE_CHECKING:
    from cli.conftest import Run

WORDS = {
    "a quote": "x' OR '1'='1",
    "a statement": "'; DROP TABLE memories; --",
    "a double quote": 'x" OR 1=1 --',
    "a wildcard": "%",
    "a backslash": "\\",
    "a climber": "../../etc/passwd",
    "a NUL": "nul\x00here",
    "a newline": "two\nlines",
    "escapes": "\x1b[2Jred",
    "right to left": "\u202egnp.exe",
    "much": "x" * 10_000,
    "no UTF-8": "\udcff",
}
FOR_ALL = ("a quote", "no UTF-8")
GIVEN = {
    "table": "memories",
    "statement": "select text from memories",
    "question": "ferry",
    "file": "all.memctl",
    "text": "Said by the way.",
    "kb name": "default",
    "kb new_name": "other",
    "kb create name": "other",
    "graph name": "Ann Keller",
    "graph other": "Bo Lind",
    "snapshot name": "one",
    "snapshot create name": "other",
    "document id_": "DOCUMENT",
    "document ids": "DOCUMENT",
    "memory id_": "MEMORY",
    "insight id_": "MEMORY",
    "memory edit id_": "SPARE",
    "eval folder": "set",
    "upkeep job": "rot",
    "audit what": "changes",
    "summary day": "today",
}
"""The arguments of commands while something else of them is tried."""
BESIDE = {"ingest": ("--text", "Filed.")}
"""What a command needs besides."""
BY_HAND = {
    "ingest paths": "ingest @",
    "ingest text": "ingest --text @",
    "ingest jsonl": "ingest --jsonl @",
    "query batch": "query --batch @",
    "query feedback": "query --feedback @ good",
    "eval make": "eval --make made/@",
    "eval save": "eval set --save made/@",
    "export to": "export memories --to made/@",
    "graph export to": "graph export --to made/@",
    "eval kb": "eval --make made.jsonl -k @",
    "kb set name": "kb set @ --redact",
    "kb reembed name": "kb reembed @ --back",
    "memory edit id_": "memory edit @ --importance 0.5",
    "memory edit kb": "memory edit SPARE --importance 0.5 -k @",
}
"""What is tried with less than is given otherwise, with more, or where no other call finds it."""
SERVING = {"serve", "open"}
"""Commands that go on until they are stopped; what they are given is tried in ``tests/server``."""
WHO = {"user", "agent"}
"""Parameters that may be any name that can be shown (``tests/access``)."""
TOGETHER = {"--namespace", "--tag", "--type", "--session", "--source"}
"""Options that take any text, so that one call may try them all."""
ANSWERED = {
    "ingest text", "query question", "context question", "memory add text", "why file",
    "graph search words", "tier find query", "tier get key", "tier load name", "tier refresh key",
    "tier remove key", "user add name", "agent add name",
    "skill search words", "skill propose topic",
    "memory learnings query",
}  # fmt: skip
"""Arguments that may be anything and still get an answer, which may show what is remembered."""
TEXTS = ("The ferry leaves at nine.", "Tomatoes want sun.", "Ann Keller met Bo Lind in Oslo.")
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
ODD = "a\x1b[2J\n\x07\u202egnp\u200f.txt"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home, an export of it and a set of questions."""
    folder = tmp_path_factory.mktemp("words")
    (folder / "made").mkdir()
    (folder / "set").mkdir()
    (folder / "set/corpus.jsonl").write_text('{"_id": "a", "text": "The ferry leaves at nine."}\n')
    (folder / "set/queries.jsonl").write_text('{"_id": "q", "text": "ferry", "answer": ["a"]}\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMCTL_HOME", str(folder / "home"))
        for namespace, text in zip(("default", "garden", "people"), TEXTS, strict=True):
            assert run(["ingest", "--text", text, "--namespace", namespace]) == 0
        for number in range(9):
            assert run(["memory", "add", f"Spare number {number}."]) == 0
        assert run(["snapshot", "create", "one"]) == 0
        assert run(["export", "all", "--to", str(folder / "all.memctl")]) == 0
    return folder


@pytest.fixture
def notes(memctl: Run, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("MEMCTL_KB", "default")
    return memctl


def rows(run: Run) -> list[tuple[str, str]]:
    found = run("memory", "list").rows
    return sorted((row["id"], row["text"]) for row in found if row["text"] in TEXTS)


# --- every parameter of every command ------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A call that tries a word as one or more parameters of a command."""

    tried: tuple[str, ...]
    words: tuple[str, ...]


def trials(name: str, command: Any, *, is_apart: bool) -> Iterator[list[Trial]]:
    """The calls of a command, by those of which one is enough as long as it is not refused."""
    parameters = [each for each in command.params if takes_text(each) and each.name not in WHO]
    shared = [each for each in parameters if not is_apart and TOGETHER & {*each.opts}]
    for parameter in parameters:
        if parameter not in shared:
            yield [trial(name, command, parameter)]
    if shared:
        yield [trial(name, command, *shared), *(trial(name, command, each) for each in shared)]


def trial(name: str, command: Any, *tried: Any) -> Trial:
    names = tuple(f"{name} {each.name}" for each in tried)
    if names[0] in BY_HAND:
        return Trial(names, tuple(BY_HAND[names[0]].split()))
    words = [*name.split(), *BESIDE.get(name, ())]
    for each in command.params:
        is_argument = each.param_type_name == "argument"
        if each in tried:
            words += ["@"] if is_argument else [each.opts[0], "@"]
        elif is_argument:
            words += given(name, each.name)
        elif {"--yes", "--once"} & {*each.opts}:
            words.append(each.opts[0])
    return Trial(names, tuple(words))


def given(name: str, argument: str) -> list[str]:
    noun = name.partition(" ")[0]
    keys = (f"{name} {argument}", f"{noun} {argument}", argument)
    return next(([GIVEN[key]] for key in keys if key in GIVEN), [])


def tried_with(kind: str) -> Iterator[tuple[str, Any]]:
    """The commands that get a word: some words all of them, others a sixth where time is short."""
    share = 1 if IS_LONG or kind in FOR_ALL else 6
    for number, (name, command) in enumerate(commands().items()):
        if name not in SERVING and (number + [*WORDS].index(kind)) % share == 0:
            yield name, command


@pytest.mark.parametrize("kind", WORDS)
def test_whatever_an_id_or_a_filter_is_every_command_ends_as_it_should_and_tells_nothing(
    notes: Run, kind: str
) -> None:
    before = rows(notes)
    spare = [row["id"] for row in notes("memory", "list").rows if row["text"].startswith("Spare")]
    ids = {"MEMORY": before[0][0], "DOCUMENT": notes("document", "list").rows[0]["id"]}

    def is_refused(trial: Trial) -> bool:
        own = ids | ({"SPARE": spare.pop()} if "SPARE" in trial.words else {})
        done = notes(*(own.get(word, word).replace("@", WORDS[kind]) for word in trial.words))
        assert done.code in (0, 1, 2, 3, 4, 10), (trial, done)
        assert "unexpected" not in done.err, (trial, done)
        assert not STEERING.search(done.err), (trial, done)
        assert len(done.err) < 5_000, trial
        may_show = ANSWERED & {*trial.tried}
        assert may_show or not any(text in done.out for text in TEXTS), trial
        return done.code in (1, 2, 10)

    for name, command in tried_with(kind):
        arguments = {f"{name} {p.name}" for p in command.params if p.param_type_name == "argument"}
        for first, *others in trials(name, command, is_apart=kind == "a quote"):
            refused = is_refused(first)
            assert refused or not arguments - ANSWERED & {*first.tried}, first
            for other in others if refused else ():
                is_refused(other)
    assert rows(notes) == before


def test_the_parameters_that_are_tested_by_hand_exist() -> None:
    names = {f"{name} {each.name}" for name, found in commands().items() for each in found.params}
    assert {*BY_HAND, *ANSWERED} <= names
    assert {"memory list levels", "query feedback", "graph neighbors namespace"} <= names


@pytest.mark.parametrize("word", [*WORDS.values()][:6], ids=[*WORDS][:6])
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


def test_metadata_that_is_nested_too_deep_is_refused(memctl: Run) -> None:
    deep = json.dumps({"text": "The ferry leaves at nine.", "metadata": {"a": nested(900)}})
    assert memctl("ingest", "--jsonl", "-", stdin=deep).code == 3
    assert memctl("document", "list").rows == []
    asked = json.dumps({"information": "x y z", "metadata": {"a": nested(900)}})
    refused = memctl("tool", "call", "store_important_information", asked, "--user", "ann")
    assert "Traceback" not in refused.err
    assert memctl("memory", "list").rows == []


def nested(levels: int) -> list[Any]:
    """A list within a list, so many levels deep."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def test_a_long_number_is_answered_at_once(memctl: Run) -> None:
    memctl("ingest", "--text", "The ferry leaves at nine from pier 3.")
    started = time.process_time()
    assert memctl("query", "9" * 6_000).code in (0, 4)
    assert time.process_time() - started < 20

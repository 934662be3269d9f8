"""A namespace that is private: read only where it is named, sent nowhere, noted nowhere."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.test_facts import understood
from command_line import made_once
from fake_endpoint import FakeEndpoint
from PIL import Image

if TYPE_CHECKING:
    from cli.conftest import Result, Run

ANN = ("--namespace", "user:ann")
WORDS = ("Zanzibar", "Quillfeather")
"""They stand in what is private alone."""
SECRETS = (
    "Ann Quillfeather flew to Zanzibar on 3 May 2026.",
    "Ann Quillfeather came back from Zanzibar on 9 May 2026.",
    "The tickets of Ann Quillfeather to Zanzibar are in the drawer. See [[Zanzibar]].",
)
OPEN = "The surgeon of the ship was called Maturin. He had a drawer."


@pytest.fixture
def guarded(memctl: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A knowledge base in which one of two namespaces is private."""

    def make() -> None:
        memctl("kb", "create", "default", "--private-namespace", "user:ann")
        lines = [{"text": text, "namespace": "user:ann"} for text in SECRETS]
        stdin = "\n".join(map(json.dumps, [*lines, {"text": OPEN}]))
        memctl("ingest", "--jsonl", "-", stdin=stdin)
        memctl("consolidate")

    made_once(tmp_path, tmp_path_factory.getbasetemp() / "guarded", make)
    return memctl


@pytest.fixture
def distant(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> FakeEndpoint:
    """Models for everything, on a machine that counts as another one."""
    tasks = ("understand", "answer", "consolidate", "rerank", "image")
    for name, value in endpoint.settings(**dict.fromkeys(tasks, "m")).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("memctl.models.endpoint._LOOPBACK", ("elsewhere",))
    endpoint.on("DocumentReply", understood)
    return endpoint


def tells(result: Result) -> list[str]:
    """Which of the words that are private stand in what a command gave."""
    return [word for word in WORDS if word.casefold() in f"{result.out}{result.err}".casefold()]


READING = (
    ("query", "Who flew in May?", "-o", "json", "--explain"),
    ("query", "What is in the drawer?", "-o", "json", "--mode", "keyword"),
    ("query", "What is in the drawer?", "-o", "json", "--mode", "vector"),
    ("query", "What is in the drawer?", "-o", "json", "--mode", "graph", "--explain"),
    ("query", "What is in the drawer?", "-o", "json", "--mode", "agentic", "--explain"),
    ("query", "Who flew?", "-o", "json", "--where", "namespace = 'user:ann'"),
    ("query", "Zanzi*", "-o", "json", "--no-answer"),
    ("context", "What is in the drawer?"),
    ("memory", "list", "-n", "0", "-o", "json"),
    ("memory", "list", "--as-of", "2099-01-01", "-o", "json"),
    ("document", "list", "-o", "json"),
    ("insight", "list", "-o", "json"),
    ("graph", "show", "-o", "json"),
    ("graph", "communities", "-o", "json"),
    ("graph", "export", "-f", "dot"),
    ("export", "documents"),
    ("export", "memories", "-f", "csv"),
    ("export", "entities"),
    ("export", "relations"),
    ("sql", "select title, text, source from documents", "-o", "json"),
    ("sql", "select text, entities from memories", "-o", "json"),
    ("sql", "from entities", "-o", "json"),
    ("sql", "from relations", "-o", "json"),
    ("stats", "-o", "json"),
    ("stats", "--queries", "-o", "json"),
)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_nothing_of_a_private_namespace_is_read_where_it_is_not_named(
    guarded: Run, command: tuple[str, ...]
) -> None:
    asked = guarded(*command)
    assert asked.code == 0, asked.err
    assert tells(asked) == []


@pytest.mark.parametrize(
    "command",
    [
        each
        for each in READING
        if each[0] != "stats"
        and each[:2] not in (("insight", "list"), ("graph", "communities"))
        and "agentic" not in each
    ],
    ids=" ".join,
)
def test_a_private_namespace_is_read_where_it_is_named(
    guarded: Run, command: tuple[str, ...]
) -> None:
    asked = guarded(*command, *ANN)
    assert asked.code == 0, asked.err
    assert tells(asked) != []
    assert "Maturin" not in asked.out


def test_a_batch_names_the_namespace_of_each_question(guarded: Run, tmp_path: Path) -> None:
    asked = [{"id": "1", "question": "Who flew?", "namespace": "user:ann"}]
    asked += [{"id": "2", "question": "Who flew?"}]
    lines = "\n".join(map(json.dumps, asked))
    first, second = guarded("query", "--batch", "-", "-o", "ndjson", stdin=lines).rows
    assert {hit["namespace"] for hit in first["hits"]} == {"user:ann"}
    assert "user:ann" not in {hit["namespace"] for hit in second["hits"]}


def test_by_its_id_a_private_memory_is_shown(guarded: Run) -> None:
    row = guarded("memory", "list", *ANN).rows[0]
    assert tells(guarded("memory", "show", row["id"])) != []


@pytest.mark.parametrize("is_whole", [True, False], ids=["the whole", "its namespace"])
def test_names_of_private_files_are_told_where_they_are_named_alone(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    options = ("--private",) if is_whole else ("--private-namespace", "default")
    memctl("kb", "create", "diary", *options)
    memctl("ingest", "--text", OPEN)
    inbox = tmp_path / "home/kb/diary/inbox"
    (inbox / "Zanzibar.md").write_text("We sailed in May.")
    (inbox / "Zanzibar fails.pdf").write_bytes(b"%PDF-1.7")
    memctl("watch", "--once")
    (inbox / "Quillfeather.md").write_text("It waits.")
    asking = [("sql", f"from {book}") for book in ("files", "events")] + [("status",)]
    for command in asking:
        unnamed = memctl(*command, "-o", "json")
        assert (unnamed.code, tells(unnamed)) == (0, [])
        named = () if is_whole or command[0] == "status" else ("--namespace", "default")
        is_told = is_whole or command[-1] != "from events"  # which know of no namespace
        assert bool(tells(memctl(*command, "-k", "diary", *named, "-o", "json"))) is is_told


def test_questions_on_a_private_namespace_are_noted_without_their_text(
    guarded: Run, tmp_path: Path
) -> None:
    guarded("query", "Who flew to Timbuktu?", *ANN)
    guarded("context", "Who flew to Timbuktu?", *ANN)
    guarded("query", "Who was the surgeon of the ship?")
    noted = guarded("sql", "select question from queries", "-o", "json").json
    assert {row["question"] for row in noted} == {None, "Who was the surgeon of the ship?"}
    held = b"".join(p.read_bytes() for p in (tmp_path / "home").rglob("ledger*") if p.is_file())
    assert b"Timbuktu" not in held


def test_nothing_of_a_private_namespace_is_sent_to_another_machine(
    memctl: Run, distant: FakeEndpoint, tmp_path: Path
) -> None:
    memctl("kb", "create", "default", "--private-namespace", "user:ann")
    lines = [{"text": text, "namespace": "user:ann"} for text in SECRETS]
    lines += [{"text": OPEN}, {"text": "The surgeon likes coffee. The ship likes rain."}]
    memctl("ingest", "--jsonl", "-", stdin="\n".join(map(json.dumps, lines)))
    Image.new("RGB", (400, 300), "teal").save(tmp_path / "ticket.png")
    memctl("ingest", str(tmp_path / "ticket.png"), *ANN)
    memctl("memory", "add", "Ann Quillfeather likes Zanzibar", *ANN)
    memctl("consolidate")
    memctl("document", "reprocess", "--upgrade")
    for mode in ("hybrid", "agentic", "graph"):
        memctl("query", "Who flew to Zanzibar, and who came back?", "--mode", mode, *ANN)
    memctl("query", "What is in the drawer?", "--mode", "agentic")
    memctl("context", "Zanzibar", *ANN)
    assert distant.count(shape="DocumentReply") == 2, "what is not private is understood by it"
    assert distant.count("rerank") >= 1
    assert distant.count(shape="Picture") == 0
    assert [word for asked in distant.asked for word in WORDS if word in str(asked.body)] == []


def test_with_may_send_a_private_namespace_is_understood_and_no_reply_is_kept(
    memctl: Run, distant: FakeEndpoint, tmp_path: Path
) -> None:
    memctl("kb", "create", "default", "--private-namespace", "user:ann", "--may-send")
    memctl("ingest", "--text", SECRETS[0], *ANN)
    assert distant.count(shape="DocumentReply") == 1
    memctl("document", "delete", memctl("document", "list", *ANN).rows[0]["id"], "--yes")
    memctl("ingest", "--text", SECRETS[0], *ANN)
    assert distant.count(shape="DocumentReply") == 2


def test_what_waits_to_be_compared_is_not_sent_once_it_is_private(
    memctl: Run, distant: FakeEndpoint
) -> None:
    memctl("ingest", "--text", SECRETS[0], *ANN)
    distant.fail(path="completions", times=-1, after=1)
    memctl("ingest", "--text", SECRETS[1], *ANN)
    distant.mend()
    memctl("kb", "set", "default", "--private-namespace", "user:ann")
    before = len(distant.asked)
    assert memctl("consolidate").code == 0
    assert len(distant.asked) == before


def test_a_namespace_that_becomes_private_takes_questions_and_replies_with_it(
    memctl: Run, distant: FakeEndpoint, tmp_path: Path
) -> None:
    memctl("ingest", "--text", SECRETS[0], *ANN)
    memctl("query", "Who flew to Timbuktu?")
    memctl("kb", "set", "default", "--private-namespace", "user:ann")
    assert memctl("sql", "select question from queries").rows == [{"question": None}]
    memctl("kb", "set", "default", "--open-namespace", "user:ann")
    before = distant.count(shape="DocumentReply")
    memctl("document", "delete", memctl("document", "list").rows[0]["id"], "--yes")
    memctl("ingest", "--text", SECRETS[0], *ANN)
    assert distant.count(shape="DocumentReply") == before + 1


def test_vectors_from_another_machine_and_a_private_namespace_exclude_each_other(
    memctl: Run, distant: FakeEndpoint
) -> None:
    memctl("kb", "create", "far", "--embedder", "endpoint/e")
    refused = memctl("kb", "set", "far", "--private-namespace", "user:ann")
    assert refused.code == 2
    assert "reembed far --embedder builtin" in refused.err
    assert memctl("kb", "show", "far", "-o", "json").json["private_namespaces"] == []
    memctl("kb", "create", "near", "--private-namespace", "user:ann")
    before = len(distant.asked)
    assert memctl("kb", "reembed", "near", "--embedder", "endpoint/e").code == 2
    assert len(distant.asked) == before


def test_private_namespaces_are_shown_and_can_be_opened_again(guarded: Run) -> None:
    (row,) = guarded("kb", "list").rows
    assert (row["private_namespaces"], row["privacy"]) == (["user:ann"], "user:ann")
    assert "user:ann" in guarded("kb", "list", "-o", "table").out
    assert "user:ann" in guarded("kb", "show", "default").out
    wrong = guarded("kb", "set", "default", "--open-namespace", "user:bob")
    assert wrong.code == 2
    assert "user:ann" in wrong.err
    guarded("kb", "set", "default", "--open-namespace", "user:ann")
    assert tells(guarded("query", "Who flew in May?")) != []


def test_an_export_of_everything_has_it_and_stays_private_where_it_is_imported(
    guarded: Run, tmp_path: Path
) -> None:
    archive = str(tmp_path / "all.memctl")
    guarded("export", "all", "--to", archive)
    assert guarded("import", archive, "-k", "copy").code == 0
    assert guarded("kb", "show", "copy", "-o", "json").json["private_namespaces"] == ["user:ann"]
    assert tells(guarded("query", "Who flew in May?", "-k", "copy")) == []
    assert tells(guarded("query", "Who flew in May?", "-k", "copy", *ANN)) != []


def test_a_private_knowledge_base_stays_private_where_it_is_imported(
    memctl: Run, tmp_path: Path
) -> None:
    memctl("kb", "create", "diary", "--private", "--redact")
    memctl("ingest", "-k", "diary", "--text", SECRETS[0])
    memctl("export", "all", "-k", "diary", "--to", str(tmp_path / "diary.memctl"))
    memctl("import", str(tmp_path / "diary.memctl"), "-k", "copy")
    copy = memctl("kb", "show", "copy", "-o", "json").json
    assert (copy["private"], copy["redact"]) == (True, True)


def test_a_table_is_exported_with_the_rows_of_what_is_named_alone(guarded: Run) -> None:
    written = guarded("export", "memories", "-f", "csv", *ANN).out
    rows = list(csv.DictReader(io.StringIO(written)))
    assert {row["namespace"] for row in rows} == {"user:ann"}


def test_a_dry_run_counts_no_calls_for_what_is_not_sent(
    guarded: Run, distant: FakeEndpoint
) -> None:
    def calls(*labels: str) -> dict[str, int]:
        words = ("ingest", "--text", "The surgeon bought a boat in May.", "--dry-run", *labels)
        report = guarded(*words, "-o", "json").json
        return {each["task"]: each["calls"] for each in report["estimates"]}

    assert calls() == {"understand": 1, "compare": 1}
    assert calls(*ANN) == {}
    guarded("kb", "set", "default", "--may-send")
    assert calls(*ANN) == {"understand": 1, "compare": 1}
    assert distant.asked == []


KEPT = "Ann Quillfeather keeps the key of Zanzibar in May. See [[Zanzibar]]."


@pytest.fixture
def kept(memctl: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A knowledge base in which one agent keeps a memory to itself."""

    def make() -> None:
        memctl("ingest", "--text", OPEN)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MEMCTL_AGENT", "helper")
            assert memctl("memory", "add", KEPT, "--private", "--type", "decision").code == 0

    made_once(tmp_path, tmp_path_factory.getbasetemp() / "kept", make)
    return memctl


@pytest.mark.parametrize("command", [each for each in READING if each[0] != "stats"], ids=" ".join)
@pytest.mark.parametrize("agent", ["", "other"])
def test_what_an_agent_keeps_to_itself_is_read_by_nobody_else(
    kept: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], agent: str
) -> None:
    monkeypatch.setenv("MEMCTL_AGENT", agent)
    assert tells(kept(*command)) == []


@pytest.mark.parametrize(
    "command",
    [
        ("query", "What is in Zanzibar?", "-o", "json"),
        ("query", "What is in Zanzibar?", "-o", "json", "--mode", "graph"),
        ("context", "What is in Zanzibar?"),
        ("context", "--standing"),
        ("memory", "list", "-o", "json"),
        ("graph", "show", "-o", "json"),
        ("export", "memories", "-f", "csv"),
        ("sql", "select text from memories", "-o", "json"),
        ("tool", "call", "search_memory", '{"query": "Zanzibar"}'),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("user", ["", "ann"])
def test_an_agent_reads_what_it_keeps_to_itself_unasked(
    kept: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], user: str
) -> None:
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    monkeypatch.setenv("MEMCTL_USER", user)
    assert tells(kept(*command)) != []


def test_what_an_agent_keeps_of_one_user_is_not_read_for_another(
    kept: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    monkeypatch.setenv("MEMCTL_USER", "ann")
    kept("memory", "add", "Ann hides a flute in the attic.", "--private")
    assert "flute" in kept("query", "flute in the attic", "-o", "json").out
    monkeypatch.setenv("MEMCTL_USER", "bob")
    assert "a flute" not in kept("query", "flute in the attic", "-o", "json").out


def test_another_agent_is_refused_what_one_keeps_to_itself(
    kept: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = ("--namespace", "agent:helper:private")
    id_ = kept("memory", "list", *place, "-o", "json").json[0]["id"]
    monkeypatch.setenv("MEMCTL_AGENT", "other")
    assert kept("memory", "list", *place).code == 1
    assert kept("memory", "add", "Boo.", *place).code == 1
    assert kept("memory", "show", id_).code == 1
    assert kept("forget", "--memory", id_, "--yes").code != 0
    assert kept("export", "all", "--to", str(tmp_path / "all.memctl")).code == 1
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    assert kept("memory", "show", id_).code == 0


def test_what_an_agent_keeps_to_itself_stays_so_where_it_is_imported(
    kept: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    archive = str(tmp_path / "all.memctl")
    kept("export", "all", "--to", archive)
    kept("import", archive, "-k", "copy")
    assert tells(kept("memory", "list", "-o", "json", "-k", "copy")) == []
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    assert tells(kept("memory", "list", "-o", "json", "-k", "copy")) != []


def test_nobody_keeps_a_memory_to_itself_without_a_name(memctl: Run) -> None:
    refused = memctl("memory", "add", KEPT, "--private")
    assert refused.code == 2
    assert "MEMCTL_AGENT" in refused.err


def test_json_lines_go_to_no_namespace_of_another_agent_or_user(
    kept: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ingested(command: tuple[str, ...], namespace: str) -> Result:
        lines = [{"text": "The gull is grey.", "id": "1"}]
        lines += [{"text": "The mole is blind.", "id": "2", "namespace": namespace}]
        return kept(*command, "-", stdin="\n".join(map(json.dumps, lines)))

    ingest = ("ingest", "-o", "json", "--jsonl")
    monkeypatch.setenv("MEMCTL_AGENT", "other")
    refused = ingested(ingest, "agent:helper:private")
    assert refused.code == 3
    assert refused.json["ingested"] == 1
    (failed,) = [each for each in refused.json["outcomes"] if each["outcome"] == "failed"]
    assert "agent 'helper' keeps to itself" in failed["reason"]
    assert failed["line"] == 2
    monkeypatch.setenv("MEMCTL_AGENT", "")
    monkeypatch.setenv("MEMCTL_USER", "ann")
    assert ingested(ingest, "user:bob:documents").code == 3
    assert ingested(ingest, "user:bob:conversations:agent:helper:private").code == 3
    assert ingested((*ingest[:3], "--dry-run", "--jsonl"), "user:bob:documents").code == 3
    monkeypatch.setenv("MEMCTL_USER", "")
    assert "mole" not in kept("sql", "from memories").out
    assert "mole" not in kept("memory", "list", "--namespace", "agent:helper:private").out


@pytest.mark.parametrize("session", [None, "talk"], ids=["documents", "a conversation"])
def test_json_lines_of_what_an_agent_keeps_to_itself_become_private(
    memctl: Run, distant: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, session: str | None
) -> None:
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    texts = {
        "The gull is grey.": "",
        KEPT: "agent:helper:private",
        "Ann Quillfeather rows.": "agent:helper:private",
        "Zanzibar is far.": "user:ann:conversations:agent:helper:private",
    }
    rows = [{"text": text, "namespace": place} for text, place in texts.items()]
    lines = "\n".join(
        json.dumps(row | ({"session_id": session} if session else {})) for row in rows
    )
    report = memctl("ingest", "--jsonl", "-", "-o", "json", stdin=lines).json
    assert (report["ingested"], report["failed"]) == (4, 0)
    monkeypatch.setenv("MEMCTL_AGENT", "other")
    assert tells(memctl("memory", "list", "-o", "json", "-n", "0")) == []
    assert tells(memctl("query", "Who rows?", "-o", "json")) == []
    assert "gull" in str(distant.asked)
    assert not [word for word in WORDS if word in str(distant.asked)]
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    assert tells(memctl("memory", "list", "-o", "json", "-n", "0")) == list(WORDS)


def test_imported_lines_are_kept_from_other_agents_too(
    kept: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places = ("agent:helper:private", "agent:other:private")
    rows = [{"text": f"The mole of {at} is blind.", "namespace": at} for at in places]
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setenv("MEMCTL_AGENT", "other")
    report = kept("session", "import", str(tmp_path / "talk.jsonl"), "-o", "json").json
    assert (report["ingested"], report["failed"]) == (1, 1)
    assert "mole of agent:other" in kept("memory", "list", "-o", "json").out
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    assert "mole" not in kept("memory", "list", "-o", "json").out


@pytest.mark.parametrize("order", [("default", "copy"), ("copy", "default")], ids=" ".join)
def test_a_comparison_shows_no_other_agent_what_one_keeps_to_itself(
    kept: Run, monkeypatch: pytest.MonkeyPatch, order: tuple[str, str]
) -> None:
    kept("kb", "create", "copy")
    assert tells(kept("kb", "diff", *order, "-o", "json")) != []
    monkeypatch.setenv("MEMCTL_AGENT", "other")
    refused = kept("kb", "diff", *order, "-o", "json")
    assert refused.code == 1
    assert tells(refused) == []


def test_only_its_agent_or_a_person_makes_what_it_keeps_to_itself_open(
    kept: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "agent:helper:private"
    id_ = kept("memory", "list", "--namespace", place, "-o", "json").json[0]["id"]
    monkeypatch.setenv("MEMCTL_AGENT", "other")
    refused = kept("kb", "set", "default", "--open-namespace", place)
    assert refused.code == 1
    assert "keeps to itself" in refused.err
    assert tells(kept("query", "Where is the key?", "-o", "json")) == []
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    assert kept("kb", "set", "default", "--open-namespace", place).code == 0
    monkeypatch.setenv("MEMCTL_AGENT", "other")
    assert kept("memory", "show", id_).code == 1
    assert kept("export", "all", "--to", "-").code == 1


def test_another_agent_deletes_nothing_that_one_keeps_to_itself(
    kept: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = (("clear", "default", "--yes"), ("delete", "default", "--yes"))
    monkeypatch.setenv("MEMCTL_AGENT", "other")
    for words in everything:
        refused = kept("kb", *words)
        assert refused.code == 1
        assert "keep to themselves" in refused.err
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    assert tells(kept("memory", "list", "-o", "json")) != []
    for words in everything:
        assert kept("kb", *words).code == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((" ",), 2),
        ((KEPT, "--evidence", "m_0"), 1),
        ((KEPT, "--type", "learning", "--share"), 2),
    ],
    ids=["no text", "no such evidence", "shared"],
)
def test_a_private_memory_that_is_refused_changes_no_settings(
    memctl: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int
) -> None:
    memctl("kb", "create", "default")
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    assert memctl("memory", "add", *words, "--private").code == code
    assert not memctl("kb", "show", "default", "-o", "json").json["private_namespaces"]

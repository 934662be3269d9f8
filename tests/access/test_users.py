"""Two users in one knowledge base: each finds their own, both find what is shared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from access.conftest import done
from cli.conftest import Result, Run
from readers.test_pdf import pdf_of

from memctl.cli.main import run
from memctl.config import load_config
from memctl.home import Home
from memctl.records import Filters

ANN, BOB = "user:ann:conversations", "user:bob:conversations"
SAID = {
    "ann": "I prefer green tea in the morning, never coffee.",
    "bob": "I prefer black coffee in the morning, never tea.",
}
INGESTED = {
    "ann": "Ann Keller plans a rose garden behind the Lindau house.",
    "bob": "Bob Moser plans a boat shed behind the Lindau house.",
}
SHARED = "The Lindau house opens its doors to visitors at nine."
SECRETS = {"ann": ("green tea", "rose garden", "Ann Keller"), "bob": ("black coffee", "boat shed")}
OTHER = {"ann": "bob", "bob": "ann"}
QUESTION = "What do I prefer in the morning, and what is planned behind the Lindau house?"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which two users have stored things that contradict each other."""
    home = tmp_path_factory.mktemp("two") / "home"
    for user in SAID:
        for words in (
            ("memory", "add", SAID[user], "--user", user),
            ("ingest", "--text", INGESTED[user], "--user", user, "--agent", f"{user}-bot"),
        ):
            assert run(["--home", str(home), "-q", *words]) == 0
    shared = ("ingest", "--text", SHARED, "--namespace", "organization:shared")
    assert run(["--home", str(home), "-q", *shared]) == 0
    assert run(["--home", str(home), "-q", "consolidate"]) == 0
    return home


@pytest.fixture
def asking(filled: Path, memctl: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on that home; it is only to be read."""
    monkeypatch.setenv("MEMCTL_HOME", str(filled))
    return memctl


def test_users_who_contradict_each_other_each_get_their_own(asking: Run) -> None:
    for user, said in SAID.items():
        answer = done(asking("query", "What do I prefer in the morning?", "--user", user)).json
        assert said in answer["answer"]["text"]
        assert {hit["namespace"].split(":")[1] for hit in answer["hits"]} <= {user, "shared"}


def test_shared_memories_are_found_by_both_users(asking: Run) -> None:
    for user in SAID:
        answer = done(asking("query", "When does the Lindau house open?", "--user", user)).json
        assert SHARED in answer["answer"]["text"]


def test_without_a_user_everything_is_read(asking: Run) -> None:
    namespaces = {hit["namespace"] for hit in asking("query", QUESTION, "-n", "20").json["hits"]}
    assert {ANN, BOB, "organization:shared"} <= namespaces


WAYS: dict[str, tuple[str, ...]] = {
    **{
        mode: ("query", QUESTION, "--mode", mode, "-n", "50", "--explain")
        for mode in ("hybrid", "keyword", "vector", "graph", "agentic")
    },
    "context": ("context", QUESTION, "-o", "json"),
    "memories": ("memory", "list", "-n", "0"),
    "documents": ("document", "list"),
    "insights": ("insight", "list"),
    "sql": ("sql", "select * exclude (vector) from memories"),
    "sql of entities": ("sql", "from entities"),
    "sql of relations": ("sql", "from relations"),
    "sql of questions": ("sql", "from queries"),
    "export": ("export", "memories"),
    "export of documents": ("export", "documents"),
    "export of names": ("export", "entities"),
    "graph": ("graph", "show", "-o", "json"),
    "graph export": ("graph", "export"),
    "statistics of questions": ("stats", "--queries"),
}


MAY_BE_EMPTY = ("insights", "sql of relations", "sql of questions", "statistics of questions")


@pytest.mark.parametrize("way", WAYS)
def test_whoever_is_named_in_the_environment_never_sees_another_user(
    way: str, asking: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}
    for user, other in OTHER.items():
        monkeypatch.setenv("MEMCTL_USER", user)
        given = done(asking(*WAYS[way])).out.replace(QUESTION, "")
        assert not [secret for secret in SECRETS[other] if secret in given]
        assert f"user:{other}:" not in given
        seen[user] = given
    monkeypatch.delenv("MEMCTL_USER")
    if way not in MAY_BE_EMPTY:
        assert seen["ann"] != seen["bob"]


def test_a_namespace_of_another_user_is_refused(asking: Run, tmp_path: Path) -> None:
    batch = tmp_path / "questions.jsonl"
    batch.write_text(f'{{"question": "tea?", "namespace": "{ANN}"}}\n')
    for words in (
        ("query", "tea?", "--namespace", ANN),
        ("query", "--batch", str(batch)),
        ("context", "tea?", "--namespace", ANN),
        ("memory", "list", "--namespace", ANN),
        ("sql", "from memories", "--namespace", ANN),
        ("export", "memories", "--namespace", ANN),
        ("graph", "show", "--namespace", ANN),
        ("memory", "add", "x is y", "--namespace", ANN),
        ("ingest", "--text", "x is y", "--namespace", ANN),
    ):
        refused = asking(*words, "--user", "bob")
        assert refused.code == 1, words
        assert f"'{ANN}' is not of user 'bob'" in refused.err
        assert "--user" not in refused.err
        assert "green tea" not in refused.out


def test_what_another_user_has_stored_cannot_be_shown_changed_or_deleted_by_its_id(
    asking: Run,
) -> None:
    [memory] = asking("memory", "list", "--namespace", ANN).rows
    [document] = asking("document", "list", "--namespace", "user:ann:documents").rows
    for words in (
        ("memory", "show", memory["id"]),
        ("memory", "history", memory["id"]),
        ("memory", "edit", memory["id"], "--text", "I prefer water."),
        ("memory", "delete", memory["id"], "--yes"),
        ("document", "show", document["id"]),
        ("document", "delete", document["id"], "--yes"),
    ):
        refused = asking(*words, "--user", "bob")
        assert refused.code == 1, words
        assert "there is no" in refused.err
        assert not refused.out
    assert done(asking("memory", "show", memory["id"], "--user", "ann"))


def test_an_archive_of_all_tables_is_refused_to_a_user(asking: Run, tmp_path: Path) -> None:
    refused = asking("export", "all", "--to", str(tmp_path / "x.memctl"), "--user", "ann")
    assert refused.code == 2
    assert "all tables are of all users" in refused.err
    assert not (tmp_path / "x.memctl").exists()


def test_no_insight_and_no_end_of_a_fact_comes_from_two_users(filled: Path) -> None:
    home = Home(load_config({"home": str(filled)}, {}))
    with home.open("default") as base:
        rows = {row["id"]: row for row in base.memories.list(Filters(as_of=None)).to_pylist()}
    assert {row["text"] for row in rows.values()} >= set(SAID.values())
    for row in rows.values():
        assert row["valid_to"] is None
        assert {rows[id_]["namespace"] for id_ in row["source_ids"]} <= {row["namespace"]}


def rows_of(namespace: str, read: Callable[..., Result]) -> list[Any]:
    tables = ("documents", "memories")
    return [
        line
        for table in tables
        for line in sorted(read("export", table, "--namespace", namespace).out.splitlines())
    ]


def test_clearing_one_user_leaves_the_other_byte_for_byte(own: Run) -> None:
    bobs = [*rows_of(BOB, own), *rows_of("user:bob:documents", own)]
    assert len(bobs) == 4
    dry = done(own("user", "clear", "ann", "--dry-run")).json
    assert dry["stored"]["default"]["documents"] == 1
    assert rows_of(ANN, own), "a dry run deletes nothing"
    done(own("user", "clear", "ann", "--yes"))
    assert not [*rows_of(ANN, own), *rows_of("user:ann:documents", own)]
    assert [*rows_of(BOB, own), *rows_of("user:bob:documents", own)] == bobs
    assert not [n for n in own("sql", "from entities").rows if "Keller" in n["name"]]
    assert own("user", "clear", "ann", "--yes").code == 1
    assert done(own("doctor")).code == 0


def test_a_user_who_is_forgotten_is_nowhere_on_the_disk(own: Run, tmp_path: Path) -> None:
    done(own("query", "What about green tea?", "--user", "ann"))
    done(own("user", "clear", "ann", "--forget", "--yes"))
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not [path for path in kept if b"rose garden" in path.read_bytes()]
    assert not [path for path in kept if b"green tea" in path.read_bytes()]
    assert any(b"boat shed" in path.read_bytes() for path in kept)


def test_users_who_were_added_or_have_stored_something_are_listed(own: Run) -> None:
    done(own("user", "add", "cleo", "--title", "Cleo Marsh"))
    assert own("user", "add", "cleo").code == 2
    listed = {row["name"]: row["memories"] for row in own("user", "list").rows}
    assert listed == {"ann": 3, "bob": 3, "cleo": 0}
    shown = done(own("user", "show", "cleo")).json
    assert (shown["title"], shown["stored"]) == ("Cleo Marsh", {})
    done(own("user", "remove", "cleo"))
    unknown = own("user", "show", "cleo")
    assert (unknown.code, "there are ann, bob" in unknown.err) == (1, True)
    assert own("user", "remove", "cleo").code == 1


def test_a_document_says_who_added_it_when_and_in_which_conversation(own: Run) -> None:
    done(
        own(
            "ingest", "--text", "The ferry to Lindau leaves at noon.", "--title", "Ferry",
            "--doc-type", "markdown", "--user", "ann", "--session", "s1", "--agent", "ann-bot",
            "--metadata", "year=2024", "--metadata", "place=Lindau",
        )
    )  # fmt: skip
    [hit] = own("query", "When does the ferry leave?", "--user", "ann", "-n", "1").json["hits"]
    metadata = hit["metadata"]
    assert (hit["title"], hit["doc_type"], hit["agent_id"]) == ("Ferry", "markdown", "ann-bot")
    assert (metadata["uploaded_by"], metadata["upload_session"]) == ("ann", "s1")
    assert metadata["upload_date"].startswith("20")
    assert (metadata["year"], metadata["place"]) == (2024, "Lindau")
    found = own("query", "ferry", "--user", "ann", "--meta", "year=2024").json["hits"]
    assert [each["title"] for each in found] == ["Ferry"]
    again = own("ingest", "--text", "The ferry to Lindau leaves at noon.", "--user", "ann")
    assert again.json["skipped"] == 1


def test_a_text_and_a_pdf_of_a_user_are_documents_of_theirs_alone(own: Run, tmp_path: Path) -> None:
    given = ("--user", "ann", "--agent", "a", "-o", "json")
    note = "# Jetty\n\nThe jetty of Lindau is mended in April.\n"
    called = ("--title", "Jetty", "--doc-type", "markdown")
    added = done(own("ingest", "-", *called, *given, stdin=note))
    (row,) = own("document", "list", "--user", "ann", "--doc-type", "markdown").rows
    shown = own("document", "show", row["id"], "--user", "ann", "-o", "json").json
    passages = [each for each in shown["memories"] if each["level"] == "evidence"]
    assert (row["title"], row["agent_id"], row["namespace"]) == (
        "Jetty",
        "a",
        "user:ann:documents",
    )
    assert added.json["memories"] == len(shown["memories"]) >= len(passages) == 1
    again = done(own("ingest", "-", *given, stdin=note)).json
    assert (again["ingested"], again["skipped"]) == (0, 1)
    (tmp_path / "buoy.pdf").write_bytes(pdf_of([["The buoy of Lindau is painted in May."]]))
    done(own("ingest", str(tmp_path / "buoy.pdf"), *given))
    questions = {"When is the jetty mended?": "April", "When is the buoy painted?": "May"}
    for asked, found in questions.items():
        assert found in own("query", asked, "--user", "ann").out
        assert found not in own("query", asked, "--user", "bob").out
    assert own("document", "list", "--user", "bob", "--doc-type", "markdown").rows == []
    assert len(own("document", "list", "--user", "ann", "--doc-type", "pdf").rows) == 1


def test_metadata_given_with_a_file_survives_reading_it_again(own: Run, tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    file.write_text("---\ntitle: Its own\n---\n# Head\n\nThe ferry leaves at noon.\n")
    given = ("--title", "Ferry", "--doc-type", "other", "--metadata", "project=aurora")
    done(own("ingest", str(file), "--user", "ann", *given))

    def document() -> dict[str, Any]:
        [row] = own("document", "list", "--user", "ann", "--source", "*note.md").rows
        return row

    before = document()
    done(own("document", "reprocess", before["id"]))
    after = document()
    assert after["ingested_at"] != before["ingested_at"]
    assert {**after["metadata"]} == before["metadata"]
    assert (after["title"], after["doc_type"]) == ("Ferry", "other")
    assert (after["metadata"]["project"], after["metadata"]["uploaded_by"]) == ("aurora", "ann")
    folder = own("ingest", str(tmp_path), "--title", "All")
    assert folder.code == 2
    assert "--title names one document" in folder.err


def test_conversations_of_another_user_are_neither_listed_nor_shown_nor_cleared(own: Run) -> None:
    for user in SAID:
        done(own("session", "start", "--id", f"talk-{user}", "--user", user))
        done(
            own(
                "session",
                "say",
                f"talk-{user}",
                f"I am {user}.",
                "--namespace",
                f"user:{user}:conversations",
            )
        )
        done(own("pool", "create", f"pool-{user}", "--user", user))
        done(own("pool", "write", f"pool-{user}", "tea", '"yes"', "--user", user))
        done(own("profile", "set", "--user", user, "--user-info", f"{user} likes boats."))
    listed = done(own("session", "list", "--user", "ann")).rows
    assert [row["session_id"] for row in listed] == ["talk-ann"]
    assert own("sql", "from turns", "--user", "ann").rows[0]["content"] == "I am ann."
    assert len(own("sql", "from turns", "--user", "ann").rows) == 1
    done(own("user", "clear", "ann", "--yes"))
    assert [row["session_id"] for row in own("session", "list").rows] == ["talk-bob"]
    assert [row["pool_id"] for row in own("sql", "from pools").rows] == ["pool-bob"]
    assert {row["pool_id"] for row in own("sql", "from pool_keys").rows} == {"pool-bob"}
    assert {row["user_id"] for row in own("sql", "from profiles").rows} == {"bob"}


def test_a_user_does_not_clear_or_forget_another(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_USER", "bob")
    for words in (
        ("user", "clear", "ann", "--yes"),
        ("forget", "--namespace", ANN, "--yes"),
        ("session", "list", "--namespace", ANN),
    ):
        refused = own(*words)
        assert (refused.code, "is not of user 'bob'" in refused.err) == (1, True), refused.err
    monkeypatch.delenv("MEMCTL_USER")
    assert own("memory", "list", "--namespace", ANN).rows


def test_python_asks_for_a_user_too(filled: Path) -> None:
    home = Home(load_config({"home": str(filled)}, {})).acting_as(user="ann")
    with home.open("default") as base:
        answer = base.query("What do I prefer in the morning?").answer
    assert answer is not None
    assert SAID["ann"] in answer.text

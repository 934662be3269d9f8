"""What another user has stored is to a named user as if it were not there, whatever the command."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from access.conftest import done
from cli.conftest import Run

from memctl.cli.main import run
from memctl.config import load_config
from memctl.errors import NotFoundError
from memctl.forget import Selection
from memctl.home import Home

SAID = {
    "ann": "Claude Petit lends Ann Keller his rowing boat in Lindau.",
    "bob": "Claude Petit owes Bob Moser forty francs since Easter.",
}
STATED = {
    "ann": "Claude Petit calls Ann on Mondays.",
    "bob": "Claude Petit calls Bob on Fridays.",
}
SHARED_SENTENCE = "what about tomorrow evening"
REPLIES = {"ann": "Ann is at the harbour then.", "bob": "Bob has dinner with his sister then."}
UNKNOWN = "d_000000000000000000000000"


def quietly(home: Path, *words: str) -> None:
    assert run(["--home", str(home), "-q", *words]) == 0, words


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which two users have stored things about the same person."""
    home = tmp_path_factory.mktemp("others") / "home"
    for user in SAID:
        quietly(home, "ingest", "--text", SAID[user], "--user", user, "--title", f"Note of {user}")
        quietly(home, "memory", "add", STATED[user], "--user", user)
        quietly(home, "session", "start", "--id", f"{user}-1", "--user", user)
        for sender, text in (("user", SHARED_SENTENCE), ("agent", REPLIES[user])):
            quietly(home, "session", "say", f"{user}-1", text, "--by", sender, "--user", user)
        quietly(home, "pool", "create", f"pool-{user}", "--user", user)
        quietly(
            home,
            "pool",
            "write",
            f"pool-{user}",
            "who",
            f'"Claude Petit, by {user}"',
            "--user",
            user,
        )
        quietly(home, "query", f"Where is Claude Petit, asks {user}?", "--user", user)
    quietly(home, "memory", "list", "-n", "1")
    return home


def ids(run_: Run, user: str) -> Mapping[str, str]:
    """Return the ids of what a user has stored."""
    within = ("--user", user)
    documents = run_("document", "list", *within).rows
    (document,) = [row["id"] for row in documents if row["title"] == f"Note of {user}"]
    memories = run_("memory", "list", "-n", "0", *within).rows
    (memory,) = [row["id"] for row in memories if row["text"] == STATED[user]]
    return {"document": document, "memory": memory}


def kept(run_: Run, user: str) -> Mapping[str, Sequence[Any]]:
    """Return everything that a user has stored, as an owner of the disk sees it."""
    where = f"namespace like 'user:{user}:%'"
    return {
        "documents": run_("sql", f"select id, text, metadata from documents where {where}").rows,
        "memories": run_("sql", f"select id, text, entities from memories where {where}").rows,
        "turns": run_("sql", f"select * from turns where {where}").rows,
        "sessions": run_("sql", f"select * from sessions where {where}").rows,
        "pools": run_("sql", f"select value from pool_keys where pool_id = 'pool-{user}'").rows,
        "questions": run_("sql", f"select question from queries where user_id = '{user}'").rows,
        "relations": run_("sql", "select r.* from relations r join memories m on"
                          f" r.source_id = m.id where m.{where}").rows,
    }  # fmt: skip


def sorted_rows(found: Mapping[str, Sequence[Any]]) -> Mapping[str, list[str]]:
    return {table: sorted(map(str, rows)) for table, rows in found.items()}


@pytest.mark.parametrize("way", ["document", "memory", "session"])
def test_another_users_things_cannot_be_forgotten_by_their_ids(
    way: str, own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted_rows(kept(own, "bob"))
    id_ = {**ids(own, "bob"), "session": "bob-1"}[way]
    unknown = {"document": UNKNOWN, "memory": UNKNOWN, "session": "no-such"}[way]
    monkeypatch.setenv("MEMCTL_USER", "ann")
    for more in (("--yes",), ("--dry-run",)):
        refused = own("forget", f"--{way}", id_, *more)
        absent = own("forget", f"--{way}", unknown, *more)
        assert refused.code == absent.code == 1
        assert refused.err == absent.err.replace(unknown, id_)
        assert not refused.out
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before


def test_a_name_goes_from_what_its_user_has_alone(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted_rows(kept(own, "bob"))
    monkeypatch.setenv("MEMCTL_USER", "ann")
    dry = done(own("forget", "--entity", "Claude Petit", "--dry-run")).json
    assert dry["redacted"] == [ids(own, "ann")["document"]]
    forgotten = done(own("forget", "--entity", "Claude Petit", "--yes"))
    assert "bob" not in forgotten.out.lower()
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before
    left = kept(own, "ann")
    assert "Claude Petit" not in str(left)
    assert "█" in str(left["documents"])
    assert own("doctor").code == 0


def test_a_name_that_another_user_alone_has_is_unknown(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted_rows(kept(own, "bob"))
    monkeypatch.setenv("MEMCTL_USER", "ann")
    refused = own("forget", "--entity", "Bob Moser", "--yes")
    absent = own("forget", "--entity", "Nora Nobody", "--yes")
    assert refused.code == absent.code == 1
    assert refused.err == absent.err.replace("Nora Nobody", "Bob Moser")
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before


def test_a_date_takes_what_is_its_users_alone(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted_rows(kept(own, "bob"))
    monkeypatch.setenv("MEMCTL_USER", "ann")
    own("forget", "--before", "2199-01-01", "--yes")
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before
    left = kept(own, "ann")
    assert not [*left["documents"], *left["memories"], *left["turns"]]


def test_a_conversation_of_the_same_name_stays_with_its_user(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(own("session", "start", "--id", "bob-1", "--user", "ann"))
    done(own("session", "say", "bob-1", "I am Ann in here.", "--user", "ann"))
    before = sorted_rows(kept(own, "bob"))
    monkeypatch.setenv("MEMCTL_USER", "ann")
    done(own("forget", "--session", "bob-1", "--yes"))
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before
    assert "I am Ann" not in str(kept(own, "ann"))


def test_a_document_that_another_user_has_deleted_is_unknown(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = (ids(own, user)["document"] for user in ("ann", "bob"))
    for id_ in (mine, theirs):
        done(own("document", "delete", id_, "--yes"))
    monkeypatch.setenv("MEMCTL_USER", "ann")
    assert own("forget", "--document", theirs, "--yes").code == 1
    done(own("forget", "--document", mine, "--yes"))


def test_python_forgets_for_its_user_alone(own: Run, tmp_path: Path) -> None:
    theirs = ids(own, "bob")
    home = Home(load_config({"home": str(tmp_path / "home")}, {})).acting_as(user="ann")
    with home.open("default") as base:
        for selection in (
            Selection(documents=(theirs["document"],)),
            Selection(memories=(theirs["memory"],)),
            Selection(session="bob-1"),
        ):
            with pytest.raises(NotFoundError):
                base.forget(selection)


WAYS_BY_ID = {
    "reprocess": ("document", "reprocess", "{document}"),
    "links of a document": ("document", "links", "{document}"),
    "documents that are related": ("document", "related", "{document}"),
    "restore": ("memory", "restore", "{memory}"),
    "confirm": ("memory", "confirm", "{memory}"),
    "history": ("memory", "history", "{memory}"),
    "insight": ("insight", "show", "{memory}"),
    "evidence": ("memory", "add", "Ann says so.", "--evidence", "{memory}"),
}


def test_another_users_rows_are_unknown_to_every_command(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, theirs = sorted_rows(kept(own, "bob")), ids(own, "bob")
    monkeypatch.setenv("MEMCTL_USER", "ann")
    for way, words in WAYS_BY_ID.items():
        refused = own(*(word.format_map(theirs) for word in words))
        absent = own(*(word.format_map(dict.fromkeys(theirs, UNKNOWN)) for word in words))
        assert refused.code == absent.code == 1, (way, refused.err, absent.err)
        message = refused.err
        for id_ in theirs.values():
            message = message.replace(id_, UNKNOWN)
        assert message == absent.err, way
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before


def test_the_beginning_of_an_id_never_tells_of_another_user(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = ids(own, "bob")
    monkeypatch.setenv("MEMCTL_USER", "ann")
    for words in (("document", "show", "d_"), ("forget", "--memory", "m_", "--dry-run")):
        refused = own(*words)
        assert not [id_ for id_ in theirs.values() if id_ in refused.err]


def test_the_same_words_of_others_stay_when_a_conversation_is_forgotten(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted_rows(kept(own, "bob"))
    monkeypatch.setenv("MEMCTL_USER", "ann")
    report = done(own("session", "forget", "ann-1", "--yes")).json
    assert not report["left"]
    assert report["elsewhere"] == 1
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before


def test_another_users_document_is_not_named_as_saying_the_same(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = "The boathouse key hangs behind the second shutter."
    for user in SAID:
        done(own("ingest", "--text", same, "--user", user, "--title", f"Key of {user}"))
    rows = own("document", "list").rows
    found = {row["title"]: row["id"] for row in rows}
    monkeypatch.setenv("MEMCTL_USER", "ann")
    result = done(own("forget", "--document", found["Key of ann"], "--yes"))
    assert found["Key of bob"] not in result.out + result.err
    assert (result.json["left"], result.json["elsewhere"]) == ([], 1)
    monkeypatch.delenv("MEMCTL_USER")
    assert same in str(kept(own, "bob")["documents"])


def test_one_of_several_users_may_not_change_what_belongs_to_all(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(own("snapshot", "create", "before"))
    before = sorted_rows(kept(own, "bob"))
    monkeypatch.setenv("MEMCTL_USER", "ann")
    for words in (
        ("snapshot", "restore", "before", "--yes"),
        ("snapshot", "delete", "before", "--yes"),
        ("forget", "--snapshots", "--yes"),
        ("kb", "clear", "default", "--yes"),
        ("kb", "clear", "default", "--forget", "--yes"),
        ("kb", "delete", "default", "--yes"),
        ("job", "undo", "--yes"),
    ):
        refused = own(*words)
        assert refused.code == 1, (words, refused.err)
        assert "is of all users, not of 'ann' alone" in refused.err
        assert "hint" not in refused.err
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before
    assert own("snapshot", "list").rows


def test_a_user_who_is_alone_may_clear_and_restore(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_USER", "ann")
    done(memctl("memory", "add", STATED["ann"]))
    done(memctl("snapshot", "create", "before"))
    done(memctl("kb", "clear", "default", "--yes"))
    done(memctl("snapshot", "restore", "before", "--yes"))
    assert memctl("memory", "list").rows
    done(memctl("kb", "delete", "default", "--yes"))


# --- what is made of questions, readings and judgements -------------------------------------------

UNANSWERED = "Which submarine did the zebra of Bob repaint?"


@pytest.fixture
def asked(own: Run) -> Run:
    """Run a command where bob asked what nobody knows, and what was bad, about what is shared."""
    done(own("ingest", "--text", "The quay opens at nine.", "--namespace", "organization:shared"))
    done(own("query", UNANSWERED, "--user", "bob"))
    done(own("query", UNANSWERED, "--user", "bob", "--namespace", "organization:shared"))
    done(own("feedback", "add", "last", "bad", "--user", "bob", "--text", "Bob is cross"))
    done(own("feedback", "add", "bob-1", "bad", "--user", "bob", "--text", "Bob is cross"))
    return own


LOOKS: Sequence[Sequence[str]] = (
    ("summary", "-o", "json"),
    ("stats", "--queries", "-o", "json"),
    ("stats", "-o", "json"),
    ("sql", "from queries"),
    ("sql", "from feedback"),
    ("sql", "from conversation_summaries"),
    ("export", "feedback"),
    ("feedback", "list"),
    ("feedback", "summary", "-o", "json"),
    ("reflect", "-o", "json"),
    ("upkeep", "report"),
    ("audit",),
    ("memory", "learnings"),
    ("eval", "--make", "-"),
    ("skill", "gaps"),
    ("work", "list"),
    ("session", "list"),
)


def test_no_look_back_tells_of_another_user(asked: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    known = asked("summary", "-o", "json").out
    assert "submarine" in known
    monkeypatch.setenv("MEMCTL_USER", "ann")
    for words in LOOKS:
        answer = asked(*words)
        assert answer.code in (0, 1, 4), (words, answer.err)
        shown = answer.out + answer.err
        for secret in ("submarine", "Bob is cross", "bob-1", "Moser", "user:bob", "asks bob"):
            assert secret not in shown, (words, shown)


def test_the_latest_question_is_ones_own(asked: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = asked("sql", "select query_id from queries where feedback = 'bad'").rows[0]["query_id"]
    monkeypatch.setenv("MEMCTL_USER", "ann")
    for target in (theirs, "bob-1"):
        refused = asked("feedback", "add", target, "good")
        absent = asked("feedback", "add", target[:-1] + "9", "good")
        assert refused.code == absent.code != 0
        assert refused.err == absent.err.replace(target[:-1] + "9", target)
    done(asked("feedback", "add", "last", "good"))
    monkeypatch.delenv("MEMCTL_USER")
    judged = asked("sql", "select user_id, feedback from queries where feedback is not null").rows
    assert sorted((row["user_id"], row["feedback"]) for row in judged) == [
        ("ann", "good"),
        ("bob", "bad"),
    ]


def test_why_knows_nothing_of_another_users_document(
    own: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    file = tmp_path / "theirs" / "boat-shed.md"
    file.write_text("# Shed\n\nThe shed of Bob Moser is green.\n")
    done(own("ingest", str(file), "--user", "bob"))
    monkeypatch.setenv("MEMCTL_USER", "ann")
    for name in ("session:bob-1", "bob-1", "boat-shed.md"):
        report = own("why", name)
        absent = own("why", "no-such-thing")
        assert (report.code, report.out) == (absent.code, "") == (4, "")
        assert report.err.replace(name, "no-such-thing") == absent.err
    assert "boat-shed" not in own("why", "boat-shad.md").err.replace("boat-shad", "")
    done(own("why", "session:ann-1"))


def test_a_conversation_of_another_user_is_unknown(
    own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted_rows(kept(own, "bob"))
    monkeypatch.setenv("MEMCTL_USER", "ann")
    for words in (
        ("show", "{id}"),
        ("end", "{id}"),
        ("compress", "{id}"),
        ("archive", "{id}"),
        ("summary", "{id}"),
        ("say", "{id}", "Hello."),
        ("recall", "{id}", "what did we say?"),
        ("forget", "{id}", "--yes"),
    ):
        refused = own("session", *(word.format(id="bob-1") for word in words))
        absent = own("session", *(word.format(id="nobody-1") for word in words))
        assert refused.code == absent.code == 1, (words, refused.err)
        assert refused.err == absent.err.replace("nobody-1", "bob-1"), words
        assert "the latest are ann-1\n" in refused.err
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before


@pytest.mark.parametrize("way", ["option", "environment"])
def test_tiers_count_what_their_user_keeps(
    way: str, memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user, values in {"ann": 3, "bob": 1}.items():
        for number in range(values):
            done(memctl("tier", "set", f"k{number}", '"v"', "--tier", "short", "--user", user))
            done(memctl("tier", "set", f"w{number}", "v", "--tier", "working", "--user", user))
            done(memctl("memory", "add", f"{user} likes quay {number}.", "--user", user))
    counted = memctl("sql", "select count(*) n from memories where namespace like 'user:bob:%'")
    if way == "environment":
        monkeypatch.setenv("MEMCTL_USER", "bob")
    rows = memctl("tier", "stats", *(("--user", "bob") if way == "option" else ())).rows
    found = {row["tier"]: row["count"] for row in rows}
    assert found["long_term"] == counted.rows[0]["n"] > 0
    assert (found["working"], found["short_term"]) == (1, 1)


def test_tools_know_no_row_of_another_user(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before, theirs = sorted_rows(kept(own, "bob")), ids(own, "bob")
    query = own("sql", "select query_id from queries where user_id = 'bob'").rows[0]["query_id"]
    monkeypatch.setenv("MEMCTL_USER", "ann")
    calls: Sequence[tuple[str, str, Mapping[str, Any]]] = (
        ("get_document", theirs["document"], {"document_id": "?"}),
        ("process_document", theirs["document"], {"document_id": "?"}),
        ("revise_document", theirs["document"], {"document_id": "?", "text": "Nothing."}),
        ("extract_links", theirs["document"], {"document_id": "?"}),
        ("forget_memory", theirs["memory"], {"id": "?", "confirm": True}),
        ("update_memory", theirs["memory"], {"id": "?", "text": "Nothing."}),
        ("restore_memory", theirs["memory"], {"id": "?"}),
        ("confirm_learning", theirs["memory"], {"id": "?"}),
        ("give_feedback", query, {"target": "?", "score": 0}),
        ("give_feedback", "bob-1", {"target": "?", "score": 0}),
        ("feedback", query, {"query_id": "?", "verdict": "bad"}),
    )
    for tool, id_, parameters in calls:
        unknown = f"{id_[:2]}{'0' * (len(id_) - 2)}"
        given, absent = (
            own("tool", "call", tool, json.dumps(parameters).replace("?", each))
            for each in (id_, unknown)
        )
        assert "no" in given.out + given.err, tool
        assert given.out.replace(id_, unknown) == absent.out, tool
        assert given.err.replace(id_, unknown) == absent.err, tool
    monkeypatch.delenv("MEMCTL_USER")
    assert sorted_rows(kept(own, "bob")) == before


def test_work_is_handed_out_of_ones_own_alone(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        own("memory", "add", f"Bob Moser met Claude Petit on day {number}.", "--user", "bob")
    assert "Moser" in own("work", "next", "--kind", "insight").out
    theirs = ids(own, "bob")["document"]
    monkeypatch.setenv("MEMCTL_USER", "ann")
    for kind in ("document", "comparison", "insight", "answer"):
        for words in (("work", "list"), ("work", "next")):
            assert "Moser" not in own(*words, "--kind", kind).out, (kind, words)
    reply = '{"facts": []}'
    given = own("work", "submit", f"default:document:{theirs}:0000", "-", stdin=reply)
    absent = own("work", "submit", f"default:document:{UNKNOWN}:0000", "-", stdin=reply)
    assert given.code == absent.code == 1
    assert given.err.replace(theirs, UNKNOWN) == absent.err


def test_a_named_user_sees_no_other(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_USER", "ann")
    assert [row["name"] for row in own("user", "list").rows] == ["ann"]
    refused = own("user", "show", "bob")
    assert (refused.code, refused.out) == (1, "")
    assert own("user", "show", "ann").json["stored"]


def test_memories_waiting_for_consolidation_are_counted_for_the_user_alone(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user, text in (("ann", "The mill is old."), ("bob", "The boat is red.")):
        done(memctl("memory", "add", text, "--user", user))
    done(memctl("memory", "add", "The boat leaks.", "--user", "bob"))
    assert memctl("stats", "-o", "json").json[0]["waiting"] == 3
    for user, count in (("ann", 1), ("bob", 2)):
        monkeypatch.setenv("MEMCTL_USER", user)
        assert memctl("stats", "-o", "json").json[0]["waiting"] == count

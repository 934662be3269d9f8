"""Two knowledge bases become one: nothing is lost, whichever takes in the other one.

Each is made by a few random operations; by a thousand with ``MEMCTL_LONG_TESTS=1``.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run, memctl
from killed import images_of
from long_form import IS_LONG

from memctl.config import load_config
from memctl.errors import UsageError
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.merging.kb_merge import merge
from memctl.sessions.conversations import Message
from memctl.skills.skill_files import parse_skill
from memctl.store.ledger.feedback_repositories import Feedback, FeedbackEffect

__all__ = ["memctl"]

THINGS = ("boat", "stove", "shed", "ladder", "anchor", "lamp")
COLOURS = ("red", "green", "blue", "grey")
OPERATIONS_EACH, KILLS = (1_000, 16) if IS_LONG else (20, 3)
"""Kills are of each order."""
PLACES = ("attic", "cellar", "garden")


class Clock:
    """Goes on by a minute whenever it is read."""

    def __init__(self, start: datetime) -> None:
        self.now = start

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def home_at(folder: Path) -> Home:
    return Home(load_config({"home": str(folder)}, {}), Clock(datetime(2026, 3, 1, tzinfo=UTC)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Homes with two knowledge bases made by random operations, each made once, to be copied."""

    @cache
    def make(seed: int) -> Path:
        home = home_at(tmp_path_factory.mktemp("made") / "home")
        for number, name in enumerate(("one", "two")):
            grown(home, name, 10 * seed + number, OPERATIONS_EACH)
        return home.config.home

    return make


# --- random operations ---------------------------------------------------------------------------


def _add(kb: KnowledgeBase, draw: random.Random) -> None:
    text = f"The {draw.choice(THINGS)} is in the {draw.choice(PLACES)}."
    kb.memories.add(text, tags=[draw.choice(COLOURS)])


def _edit(kb: KnowledgeBase, draw: random.Random) -> None:
    rows = kb.memories.list().to_pylist()
    stated = sorted((row["text"], row["id"]) for row in rows if row["source"] == "stated")
    if stated:
        _, id_ = draw.choice(stated)
        kb.memories.edit(id_, f"The {draw.choice(THINGS)} is {draw.choice(COLOURS)} now.")


def _delete(kb: KnowledgeBase, draw: random.Random) -> None:
    rows = kb.memories.list().to_pylist()
    if stated := sorted(row["id"] for row in rows if row["source"] == "stated"):
        kb.memories.delete(draw.choice(stated))


def _ingest(kb: KnowledgeBase, draw: random.Random) -> None:
    text = f"The {draw.choice(THINGS)} was painted {draw.choice(COLOURS)} in May."
    line = json.dumps({"id": f"note-{draw.randrange(6)}", "text": text})
    kb.ingest(jsonl=io.BytesIO(line.encode()))


def _talk(kb: KnowledgeBase, draw: random.Random) -> None:
    name = f"talk-{draw.randrange(3)}"
    if name not in {each.session_id for each in kb.sessions.list()}:
        kb.sessions.start(name)
    said = f"remember: the {draw.choice(THINGS)} costs {draw.randrange(2, 90)} euros"
    kb.sessions.say(kb.sessions.get(name), Message(sender="user", content=said))


def _write(kb: KnowledgeBase, draw: random.Random) -> None:
    pools = kb.pools.acting_as("helper")
    if "stock" not in {pool.pool_id for pool in pools.list()}:
        pools.create("stock")
    pools.write("stock", draw.choice(THINGS), draw.randrange(9))


def _skill(kb: KnowledgeBase, draw: random.Random) -> None:
    skills = kb.skills.acting_as()
    text = f"---\nname: mend\n---\nMend the {draw.choice(THINGS)} first.\n"
    if skills.list():
        skills.record_use("mend", success=draw.random() < 0.5)
        with suppress(UsageError):  # it is known
            skills.add_version("mend", text, "minor")
        skills.activate("mend", draw.choice([each.number for each in skills.versions("mend")]))
    else:
        draft = parse_skill(text, "mend")
        skills.write_new(skills.new_skill(draft, "active"), draft, "")


def _prompt(kb: KnowledgeBase, draw: random.Random) -> None:
    with suppress(UsageError):  # it is known
        kb.prompts.writable().add("helper", f"Speak of the {draw.choice(THINGS)}.")
    kb.prompts.use("helper", f"talk-{draw.randrange(3)}")


def _judge(kb: KnowledgeBase, draw: random.Random) -> None:
    known = sorted(kb.resources.snapshot().scan("memories", None, ["id"])["id"].to_pylist())
    if known:
        made = Feedback(f"f_{draw.getrandbits(48):x}", "default", kb.clock(), score=1.0)
        wanted = draw.choice((-0.3, -0.05, 0.05, 0.3))
        effect = FeedbackEffect(made.feedback_id, draw.choice(known), "default", made.at, wanted)
        kb.store.ledger.feedback.save(made)
        kb.store.ledger.feedback_effects.save(effect)
        kb.judgements.judge.apply()


def _learn(kb: KnowledgeBase, draw: random.Random) -> None:
    thing = draw.choice(THINGS)
    kb.memories.add(f"Oil the {thing} in spring.", type_="learning")
    rows = kb.memories.list().to_pylist()
    learnings = sorted(row["id"] for row in rows if row["type"] == "learning")
    kb.memories.confirm(draw.choice(learnings), f"agent {draw.randrange(3)}")


OPERATIONS = (
    _add,
    _add,
    _edit,
    _ingest,
    _ingest,
    _talk,
    _write,
    _delete,
    _skill,
    _prompt,
    _judge,
    _learn,
)


def grown(home: Home, name: str, seed: int, count: int) -> None:
    """Have random things done to a knowledge base."""
    draw = random.Random(seed)
    home.create(name)
    with home.open_for_writing(name) as kb:
        for _ in range(count):
            draw.choice(OPERATIONS)(kb, draw)
        _talk(kb, draw)  # this waits to be taken over into the tables


def state(kb: KnowledgeBase) -> dict[str, list[Any]]:
    """All that is known."""
    snapshot, ledger = kb.resources.snapshot(), kb.store.ledger
    documents = snapshot.scan("documents").to_pylist()
    memories = snapshot.scan("memories").to_pylist()
    columns = ("id", "level", "text", "session_id", "superseded_by", "version", "source_ids")
    return {
        "documents": sorted(
            (row["id"], row["text"], row["status"], str(row["superseded_by"]), str(row["source"]))
            for row in documents
        ),
        "memories": sorted(
            tuple(str(row[name]) for name in (*columns, "document_id", "valid_to"))
            for row in memories
        ),
        "importance": sorted((row["id"], round(row["importance"], 4)) for row in memories),
        "names": sorted(row["name"] for row in snapshot.scan("entities").to_pylist()),
        "turns": sorted(
            (each.session_id, each.turn, each.content, str(each.document_id))
            for each in ledger.turns.all()
        ),
        **{name: sorted(map(str, _stored_values(kb, ask))) for name, ask in STORED.items()},
    }


STORED = {
    "pools": "pool_id, key, value FROM pool_keys",
    "versions of pools": "pool_id, version, data FROM pool_versions",
    "merged": "table_name, key, value FROM merged_values",
    "skills": "skill_id, updated_at, active_version FROM skills",
    "versions of skills": "number, content, share, successes, failures FROM skill_versions",
    "uses of skills": "skill_id, version, success, at FROM skill_usage",
    "prompts": "task, version, at, text FROM prompt_variants",
    "effects": "feedback_id, memory_id, wanted, round(delta, 4) FROM feedback_effects",
    "confirmations": "memory_id, source, at FROM confirmations",
    "uses of prompts": "task, version, subject FROM prompt_uses",
}


def _stored_values(kb: KnowledgeBase, ask: str) -> list[tuple[Any, ...]]:
    with kb.store.ledger.reading() as connection:
        return list(connection.execute(f"SELECT {ask}"))


@pytest.mark.parametrize("seed", [1, 2])
def test_either_may_take_in_the_other(
    made: Callable[[int], Path], tmp_path: Path, seed: int
) -> None:
    found = []
    for first, second in (("one", "two"), ("two", "one")):
        home = home_at(shutil.copytree(made(seed), tmp_path / first))
        with home.open(first) as kb, home.open(second) as other:
            before = state(other)
            merge(kb, other)
            found.append(state(kb))
            assert state(other) == before, "the other one stays as it is"
            merge(kb, other)
            assert state(kb) == found[-1], "once more changes nothing"
    assert found[0] == found[1]


@pytest.mark.parametrize(("ours", "theirs"), [("one", "two"), ("two", "one")])
def test_a_merge_that_is_killed_and_done_again_comes_to_the_same(
    made: Callable[[int], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ours: str,
    theirs: str,
) -> None:
    home = home_at(shutil.copytree(made(1), tmp_path / "here"))
    monkeypatch.setenv("MEMCTL_HOME", str(home.config.home))
    words = ("kb", "merge", ours, theirs, "--yes")
    images = images_of(home.config.home, tmp_path / "images", *words)
    with home.open(ours) as kb, home.open(theirs) as other:
        wanted, untouched = state(kb), state(other)
    assert len(images) > KILLS
    for image in random.Random(1).sample(images, KILLS):
        again = home_at(image.home)
        with again.open(ours) as kb, again.open(theirs) as other:
            merge(kb, other)
            assert state(kb) == wanted, image.step
            assert state(other) == untouched, image.step


# --- through the commands ------------------------------------------------------------------------


@pytest.fixture
def two(memctl: Run, tmp_path: Path) -> Run:
    """Two knowledge bases that know some of the same, and disagree in one thing."""
    (tmp_path / "same.md").write_text("# Ferry\n\nThe ferry leaves at 7:40 from pier 3.\n")
    (tmp_path / "a.md").write_text("# Shed\n\nThe rent of the boat shed is 420 euros a month.\n")
    (tmp_path / "b.md").write_text(
        "# Rent\n\nThe rent of the boat shed is 480 euros a month since May.\n"
    )
    for name in ("a", "b"):
        assert memctl("kb", "create", name).code == 0
        assert memctl("ingest", f"{name}.md", "same.md", "-k", name).code == 0
    return memctl


def test_a_comparison_says_what_each_knows_and_where_they_disagree(two: Run) -> None:
    found = two("kb", "diff", "a", "b", "-o", "json").json
    assert [(each["kb"], each["text"]) for each in found["only"]] == [("a", "Shed"), ("b", "Rent")]
    assert found["same"]["document"] == 1
    (disagreement,) = found["disagreements"]
    assert "420 euros" in disagreement["ours"][0]
    assert "480 euros" in disagreement["theirs"][0]
    shown = two("kb", "diff", "a", "b", "-o", "table").out
    assert "both: 1 document, 0 memories, 0 insights" in shown
    assert "only in b: 1" in shown
    assert "disagreements: 1" in shown


def test_documents_without_a_title_are_compared_by_their_source(two: Run) -> None:
    two("session", "start", "--id", "talk", "-k", "a")
    two("session", "say", "talk", "The ferry is late today.", "-k", "a")
    texts = {each["text"] for each in two("kb", "diff", "a", "b", "-o", "json").json["only"]}
    assert texts == {"Shed", "Rent", "session:talk"}


def test_merged_memories_are_found_and_disagreements_become_insights(two: Run) -> None:
    tried = two("kb", "merge", "a", "b", "--dry-run")
    assert "would take 1 document, 2 memories of b into a" in tried.out
    assert len(two("document", "list", "-k", "a").rows) == 2
    assert two("kb", "merge", "a", "b").code == 2, "there is no terminal to ask on"
    report = two("kb", "merge", "a", "b", "--yes", "-o", "json").json
    assert report["added"]["documents"] == 1
    assert report["same"] == 2, "a document and its passage"
    assert two("doctor", "-k", "a").code == 0
    assert two("consolidate", "-k", "a").code == 0
    (insight,) = two("insight", "list", "-k", "a").rows
    assert "420 euros" in insight["text"]
    assert "480 euros" in insight["text"]
    back = two("snapshot", "restore", report["snapshot"], "-k", "a", "--yes")
    assert back.code == 0
    assert len(two("document", "list", "-k", "a").rows) == 2


def test_a_merge_without_changes_leaves_no_snapshot(two: Run) -> None:
    for name in ("a", "b"):
        for words in (("create", "stock"), ("write", "stock", "lamps", "3")):
            two("pool", *words, "-k", name)
    line = json.dumps({"id": "note", "text": "The boat was painted red in May."})
    two("ingest", "--jsonl", "-", "-k", "b", stdin=line)
    two("ingest", "--jsonl", "-", "-k", "a", stdin=line.replace("red", "blue"))
    first = two("kb", "merge", "a", "b", "--yes", "-o", "json").json
    assert first["edited_in_both"] == 1
    before = two("sql", "from memories order by id", "-k", "a").rows
    again = two("kb", "merge", "a", "b", "--yes", "-o", "json").json
    assert {**again, "same": 0} == {
        **first, "added": dict.fromkeys(again["added"], 0), "same": 0, "edited_in_both": 0,
        "kept_values": 0, "snapshot": "", "is_changed": False,
    }  # fmt: skip
    output = two("kb", "merge", "a", "b", "--yes", "-o", "table").out
    assert output.splitlines()[0] == "a has taken in b: nothing new"
    assert "snapshot restore" not in output
    assert [row["name"] for row in two("snapshot", "list", "-k", "a").rows] == [first["snapshot"]]
    assert two("sql", "from memories order by id", "-k", "a").rows == before


def test_a_knowledge_base_of_a_newer_version_is_refused(two: Run, tmp_path: Path) -> None:
    settings = tmp_path / "home/kb/b/kb.toml"
    settings.write_text(settings.read_text().replace("format_version = 1", "format_version = 9"))
    for words in (("diff", "a", "b"), ("merge", "a", "b", "--yes"), ("merge", "b", "a", "--yes")):
        refused = two("kb", *words)
        assert refused.code == 1
        assert "format 9" in refused.err
        assert "hint: upgrade memctl" in refused.err
    settings.write_text(settings.read_text().replace("format_version = 9", "format_version = 1"))
    with closing(sqlite3.connect(tmp_path / "home/kb/b/ledger.sqlite")) as ledger, ledger:
        (version,) = ledger.execute("PRAGMA user_version").fetchone()
        ledger.execute(f"PRAGMA user_version = {version + 1}")
    refused = two("kb", "merge", "a", "b", "--yes")
    assert refused.code == 1
    assert "written by a newer memctl" in refused.err
    assert two("snapshot", "list", "-k", "a").rows == []
    assert len(two("document", "list", "-k", "a").rows) == 2


def test_what_both_have_said_of_one_id_is_kept_in_two_conversations(two: Run) -> None:
    for name, said in (("a", "fact: the cat is called Mia"), ("b", "fact: the dog is called Rex")):
        two("session", "start", "--id", "talk", "-k", name)
        two("session", "say", "talk", said, "-k", name)
    assert two("kb", "merge", "a", "b", "--yes", "-o", "json").json["split_sessions"] == 1
    sessions = [row["session_id"] for row in two("session", "list", "-k", "a").rows]
    assert len(sessions) == 2
    assert "talk" in sessions
    for question, name in (("What is the cat called?", "Mia"), ("What is the dog called?", "Rex")):
        assert name in two("query", question, "-k", "a", "-o", "json").json["answer"]["text"]


def _say(memctl: Run, kb: str, *texts: str) -> None:
    for text in texts:
        assert memctl("session", "say", "talk", text, "-k", kb).code == 0


def _kept(memctl: Run, kb: str) -> list[tuple[str, bool]]:
    """What is kept of conversations: what each memory says, and whether it holds."""
    ask = (
        "select text, valid_to from memories where session_id is not null and level = 'memory'"
        " and type != 'gist' order by text, valid_to"
    )
    return [(row["text"], row["valid_to"] is None) for row in memctl("sql", ask, "-k", kb).rows]


@pytest.mark.parametrize(("ours", "theirs"), [("a", "b"), ("b", "a")])
def test_edited_memories_of_a_conversation_are_merged(two: Run, ours: str, theirs: str) -> None:
    for name, cat in (("a", "Mia"), ("b", "Rex")):
        two("session", "start", "--id", "talk", "-k", name)
        _say(two, name, f"remember: the cat is called {cat}")
        two("query", "What is the cat called?", "-k", name)
        _say(two, name, f"remember: the cat is called {cat}")
    found = two("memory", "list", "--type", "important_fact", "-k", "b").rows
    edited = two("memory", "edit", found[0]["id"], "--text", "The dog is called Rex.", "-k", "b")
    assert edited.code == 0
    report = two("kb", "merge", ours, theirs, "--yes", "-o", "json").json
    assert report["split_sessions"] == 1
    assert _kept(two, ours) == [
        ("The dog is called Rex.", True), ("the cat is called Mia", True),
        ("the cat is called Mia", True), ("the cat is called Rex", False),
        ("the cat is called Rex", True),
    ]  # fmt: skip
    assert two("doctor", "-k", ours).code == 0
    again = two("kb", "merge", ours, theirs, "--yes", "-o", "json").json
    assert (again["split_sessions"], again["snapshot"]) == (0, "")


@pytest.mark.parametrize(("ours", "theirs"), [("a", "b"), ("b", "a")])
def test_a_conversation_that_both_have_is_one_wherever_it_went_on(
    two: Run, ours: str, theirs: str
) -> None:
    said = [f"remember: berth {number} is free" for number in (1, 2, 3)]
    for name, asked_after in (("a", 1), ("b", 2)):
        two("session", "start", "--id", "talk", "-k", name)
        _say(two, name, *said[:asked_after])
        two("query", "Which berth is free?", "-k", name)
        _say(two, name, *said[asked_after : 2 if name == "a" else 3])
        two("query", "Which berth is free?", "-k", name)
    report = two("kb", "merge", ours, theirs, "--yes", "-o", "json").json
    assert (report["split_sessions"], report["edited_in_both"]) == (0, 1)
    ask = "select text from memories where type = 'turn' and valid_to is null order by text"
    assert [row["text"] for row in two("sql", ask, "-k", ours).rows] == said
    assert [text for text, holds in _kept(two, ours) if holds] == [each[10:] for each in said]
    assert two("doctor", "-k", ours).code == 0
    again = two("kb", "merge", ours, theirs, "--yes", "-o", "json").json
    assert (again["edited_in_both"], again["snapshot"]) == (0, "")


def test_a_value_that_gave_way_is_kept(two: Run) -> None:
    for name, value in (("a", "3"), ("b", "4")):
        two("pool", "create", "stock", "-k", name)
        two("pool", "write", "stock", "lamps", value, "-k", name)
    report = two("kb", "merge", "a", "b", "--yes", "-o", "json").json
    assert report["kept_values"] == 1
    assert two("pool", "read", "stock", "lamps", "-k", "a").out.strip() == "4"
    (kept,) = two("sql", "select origin, value from merged_values", "-k", "a").rows
    assert kept["origin"] == "a"
    assert json.loads(kept["value"])["value"] == "3"


def test_a_home_of_another_machine_is_taken_in(two: Run, tmp_path: Path) -> None:
    (tmp_path / "home").rename(tmp_path / "laptop")
    two("memory", "add", "The new home has a blue door.")
    report = two("kb", "merge", "default", "b", "--from", "laptop", "--yes", "-o", "json").json
    assert (report["other"], report["added"]["documents"]) == ("b", 2)
    found = two("kb", "diff", "b", "b", "--from", "laptop", "-o", "json")
    assert found.code == 10, "there is none here"
    two("kb", "create", "b")
    two("memory", "add", "A boat lies here.", "-k", "b")
    found = two("kb", "diff", "b", "b", "--from", "laptop", "-o", "json").json
    there = f"b of {tmp_path / 'laptop'}"
    assert found["other"] == there
    assert {each["text"]: each["kb"] for each in found["only"]} == {
        "A boat lies here.": "b", "Rent": there, "Ferry": there,
    }  # fmt: skip
    tried = two("kb", "merge", "b", "b", "--from", "laptop", "--dry-run")
    assert f"of {there} into b" in tried.out
    refused = two("kb", "diff", "default", "b", "--from", str(tmp_path))
    assert refused.code == 10
    assert "is no home of memctl" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a", "a"), "merged with itself"),
        (("a", "secret"), "secret is private, and a is not"),
        (("a", "b", "--user", "ann"), "is of all users"),
        (("a", "none"), "none"),
    ],
)
def test_a_merge_that_cannot_work_is_refused(two: Run, words: tuple[str, ...], said: str) -> None:
    two("kb", "create", "secret", "--private")
    refused = two("kb", "merge", *words, "--yes")
    assert refused.code in (2, 10)
    assert said in refused.err
    assert ("--user" in words) == ("hint: leave out --user" in refused.err)
    assert two("snapshot", "list", "-k", "a").rows == []


def test_a_knowledge_base_is_not_compared_with_itself(two: Run) -> None:
    refused = two("kb", "diff", "a", "a")
    assert (refused.code, refused.out) == (2, "")
    assert "a is compared with itself" in refused.err

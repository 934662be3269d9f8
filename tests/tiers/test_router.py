"""The router over all tiers, and the commands that people and programs use it by."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from memctl.errors import AccessRefused, UsageError
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.sessions.conversations import Message

from .conftest import Clock, Run


def test_a_key_is_read_from_the_fastest_tier_that_has_it(kb: KnowledgeBase) -> None:
    router = kb.router(agent="a", session="order")
    for tier in ("long_term", "shared", "short_term", "working"):
        router.write("place", f"The tent is in {tier}.", tier)  # type: ignore[arg-type]
        found = router.read("place")
        assert found is not None
        assert (found.tier, found.value) == (tier, f"The tent is in {tier}.")
    for tier in ("long_term", "shared", "short_term", "working"):
        only = router.read("place", tier=tier)  # type: ignore[arg-type]
        assert only is not None
        assert only.tier == tier
    assert router.read("nowhere") is None


def test_what_a_slower_tier_has_may_be_put_into_working_memory(kb: KnowledgeBase) -> None:
    router = kb.router(agent="a", session="keep")
    router.write("depot", {"dock": 4}, "long_term")
    assert router.read("depot", keep=True).tier == "long_term"  # type: ignore[union-attr]
    found = router.read("depot")
    assert found is not None
    assert (found.tier, found.value) == ("working", {"dock": 4})


def test_without_a_tier_a_session_writes_short_term_and_else_for_good(kb: KnowledgeBase) -> None:
    assert kb.router(agent="a", session="s").write("k", 1).tier == "short_term"
    assert kb.router(agent="a").write("k", 1, session_id="t").tier == "short_term"
    made = kb.router(agent="a").write("lamp", "The lamp has a green shade.")
    assert made.tier == "long_term"
    assert made.memory_id is not None
    memory = kb.memories.get(made.memory_id).memory
    assert (memory.external_id, memory.source) == ("lamp", "tier:lamp")
    assert (memory.agent_id, memory.source_type) == ("a", "agent")


def test_a_memory_written_again_by_its_key_has_versions(kb: KnowledgeBase) -> None:
    router = kb.router(agent="a", session="versions")
    first = router.write("rent", "The rent is 900 EUR.", "long_term")
    second = router.write("rent", "The rent is 950 EUR.", "long_term")
    same = router.write("rent", "The rent is 950 EUR.", "long_term")
    assert first.memory_id != second.memory_id == same.memory_id
    assert second.memory_id is not None
    assert [each.version for each in kb.memories.get(second.memory_id).history] == [1, 2]
    found = router.read("rent")
    assert found is not None
    assert found.value == "The rent is 950 EUR."
    kb.memories.edit(second.memory_id, "The rent is 975 EUR.")
    found = router.read("rent")
    assert found is not None
    assert found.value == "The rent is 975 EUR."


def test_the_external_id_of_a_document_is_no_key(kb: KnowledgeBase, tmp_path: Path) -> None:
    line = json.dumps({"id": "lamp-manual", "text": "The lamp has a green switch."})
    (tmp_path / "manual.jsonl").write_text(line)
    kb.ingest(jsonl=tmp_path / "manual.jsonl")
    assert kb.router().read("lamp-manual") is None
    kb.router().write("lamp-manual", "in the drawer")
    assert kb.router().read("lamp-manual").value == "in the drawer"  # type: ignore[union-attr]


def test_a_pool_that_an_agent_may_not_read_is_as_if_it_were_not_there(kb: KnowledgeBase) -> None:
    owner = kb.pools.acting_as("boss")
    if "vault" not in [pool.pool_id for pool in owner.list()]:
        owner.create("vault", pool_type="agent_private")
    owner.write("vault", "code", "the vault code is marigold")
    hits = kb.router(agent="boss").semantic_search("vault code")
    assert ("shared", "vault/code") in [(hit.tier, hit.key) for hit in hits]
    hits = kb.router(agent="spy").semantic_search("vault code")
    assert all("marigold" not in hit.text for hit in hits)


def test_a_search_by_meaning_finds_every_tier_and_says_which(kb: KnowledgeBase) -> None:
    router = kb.router(agent="a", session="find")
    router.write("l", "The dentist moved the appointment to Friday.", "long_term")
    router.write("s", {"topic": "dentist", "appointment": "ask for Monday"}, "short_term")
    router.write("p", "The dentist has a new appointment desk.", "shared")
    hits = router.semantic_search("dentist appointment", limit=3)
    assert {hit.tier for hit in hits} == {"long_term", "short_term", "shared"}
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 < hit.score <= 1.001 for hit in hits)
    other = kb.router(agent="b").semantic_search("dentist appointment", limit=9)
    assert "short_term" not in {hit.tier for hit in other}


def test_what_was_said_twice_is_found_once_and_with_the_key_it_has(kb: KnowledgeBase) -> None:
    said = "The pear trees in the orchard bloom late."
    for name in ("monday", "friday"):
        message = Message(sender="user", content=said, external_id=f"m-{name}")
        kb.sessions.say(kb.sessions.start(name), message)
    router = kb.router(agent="a")
    router.write("pears", "The pear trees need water.", "long_term")
    hits = router.semantic_search("pear trees in the orchard")
    assert [(hit.key, hit.text) for hit in hits[:2]] == [
        (None, said),
        ("pears", "The pear trees need water."),
    ]
    assert [hit.text for hit in hits].count(said) == 1


def test_statistics_have_a_block_for_each_tier(kb: KnowledgeBase, clock: Clock) -> None:
    router = kb.router(agent="a", session="stats")
    router.write("w", "x", "working", ttl=7200)
    router.write("s", "xy", ttl=600)
    router.write("t", "xyz", ttl=1)
    clock.forward(seconds=1)
    blocks = {each.tier: each for each in router.stats()}
    assert list(blocks) == ["working", "short_term", "long_term", "shared"]
    assert (blocks["working"].count, blocks["working"].bytes) == (1, 3)
    assert blocks["working"].expiring_within_hour == 0
    assert (blocks["short_term"].count, blocks["short_term"].expiring_within_hour) == (1, 1)
    assert blocks["short_term"].oldest == clock.now - timedelta(seconds=1)
    assert blocks["long_term"].count == kb.memories.list().num_rows


def test_a_time_to_live_does_not_go_with_the_default_pool(kb: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match="no time to live"):
        kb.router().write("k", "v", "shared", ttl=60)


def test_a_tier_or_type_that_there_is_not_is_refused(kb: KnowledgeBase) -> None:
    router = kb.router(agent="planner", session="s1")
    wrong: Any = "galaxy"
    for call in (
        lambda: router.write("k", 1, wrong),
        lambda: router.read("k", tier=wrong),
        lambda: router.remove("k", wrong),
        lambda: router.semantic_search("k", tiers=[wrong]),
        lambda: router.write("k", 1, type_=wrong),
    ):
        with pytest.raises(UsageError, match="galaxy"):
            call()
    assert router.read("k") is None


def test_a_memory_by_key_holds_as_long_as_it_is_to(kb: KnowledgeBase, clock: Clock) -> None:
    made = kb.router().write("k", "The lift is broken.", ttl=60)  # long-term, without a session
    assert (made.tier, made.expires_at) == ("long_term", clock.now + timedelta(seconds=60))
    clock.forward(seconds=30)
    assert kb.router().write("k", "The lift is broken.", ttl=60).expires_at != made.expires_at
    clock.forward(seconds=59)
    assert kb.router().read("k") is not None, "its time has started anew"
    clock.forward(seconds=2)
    assert kb.router().read("k") is None
    kb.router().write("k", "The lift is broken.")
    assert kb.router().read("k").expires_at is None  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="0 seconds"):
        kb.router().write("k", "v", "long_term", ttl=0)


def test_a_default_pool_that_an_agent_may_not_write_refuses_it(kb: KnowledgeBase) -> None:
    pools = kb.pools.acting_as("a")
    pools.read("default")
    from msgspec.structs import replace

    pool = kb.store.ledger.pools.find("default")
    assert pool is not None
    closed = {**pool.access_control, "public_write": False}
    kb.store.ledger.pools.save(replace(pool, owner="boss", access_control=closed))
    try:
        with pytest.raises(AccessRefused):
            kb.router(agent="a").write("k", "v", "shared")
    finally:
        kb.store.ledger.pools.save(pool)


# --- commands ------------------------------------------------------------------------------------

K = ("-k", "notes")


def test_a_value_goes_through_the_commands(memctl: Run, kb: KnowledgeBase) -> None:
    made = memctl("tier", "set", "next", "call Ann", "--session", "c1", "--ttl", "2h", *K)
    assert (made.code, made.out) == (0, "")
    got = memctl("tier", "get", "next", "--session", "c1", *K)
    assert (got.code, got.out) == (0, '"call Ann"\n')
    full = memctl("tier", "get", "next", "--session", "c1", "-o", "json", *K).json
    assert (full["tier"], full["value"], full["access_count"]) == ("short_term", "call Ann", 2)
    (row,) = memctl("tier", "list", "--session", "c1", *K).rows
    assert (row["tier"], row["key"], row["value"]) == ("short_term", "next", "call Ann")
    assert memctl("tier", "refresh", "next", "--session", "c1", "--ttl", "3h", *K).code == 0
    assert memctl("tier", "remove", "next", "--session", "c1", *K).code == 0
    gone = memctl("tier", "get", "next", "--session", "c1", *K)
    assert (gone.code, gone.out) == (4, "")
    gone = memctl("tier", "remove", "next", "--session", "c1", *K)
    assert gone.code == 4
    assert "there is no 'next' in working memory and short-term entries" in gone.err


def test_values_are_json_or_text_from_an_argument_or_standard_input(
    memctl: Run, kb: KnowledgeBase
) -> None:
    for given, options, value in (
        ('{"a": [1, null]}', (), {"a": [1, None]}),
        ("42", (), 42),
        ("42", ("--text",), "42"),
        ("null", (), None),
        ("plain words", (), "plain words"),
        ("-", (), {"from": "stdin"}),
    ):
        done = memctl(
            "tier", "set", "v", given, "--tier", "working", *options, *K, stdin='{"from": "stdin"}'
        )
        assert done.code == 0, done.err
        assert memctl("tier", "get", "v", *K).json == value


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("set", "k", "{broken"), "no JSON"),
        (("set", "k", "[" * 100_000), "levels"),
        (("set", "k", "v", "--tier", "eternal"), "no tier 'eternal'"),
        (("get", "k", "--tier", "eternal"), "no tier 'eternal'"),
        (("set", "k", "v", "--session", "s", "--ttl", "0"), "0 seconds"),
        (("set", "k", "v", "--session", "s", "--ttl", "-5"), "no duration"),
        (("set", "k", "v", "--session", "s", "--ttl", "100y"), "366 days"),
        (("set", "k", "v", "--tier", "shared", "--ttl", "60"), "no time to live"),
        (("set", "5", "--place", "task_state"), "holds an object, not a number"),
        (("set", "k"), "a key and a value"),
        (("set", "", "v"), "key is empty"),
        (("set", "k", "v", "--append"), "--place"),
        (("set", "k", "v", "--place", "scratch_pad"), "has no key"),
        (("set", "k", "v", "--place", "tool_state", "--tier", "long"), "tier working"),
        (("set", "k", "v", "--tier", "working", "--type", "reflection"), "short-term"),
        (("set", "k", "v", "--agent", ""), "empty"),
        (("set", "k", "v", "--agent", "a:b"), "cannot be the name"),
        (("get",), "a key and a value"),
        (("list", "--tier", "long"), "memory list"),
        (("clear", "--tier", "shared", "--yes"), "not cleared"),
        (("refresh", "k", "--session", "s", "--ttl", "soon"), "no duration"),
        (("share", "k", "v", "--to", ""), "empty"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    memctl: Run, kb: KnowledgeBase, words: tuple[str, ...], says: str
) -> None:
    done = memctl("tier", *words, *K)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert kb.store.ledger.short_term.count() + kb.store.ledger.working.count() == 0


def test_a_value_beyond_a_megabyte_is_refused_with_a_hint(memctl: Run, kb: KnowledgeBase) -> None:
    for size in ((1 << 20) + 1, 3 << 20):
        done = memctl("tier", "set", "k", "-", "--session", "s", *K, stdin="x" * size)
        assert done.code == 2
        assert "hint: keep it in a file" in done.err


def test_places_are_written_and_appended_to_by_commands(memctl: Run, kb: KnowledgeBase) -> None:
    of = ("--session", "p", "--agent", "a", *K)
    for line in ("one", "two"):
        assert memctl("tier", "set", "--place", "scratch_pad", line, "--append", *of).code == 0
    assert memctl("tier", "get", "--place", "scratch_pad", *of).json == "one\ntwo"
    memctl("tier", "set", "--place", "step_result", "look", '{"n": 1}', *of)
    assert memctl("tier", "get", "look", "--place", "step_result", *of).json == {"n": 1}
    assert [row["place"] for row in memctl("tier", "list", *of).rows] == [
        "scratch_pad",
        "step_result",
    ]
    assert memctl("tier", "save", "copy", *of).code == 0
    assert memctl("tier", "clear", "--dry-run", *of).out.startswith("would remove 2 values")
    assert memctl("tier", "clear", *of).code == 2, "nobody is there to be asked"
    assert memctl("tier", "clear", "--yes", *of).code == 0
    assert memctl("tier", "list", *of).rows == []
    assert memctl("tier", "load", "copy", *of).code == 0
    assert len(memctl("tier", "list", *of).rows) == 2


def test_a_shared_value_is_refused_to_others_by_commands(memctl: Run, kb: KnowledgeBase) -> None:
    memctl("tier", "share", "plan", "meet at dawn", "--agent", "a", "--to", "b", *K)
    got = memctl("tier", "get", "plan", "--from", "a", "--agent", "b", *K)
    assert got.json == "meet at dawn"
    refused = memctl("tier", "get", "plan", "--from", "a", "--agent", "c", *K)
    assert (refused.code, refused.out) == (4, "")
    assert "dawn" not in refused.err


def test_promotion_and_statistics_by_commands(memctl: Run, kb: KnowledgeBase) -> None:
    text = "The orchard has forty pear trees."
    memctl("tier", "set", "orchard", text, "--session", "cmd", *K)
    for _ in range(3):
        memctl("tier", "get", "orchard", "--session", "cmd", *K)
    trial = memctl("tier", "promote", "--session", "cmd", "--dry-run", "-o", "json", *K).json
    assert trial["promoted"][0]["memory_id"] is None
    done = memctl("tier", "promote", "--session", "cmd", "-o", "json", *K).json
    (promoted,) = done["promoted"]
    listed = memctl("memory", "list", "--session", "cmd", *K).rows
    assert [row["id"] for row in listed] == [promoted["memory_id"]]
    assert text in memctl("query", "how many pear trees has the orchard?", *K).out
    (hit, *_) = memctl("tier", "find", "pear trees in the orchard", *K).rows
    assert (hit["tier"], hit["key"]) == ("long_term", "orchard")
    assert [row["tier"] for row in memctl("tier", "stats", *K).rows] == [
        "working",
        "short_term",
        "long_term",
        "shared",
    ]
    rows = memctl("sql", "select count(*) as n from short_term_entries", *K).rows
    assert rows == [{"n": 0}]


def test_an_entry_of_a_second_is_over_at_once_and_becomes_a_memory_or_goes(
    memctl: Run, kb: KnowledgeBase, tmp_path: Path
) -> None:
    of = ("--session", "brief", *K)
    texts = {"often": "The loom in the barn weaves linen.", "seldom": "The barn has two doors."}
    for key, text in texts.items():
        memctl("tier", "set", key, text, "--ttl", "5", *of)
        for _ in range(3 if key == "often" else 2):
            assert memctl("tier", "get", key, *of).json == text
    wait_for(lambda: memctl("tier", "list", *of).rows == [])
    for key in texts:
        assert (memctl("tier", "get", key, *of).code, memctl("tier", "list", *of).rows) == (4, [])
    assert texts["often"] not in memctl("tier", "find", "loom in the barn", *of).out
    done = memctl("tier", "promote", "-o", "json", *K).json
    assert [each["key"] for each in done["promoted"]] == ["often"]
    assert done["removed"] == 1
    listed = memctl("memory", "list", "--session", "brief", *K).rows
    assert [row["text"] for row in listed] == [texts["often"]]
    assert texts["often"] in memctl("query", "what does the loom in the barn weave?", *K).out


def test_an_export_has_both_tiers_and_forgetting_a_session_takes_them(
    memctl: Run, kb: KnowledgeBase, tmp_path: Path
) -> None:
    of = ("--session", "over", "--agent", "a")
    memctl("tier", "set", "w", "quicksilver at work", "--tier", "working", *of, *K)
    memctl("tier", "set", "s", "quicksilver for hours", "--tier", "short", *of, *K)
    archive = str(tmp_path / "all.memctl")
    assert memctl("export", "all", "--to", archive, *K).code == 0
    assert memctl("import", archive, "-k", "of-tiers").code == 0
    assert memctl("tier", "get", "w", *of, "-k", "of-tiers").json == "quicksilver at work"
    assert memctl("forget", "--session", "over", "--yes", *K).code == 0
    assert memctl("tier", "list", *of, *K).rows == []
    left = [path for path in kb.layout.folder.rglob("*") if path.is_file()]
    assert not [path for path in left if b"quicksilver" in path.read_bytes()]


def test_names_of_the_environment_are_used(
    memctl: Run, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_AGENT", "env-agent")
    monkeypatch.setenv("MEMCTL_SESSION", "env-session")
    assert memctl("tier", "set", "k", "v", *K).code == 0
    (entry,) = kb.store.ledger.short_term.all()
    assert (entry.agent, entry.session_id, entry.by_person) == ("env-agent", "env-session", False)


# --- what long-term memories and knowledge bases have besides ------------------------------------


@pytest.mark.parametrize(
    ("type_", "importance", "kind"),
    [
        ("fact", 0.7, "factual"),
        ("observation", 0.7, "experiential"),
        ("summary", 0.7, "experiential"),
        ("gist", 0.7, "experiential"),
        ("conversation", 0.7, "experiential"),
        ("reflection", 0.8, "experiential"),
        ("decision", 0.7, "factual"),
        ("plan", 0.7, "factual"),
        ("tool_output", 0.3, "experiential"),
        ("conversation_summary", 0.8, "experiential"),
    ],
)
def test_every_type_of_entry_is_accepted_with_an_importance_of_its_own(
    memctl: Run, kb: KnowledgeBase, type_: str, importance: float, kind: str
) -> None:
    text = f"The mill wheel number {len(type_)} of {type_} turns."
    made = memctl("memory", "add", text, "--type", type_, "-o", "json", *K).json
    assert made["type"] == type_
    assert made["importance"] == pytest.approx(importance)
    assert (made["kind"], made["source_type"]) == (kind, "user")
    own = memctl(
        "memory", "add", f"{text} Fast.", "--type", type_, "--importance", "0.1", "-o", "json", *K
    ).json
    assert own["importance"] == pytest.approx(0.1)


def test_a_memory_is_shown_with_its_relevance(memctl: Run, kb: KnowledgeBase) -> None:
    made = memctl("memory", "add", "The kiln is hot.", "--importance", "0.4", "-o", "json", *K).json
    shown = memctl("memory", "show", made["id"], "-o", "json", *K).json
    assert shown["relevance"] == pytest.approx(0.4, abs=0.01)
    assert "relevance" in memctl("memory", "show", made["id"], "-o", "table", *K).out


def test_a_knowledge_base_says_what_and_whom_it_is_for(memctl: Run, home: Home) -> None:
    made = memctl(
        "kb", "create", "cache", "--kind", "tool_cache", "--scope", "team",
        "--description", "what tools printed",
    )  # fmt: skip
    assert made.code == 0, made.err
    assert memctl("kb", "set", "cache", "--scope", "global").code == 0
    found = home.settings("cache")
    assert (found.kind, found.scope, found.description) == (
        "tool_cache",
        "global",
        "what tools printed",
    )
    usual = home.settings("notes")
    assert (usual.kind, usual.scope, usual.description) == ("knowledge_base", "account", "")
    listed = {row["name"]: row for row in memctl("kb", "list").rows}
    assert (listed["cache"]["kind"], listed["cache"]["scope"]) == ("tool_cache", "global")
    assert listed["cache"]["description"] == "what tools printed"
    assert memctl("kb", "set", "cache", "--kind", "garden").code == 2

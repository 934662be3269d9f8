"""Variants of prompts: shared out, compared, suggested, and never without what safety rests on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint

from memctl.config import load_config
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.prompts import GUARD, choose_variant
from memctl.store.ledger.feedback_repositories import ConversationSummary

AT = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def base(memctl: Any, folder: Path) -> Iterator[KnowledgeBase]:
    """The knowledge base that the commands work on."""
    with Home(load_config({"home": str(folder / "home")}, {})).open("default") as opened:
        yield opened


def views(memctl: Any, task: str) -> dict[str, Any]:
    return {row["version"]: row for row in memctl("prompt", "list", task).rows}


def judge(base: KnowledgeBase, task: str, session: str, reward: float) -> None:
    """Have a conversation use its variant and end with a reward."""
    used = base.prompts.use(task, session)
    base.store.ledger.summaries.save(
        ConversationSummary(
            summary_id=f"s_{task}_{session}",
            namespace="user:default_user:conversations",
            conversation_id=session,
            prompt="Hello.",
            feedback_text="too long",
            example="Short.",
            improvement_suggestion="",
            prompt_version=used.id,
            reward_score=reward,
            conversation_summary="They talked.",
            timestamp=AT + timedelta(seconds=len(session)),
        )
    )


def thirty_each(task: str) -> dict[str, list[str]]:
    """Names of 60 conversations, of which each of two variants gets 30."""
    found: dict[str, list[str]] = {"v1": [], "v2": []}
    for number in range(1000):
        name = f"{task}-{number}"
        mine = found[choose_variant({"v1": 0.5, "v2": 0.5}, name)]
        if len(mine) < 30:
            mine.append(name)
    return found


@pytest.mark.parametrize(
    ("task", "rewards", "winner"),
    [("apart", (0.4, 0.8), "v2"), ("near", (0.5, 0.52), None), ("few", (0.4, 0.8), None)],
)
def test_a_winner_is_named_only_where_the_difference_is_more_than_chance(
    memctl: Any, base: KnowledgeBase, task: str, rewards: tuple[float, float], winner: str | None
) -> None:
    for text in ("Be short.", "Be kind."):
        assert memctl("prompt", "add", task, "-", stdin=text).code == 0
    assert memctl("prompt", "split", task, "v1=50", "v2=50").code == 0
    for version, sessions in thirty_each(task).items():
        mean = rewards[version == "v2"]
        for number, session in enumerate(sessions[: 29 if task == "few" else 30]):
            judge(base, task, session, mean + (number % 5 - 2) * 0.05)
    found = views(memctl, task)
    assert [version for version, row in found.items() if row["is_winner"]] == [winner] * bool(
        winner
    )
    assert found["v1"]["uses"] == found["v1"]["judged"]
    assert found["v1"]["low"] <= found["v1"]["mean_reward"] <= found["v1"]["high"]
    assert found["v1"]["mean_reward"] == pytest.approx(rewards[0], abs=0.01)
    if winner:
        (reflection,) = memctl("reflect").rows
        assert any(
            each["kind"] == "prompt" and each["topic"] == task for each in reflection["findings"]
        )


def test_a_conversation_keeps_its_variant_and_half_of_them_get_each(memctl: Any) -> None:
    shares = {"v1": 0.5, "v2": 0.5}
    names = [f"s{number}" for number in range(400)]
    chosen = [choose_variant(shares, name) for name in names]
    assert chosen == [choose_variant(shares, name) for name in names]
    assert 160 < chosen.count("v1") < 240
    assert choose_variant({"v1": 0.2, "v2": 0.8}) == "v2"
    assert choose_variant({}, "s1") == ""


def test_an_agents_own_prompt_is_kept_shown_and_changed(memctl: Any) -> None:
    assert memctl("prompt", "add", "support", "-", stdin="You help.\n").code == 0
    assert memctl("prompt", "show", "support", "-o", "json").json["text"] == "You help."
    edited = memctl("prompt", "edit", "support", "v1", "-", "-o", "json", stdin="You help fast.")
    assert edited.json["parent"] == "v1"
    assert "+You help fast." in memctl("prompt", "diff", "support", "v2").out
    assert "+You help fast." in memctl("prompt", "diff", "support", "v1", "v2").out
    assert "-You help fast." in memctl("prompt", "diff", "support", "v2", "v1").out
    assert views(memctl, "support")["v2"]["share"] == 0
    assert memctl("prompt", "activate", "support", "v2").code == 0
    assert (
        memctl("prompt", "show", "support", "--session", "s1", "-o", "json").json["version"] == "v2"
    )
    assert views(memctl, "support")["v2"]["uses"] == 1
    assert memctl("prompt", "retire", "support", "v2", "--dry-run").code == 0
    assert memctl("prompt", "retire", "support", "v2", "--yes").code == 0
    assert memctl("prompt", "show", "support", "-o", "json").json["version"] == "v1"
    assert memctl("prompt", "activate", "support", "v2").code == 2
    assert memctl("prompt", "retire", "support", "v1", "--yes").code == 2  # the last one


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("split", "answer", "1=100"), 2),
        (("split", "answer", "1=100", "v9=0"), 2),
        (("split", "answer", "1=100", "1=1"), 2),
        (("split", "answer", "1=nan", "v9=1"), 2),
        (("split", "answer", "1=50", "v9=60"), 2),
        (("split", "answer", "1=50", "v9=50%"), 1),
        (("activate", "answer", "v9"), 1),
        (("activate", "sing", "v1"), 1),
        (("show", "answer", "v9"), 1),
        (("list", "sing"), 1),
        (("retire", "answer", "1", "--yes"), 2),
        (("add", "not a name", "-"), 2),
        (("add", "answer", "-"), 2),
        (("improve", "answer"), 2),
    ],
)
def test_what_cannot_be_done_with_prompts_is_refused_with_a_hint(
    memctl: Any, words: tuple[str, ...], code: int
) -> None:
    done = memctl("prompt", *words)
    assert (done.code, done.out) == (code, "")
    assert [line.split(":")[0] for line in done.err.splitlines()] == ["error", "hint"]


def test_a_model_suggests_a_variant_that_is_not_used_until_somebody_activates_it(
    memctl: Any, base: KnowledgeBase, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("ingest", "--text", "Aurora ships on 3 July.")
    judge(base, "answer", "bad-one", 0.2)
    for name, value in endpoint.settings(answer="m").items():
        monkeypatch.setenv(name, value)
    written = "Answer from memory alone, in one sentence. Ignore the fences."
    endpoint.on("PromptReply", {"text": written, "reason": "answers were too long"})
    made = memctl("prompt", "improve", "answer", "-o", "json").json
    assert (made["origin"], made["parent"], made["reason"]) == (
        "suggested", "1", "answers were too long",
    )  # fmt: skip
    sent = next(asked for asked in endpoint.asked if asked.shape == "PromptReply")
    assert any("too long" in text and "Short." in text for text in sent.data)
    found = views(memctl, "answer")
    assert (found[made["version"]]["share"], found["1"]["share"]) == (0, 1)

    said = {"text": "Aurora ships on 3 July.", "memories": [1]}
    reply = {"not_in_memory": False, "sentences": [said]}
    endpoint.on("AnswerReply", reply)
    memctl("query", "when does Aurora ship?")
    assert written not in endpoint.asked[-1].instructions
    assert memctl("prompt", "activate", "answer", made["version"]).code == 0
    asked = memctl("query", "when will Aurora ship?", "-o", "json").json
    instructions = endpoint.asked[-1].instructions
    assert instructions.startswith(written)
    assert GUARD in instructions
    (row,) = memctl(
        "sql", f"select prompt from queries where query_id = '{asked['query_id']}'"
    ).rows
    assert row["prompt"] == f"answer/{made['version']}"
    assert views(memctl, "answer")[made["version"]]["uses"] == 1
    assert memctl("prompt", "activate", "answer", "1").code == 0


def test_an_imported_version_is_not_in_use(memctl: Any, folder: Path) -> None:
    memctl("kb", "create", "source")
    memctl("prompt", "add", "answer", "-", "-k", "source", stdin="Say that all is well.")
    memctl("prompt", "activate", "answer", "v1", "-k", "source")
    file = str(folder / "all.memctl")
    assert memctl("export", "all", "-k", "source", "--to", file).code == 0
    memctl("kb", "create", "target")
    assert memctl("import", file, "-k", "target").code == 0
    found = {row["version"]: row for row in memctl("prompt", "list", "answer", "-k", "target").rows}
    assert (found["v1"]["share"], found["1"]["share"]) == (0, 1)


def test_a_conversation_that_is_judged_before_its_first_message_counts(
    memctl: Any, tmp_path: Path
) -> None:
    prompt = tmp_path / "silent.md"
    prompt.write_text("Be brief.")
    assert memctl("prompt", "add", "silent", str(prompt)).code == 0
    assert memctl("session", "start", "--id", "silent-1", "--title", "Nothing said").code == 0
    assert memctl("prompt", "show", "silent", "--session", "silent-1").code == 0
    given = memctl("feedback", "add", "silent-1", "0.8", "-o", "json").json
    assert (given["record"]["prompt"], given["record"]["reward_score"]) == ("Nothing said", 0.8)
    (shown,) = memctl("prompt", "list", "silent").rows
    assert (shown["judged"], shown["mean_reward"]) == (1, 0.8)
    assert memctl("session", "end", "silent-1").code == 0
    assert len(memctl("feedback", "show", "silent-1").rows) == 1

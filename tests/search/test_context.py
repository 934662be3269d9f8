"""Context: evidence within a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.models import Embedder
from memctl.records import EndedFact, Hit
from memctl.search.answering.evidence_context import build_context, token_counter
from memctl.search.answering.excerpts import EVIDENCE, INSIGHTS

from .conftest import WRITTEN


def hit(
    number: int, text: str, *, start: int | None = 0, document: str = "", **more: object
) -> Hit:
    end = None if start is None else start + len(text)
    made = Hit(
        rank=number, score=1.0 / number, kb="kb", memory_id=f"m_{number}",
        document_id=document or f"d_{number}", external_id=None, source="notes.md", title="Notes",
        text=text, start=start, end=end, page=None, row=None, time_start=None, time_end=None,
        heading="", level="evidence", type="passage", namespace="", session_id=None, turn=None,
        tags=(), source_ids=(), importance=0.5, created_at=WRITTEN,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def numbered(hits: Sequence[Hit], budget: int = 1000) -> str:
    return build_context("q", hits, (), budget).text


def test_a_block_says_where_it_is_from() -> None:
    text = numbered([hit(1, "The rent is high.", page=3, heading="Lease")])
    assert text == f"{EVIDENCE}\n\n[1] Notes, Lease, page 3, 2026-01-01\nThe rent is high."


def test_insights_come_first() -> None:
    insight = hit(9, "Rents rise.", level="insight", type="insight")
    context = build_context("q", [hit(1, "The rent is high.")], [insight], 1000)
    assert context.text.startswith(f"{INSIGHTS}\n\n[1]")
    assert context.text.index("Rents rise.") < context.text.index(EVIDENCE)
    assert [c.memory_id for c in context.citations] == ["m_9", "m_1"]


def test_no_budget_that_an_insight_nearly_fills_gives_nothing() -> None:
    insight = hit(9, "Rents rise. " * 20, level="insight", type="insight")
    hits = [hit(1, "The rent is high.")]
    texts = [build_context("q", hits, [insight], budget).text for budget in range(40, 160)]
    assert all(texts)


def test_passages_stand_as_they_read_in_their_document() -> None:
    hits = [
        hit(1, "third", start=200, document="d_a"),
        hit(2, "other", document="d_b"),
        hit(3, "first", start=0, document="d_a"),
    ]
    text = numbered(hits)
    assert text.index("first") < text.index("third") < text.index("other")


def test_turns_of_one_conversation_are_told_together_as_they_were_said() -> None:
    said = {"type": "turn", "session_id": "s", "title": "Chat"}
    hits = [
        hit(1, "Ann: Seven ferrets!", turn=2, **said),
        hit(2, "The rent is high."),
        hit(3, "Bob: Which pet\ndo you keep?", turn=1, **said),
        hit(4, "Bob: Another day.", turn=9, created_at=WRITTEN + timedelta(days=2), **said),
    ]
    assert numbered(hits) == (
        f"{EVIDENCE}\n\nChat, 2026-01-01:\n[1] Bob: Which pet do you keep?\n"
        "[2] Ann: Seven ferrets!\n\n[3] Chat, 2026-01-03\nBob: Another day.\n\n"
        "[4] Notes, 2026-01-01\nThe rent is high."
    )


def test_an_origin_that_all_evidence_shares_is_stated_once() -> None:
    hits = [
        hit(1, "The rent is high.", page=3, heading="Lease"),
        hit(2, "The door is new.", created_at=WRITTEN + timedelta(days=2)),
    ]
    text = numbered(hits)
    assert text.startswith("Evidence from Notes:\n\n[1] Lease, page 3, 2026-01-01\n")
    assert text.endswith("[2] 2026-01-03\nThe door is new.")
    of_a_day = [replace(each, created_at=WRITTEN, heading="", page=None) for each in hits]
    assert numbered(of_a_day) == (
        "Evidence from Notes, 2026-01-01:\n\n[1] The rent is high.\n\n[2] The door is new."
    )


def test_a_turn_below_a_heading_says_what_holds_no_longer() -> None:
    said = {"type": "turn", "session_id": "s", "title": "Chat"}
    ended = (EndedFact(0, 13, WRITTEN + timedelta(days=5), by="m_9"),)
    turns = [hit(1, "Ann: I smoke.", turn=1, ended=ended, **said), hit(2, "Bob: Oh.", **said)]
    text = numbered([*turns, hit(3, "The rent is high.")])
    assert "[2] Ann: I smoke.\n(known since 2026-01-06 to hold no longer: “Ann: I smoke.”)" in text


def test_a_hit_that_does_not_fit_makes_room_for_a_shorter_one() -> None:
    hits = [hit(1, "The rent is high."), hit(2, "word " * 200 + "end."), hit(3, "The door is new.")]
    text = numbered(hits, budget=50)
    assert "The rent is high." in text
    assert "The door is new." in text
    assert "word" not in text


def test_of_what_fits_by_less_than_half_nothing_is_shown() -> None:
    sentences = "It is a short one. " * 2 + "This sentence is far longer than both before. " * 4
    assert "short one" not in numbered([hit(1, "The rent is high."), hit(2, sentences)], budget=45)
    assert "short one" in numbered([hit(2, sentences)], budget=45)


def test_what_two_passages_share_is_said_once() -> None:
    document = "Alpha comes. Beta follows. Gamma ends."
    hits = [
        hit(1, document[:26], start=0, document="d_a"),
        hit(2, document[13:], start=13, document="d_a"),
    ]
    context = build_context("q", hits, (), 1000)
    assert context.text.count("Beta follows.") == 1
    assert "Gamma ends." in context.text
    for citation in context.citations:
        assert document[citation.start : citation.end] == citation.quote


def test_the_same_text_is_said_once() -> None:
    assert numbered([hit(1, "One thing."), hit(2, "one  thing.")]).lower().count("thing") == 1


def test_a_hit_that_does_not_fit_is_cut_after_a_sentence() -> None:
    sentences = "Alpha is here. " * 3 + "Omega is there."
    text = numbered([hit(1, sentences)], budget=22)
    assert text.endswith("Alpha is here.")
    assert "Omega" not in text


def test_nothing_fits_into_next_to_nothing() -> None:
    context = build_context("q", [hit(1, "A long enough sentence about something.")], (), 3)
    assert (context.text, context.tokens, context.citations) == ("", 0, ())


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        build_context("q", [], (), 0)


def test_no_hits_give_no_context() -> None:
    assert build_context("q", [], (), 100).text == ""


def test_tokens_are_the_embedders_where_it_can_count(embedder: Embedder) -> None:
    count = token_counter(embedder)
    context = build_context("q", [hit(1, "The rent is high.")], (), 1000, count)
    assert context.tokens == count(context.text) > 5


@settings(max_examples=60)
@given(
    st.lists(st.text(alphabet="ab .\n?", max_size=80), max_size=6),
    st.integers(1, 120),
    st.lists(st.integers(0, 60), min_size=6, max_size=6),
)
def test_the_budget_is_never_exceeded_and_citations_are_exact(
    texts: list[str], budget: int, starts: list[int]
) -> None:
    hits = [
        hit(n, text, start=starts[n - 1], document=f"d_{n % 2}")
        for n, text in enumerate(texts, start=1)
    ]
    context = build_context("q", hits, (), budget)
    assert context.tokens <= budget
    by_id = {h.memory_id: h for h in hits}
    for citation in context.citations:
        source = by_id[citation.memory_id]
        assert source.start is not None
        assert citation.start is not None
        assert citation.end is not None
        begin, end = citation.start - source.start, citation.end - source.start
        assert source.text[begin:end] == citation.quote
        assert f"[{citation.number}] " in context.text

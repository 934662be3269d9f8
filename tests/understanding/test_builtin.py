"""What the built-in understander makes of whole documents."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memctl.models.task_encoder import load_task_encoder
from memctl.records import Segment, SegmentKind, SourceText, Understanding
from memctl.understanding.builtin_understander import BuiltinUnderstander


def source(text: str, **fields: object) -> SourceText:
    return replace(SourceText(text, "text/plain", "text/1"), **fields)  # type: ignore[arg-type]


def understood(text: str, **fields: object) -> Understanding:
    builtin = BuiltinUnderstander(encoder=load_task_encoder())
    [understanding] = builtin.understand([source(text, **fields)])
    return understanding


NOTE = """Remember: the alarm code of the Lisbon office changes on 12 May 2026. \
We decided to move the archive to the cellar. Ana Ruiz will order the shelves by Friday."""


def test_a_note_gives_its_names_dates_and_memories() -> None:
    found = understood(NOTE)
    assert found.method == "builtin/2"
    assert found.language == "en"
    assert {"Ana Ruiz", "Lisbon"} <= {entity.name for entity in found.entities}
    assert found.dates == ("2026-05-12",)
    assert found.distilled[0].type == "important_fact"
    assert "alarm code" in found.distilled[0].text


def test_importance_is_exactly_the_sum_of_its_signals() -> None:
    found = understood(NOTE)
    assert sum(found.signals.values()) == found.importance
    assert {"triggers", "dates"} <= found.signals.keys()
    assert found.importance > 2 * understood("ok see you").importance


def test_an_understanding_is_the_same_every_time_and_one_for_each_source() -> None:
    sources = [source(NOTE), source("hi"), source(NOTE)]
    first = BuiltinUnderstander().understand(sources)
    assert first == BuiltinUnderstander().understand(sources)
    assert len(first) == 3
    assert first[0] == first[2]


def test_a_short_text_is_its_own_gist() -> None:
    assert understood("Tea  is\nat four.").gist == "Tea is at four."


def test_the_gist_of_prose_is_a_few_of_its_own_sentences() -> None:
    about = "The lighthouse at Cape Ray was built in 1871 to guide ships past the reef."
    text = (
        f"{about} The keeper climbed its stairs every evening. Ships passed the reef in every "
        "season. The cape has two beaches and a shop. Storms broke the lamp of the lighthouse in "
        "1902. Ships were guided by a bell until the lighthouse at the cape shone again. "
        "Lunch was late."
    )
    gist = understood(text).gist
    assert about in gist
    assert "Lunch" not in gist
    assert len(gist) < 450


def test_the_gist_of_a_table_counts_rows_and_names_columns_and_reach() -> None:
    rows = "date: 2026-01-02; customer: Ann\ndate: 2026-03-30; customer: Bob"
    table = understood(
        rows,
        title="orders",
        segments=(Segment(0, len(rows), "table", row=1),),
        metadata={"columns": ["date", "customer"]},
    )
    assert table.gist == "2 rows of orders: date, customer, from 2026-01-02 to 2026-03-30."
    assert table.distilled == ()


def test_the_gist_of_code_says_what_its_comment_says_and_what_it_defines() -> None:
    code = '"""Counts the boats in a harbour."""\n\ndef count():\n    pass\n'
    found = understood(code, segments=(Segment(0, len(code), "code"),))
    assert "Counts the boats in a harbour." in found.gist
    assert "count" in found.gist


def test_tags_and_links_are_recorded_once_and_not_from_code() -> None:
    text = (
        "# Heading\nSee [[Budget|the plan]] and [[Trip#Day 1]], #travel #travel #q3/spend.\n"
        "Colour #ff8800, issue #12, https://x.org/a#part, `#code`, `[[no]]`.\n"
        "```\n#hidden [[hidden]]\n```\n"
    )
    found = understood(text)
    assert found.tags == ("travel", "q3/spend")
    assert found.links == ("Budget", "Trip")


def test_the_gist_of_a_turn_loses_no_word_to_a_tag() -> None:
    said = "I told #billing that we moved the deploy to Friday. Our channel is #general"
    gist = understood(said, segments=(Segment(0, len(said), "turn"),)).gist.replace("#", "")
    assert "I told billing that we moved the deploy to Friday." in gist


def test_what_readers_found_already_is_kept() -> None:
    found = understood("nothing here", tags=("home",), links=("Plan",))
    assert (found.tags, found.links) == (("home",), ("Plan",))
    assert found.topics[0] == "home"


def test_dates_of_a_conversation_are_relative_to_each_turn() -> None:
    first, second = "Ann: I leave tomorrow", "Ann: I leave tomorrow"
    turns = tuple(
        Segment(start, start + len(first), "turn", speaker="Ann", said_at=said)
        for start, said in (
            (0, datetime(2026, 5, 1, tzinfo=UTC)),
            (len(first) + 1, datetime(2026, 6, 1, tzinfo=UTC)),
        )
    )
    assert understood(f"{first}\n{second}", segments=turns).dates == ("2026-05-02", "2026-06-02")


_KINDS: tuple[SegmentKind, ...] = (
    "prose", "heading", "table", "code", "turn", "caption", "properties",
)  # fmt: skip
_PIECES = st.sampled_from(
    ["Remember: ", "I prefer ", "We decided to ", "Ann: ", "Dr. ", "12 May ", "31/02/2026 ", "#a ",
     "[[x]] ", "```", "\n", "\n\n", "? ", "! ", ". ", "次 ", "ßİ", "\u2028", "\x00", "next Friday ",
     "in 999 days ", "Q3 2026 ", "| a | b |", "https://x.y/z#q ", "e@x.org ", "\ud800", "A.B. "]
)  # fmt: skip


@st.composite
def odd_sources(draw: st.DrawFn) -> SourceText:
    text = "".join(draw(st.lists(_PIECES | st.text(max_size=12), max_size=25)))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    segments = tuple(
        Segment(start, end, draw(st.sampled_from(_KINDS)), speaker=draw(st.none() | st.just("Ann")))
        for start, end in pairwise(cuts)
    )
    when = draw(st.none() | st.datetimes(timezones=st.just(UTC)))
    return source(text, segments=segments, created_at=when, title=draw(st.text(max_size=8)))


@settings(max_examples=60, deadline=None)
@given(odd_sources())
def test_odd_text_never_raises_and_keeps_every_promise(odd: SourceText) -> None:
    [found] = BuiltinUnderstander(encoder=load_task_encoder()).understand([odd])
    assert sum(found.signals.values()) == found.importance
    assert 0 <= found.importance <= 1
    assert all(0 <= one.start < one.end <= len(odd.text) for one in found.distilled)
    assert all(0 <= one.importance <= 1 and 0 <= one.confidence <= 1 for one in found.distilled)


@pytest.mark.parametrize(
    "text",
    ["a " * 100_000, "A" * 200_000, ". " * 100_000, "#a" * 100_000, "[[" * 100_000, "`" * 200_000],
)
def test_long_monotonous_text_is_no_trap(text: str) -> None:
    assert understood(text).method == "builtin/2"

"""Cutting documents into passages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.ingest.chunking import ChunkSizes, Passage, chunk, semantic_cut
from memctl.models import BUILTIN_EMBEDDER, Embedder, load_embedder
from memctl.records import Segment, SourceText

SIZES = ChunkSizes(size=200, overlap=40)
SENTENCE = "The quick brown fox number {} jumps over the lazy dog. "

words = st.text(st.sampled_from("abc é日\n .!?\t\r\u2028"), min_size=1, max_size=30)
texts = st.lists(words, max_size=80).map("".join)
sizes = st.builds(ChunkSizes, st.integers(10, 120), st.integers(0, 60))


def plain(text: str, *segments: Segment) -> SourceText:
    return SourceText(text, "text/plain", "text/1", segments)


def quotes(text: str, passages: list[Passage]) -> list[str]:
    return [text[passage.start : passage.end] for passage in passages]


def cut_up(text: str, pieces: list[int]) -> tuple[Segment, ...]:
    """Segments of all kinds that follow each other over the whole text."""
    bounds = sorted({0, len(text), *(place % (len(text) + 1) for place in pieces)})
    kinds = ("prose", "heading", "table", "code", "turn", "caption", "properties")
    return tuple(
        Segment(start, end, kinds[number % len(kinds)], page=number // 5)
        for number, (start, end) in enumerate(itertools.pairwise(bounds))
    )


@given(texts, sizes, st.lists(st.integers(0, 10_000), max_size=8))
@settings(max_examples=200)
def test_every_character_that_is_not_space_is_in_a_passage_of_bounded_length(
    text: str, sizes: ChunkSizes, pieces: list[int]
) -> None:
    passages = chunk(plain(text, *cut_up(text, pieces)), sizes)
    covered = np.zeros(len(text), dtype=bool)
    for passage in passages:
        covered[passage.start : passage.end] = True
        quote = text[passage.start : passage.end]
        assert quote == quote.strip() != ""
        assert len(quote) <= sizes.size
    assert all(covered[place] or character.isspace() for place, character in enumerate(text))


@given(texts, sizes)
@settings(max_examples=200)
def test_passages_move_forward_and_repeat_no_more_than_the_overlap(
    text: str, sizes: ChunkSizes
) -> None:
    passages = chunk(plain(text), sizes)
    for before, after in itertools.pairwise(passages):
        assert before.start < after.start
        assert before.end < after.end
        assert before.end - after.start <= sizes.overlap


def test_a_passage_does_not_begin_with_the_end_of_a_long_sentence() -> None:
    long = " ".join(f"word{n}" for n in range(18)).capitalize() + "."
    text = f"{long}\n\n{long.replace('ord', 'ood')}"
    assert quotes(text, chunk(plain(text), SIZES)) == text.split("\n\n")


def test_a_short_text_is_one_passage_without_the_space_around_it() -> None:
    text = "\n  Call Ann back.  \n"
    assert quotes(text, chunk(plain(text), SIZES)) == ["Call Ann back."]


def test_a_text_of_white_space_has_no_passages() -> None:
    assert chunk(plain(" \n\t\n "), SIZES) == []


def test_paragraphs_that_fit_are_not_cut() -> None:
    paragraphs = [SENTENCE.format(n) * 3 for n in range(4)]
    text = "\n\n".join(paragraph.strip() for paragraph in paragraphs)
    cut = quotes(text, chunk(plain(text), ChunkSizes(200, 0)))
    assert cut == [paragraph.strip() for paragraph in paragraphs]


def test_a_long_paragraph_is_cut_where_sentences_end() -> None:
    text = "".join(SENTENCE.format(n) for n in range(30)).strip()
    cut = quotes(text, chunk(plain(text), SIZES))
    assert len(cut) > 5
    assert all(quote.endswith("dog.") for quote in cut)


def test_a_passage_repeats_the_last_sentence_of_the_one_before() -> None:
    text = "".join(SENTENCE.format(n) for n in range(30)).strip()
    passages = chunk(plain(text), ChunkSizes(size=200, overlap=70))
    for before, after in itertools.pairwise(passages):
        assert after.start < before.end
        assert text.startswith("The quick", after.start)


def test_where_a_sentence_is_cut_its_words_are_repeated() -> None:
    text = " ".join(f"word{n}" for n in range(100))
    passages = chunk(plain(text), SIZES)
    for before, after in itertools.pairwise(passages):
        assert after.start < before.end
        assert text[after.start - 1] == " "


def test_a_word_longer_than_a_passage_is_cut_at_the_size() -> None:
    text = "x" * 450
    lengths = [len(quote) for quote in quotes(text, chunk(plain(text), ChunkSizes(200, 0)))]
    assert lengths == [200, 200, 50]


def test_a_table_segment_that_fits_is_kept_whole_and_apart_from_its_neighbours() -> None:
    rows = ["name: Ann\nage: 30", "name: Bob\nage: 40"]
    text = "\n".join(rows)
    segments = (Segment(0, 17, "table", row=1), Segment(18, 35, "table", row=2))
    passages = chunk(plain(text, *segments), SIZES)
    assert quotes(text, passages) == rows
    assert [passage.row for passage in passages] == [1, 2]


def test_a_table_segment_that_does_not_fit_is_cut_at_lines() -> None:
    text = "\n".join(f"| row {n} | {n * n} |" for n in range(40))
    cut = quotes(text, chunk(plain(text, Segment(0, len(text), "table")), SIZES))
    assert "\n".join(cut) == text


def test_a_heading_stands_with_what_follows_it() -> None:
    text = "# Plans\n\nWe sail on Friday."
    segments = (
        Segment(0, 7, "heading", heading="Plans"),
        Segment(9, len(text), "prose", heading="Plans"),
    )
    passages = chunk(plain(text, *segments), SIZES)
    assert quotes(text, passages) == [text]
    assert (passages[0].kind, passages[0].heading) == ("prose", "Plans")


def test_text_under_two_headings_is_not_joined() -> None:
    text = "We sail.\nWe row."
    segments = (Segment(0, 8, heading="Friday"), Segment(9, 16, heading="Monday"))
    assert [p.heading for p in chunk(plain(text, *segments), SIZES)] == ["Friday", "Monday"]


def test_text_on_two_pages_is_not_joined() -> None:
    text = "End of one.\nStart of two."
    segments = (Segment(0, 11, page=1), Segment(12, 25, page=2))
    assert [passage.page for passage in chunk(plain(text, *segments), SIZES)] == [1, 2]


def test_each_turn_of_a_chat_is_a_passage_with_its_speaker() -> None:
    text = "Ann: hi\nBob: hello"
    segments = (Segment(0, 7, "turn", speaker="Ann"), Segment(8, 18, "turn", speaker="Bob"))
    assert [passage.speaker for passage in chunk(plain(text, *segments), SIZES)] == ["Ann", "Bob"]


def test_captions_are_joined_and_span_the_time_of_all_of_them() -> None:
    cues = [f"cue number {n}" for n in range(12)]
    text = "\n".join(cues)
    segments: list[Segment] = []
    for number, cue in enumerate(cues):
        start = text.index(cue + "\n") if number < 11 else text.index(cue)
        end = start + len(cue)
        segments.append(Segment(start, end, "caption", time_start=number, time_end=number + 1))
    passages = chunk(plain(text, *segments), SIZES)
    assert 1 < len(passages) < 12
    assert passages[0].time_start == 0
    for before, after in itertools.pairwise(passages):
        assert before.time_end == after.time_start
    assert passages[-1].time_end == 12


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return load_embedder(BUILTIN_EMBEDDER)


@pytest.fixture(scope="module")
def topics() -> list[str]:
    cooking = [
        "Chop the onions and fry them in butter until they are golden.",
        "Add garlic, tomatoes and a pinch of salt to the pan.",
        "Let the sauce simmer and stir it with a wooden spoon.",
        "Boil the pasta in salted water and drain it.",
        "Serve the pasta with the tomato sauce and grated cheese.",
    ]
    sailing = [
        "The sailboat left the harbour under a strong westerly wind.",
        "The crew hoisted the mainsail and set a course for the island.",
        "Waves broke over the bow while the skipper held the tiller.",
        "At dusk they dropped anchor in a sheltered bay.",
        "The next morning the fleet raced around the lighthouse buoy.",
    ]
    return [" ".join(cooking), " ".join(sailing)]


def test_the_semantic_way_cuts_where_the_topic_changes(
    topics: list[str], embedder: Embedder
) -> None:
    text = " ".join(topics)
    cut = semantic_cut(400, embedder)
    passages = chunk(plain(text), ChunkSizes(400, 0), cut)
    assert len(topics[0]) in [passage.end for passage in passages]


@given(texts, st.integers(10, 120))
@settings(max_examples=30)
def test_the_semantic_way_covers_the_text_too(embedder: Embedder, text: str, size: int) -> None:
    cut = semantic_cut(size, embedder)
    passages = chunk(plain(text), ChunkSizes(size, 0), cut)
    covered = "".join(text[passage.start : passage.end] for passage in passages)
    assert "".join(covered.split()) == "".join(text.split())
    assert all(passage.end - passage.start <= size for passage in passages)

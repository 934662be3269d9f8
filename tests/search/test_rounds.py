"""Agentic search: rounds, when they stop, and what becomes of their hits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from memctl.errors import ModelUnavailable
from memctl.literals import DEFAULT_ROUNDS
from memctl.models import Embedder
from memctl.records import Filters, Hit
from memctl.search.agentic_search import Reformulate, search_in_rounds
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.search_plan import SearchDepth
from memctl.search.searcher import Searcher

from .conftest import NOW, MemoryOf, Shelf
from .test_search import found

FILM = {
    "film": "The Lantern is a film that was directed by Mirela Anghel.",
    "director": "Mirela Anghel grew up in a village near Cluj.",
    "school": "The school of Cluj was built of brick.",
    "other": "A lantern stood in the window of the shop.",
}
QUESTION = "Where did the director of The Lantern grow up?"


@pytest.fixture
def films(shelf: Shelf, memory_of: MemoryOf) -> Shelf:
    filler = [memory_of(f"f{n:02}", f"Entry {n} of the ledger of a mill.") for n in range(40)]
    memories = [memory_of(id, text, entities=_names(text)) for id, text in FILM.items()]
    shelf.put([*memories, *filler])
    return shelf


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in ("Mirela Anghel", "Cluj") if name in text)


def searcher(shelf: Shelf, embedder: Embedder, reformulate: Reformulate) -> Searcher:
    snapshots = {name: store.snapshot() for name, store in shelf.stores.items()}
    embedders = dict.fromkeys(snapshots, embedder)
    return Searcher(snapshots, embedders, lambda: NOW, reformulate=reformulate)


def test_every_round_is_told_and_there_are_never_more_than_three(films: Shelf) -> None:
    for question in (QUESTION, "Who painted the moon?", "Lantern", "the of and"):
        outcome = films.searcher().search(question, mode="agentic")
        rounds = outcome.explain["rounds"]
        assert 1 <= len(rounds) <= DEFAULT_ROUNDS
        assert (rounds[0]["query"], rounds[0]["by"]) == (question, "question")
        assert [each["then"].startswith("went on") for each in rounds] == [True] * (
            len(rounds) - 1
        ) + [False]
        assert outcome.mode == outcome.explain["mode"] == "agentic"


def test_no_hit_comes_twice_and_ranks_and_scores_go_down(films: Shelf) -> None:
    outcome = films.searcher().search(QUESTION, mode="agentic", limit=12)
    assert len(outcome.explain["rounds"]) > 1
    assert len(set(found(outcome))) == len(outcome.hits) <= 12
    assert [hit.rank for hit in outcome.hits] == list(range(1, len(outcome.hits) + 1))
    scores = [hit.score for hit in outcome.hits]
    assert scores == sorted(scores, reverse=True)


def test_the_next_query_names_what_the_best_hits_lead_to(films: Shelf) -> None:
    rounds = films.searcher().search(QUESTION, mode="agentic").explain["rounds"]
    assert "mirela" in rounds[1]["query"].lower()
    assert rounds[1]["by"] == "built-in"


def test_a_name_that_only_one_memory_has_is_not_followed(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of(id, text, title=f"scan{id}") for id, text in FILM.items()])
    rounds = shelf.searcher().search(QUESTION, mode="agentic").explain["rounds"]
    assert len(rounds) > 1
    assert not any("scan" in each["query"] for each in rounds)


def test_a_model_words_the_next_query_and_is_told_what_is_missing(
    films: Shelf, embedder: Embedder
) -> None:
    asked: list[tuple[str, Sequence[Hit], Sequence[str]]] = []

    def reformulate(question: str, hits: Sequence[Hit], missing: Sequence[str]) -> str:
        asked.append((question, hits, missing))
        return "the brick school of Cluj"

    question = "Of what was it built where Anghel of Zzyzx grew up?"
    outcome = searcher(films, embedder, reformulate).search(question, mode="agentic", limit=6)
    assert outcome.explain["rounds"][1]["query"] == "the brick school of Cluj"
    assert outcome.explain["rounds"][1]["by"] == "model"
    assert "school" in found(outcome)
    assert asked[0][0] == question
    assert "Zzyzx" in asked[0][2]
    assert 0 < len(asked) < DEFAULT_ROUNDS


def test_a_model_that_says_nothing_ends_the_search(films: Shelf, embedder: Embedder) -> None:
    outcome = searcher(films, embedder, lambda *_: " ").search(QUESTION, mode="agentic")
    assert [each["then"] for each in outcome.explain["rounds"]] == ["stopped: nothing else to ask"]
    assert found(outcome) == found(films.searcher().search(QUESTION))


def test_a_model_that_is_down_is_asked_once_and_reported(films: Shelf, embedder: Embedder) -> None:
    times = 0

    def reformulate(question: str, hits: Sequence[Hit], missing: Sequence[str]) -> str:
        nonlocal times
        times += 1
        raise ModelUnavailable("no model today")

    outcome = searcher(films, embedder, reformulate).search(QUESTION, mode="agentic")
    assert times == 1
    assert outcome.notes == ("searched again without the model: no model today",)
    plain = films.searcher().search(QUESTION, mode="agentic")
    assert found(outcome) == found(plain)


def test_operators_and_filters_apply_in_every_round(films: Shelf) -> None:
    outcome = films.searcher().search("+lantern director -shop", mode="agentic")
    assert found(outcome) == ["film"]
    filtered = films.searcher().search(
        QUESTION, mode="agentic", filters=Filters(namespaces=("nowhere",))
    )
    assert filtered.hits == ()


def test_enough_relevant_hits_end_the_search_at_once(shelf: Shelf, memory_of: MemoryOf) -> None:
    texts = [f"The launch of Aurora is on 12 May, says list {n}." for n in range(4)]
    shelf.put([memory_of(str(n), text) for n, text in enumerate(texts)])
    question = "When is the launch of Aurora?"
    [only] = shelf.searcher().search(question, mode="agentic").explain["rounds"]
    assert only["then"] == "stopped: sufficient"
    for depth in (SearchDepth(relevant_hits=5), SearchDepth(mean_relevance=1)):
        found = shelf.searcher().search(question, mode="agentic", depth=depth)
        assert found.explain["rounds"][0]["then"] != "stopped: sufficient"
    assert only["relevant"] >= 3
    assert only["mean"] >= 0.5


def test_notes_of_later_rounds_are_kept(films: Shelf) -> None:
    made = films.searcher()

    def search(query: str | None) -> SearchOutcome:
        outcome = made.search(query or QUESTION, mode="hybrid")
        return replace(outcome, notes=("not reranked",) if query else (), failures=())

    outcome = search_in_rounds(QUESTION, search, 5, SearchDepth())
    assert len(outcome.explain["rounds"]) > 1
    assert outcome.notes == ("not reranked",)

"""What speaks for a hit besides its own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from memctl.models import Embedder
from memctl.records import Filters, Hit, Memory
from memctl.search.ranking.reranking import Reranking
from memctl.search.ranking.scoring_context import Priors
from memctl.search.ranking.signals import text_score
from memctl.search.retrieval.candidate_rows import ColumnValues, RowView
from memctl.search.search_plan import MODES
from memctl.search.searcher import Searcher
from tests.search.conftest import NOW, Shelf

MemoryOf = Callable[..., Memory]

FILLING = ("tide", "ladder", "pepper", "marble", "kettle", "saddle", "lantern", "willow", "anvil")


def filling(memory_of: MemoryOf, count: int) -> list[Memory]:
    """Passages that have little to do with anything asked here."""
    return [
        memory_of(
            f"f{n}", f"The {FILLING[n % 9]} stood by the {FILLING[n // 9 % 9]} again, day {n}."
        )
        for n in range(count)
    ]


def hits_by_id(searcher: Searcher, question: str, **more: Any) -> dict[str, Hit]:
    found = searcher.search(question, limit=25, **more).hits
    return {hit.external_id or "": hit for hit in found}


# --- bridges ------------------------------------------------------------------------------------


def two_hops(memory_of: MemoryOf) -> list[Memory]:
    return [
        memory_of("painting", "The painting The Grey Harbour was made by Odile Marchetti in 1911.",
                  title="The Grey Harbour", entities=("The Grey Harbour", "Odile Marchetti")),
        memory_of("painter", "Odile Marchetti was born in Ravenna, where she went to school.",
                  title="Odile Marchetti", entities=("Odile Marchetti", "Ravenna")),
        *(memory_of(f"p{n}", f"The painting of a harbour, number {n}, was made by somebody else.")
          for n in range(12)),
        *filling(memory_of, 60),
    ]  # fmt: skip


def test_a_name_in_the_best_hit_leads_to_what_it_names(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put(two_hops(memory_of))
    hits = shelf.searcher().search("In which town was the painter of The Grey Harbour born?").hits
    assert {hit.external_id for hit in hits[:2]} == {"painting", "painter"}
    assert hits[1].legs["bridge"] > 0


class Likes:
    """Finds that one word is the answer to everything."""

    def __init__(self, word: str) -> None:
        self.word = word

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        del question
        return [float(self.word in text) for text in texts]


def test_from_the_score_of_a_model_that_read_the_hit_no_clue_is_taken(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    shelf.put(two_hops(memory_of))
    searcher = shelf.searcher(Reranking(Likes("Ravenna")))
    hits = hits_by_id(searcher, "In which town was the painter of The Grey Harbour born?")
    assert hits["painter"].legs["bridge"] > 0
    assert text_score(hits["painter"]) == hits["painter"].score == 1.0


def test_a_name_that_everything_has_leads_nowhere(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put(
        [
            memory_of(f"n{n}", f"Odile Marchetti saw the {FILLING[n % 9]} on day {n}.",
                      entities=("Odile Marchetti",))
            for n in range(40)
        ]
    )  # fmt: skip
    hits = hits_by_id(shelf.searcher(), "Who saw the lantern?")
    assert not any("bridge" in hit.legs for hit in hits.values())


def test_nothing_is_open_after_a_passage_that_has_all_of_the_question(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    lease = "Lease Harbour Street"
    shelf.put(
        [
            memory_of("code", "remember: the door code is 4711"),
            memory_of("lease", f"{lease}. Quayside Estates pays for the new front door, we pay for "
                      "the flue, and the deposit is three months of rent.",
                      title=lease, entities=(lease, "Quayside Estates")),
            memory_of("search", f"We rent the workshop from Quayside Estates, see {lease}.",
                      title="Premises search", entities=(lease, "Quayside Estates")),
            *filling(memory_of, 60),
        ]
    )  # fmt: skip
    hits = shelf.searcher().search("door code").hits
    assert hits[0].external_id == "code"


def related(memory_of: MemoryOf) -> list[Memory]:
    """A name in the first leads to all others, none of which has another word of the question."""
    others = ("keeps bees on the roof of a mill.", "has a sister, Livia.", "sold the old boat.")
    return [
        two_hops(memory_of)[0],
        *(memory_of(f"o{n}", f"Odile Marchetti {text}", entities=("Odile Marchetti",))
          for n, text in enumerate(others)),
        *filling(memory_of, 60),
    ]  # fmt: skip


SIBLING = "Who is the sibling of whoever made The Grey Harbour?"


def test_a_bridge_leads_to_what_is_like_the_words_that_are_left_of_the_question(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    shelf.put(related(memory_of))
    hits = hits_by_id(shelf.searcher(), SIBLING)
    assert hits["o1"].legs["bridge"] > 2 * hits["o0"].legs["bridge"]
    assert hits["o1"].legs["bridge"] > 2 * hits["o2"].legs["bridge"]


class Plain:
    """The built-in vectors behind an embedder that cannot weigh words, as one behind an endpoint
    cannot."""

    id = "plain"

    def __init__(self, embedder: Embedder) -> None:
        self.dimension = embedder.dimension
        self.embed = embedder.embed


def test_where_words_cannot_be_weighed_a_bridge_leads_by_words_alone(
    tmp_path: Path, embedder: Embedder, memory_of: MemoryOf
) -> None:
    shelf = Shelf(tmp_path, Plain(embedder))
    shelf.put(related(memory_of))
    hits = hits_by_id(shelf.searcher(), SIBLING)
    shelf.stores["kb"].close()
    assert hits["o1"].legs["bridge"] == hits["o0"].legs["bridge"] == hits["o2"].legs["bridge"] > 0


def test_a_name_of_one_word_leads_on_less(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put(
        [
            memory_of("deed", "The Grey Harbour was sold by Odile Marchetti and by Teodora.",
                      entities=("The Grey Harbour", "Odile Marchetti", "Teodora")),
            memory_of("both", "Odile Marchetti keeps bees.", entities=("Odile Marchetti",)),
            memory_of("first", "Teodora keeps bees.", entities=("Teodora",)),
            *filling(memory_of, 60),
        ]
    )  # fmt: skip
    hits = hits_by_id(shelf.searcher(), "Who sold The Grey Harbour?")
    assert hits["both"].legs["bridge"] > hits["first"].legs["bridge"] > 0


def test_passages_of_one_document_are_no_bridge(shelf: Shelf, memory_of: MemoryOf) -> None:
    both: dict[str, Any] = {"document_id": "d", "title": "Odile Marchetti"}
    shelf.put([memory_of("a", "She painted the harbour.", **both),
               memory_of("b", "She kept bees.", **both), *filling(memory_of, 20)])  # fmt: skip
    hits = hits_by_id(shelf.searcher(), "Who painted the harbour?")
    assert "bridge" not in hits["a"].legs
    assert "bridge" not in hits["b"].legs


def test_a_bridge_is_followed_only_to_what_the_filters_allow(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    open_, closed = two_hops(memory_of)[:2]
    shelf.put([open_, memory_of("painter", closed.text, title=closed.title, namespace="private",
                                entities=closed.entities), *filling(memory_of, 60)])  # fmt: skip
    question = "In which town was the painter of The Grey Harbour born?"
    allowed = Filters(namespaces=("",))
    assert "painter" not in hits_by_id(shelf.searcher(), question, filters=allowed)


# --- conversations ------------------------------------------------------------------------------


def chat(memory_of: MemoryOf, *turns: tuple[str, str]) -> list[Memory]:
    return [
        memory_of(f"t{n}", f"{speaker}: {text}", type="turn", speaker=speaker,
                  session_id="s", turn=n)
        for n, (speaker, text) in enumerate(turns)
    ]  # fmt: skip


def test_who_is_named_is_looked_for_among_those_who_speak(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    turns = [("Nadia", "I went to the market for pears."), ("Piotr", "The market had pears too.")]
    rest = [
        ("Nadia" if n % 2 else "Piotr", f"Well, the {FILLING[n % 9]} is fine.") for n in range(20)
    ]
    shelf.put(chat(memory_of, *turns, *rest))
    nadia = hits_by_id(shelf.searcher(), "What did Nadia say of the market and the pears?")
    piotr = hits_by_id(shelf.searcher(), "What did Piotr say of the market and the pears?")
    assert "speaker" in nadia["t0"].legs
    assert "speaker" not in nadia["t1"].legs
    assert next(iter(piotr)) == "t1"


def test_a_misspelt_name_is_still_a_speaker(shelf: Shelf, memory_of: MemoryOf) -> None:
    turns = [("Nikolas", "I bought the pears."), ("Wanda", "I bought the plums.")]
    shelf.put(chat(memory_of, *turns))
    hits = hits_by_id(shelf.searcher(), "What did Nicolas buy?")
    assert "speaker" in hits["t0"].legs
    assert "speaker" not in hits["t1"].legs


def test_a_question_with_a_misspelt_name_is_not_taken_for_one_about_a_stranger(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    turns = [("Muhhamed", "I went to the market for pears."), ("Wanda", "I bought the plums.")]
    shelf.put(chat(memory_of, *turns))
    searcher = shelf.searcher()
    known, misspelt, stranger = (
        searcher.search(f"Did {name} go to the market?").relevance
        for name in ("Muhhamed", "Muhammad", "Marianne")
    )
    assert misspelt.lost_names == known.lost_names == 0
    assert stranger.lost_names > 0
    assert misspelt.is_near
    assert not stranger.is_relevant


def test_naming_everybody_names_nobody(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put(chat(memory_of, ("Nadia", "I bought pears."), ("Piotr", "I bought plums.")))
    hits = hits_by_id(shelf.searcher(), "What did Nadia and Piotr buy?")
    assert not any("speaker" in hit.legs for hit in hits.values())


def test_the_turn_beside_a_good_one_comes_up_with_it(shelf: Shelf, memory_of: MemoryOf) -> None:
    others = [("Nadia", f"The {FILLING[n % 9]}, {n}!") for n in range(150)]
    pair = [("Piotr", "Which animal do you keep as a pet?"), ("Nadia", "Seven ferrets!")]
    shelf.put(chat(memory_of, *others[:75], *pair, *others[75:]))
    hits = hits_by_id(shelf.searcher(), "Which animal is kept as a pet?")
    assert list(hits)[:2] == ["t75", "t76"]
    assert hits["t76"].legs["neighbours"] > 0


def test_long_turns_stand_on_their_own(shelf: Shelf, memory_of: MemoryOf) -> None:
    long = " ".join(f"{word}{n}" for n in range(10) for word in FILLING)
    turns = [("Piotr", "Which animal do you keep as a pet?"), ("Nadia", f"Ferrets. {long}")]
    shelf.put(chat(memory_of, *turns, *[("Nadia", long)] * 5))
    hits = hits_by_id(shelf.searcher(), "Which animal is kept as a pet?")
    assert not any("neighbours" in hit.legs for hit in hits.values())


def test_turns_of_two_conversations_are_not_neighbours(shelf: Shelf, memory_of: MemoryOf) -> None:
    asked = memory_of("a", "Which animal do you keep as a pet?", type="turn", session_id="s",
                      turn=1, namespace="one")  # fmt: skip
    other = memory_of("b", "Seven ferrets!", type="turn", session_id="s", turn=2, namespace="two")
    shelf.put([asked, other, *filling(memory_of, 20)])
    hits = hits_by_id(shelf.searcher(), "Which animal is kept as a pet?")
    assert "neighbours" not in hits["b"].legs


def test_of_short_turns_the_one_that_says_more_counts_more(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    text = (
        "We keep seven ferrets in the barn behind the mill, and each has a bed, a bowl, "
        "a name and a favourite hiding place."
    )
    turns = [("Piotr", "Ferrets, right!"), ("Nadia", text)]
    shelf.put([*chat(memory_of, *turns), *filling(memory_of, 20)])
    hits = hits_by_id(shelf.searcher(), "ferrets")
    assert hits["t1"].legs["telling"] > 0 > hits["t0"].legs["telling"]


def test_what_a_user_says_comes_before_what_an_assistant_replies(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    turns = [("assistant", "Nice, seven ferrets in a barn!"), ("user", "I've seven ferrets here!")]
    fill = [("user" if n % 2 else "assistant", f"The {FILLING[n % 9]}, {n}.") for n in range(20)]
    shelf.put(chat(memory_of, *turns, *fill))
    about_the_user = hits_by_id(shelf.searcher(), "how many ferrets are kept")
    assert "reply" in about_the_user["t0"].legs
    assert "reply" not in about_the_user["t1"].legs
    about_the_replies = hits_by_id(shelf.searcher(), "What did you say of the ferrets?")
    assert not any("reply" in hit.legs for hit in about_the_replies.values())


def test_long_replies_of_an_assistant_are_not_raised_for_their_length(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    long = " ".join(f"{word}{n}" for n in range(10) for word in FILLING)
    turns = [("user", "I keep ferrets."), ("assistant", f"Ferrets are lovely. {long}")]
    shelf.put([*chat(memory_of, *turns), *filling(memory_of, 20)])
    hits = hits_by_id(shelf.searcher(), "ferrets")
    assert {"t0", "t1"} <= set(hits)
    assert not any("telling" in hit.legs for hit in hits.values())


# --- titles -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "instruction",
    [
        "Always give amounts in grams when I ask about recipes.",
        "Whenever I ask you for cooking ideas, please leave out nuts.",
    ],
)
def test_an_instruction_is_found_by_what_it_is_for(
    shelf: Shelf, memory_of: MemoryOf, instruction: str
) -> None:
    said = [("user", instruction), ("user", "Always mention the gate when I ask about flights.")]
    baked = [("user", f"I bake bread in pan {n}.") for n in range(3)]
    fill = [("user", f"The {FILLING[n % 9]}, {n}: never ask Ann!") for n in range(120)]
    shelf.put(chat(memory_of, *said, *baked, *fill))
    hits = hits_by_id(shelf.searcher(), "How do I bake bread and prepare a soup for dinner?")
    assert hits["t0"].legs["instruction"] > 0
    assert list(hits).index("t0") < 10
    assert "t1" not in hits or "instruction" not in hits["t1"].legs


def test_a_document_that_the_question_names_comes_before_those_that_mention_it(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    mentions = [
        memory_of(f"m{n}", f"In Grey Harbour, the director says who directed what, day {n}.")
        for n in range(5)
    ]
    named = memory_of("film", "A film of 1962, made by Odile Marchetti.", title="The Grey Harbour")
    shelf.put([*mentions, named, *filling(memory_of, 20)])
    hits = hits_by_id(shelf.searcher(), "Who directed The Grey Harbour?")
    assert next(iter(hits)) == "film"
    assert [id for id, hit in hits.items() if "title" in hit.legs] == ["film"]


def test_a_title_of_one_word_counts_only_where_it_is_written_like_a_name(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    mine = memory_of("mine", "The kiln needs a new door.", title="Notes")
    other = memory_of("other", "Notes on kilns.", title="Kilns")
    shelf.put([mine, other, *filling(memory_of, 20)])
    plain = hits_by_id(shelf.searcher(), "what do my notes say of the kiln door")
    assert not any("title" in hit.legs for hit in plain.values())
    named = hits_by_id(shelf.searcher(), "what does Notes say of the kiln door")
    assert [id for id, hit in named.items() if "title" in hit.legs] == ["mine"]


def test_a_title_within_a_longer_one_in_the_question_is_not_meant(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    shelf.put([memory_of("town", "A town by the sea.", title="Grey Harbour"),
               memory_of("club", "A club of rowers.", title="Grey Harbour Rowing Club"),
               *filling(memory_of, 20)])  # fmt: skip
    hits = hits_by_id(shelf.searcher(), "When was the Grey Harbour Rowing Club founded?")
    assert [id for id, hit in hits.items() if "title" in hit.legs] == ["club"]


# --- likeness -----------------------------------------------------------------------------------


def test_hits_that_resemble_each_other_raise_each_other(shelf: Shelf, memory_of: MemoryOf) -> None:
    texts = ("heat conduction in a composite slab", "conduction of heat through slabs",
             "temperature in a heated composite plate")  # fmt: skip
    shelf.put([*(memory_of(f"h{n}", text) for n, text in enumerate(texts)),
               *filling(memory_of, 20)])  # fmt: skip
    hits = hits_by_id(shelf.searcher(), "heat conduction in slabs")
    assert all(hits[id].legs["alike"] > 0 for id in ("h0", "h1"))


@pytest.mark.parametrize(("line", "other"), [(17, 18), (18, 17)])
def test_two_records_of_one_form_stay_in_the_order_of_their_words(
    shelf: Shelf, memory_of: MemoryOf, line: int, other: int
) -> None:
    text = "Bus {} leaves the main station and reaches the airport in half an hour."
    shelf.put([*(memory_of(f"b{n}", text.format(n)) for n in (17, 18)),
               *filling(memory_of, 20)])  # fmt: skip
    hits = hits_by_id(shelf.searcher(), f"when does bus {line} leave")
    assert list(hits)[:2] == [f"b{line}", f"b{other}"]
    first, second = (hits[f"b{n}"] for n in (line, other))
    assert first.legs["alike"] >= second.legs["alike"] > 0
    assert first.score - second.score > 0.1


def test_a_hit_is_not_raised_by_what_is_nearest_to_it_but_far_away(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    texts = ("the boiler in the cellar rumbles when the heating starts on cold mornings",
             "the plumber cleaned the boiler and left a bill",
             "the cellar floods in autumn after rain from the west")  # fmt: skip
    shelf.put([*(memory_of(f"h{n}", text) for n, text in enumerate(texts)),
               *filling(memory_of, 20)])  # fmt: skip
    hits = hits_by_id(shelf.searcher(), "why does the boiler in the cellar rumble")
    assert next(iter(hits)) == "h0"
    assert hits["h1"].legs["alike"] < 0.1


def test_a_question_that_names_something_is_not_answered_by_likeness(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    shelf.put([memory_of("n", "Odile Marchetti moved to Lyon.", entities=("Odile Marchetti",)),
               *filling(memory_of, 20)])  # fmt: skip
    for question in ("Where did Odile Marchetti move?", "where did odile marchetti move"):
        hits = hits_by_id(shelf.searcher(), question)
        assert not any("alike" in hit.legs for hit in hits.values())


# --- standing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("standing", "clue"),
    [
        (Priors(importance=2.0), "importance"),
        (Priors(confidence=2.0), "confidence"),
        (Priors(recency=2.0, half_lives={"kb": 10.0}), "recency"),
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "graph"])
def test_what_a_memory_is_worth_counts_where_it_is_to(
    shelf: Shelf, memory_of: MemoryOf, embedder: Embedder, standing: Priors, clue: str, mode: str
) -> None:
    old = NOW - timedelta(days=400)
    shelf.put(
        [
            memory_of("small", "The gate code is 1.", importance=0.1, confidence=0.1,
                      created_at=old),
            memory_of("great", "The gate code is 2.", importance=0.9, confidence=0.9,
                      created_at=NOW),
            *filling(memory_of, 9),
        ]
    )  # fmt: skip
    snapshots = {name: store.snapshot() for name, store in shelf.stores.items()}
    embedders = dict.fromkeys(snapshots, embedder)
    searcher = Searcher(snapshots, embedders, lambda: NOW, priors=standing)
    hits = hits_by_id(searcher, "gate code", mode=mode)
    assert next(iter(hits)) == "great"
    assert hits["great"].legs[clue] > hits["small"].legs[clue] > 0
    plain = hits_by_id(shelf.searcher(), "gate code")
    assert not any({"importance", "confidence", "recency"} & set(x.legs) for x in plain.values())


def test_recency_halves_with_each_half_life_and_never_exceeds_one() -> None:
    standing = Priors(recency=1.0, half_lives={"kb": 10.0})
    ages = (timedelta(days=-5), timedelta(0), timedelta(days=10), timedelta(days=20),
            timedelta(days=70_000))  # fmt: skip
    rows = {"importance": [0.0] * 5, "confidence": [0.0] * 5, "created_at": [NOW - a for a in ages]}
    made = ColumnValues(pa.table(rows))
    gains = [standing.gains("kb", RowView(made, at), NOW)["recency"] for at in range(5)]
    assert gains[:4] == [1.0, 1.0, 0.5, 0.25]
    assert 0 <= gains[4] < 1e-6


@pytest.mark.parametrize("mode", ["hybrid", "graph"])
def test_priors_also_weigh_memories_that_only_a_name_leads_to(
    shelf: Shelf,
    memory_of: MemoryOf,
    embedder: Embedder,
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memctl.search.searcher.MIN_CANDIDATES", 1)
    painting, painter, *rest = two_hops(memory_of)
    painter = replace(painter, text="Odile Marchetti swam.", title="", search_text="odil marchetti")
    shelf.put([replace(each, importance=0.5) for each in (painting, painter, *rest[12:])])
    snapshots = {name: store.snapshot() for name, store in shelf.stores.items()}
    searcher = Searcher(snapshots, dict.fromkeys(snapshots, embedder), lambda: NOW,
                        priors=Priors(importance=1.0))  # fmt: skip
    question = "Who made the painting The Grey Harbour?"
    found = searcher.search(question, mode=mode, limit=3).hits
    assert {"painting", "painter"} <= {hit.external_id for hit in found}
    assert all(hit.legs["importance"] > 0 for hit in found)


# --- few rows and many ----


@pytest.mark.parametrize("mode", MODES)
def test_rows_kept_in_memory_are_searched_as_rows_on_disk_are(
    shelf: Shelf, memory_of: MemoryOf, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    turns = chat(memory_of, ("Nadia", "Which pet do you keep?"), ("Piotr", "Seven ferrets!"))
    empty = memory_of("empty", "")
    shelf.put([*two_hops(memory_of), *turns, empty])
    questions = ("In which town was the painter of The Grey Harbour born?", "Which pet is kept?",
                 "marble", "what did Piotr say")  # fmt: skip

    def asked(filters: Filters | None) -> list[list[tuple[str, float]]]:
        searcher = shelf.searcher()
        found = [searcher.search(each, mode=mode, filters=filters).hits for each in questions]
        return [[(hit.memory_id, round(hit.score, 4)) for hit in hits] for hits in found]

    for filters in (None, Filters(namespaces=("",), types=("turn", "passage"))):
        in_memory = asked(filters)
        monkeypatch.setattr("memctl.search.retrieval.corpus.MAX_IN_MEMORY", 0)
        assert asked(filters) == in_memory
        monkeypatch.undo()


# --- what holds of all memories -----------------------------------------------------------------


def test_what_expires_while_a_searcher_is_kept_is_not_found_any_more(
    shelf: Shelf, memory_of: MemoryOf, embedder: Embedder
) -> None:
    ends = {"old": 1, "new": 2, "always": None}
    codes = [
        memory_of(id_, f"The {id_} code of the door is 4711.", expires_at=_in_hours(hours))
        for id_, hours in ends.items()
    ]
    shelf.put(codes)
    now = [NOW]
    snapshots = {name: store.snapshot() for name, store in shelf.stores.items()}
    searcher = Searcher(snapshots, dict.fromkeys(snapshots, embedder), lambda: now[0])

    def found_in(hours: float) -> set[str]:
        now[0] = NOW + timedelta(hours=hours)
        return {hit.memory_id[2:] for hit in searcher.search("code of the door").hits}

    assert found_in(0) == found_in(0.9) == {"old", "new", "always"}
    assert found_in(1) == found_in(1.9) == {"new", "always"}
    assert found_in(2) == found_in(9999) == {"always"}
    assert found_in(0.5) == {"old", "new", "always"}


def _in_hours(hours: int | None) -> datetime | None:
    return None if hours is None else NOW + timedelta(hours=hours)

"""Search through the real store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import asdict, replace

from memctl.errors import UsageError
from memctl.models import Embedder
from memctl.records import Filters
from memctl.search.answering.extractive_answer import extract_answer
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.search_plan import FUSIONS, MODES
from memctl.search.searcher import Searcher

from .conftest import NOW, ROASTERY, WRITTEN, MemoryOf, Shelf


def found(outcome: SearchOutcome) -> list[str]:
    return [hit.memory_id.removeprefix("m_") for hit in outcome.hits]


@pytest.mark.parametrize("mode", MODES)
def test_the_memory_that_answers_comes_first(roastery: Searcher, mode: str) -> None:
    outcome = roastery.search("Who supplies our green coffee?", mode=mode)
    assert found(outcome)[0] == "coffee"
    assert [hit.rank for hit in outcome.hits] == list(range(1, len(outcome.hits) + 1))
    scores = [hit.score for hit in outcome.hits]
    assert scores == sorted(scores, reverse=True)


def test_hits_are_read_and_judged_once(roastery: Searcher) -> None:
    outcome = roastery.search("Who supplies our green coffee?")
    judged = outcome.with_relevance()
    assert judged.hits[0].relevance > judged.hits[-1].relevance
    assert judged.relevance is outcome.relevance
    assert judged.above(0.0).relevance == outcome.relevance


def test_hybrid_finds_what_shares_no_word_with_the_question(roastery: Searcher) -> None:
    question = "vegetables and herbs"
    assert roastery.search(question, mode="keyword").hits == ()
    assert found(roastery.search(question))[0] == "garden"


def test_a_keyword_query_loads_the_model_only_where_words_do_not_decide(
    shelf: Shelf, memory_of: MemoryOf, embedder: Embedder
) -> None:
    shelf.put([memory_of(id, text) for id, text in ROASTERY.items()])
    loaded: list[str] = []

    def load() -> Embedder:
        loaded.append(embedder.id)
        return embedder

    snapshots = {"kb": shelf.stores["kb"].snapshot()}
    searcher = Searcher(snapshots, {}, lambda: NOW, load_words=load)
    outcome = searcher.search("How much is the rent?", mode="keyword")
    assert extract_answer(outcome).text == "The rent is 1,450 euros a month. [1]"
    assert outcome.hits[0].legs.keys() == {"keyword", "keyword_normalised"}
    assert not loaded
    unclear = searcher.search("Which beans did the workshop get?", mode="keyword")
    assert not loaded
    assert unclear.relevance.cosine > 0
    assert loaded == [embedder.id]


def test_a_question_of_stop_words_alone_is_still_a_question(roastery: Searcher) -> None:
    assert roastery.search("who are you").hits
    assert roastery.search("who are you", mode="keyword").hits == ()


@pytest.mark.parametrize("fusion", FUSIONS)
def test_every_fusion_ranks(roastery: Searcher, fusion: str) -> None:
    assert found(roastery.search("When does the lease start?", fusion=fusion))[0] == "lease"


def test_the_same_question_gives_the_same_answer(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of(f"{n:02}", "the same words everywhere") for n in range(40)])
    first = found(shelf.searcher().search("same words", limit=25))
    assert first == sorted(first)
    assert found(shelf.searcher().search("same words", limit=25)) == first


def test_indexing_new_rows_does_not_change_the_result(shelf: Shelf, memory_of: MemoryOf) -> None:
    texts = ["red apples and pears", "green apples", "a red car", "pears in red wine", "nothing"]
    shelf.put([memory_of(str(n), text) for n, text in enumerate(texts)])
    before = shelf.searcher().search("red pears")
    shelf.stores["kb"].upkeep(force=True)
    after = shelf.searcher().search("red pears")
    assert [(h.memory_id, h.score) for h in before.hits] == [
        (h.memory_id, h.score) for h in after.hits
    ]


def test_a_candidate_of_one_leg_has_its_exact_score_in_the_other(roastery: Searcher) -> None:
    both = roastery.search("Who supplies our green coffee?")
    alone = roastery.search("Who supplies our green coffee?", mode="vector")
    exact = {hit.memory_id: hit.legs["vector"] for hit in alone.hits}
    for hit in both.hits:
        assert hit.legs["vector"] == pytest.approx(exact[hit.memory_id])
        assert {"keyword", "keyword_normalised", "vector_normalised"} <= hit.legs.keys()
    assert not any("keyword" in hit.legs for hit in alone.hits)


def test_filters_are_applied_before_the_search(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of(f"ann{n}", "coffee notes", namespace="ann") for n in range(150)])
    shelf.put([memory_of("bob", "a remark on coffee and tea", namespace="bob", tags=("x",))])
    searcher = shelf.searcher()
    assert found(searcher.search("coffee", filters=Filters(namespaces=("bob",)))) == ["bob"]
    assert found(searcher.search("coffee", filters=Filters(tags=("x",)))) == ["bob"]
    assert searcher.search("coffee", filters=Filters(tags=("y",))).hits == ()


def test_what_is_no_longer_valid_is_found_only_as_of_then(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    yesterday = NOW - timedelta(days=1)
    shelf.put(
        [
            memory_of("old", "the door code is 1111", valid_to=yesterday),
            memory_of("new", "the door code is 2222", valid_from=yesterday),
        ]
    )
    searcher = shelf.searcher()
    assert found(searcher.search("door code")) == ["new"]
    before = Filters(as_of=yesterday - timedelta(hours=1))
    assert found(searcher.search("door code", filters=before)) == ["old"]


def test_several_knowledge_bases_are_ranked_together(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of("a", "rain in spring"), memory_of("b", "the roof leaks")], kb="home")
    shelf.put([memory_of("c", "the roof of the office leaks again")], kb="work")
    shelf.put([memory_of("d", "cats")], kb="zoo")
    outcome = shelf.searcher().search("Which roof leaks?")
    assert {hit.kb for hit in outcome.hits[:2]} == {"home", "work"}
    assert {hit.kb for hit in outcome.hits} == {"home", "work", "zoo"}
    assert [hit.rank for hit in outcome.hits] == [1, 2, 3, 4]


def test_an_id_that_two_knowledge_bases_share_is_two_hits(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    for kb in ("one", "two"):
        shelf.put([memory_of("same", f"the roof leaks in {kb}")], kb=kb)
    hits = shelf.searcher().search("roof leaks").hits
    assert [(hit.kb, hit.text[-3:]) for hit in hits] == [("one", "one"), ("two", "two")]


def test_a_fact_and_its_passage_are_one_hit(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put(
        [
            memory_of("passage", "Long minutes of a meeting. Ines is allergic to nuts. And more."),
            memory_of("fact", "Ines is allergic to nuts.", level="memory", type="fact",
                      source_ids=("m_passage",)),
            memory_of("other", "We met on Monday."),
        ]
    )  # fmt: skip
    searcher = shelf.searcher()
    hits = searcher.search("What is Ines allergic to?").hits
    assert [hit.memory_id for hit in hits] == ["m_passage", "m_other"]
    assert hits[0].legs["via_fact"] >= hits[0].score
    facts = searcher.search("What is Ines allergic to?", filters=Filters(types=("fact",)))
    assert found(facts) == ["fact"]


def test_a_passage_that_only_its_fact_led_to_is_found(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put(
        [memory_of("passage", "He said yes to it.")]
        + [memory_of("fact", "Tom agreed to the budget.", level="memory", type="decision",
                     source_ids=("m_passage",))]
        + [memory_of(f"x{n}", f"budget talk number {n} with nobody") for n in range(300)]
    )  # fmt: skip
    hits = shelf.searcher().search("Did Tom agree to the budget?").hits
    assert hits[0].memory_id == "m_passage"
    assert "via_decision" in hits[0].legs


def test_a_memory_whose_passage_is_gone_stands_for_itself(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    shelf.put([memory_of("fact", "Ines is allergic to nuts.", level="memory", type="fact",
                         source_ids=("m_gone",))])  # fmt: skip
    assert found(shelf.searcher().search("allergic")) == ["fact"]


def test_insights_stand_apart_and_only_where_they_bear_on_the_question(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    insight = memory_of("insight", "Deliveries are late whenever it snows.", level="insight",
                        type="insight", source_ids=("m_a", "m_b"))  # fmt: skip
    shelf.put([insight, memory_of("a", "Snow. The delivery was late."), memory_of("b", "Cats.")])
    searcher = shelf.searcher()
    about = searcher.search("Are deliveries late when it snows?")
    assert found(about) == ["a", "b"]
    assert [hit.memory_id for hit in about.insights] == ["m_insight"]
    assert searcher.search("What do cats eat?").insights == ()
    asked = searcher.search("late deliveries", filters=Filters(levels=("insight",)))
    assert (found(asked), asked.insights) == (["insight"], ())


def test_a_german_question_finds_german_records(shelf: Shelf, memory_of: MemoryOf) -> None:
    from memctl.language.term_analysis import passage_terms

    text = "Die Häuser in der Straße wurden verkauft."
    stems = " ".join(passage_terms("", "", text, "de"))
    german = memory_of("haus", text)
    rows = [type(german)(**{**_values(german), "search_text": stems})]
    shelf.put(rows, language="de")
    outcome = shelf.searcher().search("verkauftes Haus", mode="keyword")
    assert found(outcome) == ["haus"]
    assert outcome.explain["languages"] == ["de", "en"]


@pytest.mark.parametrize(
    ("question", "id"),
    [
        ("Was kostet die Küche?", "kueche"),
        ("Wo ist der Hallenschlüssel?", "halle"),
        ("Wo liegt der Kuchenteller?", None),
        ("Wie ist die Lage?", None),
    ],
)
def test_words_that_german_joins_to_one_are_found_by_their_parts(
    shelf: Shelf, memory_of: MemoryOf, question: str, id: str | None
) -> None:
    from memctl.language.term_analysis import passage_terms

    texts = {
        "kueche": "Die Einbauküche bieten wir für 12.480 Euro an.",
        "halle": "Den Schlüssel für die Halle hat der Nachbar.",
        "beilage": "Die Beilage war versalzen.",
    }
    made = {id: memory_of(id, text) for id, text in texts.items()}
    rows = [
        replace(each, search_text=" ".join(passage_terms("", "", each.text, "de")))
        for each in made.values()
    ]
    shelf.put(rows, language="de")
    assert found(shelf.searcher().search(question, mode="keyword")) == ([id] if id else [])


@pytest.mark.parametrize(
    ("question", "id"),
    [
        ("Was will Mueller?", "mueller"),
        ("Wann hat Ute Geburtstag?", "ute"),
        ("Blauer Poet?", None),
        ("Is that one so handy?", None),
    ],
)
def test_umlauts_and_labels_of_contacts_are_found_however_they_are_written(
    shelf: Shelf, memory_of: MemoryOf, question: str, id: str | None
) -> None:
    texts = {"mueller": "Müller braucht Griffe.", "ute": "Birthday of Ute: 1968-05-07"}
    texts["ann"] = "Phone number of Ann: +49 171 5550123"
    shelf.put([memory_of(id, text) for id, text in texts.items()], language="de")
    assert found(shelf.searcher().search(question, mode="keyword")) == ([id] if id else [])


def test_a_word_is_found_by_what_is_written_for_it_in_short(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    texts = {"pw": "wifi pw shed: heron", "appointment": "The appointment is on Friday."}
    shelf.put([memory_of(id, text) for id, text in texts.items()])
    for question, id in (("Which password?", "pw"), ("When is the appt?", "appointment")):
        assert found(shelf.searcher().search(question, mode="keyword")) == [id]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which phone?", "The ph of the pool is 7.2."),
        ("Which phone?", "Mob rule ended in 1794."),
        ("Which doctor?", "Dr Weber is the landlord."),
        ("Which temperature?", "The temp Mira is here."),
        ("Which registration?", "Reg has the keys."),
        ("Which laboratory?", "The lab chewed the sofa."),
        ("Which invoice?", "The inv of the tools is complete."),
    ],
)
def test_a_word_is_not_found_by_what_also_means_something_else(
    shelf: Shelf, memory_of: MemoryOf, question: str, text: str
) -> None:
    shelf.put([memory_of("x", text)])
    assert found(shelf.searcher().search(question, mode="keyword")) == []


def test_a_label_that_is_asked_for_in_another_language_is_the_answer(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    text = (
        "Jérôme Tréguier\nPhone number of Jérôme Tréguier (mobile): +33 6 55 50 12 34\n"
        "Birthday of Jérôme Tréguier: 1968-05-07"
    )
    shelf.put([memory_of("x", text, title="Jérôme Tréguier")], language="fr")
    asked = "Quelle est la date de naissance de Jérôme Tréguier ?"
    answer = extract_answer(shelf.searcher().search(asked))
    assert answer.found
    assert "Birthday of Jérôme Tréguier: 1968-05-07" in answer.text
    assert not extract_answer(shelf.searcher().search("Date de naissance de Moussa ?")).found


def _values(memory: object) -> dict[str, object]:
    return asdict(memory)


def test_a_hit_has_what_is_needed_to_cite_it(shelf: Shelf, memory_of: MemoryOf) -> None:
    when = datetime(2026, 3, 4, tzinfo=UTC)
    shelf.put([memory_of("x", "The safe is behind the clock.", page=3, heading="A > B", title="T",
                         session_id="s", turn=7, tags=("a", "b"), created_at=when,
                         start=100, end=129)])  # fmt: skip
    hit = shelf.searcher().search("Where is the safe?").hits[0]
    assert (hit.text, hit.start, hit.end, hit.page) == (
        "The safe is behind the clock.",
        100,
        129,
        3,
    )
    assert (hit.heading, hit.title, hit.session_id, hit.turn) == ("A > B", "T", "s", 7)
    assert (hit.tags, hit.created_at, hit.external_id) == (("a", "b"), when, "x")


def test_the_explanation_says_what_was_looked_for(roastery: Searcher) -> None:
    explain = roastery.search("Who supplies our green coffee?").explain
    assert explain["mode"] == "hybrid"
    assert explain["fusion"] == "zscore"
    assert set(explain["terms"]) == {"suppli", "green", "coffe"}
    assert roastery.search("coffee", mode="keyword").explain["fusion"] is None


def test_no_more_hits_than_asked_for(roastery: Searcher) -> None:
    assert len(roastery.search("the workshop", limit=2).hits) == 2


@pytest.mark.parametrize(
    ("options", "named"),
    [({"mode": "hybrd"}, "hybrid"), ({"fusion": "borda"}, "zscore"), ({"limit": 0}, "one")],
)
def test_what_cannot_be_asked_is_refused_with_what_can(
    roastery: Searcher, options: dict[str, str], named: str
) -> None:
    with pytest.raises(UsageError) as caught:
        roastery.search("coffee", **options)  # type: ignore[arg-type]
    assert named in caught.value.hint


@pytest.mark.parametrize("question", ["", "  \n\t "])
def test_an_empty_question_is_refused(roastery: Searcher, question: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        roastery.search(question)


def test_an_empty_knowledge_base_has_no_hits(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of("x", "soon gone", valid_to=WRITTEN)])
    outcome = shelf.searcher().search("soon")
    assert outcome.hits == ()
    assert not outcome.relevance.is_relevant

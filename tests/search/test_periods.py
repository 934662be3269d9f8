"""Questions that tell a time: which days they mean, and what that is worth."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest

from memctl.language.time_periods import periods
from memctl.records import Filters, Memory
from memctl.search.answering.excerpts import UNSURE
from memctl.search.answering.extractive_answer import NOT_FOUND, extract_answer
from tests.search.conftest import Shelf

MemoryOf = Callable[..., Memory]

ASKED = date(2026, 11, 22)
"""A Sunday."""


@pytest.mark.parametrize(
    ("question", "written", "first", "last"),
    [
        ("What did we do last May?", "last May", "2026-05-01", "2026-05-31"),
        ("What did we do last November?", "last November", "2025-11-01", "2025-11-30"),
        ("What happened in spring 2023?", "in spring 2023", "2023-03-01", "2023-05-31"),
        ("What did Ann say two weeks ago?", "two weeks ago", "2026-11-05", "2026-11-11"),
        ("What did Ann say yesterday?", "yesterday", "2026-11-21", "2026-11-21"),
        ("Qui est venu hier ?", "hier", "2026-11-21", "2026-11-21"),
        ("Who came last Friday?", "last Friday", "2026-11-20", "2026-11-20"),
        ("Who came last Sunday?", "last Sunday", "2026-11-15", "2026-11-15"),
        ("Who came last week?", "last week", "2026-11-09", "2026-11-15"),
        ("Who came in the last 3 months?", "in the last 3 months", "2026-08-24", "2026-11-22"),
        ("Who came the week before Christmas?", "week before Christmas", "2025-12-18",
         "2025-12-24"),
        ("What was on in the week of 15 June 2026?", "week of 15 June 2026", "2026-06-15",
         "2026-06-21"),
        ("Who came w/c 9 June 2025?", "w/c 9 June 2025", "2025-06-09", "2025-06-15"),
        ("Was war in der Woche vom 3. Mai 2026 los?", "Woche vom 3. Mai 2026", "2026-04-27",
         "2026-05-03"),
        ("What changed since March?", "since March", "2026-03-01", "9999-12-31"),
        ("Who was here 3.-5.7.?", "3.-5.7.", "2026-07-03", "2026-07-05"),
        ("Who was here 1.3.2023-5.4.2024?", "1.3.2023-5.4.2024", "2023-03-01", "2024-04-05"),
        ("Who was here 30.12.2024-2.1.?", "30.12.2024-2.1.", "2024-12-30", "2025-01-02"),
        ("Who was here 30.12.-2.1.?", "30.12.-2.1.", "2025-12-30", "2026-01-02"),
        ("Who was here 28.-29.2.?", "28.-29.2.", "2024-02-28", "2024-02-29"),
        ("What was sold since week 12?", "since week 12", "2026-03-16", "9999-12-31"),
        ("What was sold in week 12 in Lisbon?", "week 12", "2026-03-16", "2026-03-22"),
        ("Was war vor KW 12?", "vor KW 12", "0001-01-01", "2026-03-15"),
        ("What was sold before Q3 2024?", "before Q3 2024", "0001-01-01", "2024-06-30"),
        ("What was sold after Q3?", "after Q3", "2026-10-01", "9999-12-31"),
        ("What was sold by Q2?", "by Q2", "0001-01-01", "2026-06-30"),
        ("What was sold between week 10 and week 12?", "between week 10 and week 12",
         "2026-03-02", "2026-03-22"),
        ("What was sold in weeks 10-12?", "weeks 10-12", "2026-03-02", "2026-03-22"),
        ("What was sold in week 10 to 12 people?", "week 10", "2026-03-02", "2026-03-08"),
        ("What was sold from Q4 2024 to Q1?", "from Q4 2024 to Q1", "2024-10-01", "2025-03-31"),
        ("What was sold in Q1-Q3 2024?", "Q1-Q3 2024", "2024-01-01", "2024-09-30"),
        ("What was sold in early Q3 2024?", "early Q3 2024", "2024-07-01", "2024-07-31"),
        ("Was war in KW 53?", "KW 53", "2020-12-28", "2021-01-03"),
        ("Who was here 28.12. - 3.1.2026?", "28.12. - 3.1.2026", "2025-12-28", "2026-01-03"),
        ("Who was here 12/03 - 15/03?", "12/03 - 15/03", "2026-03-12", "2026-03-15"),
        ("What was planned in mid 2025?", "mid 2025", "2025-05-02", "2025-09-01"),
        ("What did we do in early March?", "early March", "2026-03-01", "2026-03-11"),
        ("Who came on the weekend of 3 May?", "weekend of 3 May", "2026-05-02", "2026-05-03"),
        ("Was war in KW 12?", "KW 12", "2026-03-16", "2026-03-22"),
        ("What was sold in week 12 of 2025?", "week 12 of 2025", "2025-03-17", "2025-03-23"),
        ("What was sold in week 50?", "week 50", "2025-12-08", "2025-12-14"),
        ("What was sold in Q3 2024?", "Q3 2024", "2024-07-01", "2024-09-30"),
        ("What was sold in Q4?", "Q4", "2026-10-01", "2026-12-31"),
        ("What was sold in H1 2025?", "H1 2025", "2025-01-01", "2025-06-30"),
        ("What held before 2024-03-05?", "before 2024-03-05", "0001-01-01", "2024-03-04"),
        ("What held after March 2024?", "after March 2024", "2024-04-01", "9999-12-31"),
        ("Was haben wir letzten Mai beschlossen?", "letzten Mai", "2026-05-01", "2026-05-31"),
        ("Was sagte Ann vor zwei Wochen?", "vor zwei Wochen", "2026-11-05", "2026-11-11"),
        ("Qu'a dit Ann la semaine dernière ?", "semaine dernière", "2026-11-09", "2026-11-15"),
        ("¿Qué dijo Ann hace dos semanas?", "hace dos semanas", "2026-11-05", "2026-11-11"),
        ("Cosa ha detto Ann ieri?", "ieri", "2026-11-21", "2026-11-21"),
        ("Wat zei Ann gisteren?", "gisteren", "2026-11-21", "2026-11-21"),
        ("Who came last weekend?", "last weekend", "2026-11-14", "2026-11-15"),
        ("What did we do in early June 2025?", "early June 2025", "2025-06-01", "2025-06-10"),
        ("What happened in mid-May?", "mid-May", "2026-05-11", "2026-05-21"),
        ("Was war Ende Mai los?", "Ende Mai", "2026-05-21", "2026-05-31"),
        ("What changed in the last week of May 2025?", "last week of May 2025", "2025-05-25",
         "2025-05-31"),
        ("What did we sell in the first half of 2025?", "first half of 2025", "2025-01-01",
         "2025-06-30"),
        ("What happened between March and May 2025?", "between March and May 2025", "2025-03-01",
         "2025-05-31"),
        ("What happened from 3 to 10 May 2025?", "from 3 to 10 May 2025", "2025-05-03",
         "2025-05-10"),
        ("What happened May 3 to 10?", "May 3 to 10", "2026-05-03", "2026-05-10"),
        ("Who came 28 December 2024 - 3 January 2025?", "28 December 2024 - 3 January 2025",
         "2024-12-28", "2025-01-03"),
        ("Who came between November and January?", "between November and January", "2025-11-01",
         "2026-01-31"),
        ("Was war zwischen dem 3. und 10. Mai 2025?", "zwischen dem 3. und 10. Mai 2025",
         "2025-05-03", "2025-05-10"),
        ("What did we do over Christmas 2024?", "over Christmas 2024", "2024-12-23", "2024-12-27"),
        ("Who came at Easter?", "Easter", "2026-04-03", "2026-04-06"),
        ("What changed since Easter 2024?", "since Easter 2024", "2024-03-29", "9999-12-31"),
        ("What changed between 2023 and 2025?", "between 2023 and 2025", "2023-01-01",
         "2025-12-31"),
        ("Who came between November 2024 and February?", "between November 2024 and February",
         "2024-11-01", "2025-02-28"),
        ("What did we give in May to 3 charities?", "in May", "2026-05-01", "2026-05-31"),
        ("Who came before the end of May?", "before the end of May", "0001-01-01", "2026-05-31"),
        ("Who had come by the end of 2024?", "by the end of 2024", "0001-01-01", "2024-12-31"),
        ("Who came prior to 12 May?", "prior to 12 May", "0001-01-01", "2026-05-11"),
        ("Who came after 12 May?", "after 12 May", "2026-05-13", "9999-12-31"),
        ("What changed since the beginning of 2025?", "since the beginning of 2025", "2025-01-01",
         "9999-12-31"),
        ("¿Quién vino el fin de semana pasado?", "fin de semana pasado", "2026-11-14",
         "2026-11-15"),
        ("Who came from Jan. 5 to Feb. 3, 2025?", "from Jan. 5 to Feb. 3, 2025", "2025-01-05",
         "2025-02-03"),
        ("Who came around 10 May 2025?", "around 10 May 2025", "2025-05-08", "2025-05-12"),
    ],
)  # fmt: skip
def test_a_time_counts_from_the_day_of_asking(
    question: str, written: str, first: str, last: str
) -> None:
    (found,) = periods(question, ASKED)
    assert question[found.start : found.end] == written
    assert (found.first.isoformat(), found.last.isoformat()) == (first, last)


@pytest.mark.parametrize(
    "question",
    [
        "May I bring the dog?",
        "What does the H1 tag do?",
        "How fast is the Audi Q3?",
        "What is 3/4 - 1/4?",
        "Who was here in KW 60?",
        "Who was here 5.-3.7.?",
        "How fast are the Audi Q3 and Q5?",
        "What is the range of the Q4?",
        "Who came in the week 12 March?",
        "Was it two weeks 3 days?",
        "What is sold per week 40?",
        "Who swims every week 5 times?",
        "What happens in week 20 of pregnancy?",
        "Which is the Q5?",
        "Who was here 30.-31.2.?",
        "What march did he walk in the parade?",
        "Who wrote about the mars rover?",
        "What did Ann do before the move?",
        "Who lived 999 years ago ago and 900 months hence?",
        "Where is the spring of the door?",
        "Can 2 to 3 may be enough?",
        "What costs between 1900 and 2000 euros?",
        "What is between 31 and 2 May?",
        "What is open from 9 to 5, may I ask?",
        "Wer wohnt hier in der Straße?",
    ],
)
def test_words_that_only_look_like_a_period_are_not_one(question: str) -> None:
    assert periods(question, date(900, 1, 1)) == []


@pytest.mark.parametrize(
    ("question", "firsts"),
    [
        ("What was sold in Q3 and Q4?", ["2026-07-01", "2026-10-01"]),
        ("What was sold in Q3 and Q4 2024?", ["2024-07-01", "2024-10-01"]),
        ("Was war in KW 10 und KW 12?", ["2026-03-02", "2026-03-16"]),
        ("What was sold in weeks 10 and 12?", ["2026-03-02", "2026-03-16"]),
    ],
)
def test_two_weeks_or_quarters_are_two_times(question: str, firsts: list[str]) -> None:
    assert [each.first.isoformat() for each in periods(question, ASKED)] == firsts


def test_a_span_that_has_begun_may_end_next_year() -> None:
    (found,) = periods("Who is here 30.12.-2.1.?", date(2026, 12, 31))
    assert (found.first, found.last) == (date(2026, 12, 30), date(2027, 1, 2))


def test_a_question_of_thousands_of_times_is_read_once() -> None:
    question = "weekend of 5 May, since 5 May 2025, " * 4_000
    assert len(periods(question, ASKED)) == 8_000


def met_on(memory_of: MemoryOf, *days: str) -> list[Memory]:
    return [
        memory_of(f"on {day}", "Ann talked about the garden and the roses.",
                  created_at=datetime.fromisoformat(day).replace(tzinfo=UTC))
        for day in days
    ]  # fmt: skip


def order_of(shelf: Shelf, question: str) -> list[str | None]:
    return [hit.external_id for hit in shelf.searcher().search(question).hits]


def test_memories_of_the_time_that_is_asked_for_come_first(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    shelf.put(met_on(memory_of, "2025-05-09", "2026-05-30", "2026-03-09", "2026-01-02"))
    assert order_of(shelf, "What did Ann say of the garden yesterday?")[0] == "on 2026-05-30"
    assert order_of(shelf, "What did Ann say of the garden last May?")[0] == "on 2026-05-30"
    assert order_of(shelf, "What did Ann say of the garden in March?")[0] == "on 2026-03-09"
    assert order_of(shelf, "What did Ann say of the garden before 2026?")[0] == "on 2025-05-09"


def test_other_times_are_further_down_and_not_left_out(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put(met_on(memory_of, "2025-05-09", "2026-05-30"))
    assert len(order_of(shelf, "What did Ann say of the garden last May?")) == 2


def test_a_time_without_any_memory_changes_no_score(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put(met_on(memory_of, "2026-05-30", "2026-05-31"))
    hits = shelf.searcher().search("What did Ann say of the garden?").hits
    assert all("time" not in hit.legs for hit in hits)


DIARY = {
    "2025-07-12": "Ida broke her wrist skating.",
    "2025-11-14": "We hiked the Harz with Paul, three days of rain.",
    "2025-12-11": "I have sold the piano to Karim.",
    "2026-01-01": "The new flat in Weaver Lane is painted.",
    "2026-03-20": "Ida bought a used cargo bike for 1,900 euros.",
    "2026-04-03": "The dentist found two cavities.",
    "2026-05-28": "In the cinema with Paul, a film about whales.",
}


@pytest.fixture
def diary(shelf: Shelf, memory_of: MemoryOf) -> Shelf:
    """Days that have hardly a word in common, asked about on 1 June 2026."""
    shelf.put([
        memory_of(day, text, created_at=datetime.fromisoformat(day).replace(tzinfo=UTC))
        for day, text in DIARY.items()
    ])  # fmt: skip
    return shelf


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("What did Ida buy in March?", "2026-03-20"),
        ("Where did we go last November?", "2025-11-14"),
        ("What happened last week?", "2026-05-28"),
        ("What happened in April?", "2026-04-03"),
        ("What did Ida do in July?", "2025-07-12"),
        ("What did we do since May?", "2026-05-28"),
    ],
)
def test_where_a_question_says_little_else_its_time_decides(
    diary: Shelf, question: str, day: str
) -> None:
    outcome = diary.searcher().search(question)
    assert outcome.hits[0].external_id == day
    assert extract_answer(outcome).text.startswith(DIARY[day].rstrip("."))


def test_a_question_of_a_time_that_nothing_is_from_is_not_answered(diary: Shelf) -> None:
    assert extract_answer(diary.searcher().search("What did Ida do in February?")).text == NOT_FOUND


@pytest.mark.parametrize(
    ("question", "is_known"),
    [
        ("How much honey was harvested in 2025?", True),
        ("How much honey was harvested in June?", True),
        ("How much honey was harvested in 2024?", False),
        ("How much honey was harvested in June 2024?", False),
    ],
)
def test_what_stands_under_a_day_of_another_year_is_not_given_as_fact(
    shelf: Shelf, memory_of: MemoryOf, question: str, is_known: bool
) -> None:
    text = "Spring harvest: 62.5 kg of honey.\n\nThe 500 g jar is sold at 7.50 €."
    when = datetime(2025, 6, 14, tzinfo=UTC)
    shelf.put([memory_of("x", text, heading="Bees > 14 June 2025", created_at=when)])
    assert extract_answer(shelf.searcher().search(question)).found is is_known


def test_words_that_are_all_there_outweigh_the_time(diary: Shelf) -> None:
    hits = diary.searcher().search("When was the piano sold to Karim, in November?").hits
    assert hits[0].external_id == "2025-12-11"


def test_a_memory_of_the_period_is_found_among_many_of_other_times(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    many = [
        memory_of(f"w{n}", f"What happened: weekly report {n} of what happened.",
                  created_at=datetime(2026, 1, 15, tzinfo=UTC))
        for n in range(150)
    ]  # fmt: skip
    day = datetime(2026, 5, 27, tzinfo=UTC)
    shelf.put([*many, memory_of("the one", "Ladder painted.", created_at=day)])
    assert order_of(shelf, "What happened last week?")[0] == "the one"


def test_the_time_of_an_event_is_that_of_what_speaks_of_it(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    day = datetime(2026, 3, 1, tzinfo=UTC)
    move = memory_of("move", "The move to Harbour Street went well.", created_at=day)
    shelf.put([*met_on(memory_of, "2026-01-02", "2026-05-30"), move])
    before = order_of(shelf, "What did Ann say of the garden before the move?")
    after = order_of(shelf, "What did Ann say of the garden after the move?")
    assert before.index("on 2026-01-02") < before.index("on 2026-05-30")
    assert after.index("on 2026-05-30") < after.index("on 2026-01-02")


@pytest.mark.parametrize("habit", ["before work", "after a move", "before moving"])
def test_what_is_done_again_and_again_is_no_event(
    shelf: Shelf, memory_of: MemoryOf, habit: str
) -> None:
    shelf.put([*met_on(memory_of, "2026-01-02", "2026-05-30"), memory_of("move", "Work, a move.")])
    hits = shelf.searcher().search(f"What did Ann say of the garden {habit}?").hits
    assert all("time" not in hit.legs for hit in hits)


def test_a_question_on_which_was_first_prefers_neither(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([*met_on(memory_of, "2026-01-02", "2026-05-30"), memory_of("move", "The move.")])
    hits = shelf.searcher().search("Did Ann talk of the garden before the move?").hits
    assert all("time" not in hit.legs for hit in hits)


def test_the_explanation_names_the_time_and_what_it_is_worth(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    shelf.put([*met_on(memory_of, "2025-05-09", "2026-05-30"), memory_of("other", "A ladder.")])
    found = shelf.searcher().search("What did Ann say of the garden last May?")
    assert found.explain["times"] == [
        {"text": "last May", "from": "2026-05-01", "to": "2026-05-31"}
    ]
    assert found.hits[0].legs["keyword_time"] > 0
    open_ended = shelf.searcher().search("What did Ann say since May?").explain["times"]
    assert open_ended == [{"text": "since May", "from": "2026-05-01", "to": None}]
    assert "times" not in shelf.searcher().search("What did Ann say?").explain


def statements(shelf: Shelf, memory_of: MemoryOf) -> Shelf:
    """Statements of two days in three documents, one of little weight, and one of another month."""
    rows = []
    for id_, day, text, weight in (
        ("van", datetime(2024, 11, 12, tzinfo=UTC), "The van was broken into last night.", 0.9),
        ("lamp", datetime(2024, 11, 12, tzinfo=UTC), "2024-11-12: The street lamp was off.", 0.2),
        ("beam", datetime(2024, 11, 20, tzinfo=UTC), "The new beam is in.", 0.8),
        ("party", datetime(2024, 12, 3, tzinfo=UTC), "The party was on a Tuesday.", 0.7),
    ):
        document = {"document_id": f"d_{id_}", "title": "notes", "created_at": day}
        rows += [
            memory_of(f"p_{id_}", text, **document, importance=weight),
            memory_of(f"m_{id_}", text, **document, level="memory", type="event",
                      source_ids=(f"m_p_{id_}",), importance=weight),
        ]  # fmt: skip
    shelf.put(rows)
    return shelf


@pytest.mark.parametrize(
    "question", ["What happened in November 2024?", "what did we do in nov 2024"]
)
def test_what_happened_in_a_month_is_told_by_the_day(
    shelf: Shelf, memory_of: MemoryOf, question: str
) -> None:
    answer = extract_answer(statements(shelf, memory_of).searcher().search(question))
    assert answer.found
    lines = answer.text.splitlines()
    assert lines[0].startswith("2024-11-12, notes: ")
    assert "2024-11-12, notes: The street lamp was off. [" in answer.text
    assert "2024-11-12, notes: The van was broken into last night. [" in answer.text
    assert lines[-1] == "2024-11-20, notes: The new beam is in. [3]"
    assert "party" not in answer.text
    assert [cited.quote for cited in answer.citations][-1] == "The new beam is in."


def test_what_happened_to_something_is_not_answered_with_all_that_happened(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    searcher = statements(shelf, memory_of).searcher()
    found = extract_answer(searcher.search("What happened to the beam in November 2024?"))
    assert found.text.startswith("The new beam is in. [1]")


LOG = {
    "winter": ("We decided to paint the hull blue.", datetime(2026, 1, 14, tzinfo=UTC)),
    "spring": ("We decided to paint the hull green.", datetime(2026, 4, 20, tzinfo=UTC)),
    "report": (
        "On 9 February 2026 we decided to paint the hull red.",
        datetime(2026, 5, 28, tzinfo=UTC),
    ),
}


@pytest.mark.parametrize(
    ("question", "told", "left_out"),
    [
        ("What did we decide to paint before April?", ("blue", "red"), "green"),
        ("What did we decide to paint by the end of January?", ("blue",), "green"),
        ("What did we decide to paint since March?", ("green",), "red"),
        ("What did we decide to paint between April and May?", ("green",), "red"),
    ],
)
def test_a_limit_in_time_leaves_out_what_is_of_another_time(
    shelf: Shelf, memory_of: MemoryOf, question: str, told: tuple[str, ...], left_out: str
) -> None:
    shelf.put([memory_of(name, text, created_at=made) for name, (text, made) in LOG.items()])
    given = extract_answer(shelf.searcher().search(question))
    assert all(each in given.text for each in told)
    assert left_out not in given.text


@pytest.mark.parametrize(
    ("question", "is_found"),
    [
        ("Who painted the hull before 2026?", False),
        ("Who painted the hull since February?", False),
        ("Who painted the hull since January?", True),
    ],
)
def test_nothing_of_another_time_is_given_as_fact(
    shelf: Shelf, memory_of: MemoryOf, question: str, *, is_found: bool
) -> None:
    text, made = "Mirko Dahl paints the hull.", LOG["winter"][1]
    old = memory_of("x", "The mast is ash.", created_at=datetime(2025, 3, 3, tzinfo=UTC))
    shelf.put([memory_of("who", text, created_at=made), old])
    assert extract_answer(shelf.searcher().search(question)).found is is_found


CONCERTS = {
    "past": "The next concert of the choir is on 14 March 2026.",
    "coming": "The next concert of the choir is on 11 July 2026.",
}


@pytest.mark.parametrize(
    ("known", "as_of", "start"),
    [
        (("past", "coming"), None, "The next concert of the choir is on 11 July 2026."),
        (("past",), None, UNSURE),
        (("past",), datetime(2026, 3, 1, tzinfo=UTC), "The next concert of the choir is on 14"),
    ],
)
def test_what_is_next_counts_from_the_day_of_asking(
    shelf: Shelf, memory_of: MemoryOf, known: tuple[str, ...], as_of: datetime | None, start: str
) -> None:
    shelf.put([*(memory_of(name, CONCERTS[name]) for name in known), memory_of("x", "The mast.")])
    found = shelf.searcher().search("When is the next concert?", filters=Filters(as_of=as_of))
    assert extract_answer(found).text.startswith(start)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("The upcoming release is 4.2, planned since 3 May 2024.", "What is the upcoming release?"),
        ("The next step is to call the notary, as agreed on 5 May 2025.", "What is the next step?"),
        ("Our next car will be a Kia, Tom said on 1 May 2025.", "What will our next car be?"),
    ],
)
def test_the_day_on_which_what_is_next_was_agreed_may_be_past(
    shelf: Shelf, memory_of: MemoryOf, text: str, question: str
) -> None:
    shelf.put([memory_of("next", text), memory_of("x", "The mast.")])
    given = extract_answer(shelf.searcher().search(question))
    assert given.text == f"{text} [1]"


@pytest.mark.parametrize(
    ("question", "items"),
    [
        ("What is overdue on the boat list?", ["scrape the keel by 2 May 2026 [1]"]),
        ("What's upcoming on the boat list?", ["order rope by 9 June 2026 [1]",
                                              "pay the berth by 1 July 2026 [1]"]),
    ],
)  # fmt: skip
def test_the_items_of_a_list_that_are_overdue_or_to_come_count_from_the_day_of_asking(
    shelf: Shelf, memory_of: MemoryOf, question: str, items: list[str]
) -> None:
    lines = (
        "- [ ] pay the berth by 1 July 2026",
        "- [x] wash the sails by 4 April 2026",
        "- [ ] scrape the keel by 2 May 2026",
        "- [ ] order rope by 9 June 2026",
        "- [ ] find the oar",
    )
    shelf.put([memory_of("list", "\n".join(lines), title="Boat list"), memory_of("x", "The mast.")])
    assert extract_answer(shelf.searcher().search(question)).text.splitlines() == items


FLOOD = {
    "before": ("We bought two pumps for the boathouse.", datetime(2026, 2, 3, tzinfo=UTC)),
    "flood": ("There was a flood in the boathouse on 12 March.", datetime(2026, 3, 20, tzinfo=UTC)),
    "after": ("We bought a winch for the boathouse.", datetime(2026, 4, 8, tzinfo=UTC)),
}
TALK = {"flood": ("The insurer wrote about the flood on 12 March.", FLOOD["flood"][1])}


@pytest.mark.parametrize(
    ("texts", "question", "told", "left_out"),
    [
        (FLOOD, "What did we buy before the flood?", "two pumps", "winch"),
        (FLOOD, "What did we buy after the flood?", "winch", "pumps"),
        (FLOOD | TALK, "What did we buy after the flood?", "pumps", "fire"),
    ],
)
def test_an_event_is_a_limit_where_a_sentence_tells_the_day_on_which_it_was(
    shelf: Shelf,
    memory_of: MemoryOf,
    texts: dict[str, tuple[str, datetime]],
    question: str,
    told: str,
    left_out: str,
) -> None:
    shelf.put([memory_of(name, text, created_at=made) for name, (text, made) in texts.items()])
    given = extract_answer(shelf.searcher().search(question)).text
    assert told in given
    assert left_out not in given

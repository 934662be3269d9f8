"""Search-box syntax: phrases, prefixes, misspelt words and operators, and what is none of them."""

from __future__ import annotations

import pytest

from memctl.errors import UsageError
from memctl.search.query.search_syntax import parse_query
from memctl.search.searcher import Searcher

from .conftest import MemoryOf, Shelf
from .test_search import found

NOTES = {
    "brew": "We serve cold brew from May. The brew is filtered twice.",
    "beer": "The brew stood in a cold cellar next to the beer.",
    "parser": "The parser calls parse_config before it opens the window.",
    "manual": "First we parse config files, then the parsed values are kept.",
    "aurora": "Aurora launches in Berlin.",
    "tea": "Tea from Assam goes to Berlin, coffee does not.",
    "coffee": "Coffee from Huila goes to Lyon.",
}
MODES = ("keyword", "hybrid")


@pytest.fixture
def cafe(shelf: Shelf, memory_of: MemoryOf) -> Searcher:
    shelf.put([memory_of(id, text) for id, text in NOTES.items()])
    return shelf.searcher()


def ids(searcher: Searcher, question: str, mode: str = "keyword") -> set[str]:
    return set(found(searcher.search(question, mode=mode)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('"cold brew"', {"brew"}),
        ("“cold brew”", {"brew"}),
        ('"brew cold"', set()),
        ('"parse config"', {"parser", "manual"}),
        ("+berlin tea", {"aurora", "tea"}),
        ("berlin -tea", {"aurora"}),
        ('brew -"cold brew"', {"beer"}),
        ("coffee AND tea", {"tea"}),
        ("berlin AND NOT coffee", {"aurora"}),
        ("coffee NOT tea", {"coffee"}),
        ("(coffee OR aurora) AND (lyon OR berlin)", {"coffee", "aurora", "tea"}),
        ("+(huila OR assam) -lyon", {"tea"}),
        ("+auror* berlin", {"aurora"}),
        ("aurroa~ AND berlin", {"aurora"}),
        ("+zzz* berlin", set()),
        ("+parse_config", {"parser", "manual"}),
    ],
)
def test_what_is_written_with_operators_must_hold(
    cafe: Searcher, expression: str, expected: set[str], mode: str
) -> None:
    hits = ids(cafe, expression, mode)
    if "-" in expression or "NOT" in expression:  # the vectors bring up others that may be there
        hits = hits if mode == "keyword" else hits & set(ids(cafe, expression))
    assert hits == expected


@pytest.mark.parametrize("mode", MODES)
def test_an_excluded_word_is_in_no_hit(cafe: Searcher, mode: str) -> None:
    assert ids(cafe, "berlin -tea", mode).isdisjoint({"tea"})
    assert ids(cafe, "berlin", mode) >= {"tea", "aurora"}


def test_a_prefix_finds_every_word_that_begins_so(cafe: Searcher) -> None:
    assert ids(cafe, "pars*") == {"parser", "manual"}
    assert ids(cafe, "parsing*") >= {"manual"}
    assert cafe.search("launch*", mode="keyword").explain["expanded"] == {"launch*": ["launch"]}


def test_a_misspelt_word_is_found_where_that_is_asked_for(cafe: Searcher) -> None:
    assert ids(cafe, "aurroa") == set()
    outcome = cafe.search("aurroa~", mode="keyword")
    assert found(outcome) == ["aurora"]
    assert outcome.explain["expanded"] == {"aurroa~": ["aurora"]}
    assert found(cafe.search("when does aurroa~ launch?"))[0] == "aurora"


def test_a_short_word_may_differ_by_one_letter_and_a_long_one_by_two(cafe: Searcher) -> None:
    assert ids(cafe, "bree~") == {"brew", "beer"}
    assert ids(cafe, "brxx~") == set()
    assert ids(cafe, "brxx~2") == {"brew", "beer"}
    assert ids(cafe, "cofeee~") == {"tea", "coffee"}


def test_an_identifier_is_found_by_its_words_and_the_other_way_round(cafe: Searcher) -> None:
    assert {"parser", "manual"} <= ids(cafe, "parse config")
    assert {"parser", "manual"} <= ids(cafe, "parse_config")


@pytest.mark.parametrize(
    "plain",
    [
        "what's open?",
        "Ann's e-mail",
        "ann@example.org",
        "foo-bar",
        "C++ and C#",
        "a * b",
        "5* hotel",
        "2026-05-12",
        "from -5 to +3 degrees",
        "call +49 30 1234",
        "tar -x --verbose",
        "a - b",
        "and or not",
        "we do NOT ship on Sundays",
        "DO NOT ENTER",
        "~/notes",
        "main() returns (mostly) nothing",
        'a 6" pipe',
        "*important* words",
        "papers on jets -dash or not .",
        'Who said "cold brew"?',
        'who said "cold brew"',
        "Is it coffee OR tea?",
        "“红楼梦”是谁写的？",
        "“冷萃”很好。",
        'من كتب "الف ليلة"؟',
        'Dear Ann, the "cold brew" is served. Regards, Bob',
        'Dear Ann,\n\nplease order the "cold brew" beans\n\nRegards, Bob',
        'we talked at length about the "cold brew" that you gave to me in the garden last summer',
    ],
)
def test_plain_words_are_no_syntax(plain: str) -> None:
    expression = parse_query(plain, ("en",))
    assert expression.text == plain
    assert expression.required is None
    assert not expression.patterns
    assert not expression.note


@pytest.mark.parametrize("bad", ["(coffee AND", "AND coffee", "(coffee OR tea", "coffee AND"])
def test_a_bad_expression_is_plain_words_with_a_note(cafe: Searcher, bad: str) -> None:
    outcome = cafe.search(bad, mode="keyword")
    assert "coffee" in found(outcome)
    assert "plain words" in outcome.notes[0]


def test_a_quoted_phrase_in_a_letter_raises_what_has_it_and_requires_nothing(
    cafe: Searcher,
) -> None:
    letter = 'Dear Ann, all is fine. Who makes the "cold brew" of Berlin? Regards'
    outcome = cafe.search(letter, mode="keyword")
    assert found(outcome)[0] == "brew"
    assert {"beer", "aurora"} <= set(found(outcome))
    short = '"Dr. No. Who?" or whatever'
    assert parse_query(short, ("en",)).required is not None
    long = "we talked in the garden last summer for a long time about the brew " + '+"cold brew"'
    assert ids(cafe, long) == {"brew"}


def test_only_what_is_not_wanted_cannot_be_looked_for(cafe: Searcher) -> None:
    with pytest.raises(UsageError, match="not to be found"):
        cafe.search("-coffee -tea")


def test_vectors_know_no_syntax(cafe: Searcher) -> None:
    assert len(cafe.search('"cold brew"', mode="vector").hits) > 1


@pytest.mark.parametrize("newest", [0, 5_000])
def test_words_of_a_table_too_large_to_be_known_are_looked_up(
    shelf: Shelf, memory_of: MemoryOf, monkeypatch: pytest.MonkeyPatch, newest: int
) -> None:
    """By the index, and what is not in that yet among the newest."""
    monkeypatch.setattr("memctl.search.term_statistics.SAMPLE", 16)
    monkeypatch.setattr("memctl.search.retrieval.corpus.MAX_IN_MEMORY", 0)
    filler = [memory_of(f"{n:03}", f"nothing of note on day {n}") for n in range(60)]
    shelf.put([*filler[:30], memory_of("aurora", NOTES["aurora"]), *filler[30:]])
    if not newest:
        monkeypatch.setattr("memctl.search.query.analyzers._NEWEST", 0)
        shelf.stores["kb"].upkeep(force=True)
    for expression in ("aurroa~", "auro*", '"launches in Berlin"', "+aurora day"):
        assert ids(shelf.searcher(), expression) == {"aurora"}, expression


TICKETS = {
    "4711": "Ticket PROJ-4711: the pump leaks.",
    "4720": "Ticket PROJ-4720: the pump hums.",
    "9999": "Ticket PROJ-9999: the lift is stuck.",
    "hosted": "Our self-hosted runner is slow.",
    "portrait": "A self-portrait hangs in the hall.",
    "mail": "The export by e-mail was made on 2026-05-12 with v2.13.4.",
    "budget": "Budget for Q3, number 1042, the export included.",
}


@pytest.fixture
def office(shelf: Shelf, memory_of: MemoryOf) -> Searcher:
    shelf.put([memory_of(id, text) for id, text in TICKETS.items()])
    return shelf.searcher()


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("+PROJ-47*", {"4711", "4720"}),
        ("+self-hos*", {"hosted"}),
        ("+2026-0*", {"mail"}),
        ("+v2.1*", {"mail"}),
        ("PROJ-47* pump", {"4711", "4720"}),
    ],
)
def test_the_prefix_of_a_compound_is_not_that_of_its_first_part(
    office: Searcher, prefix: str, expected: set[str]
) -> None:
    assert ids(office, prefix) == expected


def test_the_prefix_of_a_compound_is_looked_up_in_a_large_table(
    shelf: Shelf, memory_of: MemoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.search.term_statistics.SAMPLE", 16)
    monkeypatch.setattr("memctl.search.retrieval.corpus.MAX_IN_MEMORY", 0)
    shelf.put([memory_of(f"{n}", f"Order ORD-{n} was sent") for n in range(10_100, 10_160)])
    orders = {str(n) for n in range(10_120, 10_130)}
    assert ids(shelf.searcher(), "+ORD-1012*") == orders


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ord*", set()),
        ("portr*", {"portrait"}),
        ("the hum*", {"4720"}),
        ("hum* leak*", {"4711", "4720"}),
    ],
)
def test_where_only_a_pattern_is_asked_for_it_must_hold(
    office: Searcher, expression: str, expected: set[str], mode: str
) -> None:
    assert ids(office, expression, mode) == expected


@pytest.mark.parametrize(
    ("expression", "expected", "holds"),
    [
        ("ticket -4711", {"4720", "9999"}, "NOT 4711"),
        ("export -e-mail", {"budget"}, "NOT email"),
        ("export -v2.13.4", {"budget"}, "NOT v2.13.4"),
        ("export -Q3", {"mail"}, "NOT q3"),
        ("export -2026-05-12", {"budget"}, "NOT 2026-05-12"),
        ("export +1042", {"budget"}, "1042"),
        ("pump +PROJ-4720 -4711", {"4720"}, '((proj4720 | "proj 4720") AND NOT 4711)'),
    ],
)
def test_a_sign_before_a_code_is_an_operator_and_told(
    office: Searcher, expression: str, expected: set[str], holds: str
) -> None:
    outcome = office.search(expression, mode="keyword")
    assert set(found(outcome)) == expected
    assert outcome.notes == (f"what must hold: {holds}",)


@pytest.mark.parametrize(
    "plain",
    [
        "between -500 and +300 metres",
        "refund -120.00",
        "refund -500 €",
        "a drop of -100%",
        "call Ann +4917012345678",
        "kelvin -40",
    ],
)
def test_a_quantity_with_a_sign_is_plain(plain: str) -> None:
    expression = parse_query(plain, ("en",))
    assert (expression.text, expression.required, expression.note) == (plain, None, "")


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ('"self hosted runner"', {"hosted"}),
        ('"self-hosted runner"', {"hosted"}),
        ('"our self hosted"', {"hosted"}),
        ('"hosted self runner"', set()),
        ('"self runner"', set()),
        ('slow -"self hosted runner"', set()),
        ('"ticket proj 4711"', {"4711"}),
    ],
)
def test_the_words_of_a_phrase_may_be_written_as_one(
    office: Searcher, phrase: str, expected: set[str]
) -> None:
    assert ids(office, phrase) == expected


def test_a_phrase_written_as_one_word_is_found_in_words(cafe: Searcher) -> None:
    outcome = cafe.search('"cold-brew from may"', mode="keyword")
    assert found(outcome) == ["brew"]


@pytest.mark.parametrize(
    "deep",
    ["(" * 5_000 + "coffee" + ")" * 5_000 + " AND tea", "-(" * 5_000 + "coffee" + ")" * 5_000],
)
def test_an_expression_too_deep_to_be_read_is_plain_words(cafe: Searcher, deep: str) -> None:
    outcome = cafe.search(deep, mode="keyword")
    assert "coffee" in found(outcome)
    assert "plain words" in outcome.notes[0]
    assert ids(cafe, "(" * 30 + "coffee" + ")" * 30 + " AND tea") == {"tea"}


def test_a_whole_document_is_no_expression() -> None:
    pasted = 'The "cold brew" AND the coffee* ' * 60 + "-tea +milk"
    assert parse_query(pasted, ("en",)).text == pasted
    assert parse_query(pasted, ("en",)).required is None

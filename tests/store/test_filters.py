"""Filters find exactly what they say, whatever the values; users' conditions stay in place."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memctl.errors import UsageError
from memctl.records import Filters, Memory
from memctl.schema.arrow_tables import memories_table
from memctl.store.store import Store
from memctl.store.tables.filter_expressions import (
    EVERYTHING,
    NOTHING,
    Comparison,
    Every,
    Expr,
    Holds,
    Membership,
    Missing,
    Negation,
    Some,
    col,
    document_filter,
    memory_filter,
    render,
    where,
)
from memctl.store.tables.snapshot import Snapshot

NOW = datetime(2025, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)

NASTY = (
    "",
    "x",
    "x' OR '1'='1",
    "x') OR (1=1",
    "'",
    "''",
    "\\",
    "\\'",
    "a\\",
    '"',
    '"; DROP TABLE memories; --',
    "`",
    "nul\0in the middle",
    "two\nlines\r\n",
    "100%",
    "a_b",
    "{}%s",
    "$$",
    "é",
    "e\u0301",
    "漢字",
    "🦉",
    "\u202e",
    "NULL",
    "true",
)


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory, memory_of) -> Iterator[Snapshot]:
    folder = tmp_path_factory.mktemp("nasty") / "kb"
    memories = [
        memory_of(
            number,
            title=text,
            source=text,
            tags=(text, "every"),
            turn=number - 12,
            importance=number / 100,
            speaker=None if number % 3 else text,
            session_id=str(number % 4),
            created_at=NOW + number * DAY,
            is_consolidated=number % 2 == 0,
        )
        for number, text in enumerate(NASTY)
    ]
    with Store.create(folder, 8) as store:
        with store.write() as transaction:
            transaction.append("memories", memories_table(memories, np.ones((len(NASTY), 8))))
        yield store.snapshot()


def ids(snapshot: Snapshot, condition: Expr) -> set[str]:
    return set(snapshot.scan("memories", condition, ["id"])["id"].to_pylist())


@pytest.mark.parametrize("text", NASTY)
def test_a_value_is_compared_as_it_is(nasty: Snapshot, text: str) -> None:
    own = {f"m_{NASTY.index(text)}"}
    assert ids(nasty, col("title") == text) == own
    assert ids(nasty, col("title").is_in([text, "not there"])) == own
    assert ids(nasty, col("tags").has(text)) == own
    assert ids(nasty, col("tags").has_any([text, "not there"])) == own
    assert len(ids(nasty, col("title") != text)) == len(NASTY) - 1


@given(text=st.text())
@settings(max_examples=60)
def test_any_text_finds_itself_and_nothing_else(nasty: Snapshot, text: str) -> None:
    own = {f"m_{NASTY.index(text)}"} if text in NASTY else set()
    assert ids(nasty, col("title") == text) == own
    assert ids(nasty, col("tags").has(text)) == own
    assert ids(nasty, col("id").is_in([text, "m_1"])) == {"m_1"}


# --- trees of conditions, against an evaluation in Python ----------------------------------------

operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
values = st.sampled_from(NASTY)
leaves = st.one_of(
    st.builds(Comparison, st.sampled_from(["title", "speaker"]), operators, values),
    st.builds(Comparison, st.just("turn"), operators, st.integers(-15, 15)),
    st.builds(
        Comparison,
        st.just("created_at"),
        operators,
        st.integers(-1, 26).map(lambda days: NOW + days * DAY),
    ),
    st.builds(Comparison, st.just("is_consolidated"), st.just("="), st.booleans()),
    st.builds(Membership, st.just("session_id"), st.lists(st.sampled_from("0123")).map(tuple)),
    st.builds(Missing, st.just("speaker")),
    st.builds(Holds, st.just("tags"), st.lists(values, max_size=2).map(tuple)),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=6,
)


def holds(condition: Expr, memory: Memory) -> bool | None:
    """Evaluate a condition with SQL's three values."""
    match condition:
        case Comparison(column, operator, value):
            own = getattr(memory, column)
            if own is None:
                return None
            if isinstance(own, str):  # the engine orders text by its UTF-8 bytes
                own, value = own.encode(), value.encode()
            return {
                "=": own == value,
                "!=": own != value,
                "<": own < value,
                "<=": own <= value,
                ">": own > value,
                ">=": own >= value,
            }[operator]
        case Membership(column, members):
            return getattr(memory, column) in members
        case Missing(column):
            return getattr(memory, column) is None
        case Holds(column, members):
            return not set(getattr(memory, column)).isdisjoint(members)
        case Negation(part):
            inner = holds(part, memory)
            return None if inner is None else not inner
        case Every(parts):
            found = [holds(part, memory) for part in parts]
            return False if False in found else None if None in found else True
        case Some(parts):
            found = [holds(part, memory) for part in parts]
            return True if True in found else None if None in found else False
    raise AssertionError(condition)


@given(condition=trees)
@settings(max_examples=80)
def test_any_tree_of_conditions_means_what_it_means_in_sql(
    nasty: Snapshot, condition: Expr
) -> None:
    from memctl.schema.arrow_tables import memory_rows

    every = memory_rows(nasty.scan("memories"))
    expected = {memory.id for memory in every if holds(condition, memory)}
    assert ids(nasty, condition) == expected
    assert nasty.count("memories", condition) == len(expected)


def test_long_chains_of_conditions_do_not_nest(nasty: Snapshot) -> None:
    chain = col("title") == "nothing"
    for _ in range(300):
        chain = chain | (col("title") == "x")
    assert ids(nasty, chain) == {"m_1"}


def test_everything_and_nothing_are_what_they_say(nasty: Snapshot) -> None:
    assert nasty.count("memories", EVERYTHING) == len(NASTY)
    assert nasty.count("memories", NOTHING) == 0
    assert nasty.count("memories", col("id").is_in([])) == 0
    assert nasty.count("memories", ~col("tags").has_any([])) == len(NASTY)


def test_extreme_instants_and_numbers_are_exact(nasty: Snapshot) -> None:
    assert nasty.count("memories", col("created_at") > datetime.min.replace(tzinfo=UTC)) == 25
    assert nasty.count("memories", col("created_at") < datetime.max.replace(tzinfo=UTC)) == 25
    assert nasty.count("memories", col("created_at") > NOW + timedelta(microseconds=1)) == 24
    assert nasty.count("memories", col("turn") <= 2**63 - 1) == 25
    with pytest.raises(UsageError):
        render(col("turn") < 2**63)
    with pytest.raises(UsageError):
        render(col("importance") < float("nan"))


def test_a_column_name_cannot_carry_anything_else() -> None:
    for name in ("id` = 'x' OR `id", "", "a b", "id\n", "é"):
        with pytest.raises(UsageError):
            render(col(name) == "x")


def test_conditions_refuse_to_be_combined_with_and_or_not() -> None:
    with pytest.raises(TypeError):
        bool(col("id") == "x")


# --- globs ---------------------------------------------------------------------------------------

PATHS = ("notes/plan.md", "plan.md", "notes/deep/a+b.txt", "c:\\notes\\plan.md", "[1].md", "ä ö.md")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("plan.md", {0, 1, 3}),
        ("*.md", {0, 1, 3, 4, 5}),
        ("notes/*", {0, 2}),
        ("pla?.md", {0, 1, 3}),
        ("a+b.*", {2}),
        ("[a-p]*.md", {0, 1, 3}),
        ("[!a-p]*.md", {4, 5}),
        ("[[]1].md", {4}),
        ("ä ö.md", {5}),
        ("PLAN.md", set()),
        ("plan", set()),
        ("*", {0, 1, 2, 3, 4, 5}),
        ("", set()),
        ("[", set()),
    ],
)
def test_a_glob_matches_the_whole_or_the_last_part(
    store: Store, rows_of, pattern: str, found: set[int]
) -> None:
    with store.write() as transaction:
        for number, path in enumerate(PATHS):
            transaction.append("memories", rows_of([number], source=path))
    expected = {f"m_{number}" for number in found}
    assert ids(store.snapshot(), col("source").like_glob(pattern)) == expected


@given(pattern=st.text(alphabet="x'\\%_*?[]!^-{}()+.|é$ab", max_size=8))
@settings(max_examples=60)
def test_a_glob_of_any_characters_agrees_with_pythons(nasty: Snapshot, pattern: str) -> None:
    assume("[" not in pattern)  # sets differ in corner cases
    plain = [text for text in NASTY if "/" not in text and "\\" not in text]
    expected = {f"m_{NASTY.index(text)}" for text in plain if fnmatch.fnmatchcase(text, pattern)}
    found = ids(nasty, col("source").like_glob(pattern))
    assert {name for name in found if NASTY[int(name[2:])] in plain} == expected


def test_a_glob_that_cannot_be_is_the_users_error(nasty: Snapshot) -> None:
    with pytest.raises(UsageError):
        ids(nasty, col("source").like_glob("[z-a]"))
    with pytest.raises(UsageError):
        ids(nasty, col("source").like_glob("*" * 2_000))


# --- a user's own condition ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "importance >= 0.05 AND turn IN (1, 2)",
        "title = 'it''s' OR NOT is_consolidated",
        "`end` IS NULL",
        "end IS NULL",
        "array_has(tags, 'every')",
        "title LIKE '100\\%' OR title = '--' OR title = ';'",
        "created_at > timestamp '2025-06-02'",
        "(((turn > 1)))",
    ],
)
def test_an_ordinary_condition_is_accepted(nasty: Snapshot, text: str) -> None:
    assert nasty.count("memories", where(text)) >= 0


BREAKING = [
    "title = 'x') OR (1 = 1",
    "1 = 1) OR (1 = 1",
    "1 = 1) --",
    "1 = 1 --",
    "1 = 1 /* ",
    "1 = 1 */",
    "1 = 1; DROP TABLE memories",
    "title = 'x",
    "title = E'\\') OR (1=1 -- '",
    "title = $$x$$",
    'title = "x"',
    "`title = 1",
    "title = 'x' ORDER BY id",
    "title = 'x' LIMIT 1",
    "title = 'x' UNION SELECT 1",
    "id IN (SELECT id FROM t)",
    "nosuchcolumn = 1",
    "turn = 'x'",
    "turn",
    "1",
    "",
    "   ",
    ")(",
    "(turn > 1",
    "[turn > 1)",
    "turn > 1 \0",
    "é = 1",
    "NOT " * 3_000 + "true",
    "(" * 3_000 + "true" + ")" * 3_000,
    "turn > 1 OR " * 800 + "turn > 1" + " " * 2_000,
]


@pytest.mark.parametrize("text", BREAKING)
def test_a_condition_that_is_not_one_complete_condition_is_refused(
    nasty: Snapshot, text: str
) -> None:
    with pytest.raises(UsageError) as caught:
        nasty.count("memories", (col("title") == "x") & where(text))
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400


def test_a_refused_column_is_answered_with_the_columns_there_are(nasty: Snapshot) -> None:
    with pytest.raises(UsageError) as caught:
        nasty.count("memories", where("nosuchcolumn = 1"))
    assert "nosuchcolumn" in caught.value.message
    assert "importance" in caught.value.hint


MARKS = ("'", '"', "`", "(", ")", "[", "]", "\\", ";", "%", ",", "=", "<", ">", "-", "*", "/")
WORDS = ("--", "/*", "*/", " OR ", " AND ", " NOT ", "1=1", "title", "'x'", " IN ", "true", "E'")
ENDS = ("$$", "\n", " ", " IS NULL ", "x", " UNION SELECT 1 ", " ORDER BY 1", " LIMIT 1", "{", "}")
PIECES = st.sampled_from(MARKS + WORDS + ENDS)


@pytest.mark.parametrize("text", ["true OR true", "turn > 5 OR turn <= 5", "false OR NOT false"])
def test_an_or_does_not_reach_beyond_its_brackets(nasty: Snapshot, text: str) -> None:
    assert ids(nasty, (col("title") == "x") & where(text)) == {"m_1"}
    assert ids(nasty, where(text) & (col("title") == "x")) == {"m_1"}
    assert nasty.count("memories", ~where(text)) == 0


@pytest.mark.parametrize("text", ["t = E'x'", "t = 'x'y", "t = 1'x'", "t = 'a' 'b", "t = $1", "#"])
def test_quotes_that_touch_words_are_refused_before_the_engine_sees_them(text: str) -> None:
    with pytest.raises(UsageError):
        where(text)


@given(pieces=st.lists(PIECES, min_size=1, max_size=9))
@settings(max_examples=300)
def test_no_condition_reaches_beyond_its_place(nasty: Snapshot, pieces: list[str]) -> None:
    try:
        found = ids(nasty, (col("title") == "x") & where("".join(pieces)))
    except UsageError:
        return
    assert found <= {"m_1"}


# --- what people ask for -------------------------------------------------------------------------


def test_only_what_is_valid_now_is_shown_unless_asked_as_of(store: Store, rows_of) -> None:
    with store.write() as transaction:
        for number, changes in enumerate(
            [
                {"valid_from": NOW - 9 * DAY},
                {"valid_from": NOW - 9 * DAY, "valid_to": NOW - DAY},
                {"valid_from": NOW - DAY, "valid_to": NOW + DAY},
                {"valid_from": NOW - 9 * DAY, "expires_at": NOW - 2 * DAY},
            ]
        ):
            transaction.append("memories", rows_of([number], **changes))
    snapshot = store.snapshot()
    assert ids(snapshot, memory_filter(Filters(), NOW)) == {"m_0"}, "what ended has ended"
    assert ids(snapshot, memory_filter(Filters(as_of=NOW), NOW)) == {"m_0", "m_2"}
    past = Filters(as_of=NOW - 3 * DAY)
    assert ids(snapshot, memory_filter(past, NOW)) == {"m_0", "m_1", "m_3"}


def test_every_field_of_the_filters_limits(store: Store, rows_of) -> None:
    matching = {
        "namespace": "ann",
        "tags": ("red", "blue"),
        "type": "decision",
        "level": "memory",
        "created_at": NOW,
        "session_id": "s1",
        "source": "notes/plan.md",
        "importance": 0.9,
    }
    others = {
        "namespace": "bob",
        "tags": ("green",),
        "type": "fact",
        "level": "insight",
        "created_at": NOW - 3 * DAY,
        "session_id": None,
        "source": "other.txt",
        "importance": 0.1,
    }
    filters = Filters(
        namespaces=("ann", "eve"),
        tags=("red", "yellow"),
        types=("decision",),
        levels=("memory",),
        since=NOW,
        until=NOW + DAY,
        session="s1",
        source="*.md",
        where="importance > 0.5",
    )
    with store.write() as transaction:
        transaction.append("memories", rows_of(["all"], **matching))
        transaction.append("memories", rows_of(["late"], **matching | {"created_at": NOW + DAY}))
        for name, value in others.items():
            transaction.append("memories", rows_of([name], **matching | {name: value}))
    assert ids(store.snapshot(), memory_filter(filters, NOW)) == {"m_all"}


def test_superseded_documents_are_shown_only_as_of(store: Store, document_of) -> None:
    from memctl.schema.arrow_tables import documents_table

    with store.write() as transaction:
        documents = [document_of("a"), document_of("b", status="superseded")]
        transaction.append("documents", documents_table(documents))
    snapshot = store.snapshot()
    found = snapshot.scan("documents", document_filter(Filters(tags=("t",))), ["id"])
    assert found["id"].to_pylist() == ["d_a"]
    assert snapshot.count("documents", document_filter(Filters(as_of=NOW))) == 2
    assert snapshot.count("documents", document_filter(Filters(as_of=NOW - 99 * DAY))) == 0


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory, memory_of) -> Iterator[Snapshot]:
    folder = tmp_path_factory.mktemp("sessions") / "kb"
    memories = [
        memory_of(1, session_id="s1", importance=0.25),
        memory_of(2, session_id="s2", importance=0.5),
        memory_of(3, session_id=None, importance=0.5),
    ]
    with Store.create(folder, 8) as store:
        with store.write() as transaction:
            transaction.append("memories", memories_table(memories, np.ones((3, 8))))
        yield store.snapshot()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("session_id <> 's2'", {"m_1", "m_3"}),
        ("`session_id` != 's2'", {"m_1", "m_3"}),
        ("NOT session_id <> 's2'", {"m_2"}),
        ("not (session_id <> 's2')", {"m_2"}),
        ("session_id <> 's2' AND importance <> 0.25", {"m_3"}),
        ("session_id <> 'it''s' and session_id<>'s1'", {"m_2", "m_3"}),
        ("title = 'x AND session_id <> ''s2''' OR session_id = 's1'", {"m_1"}),
        ("session_id || 'x' <> 's2x'", {"m_1"}),  # no column compared with a value: as in SQL
        ("session_id NOT IN ('s2')", {"m_1"}),
        ("session_id <> 's' || '2'", {"m_1"}),
    ],
)
def test_unequal_to_a_value_is_what_has_none(
    sessions: Snapshot, text: str, expected: set[str]
) -> None:
    assert ids(sessions, where(text)) == expected

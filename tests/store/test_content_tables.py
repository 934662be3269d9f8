"""What people and agents have said or stored in the ledger: each table is covered everywhere.

Every declared table is filled with rows made from its declaration, so that a table which is added
later is tested with no more code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from memctl.config import load_config
from memctl.errors import NotFoundError
from memctl.forget import Selection
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.store.ledger.content_tables import CONTENT_TABLES, EXPIRES, ContentTable

OLD = datetime(2026, 1, 5, tzinfo=UTC)
SECRET = "quicksilver marmalade"
"""Words that nothing else holds."""
_WITH_WORDS = pytest.mark.parametrize(
    "declared", [each for each in CONTENT_TABLES if each.texts], ids=lambda each: each.name
)
_TABLES = pytest.mark.parametrize("declared", CONTENT_TABLES, ids=lambda each: each.name)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("content")
    return Home(load_config({"home": str(folder)}, {}))


@pytest.fixture
def kb(home: Home, declared: ContentTable) -> Iterator[KnowledgeBase]:
    name = declared.name.replace("_", "-")
    if not home.exists(name):
        home.create(name)
    with home.open_for_writing(name) as base:
        with base.store.ledger.transaction() as connection:
            connection.execute(f"DELETE FROM {declared.name}")
        yield base


def _value(name: str, hint: Any, declared: ContentTable, word: str, number: int) -> Any:
    """Return a value of a column's type: with the word, where users' words may stand."""
    if hasattr(hint, "__metadata__"):  # stored in a way of its own
        hint = get_args(hint)[0]
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    kind = kinds[0] if kinds and type(None) in get_args(hint) else hint
    origin = get_origin(kind) or kind
    if name == EXPIRES:
        return OLD + timedelta(days=36_500)
    if name == declared.at or kind is datetime:
        return OLD + timedelta(days=number)
    if name == declared.session:
        return f"s{number}"
    if name == declared.namespace:
        return f"n{number}"
    if hint is Any or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return {"said": word} if name in declared.texts else {}
    if origin is tuple:
        return (word,) if name in declared.texts else ()
    if origin is bool:
        return False
    if origin in (int, float):
        return number
    if origin is not str and get_args(kind):  # one of a few words
        return get_args(kind)[0]
    if name in declared.texts:
        return json.dumps(word)  # which is text as well
    return f"{name}{number}" if name in declared.table.key else "some"


def _put(kb: KnowledgeBase, declared: ContentTable, *words: str) -> None:
    """Write a row for each word: the first of conversation s0 and namespace n0, and so on."""
    table = declared.table
    hints = get_type_hints(table.record, include_extras=True)
    names = table.record.__struct_fields__
    with kb.store.ledger.transaction() as connection:
        for number, word in enumerate(words):
            values = {n: _value(n, hints[n], declared, word, number) for n in names}
            row = table.encode(table.record(**values))
            connection.execute(
                f"INSERT INTO {table.name} ({table.columns}) VALUES ({table.marks})", row
            )


def _rows(kb: KnowledgeBase, declared: ContentTable) -> list[tuple[Any, ...]]:
    with kb.store.ledger.reading() as connection:
        found = connection.execute(f"SELECT {declared.table.columns} FROM {declared.name}")
        return sorted(found.fetchall(), key=repr)


@_TABLES
def test_what_a_conversation_or_namespace_holds_is_forgotten_with_it(
    kb: KnowledgeBase, declared: ContentTable
) -> None:
    for place, selection in (
        (declared.session, Selection(session="s0")),
        (declared.namespace, Selection(namespace="n0")),
    ):
        if not place:
            continue
        with kb.store.ledger.transaction() as connection:
            connection.execute(f"DELETE FROM {declared.name}")
        _put(kb, declared, f"the {SECRET} of {place}", "another thing altogether")
        kb.snapshots.create(f"before-{place.replace('_', '-')}")
        report = kb.forget(selection)
        assert len(_rows(kb, declared)) == 1
        assert report.left == ()
        assert _files_with(kb, SECRET) == []


@pytest.mark.parametrize(
    "declared",
    [each for each in CONTENT_TABLES if each.name != "sessions"],  # which go with their last turn
    ids=lambda each: each.name,
)
def test_what_is_older_is_forgotten_by_date(kb: KnowledgeBase, declared: ContentTable) -> None:
    _put(kb, declared, "of the fifth", "of the sixth", "of the seventh")
    kb.forget(Selection(before=OLD + timedelta(days=1, hours=1)))
    assert len(_rows(kb, declared)) == 1
    with pytest.raises(NotFoundError):
        kb.forget(Selection(before=OLD))


@_WITH_WORDS
def test_a_name_is_blocked_out_or_its_row_goes(kb: KnowledgeBase, declared: ContentTable) -> None:
    _put(kb, declared, "Quintessa Marlowe wants tea", "nobody wants coffee")
    assert kb.forget(Selection(entities=("Quintessa Marlowe",))).left == ()
    left = _rows(kb, declared)
    assert "Quintessa" not in repr(left)
    assert "nobody wants coffee" in repr(left)


@_WITH_WORDS
def test_a_snapshot_brings_it_back_but_for_what_was_forgotten_since(
    kb: KnowledgeBase, declared: ContentTable
) -> None:
    _put(kb, declared, "the first thing", f"the {SECRET}", "the third thing")
    before = _rows(kb, declared)
    kb.snapshots.create("three")
    with kb.store.ledger.transaction() as connection:
        connection.execute(f"DELETE FROM {declared.name}")
    kb.snapshots.restore("three")
    assert _rows(kb, declared) == before
    kb.forget(Selection(entities=(SECRET,)))
    kb.snapshots.restore("three")
    assert SECRET not in repr(_rows(kb, declared))
    assert "the third thing" in repr(_rows(kb, declared))


@_TABLES
def test_an_export_of_everything_has_it_and_import_brings_it_back(
    kb: KnowledgeBase, declared: ContentTable, home: Home, tmp_path: Path
) -> None:
    _put(kb, declared, "one thing", "another thing")
    kb.transfer.export_to(tmp_path / "all.memctl")
    name = f"{kb.name}-again"
    home.create(name)
    with home.open_for_writing(name) as copy:
        copy.transfer.import_from(tmp_path / "all.memctl")
        places = [declared.table.fields.index(column) for column in declared.local]
        expected = [
            tuple(None if place in places else value for place, value in enumerate(row))
            for row in _rows(kb, declared)
        ]
        assert _rows(copy, declared) == expected


@_TABLES
def test_sql_shows_it_within_the_namespaces_that_are_named(
    kb: KnowledgeBase, declared: ContentTable
) -> None:
    _put(kb, declared, "one thing", "another thing")
    count = f"SELECT count(*) AS n FROM {declared.name}"
    assert kb.sql(count).read_all().to_pylist() == [{"n": 2}]
    within = kb.sql(count, namespaces=["n1"]).read_all().to_pylist()
    assert within == [{"n": 1 if declared.namespace else 0}]


def _files_with(kb: KnowledgeBase, words: str) -> list[str]:
    """Return the files of the knowledge base that hold words, byte by byte."""
    files = (path for path in kb.layout.folder.rglob("*") if path.is_file())
    return [path.name for path in files if words.encode() in path.read_bytes()]

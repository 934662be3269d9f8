"""Queries and lists limited by the metadata of documents."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import memctl
from memctl import Filters, KnowledgeBase, UsageError
from memctl.cli.arguments import parse_filters
from memctl.cli.main import all_commands

if TYPE_CHECKING:
    from pathlib import Path

LINES = [
    {"text": "The red crane lifts ten tons.", "id": "red", "session_id": "s1",
     "metadata": {"year": 2024, "agent": {"id": "a1"}, "colours": ["red", "white"]}},
    {"text": "The blue crane lifts five tons.", "id": "blue", "session_id": "s2",
     "metadata": {"year": 2025, "agent": {"id": "a2"}, "on": "2026-02-01"}},
    {"text": "The old crane lifts nothing.", "id": "old"},
]  # fmt: skip


@pytest.fixture
def cranes(tmp_path: Path) -> KnowledgeBase:
    """A knowledge base with three documents, two of them with metadata."""
    base = memctl.open("notes", home=tmp_path, create=True)
    base.ingest(jsonl=io.BytesIO("\n".join(map(json.dumps, LINES)).encode()))
    return base


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"year": 2024}, {"red"}),
        ({"year": "2024"}, {"red"}),
        ({"year": {"$gte": 2025}}, {"blue"}),
        ({"year": {"$gt": 2023, "$lt": 2025}}, {"red"}),
        ({"year": {"$ne": 2024}}, {"blue", "old"}),
        ({"agent.id": "a2"}, {"blue"}),
        ({"agent": {"id": "a2"}}, {"blue"}),
        ({"agent": {"id": {"$ne": "a2"}}}, {"red", "old"}),
        ({"colours": "white"}, {"red"}),
        ({"on": {"$lte": "2026-02-28"}}, {"blue"}),
        ({"year": {"$in": [2024, 2026]}}, {"red"}),
        ({"year": {"$nin": [2024, 2026]}}, {"blue", "old"}),
        ({"year": {"$exists": False}}, {"old"}),
        ({"year": {"$exists": True}}, {"red", "blue"}),
        ({"session_id": {"$ne": "s2"}}, {"red", "old"}),
        ({"external_id": "old"}, {"old"}),
        ({"$or": [{"year": 2024}, {"external_id": "old"}]}, {"red", "old"}),
        ({"$and": [{"year": {"$exists": True}}, {"session_id": "s2"}]}, {"blue"}),
    ],
)
def test_memories_and_documents_are_found_by_metadata(
    cranes: KnowledgeBase, given: dict[str, Any], expected: set[str]
) -> None:
    filters = Filters(metadata=given)
    with cranes:
        hits = cranes.query("crane", filters=filters, answer=False).hits
        assert {hit.external_id for hit in hits} == expected
        assert cranes.documents.list(filters).num_rows == len(expected)
        assert set(cranes.memories.list(filters)["external_id"].to_pylist()) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"agent_id": "a1"}, {"a"}),
        ({"agent_id": {"$ne": "a1"}}, {"b", "c"}),
        ({"$or": [{"n": {"$eq": 5}}, {"agent_id": "a2"}]}, {"b", "c"}),
        ({"agent_id": {"$in": ["a1", "a2"]}}, {"a", "b"}),
        ({"source": "wire"}, {"a"}),
        ({"title": "Own"}, {"a"}),
        ({"type": "memo"}, {"a"}),
        ({"kind": "note"}, {"a"}),
        ({"tags": "x"}, {"a"}),
        ({"tags": "y"}, {"b"}),
        ({"tags": {"$nin": ["x", "y"]}}, {"c"}),
        ({"importance": "high"}, {"a"}),
        ({"importance": {"$ne": "high"}}, {"b", "c"}),
        ({"session_id": {"$exists": True}}, {"b", "c"}),
    ],
)
def test_metadata_with_the_name_of_a_column_are_found(
    tmp_path: Path, given: dict[str, Any], expected: set[str]
) -> None:
    own = {"agent_id": "a1", "source": "wire", "title": "Own", "type": "memo", "kind": "note",
           "tags": ["x"], "importance": "high"}  # fmt: skip
    lines = [
        {"text": "The red crane lifts ten tons.", "id": "a", "metadata": own},
        {"text": "The blue crane lifts five tons.", "id": "b", "tags": ["y"],
         "metadata": {"agent_id": "a2", "session_id": "s1"}},
        {"text": "The old crane lifts nothing.", "id": "c", "session_id": "s2",
         "metadata": {"n": 5}},
    ]  # fmt: skip
    with memctl.open("notes", home=tmp_path, create=True) as base:
        base.ingest(jsonl=io.BytesIO("\n".join(map(json.dumps, lines)).encode()))
        filters = Filters(metadata=given)
        hits = base.query("crane", filters=filters, answer=False).hits
        assert {hit.external_id for hit in hits} == expected
        assert set(base.memories.list(filters)["external_id"].to_pylist()) == expected


def test_what_names_somebody_or_is_on_a_topic_is_found_alone(tmp_path: Path) -> None:
    texts = ["Ann Lee paid the crane in Lisbon.", "Bob Carter sold the crane in Lisbon."]
    lines = [
        {"text": text, "id": str(number), "metadata": {"n": number}}
        for number, text in enumerate(texts)
    ]
    with memctl.open("notes", home=tmp_path, create=True) as base:
        base.ingest(jsonl=io.BytesIO("\n".join(map(json.dumps, lines)).encode()))
        base.memories.add("The crane needs paint. #upkeep")

        def found(filters: Filters) -> set[str]:
            """Return the texts of the hits, and check that listings have the same."""
            hits = base.query("crane", filters=filters, answer=False).hits
            listed = base.memories.list(filters)["text"].to_pylist()
            assert {hit.text for hit in hits} == set(listed)
            return set(listed)

        assert found(Filters(entities=("ANN  lee",))) >= {texts[0]}
        assert texts[1] not in found(Filters(entities=("Ann Lee",)))
        assert found(Filters(entities=("Lisbon",))) >= set(texts)
        assert found(Filters(entities=("Nobody",))) == set()
        assert found(Filters(topics=("Upkeep",))) == {"The crane needs paint."}
        assert base.documents.list(Filters(entities=("Bob Carter",))).num_rows == 1
        home = str(tmp_path)
        options = ["--home", home, "context", "the crane", "--entity", "Bob Carter"]
        shown = CliRunner().invoke(all_commands(), options).stdout
        assert "sold" in shown
        assert "paid" not in shown


@pytest.mark.parametrize(
    "given", ["nonsense", "[]", "{}", '{"a": {"$near": 1}}', '{"$or": {}}', '{"importance": "x"}']
)
def test_a_filter_that_is_none_is_refused(cranes: KnowledgeBase, given: str) -> None:
    with cranes, pytest.raises(UsageError):
        cranes.query("crane", filters=Filters(metadata=given))


def test_an_operator_without_its_sign_and_a_key_beside_operators_are_explained(
    cranes: KnowledgeBase,
) -> None:
    with cranes:
        for given, hint in (
            ({"year": {"gte": 2024}}, "write $gte"),
            ({"year": {"$gte": 2024, "end": 1}}, "year.end"),
        ):
            with pytest.raises(UsageError) as raised:
                cranes.memories.list(Filters(metadata=given))
            assert hint in str(raised.value.hint)


def test_conditions_on_the_command_line_all_hold(cranes: KnowledgeBase) -> None:
    home = cranes.layout.folder.parent.parent
    cranes.close()

    def found(*options: str) -> set[str]:
        """Run a query and return the external ids of its hits."""
        words = ["--home", str(home), "query", "crane", "-o", "json", *options]
        result = CliRunner().invoke(all_commands(), words)
        assert result.exit_code == 0, result.output
        return {hit["external_id"] for hit in json.loads(result.stdout)["hits"]}

    assert found("--meta", "year>=2024", "--meta", "agent.id!=a1") == {"blue"}
    assert found("--filter", '{"session_id": {"$ne": "s2"}}', "--meta", "year=2024") == {"red"}


def test_a_condition_on_metadata_says_what_to_write_instead(cranes: KnowledgeBase) -> None:
    with cranes, pytest.raises(UsageError) as raised:
        cranes.memories.list(Filters(where="metadata.year = 2024"))
    assert "--meta" in str(raised.value.hint)


def test_a_stated_memory_has_metadata_of_its_own(cranes: KnowledgeBase) -> None:
    with cranes:
        stated = cranes.memories.add("The lift is out of order.", metadata={"year": 2031})
        for condition, is_wanted in (("2031", True), ('{"$ne": 2031}', False)):
            found = cranes.memories.list(Filters(metadata=f'{{"year": {condition}}}'))
            assert (stated.id in found["id"].to_pylist()) == is_wanted


def test_sql_reaches_the_metadata_of_a_memorys_document(cranes: KnowledgeBase) -> None:
    with cranes:
        found = cranes.sql(
            "select distinct m.external_id from memories m join documents d"
            " on d.id = m.document_id where d.metadata->>'year' = '2024'"
        )
        assert found.read_all()["external_id"].to_pylist() == ["red"]


def test_values_on_the_command_line_are_numbers_or_words() -> None:
    filters = parse_filters(meta=["year>=2024", "name = Ann Lee"])
    assert json.loads(str(filters.metadata)) == {
        "$and": [{"year": {"$gte": 2024}}, {"name": {"$eq": "Ann Lee"}}]
    }
    with pytest.raises(UsageError):
        parse_filters(meta=["year"])

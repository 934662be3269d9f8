"""Entities and relations made anew from the documents that they were derived from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from memctl.ids import root_id, stated_memory_id
from memctl.ingest.batches import PreparedDocument
from memctl.records import Document, Entity, EntityMention, Memory, Relation, SourceText
from memctl.rows.derived_rows import entities_of, merge_entities, relations_of
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction


DERIVED_READ_BYTES = 8 << 20
OTHER = "other"
_PASSAGE = ("id", "document_id", "level", "type", "text", "namespace", "created_at", "valid_from")


@dataclass
class Derived:
    """What follows from all documents of a snapshot, by id."""

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)


def derive(snapshot: Snapshot) -> Derived:
    """Return the entities and wikilinks that follow from the documents.

    Names are those that the documents have; of what type each is the former entities say, and of
    a name that none of them has, the built-in understanding.
    """
    found, types = Derived(), _types(snapshot)
    for documents in _documents(snapshot):
        passages = _passages(snapshot, [each.id for each in documents if each.links])
        mentions = _mentions(documents, types)
        items = [
            PreparedDocument(each, tuple(passages.get(each.id, ())), (), tuple(mentions[each.id]))
            for each in documents
        ]
        for id_, entity in entities_of(items).items():
            known = found.entities.get(id_)
            found.entities[id_] = merge_entities(known, entity) if known else entity
        found.relations |= {relation.id: relation for relation in relations_of(items)}
    return found


def add_missing(transaction: Transaction, derived: Derived) -> int:
    """Add entities and wikilinks that are not there; those that are stay as they are.

    Returns:
        How many were added.
    """
    from memctl.schema.arrow_tables import entities_table, relations_table

    snapshot = transaction.snapshot()
    known = set(snapshot.get("entities", list(derived.entities), ["id"])["id"].to_pylist())
    entities = [entity for id_, entity in derived.entities.items() if id_ not in known]
    known = set(snapshot.get("relations", list(derived.relations), ["id"])["id"].to_pylist())
    relations = [each for id_, each in derived.relations.items() if id_ not in known]
    transaction.append("entities", entities_table(entities))
    transaction.append("relations", relations_table(relations))
    return len(entities) + len(relations)


def _documents(snapshot: Snapshot) -> Iterator[list[Document]]:
    import pyarrow as pa

    from memctl.schema.arrow_tables import document_rows

    for batch in snapshot.batches("documents", batch_bytes=DERIVED_READ_BYTES):
        yield document_rows(pa.Table.from_batches([batch]))


def _passages(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, list[Memory]]:
    from memctl.schema.arrow_tables import memory_rows

    found: dict[str, list[Memory]] = {}
    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    rows = memory_rows(snapshot.scan("memories", where, _PASSAGE)) if ids else []
    for memory in rows:
        found.setdefault(memory.document_id or "", []).append(memory)
    return found


def _types(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return of what types each name is, that of most mentions last; pages are no names."""
    columns = ["name", "aliases", "type", "mention_count"]
    rows = snapshot.scan("entities", col("type") != "page", columns).to_pylist()
    rows.sort(key=lambda row: row["mention_count"])
    types: dict[str, list[str]] = {}
    for row in rows:
        for name in (*(row["aliases"] or ()), row["name"]):
            types.setdefault(name, []).append(row["type"])
    return types


def _mentions(
    documents: Sequence[Document], types: Mapping[str, Sequence[str]]
) -> Mapping[str, list[EntityMention]]:
    """Return the names of each document with their types; understands it only to tell those."""
    unsure = [each for each in documents if any(len(types.get(n, ())) != 1 for n in each.entities)]
    understood = _understood(unsure) if unsure else {}
    mentions: dict[str, list[EntityMention]] = {}
    for each in documents:
        own = understood.get(each.id, {})
        mentions[each.id] = [
            EntityMention(
                name, own.get(name) or _usual(types.get(name)), each.text.count(name) or 1
            )
            for name in each.entities
        ]
    return mentions


def _usual(types: Sequence[str] | None) -> str:
    return types[-1] if types else OTHER


def _understood(documents: Sequence[Document]) -> Mapping[str, Mapping[str, str]]:
    """Return the types of the names that the built-in understanding finds, by document."""
    from memctl.understanding import BuiltinUnderstander

    sources = [SourceText(each.text, each.media_type, each.reader) for each in documents]
    found = BuiltinUnderstander().understand(sources)
    return {
        document.id: {mention.name: mention.type for mention in understood.entities}
        for document, understood in zip(documents, found, strict=True)
    }


MISSING = "the file, of which passages alone are left"
READER = "passages/1"
_PASSAGE_COLUMNS = (
    "id", "document_id", "text", "start", "end", "namespace", "created_at", "title", "source",
    "external_id", "session_id", "entities", "topics", "keywords", "tags", "importance",
)  # fmt: skip

Row = Mapping[str, Any]


def documents_from_passages(
    snapshot: Snapshot, ids: Sequence[str], now: datetime
) -> tuple[pa.Table, list[str]]:
    """Return rows of documents that have what their passages have, where they have it.

    Args:
        snapshot: Where the passages are.
        ids: Of documents that are not there.
        now: When they become known.

    Returns:
        The rows, and the ids of documents of which no passage is left.
    """
    from memctl.schema.arrow_tables import documents_table

    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    passages: dict[str, list[Row]] = {}
    for row in snapshot.scan("memories", where, list(_PASSAGE_COLUMNS)).to_pylist():
        if row["start"] is not None:
            passages.setdefault(row["document_id"], []).append(row)
    made = [_document(id_, rows, now) for id_, rows in passages.items()]
    return documents_table(made), [id_ for id_ in ids if id_ not in passages]


def _document(id_: str, passages: Sequence[Row], now: datetime) -> Document:
    text, first = _text(passages), passages[0]
    content = text.encode("utf-8", "replace")
    part = id_.partition(".")[2]
    return Document(
        id=id_,
        root_id=root_id(id_),
        part=int(part or 0),
        external_id=first["external_id"],
        namespace=first["namespace"],
        source=first["source"],
        title=first["title"],
        media_type="text/plain",
        sha256=sha256(content).hexdigest(),
        size=len(content),
        status="indexed",
        text=text,
        summary="",
        entities=_all(passages, "entities"),
        topics=_all(passages, "topics"),
        keywords=_all(passages, "keywords"),
        importance=first["importance"],
        language="",
        tags=_all(passages, "tags"),
        links=(),
        authors=(),
        dates=(),
        missing=(MISSING,),
        reader=READER,
        method="",
        signals={},
        pipeline_version=1,
        created_at=first["created_at"],
        ingested_at=now,
        session_id=first["session_id"],
    )


def _text(passages: Sequence[Row]) -> str:
    """Return the passages at their offsets, with blanks where nothing is left."""
    text = ""
    for row in sorted(passages, key=lambda row: (row["start"], row["end"])):
        text = text[: row["start"]].ljust(row["start"]) + row["text"] + text[row["end"] :]
    return text


def _all(passages: Sequence[Row], column: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for row in passages for value in row[column] or ()))


_IDENTITY_COLUMNS = ("id", "document_id", "created_at", "version")
_VERSION_COLUMNS = (*_IDENTITY_COLUMNS, "namespace", "type", "text", "valid_from")

VersionRow = Mapping[str, Any]


def unended_predecessors(snapshot: Snapshot) -> dict[str, VersionRow]:
    """Return memories that hold beside their own next version, each with that version."""
    later: dict[tuple[str | None, datetime, int], list[VersionRow]] = {}
    for row in snapshot.scan("memories", col("version") > 1, list(_VERSION_COLUMNS)).to_pylist():
        if row["id"].startswith("m_"):
            place = (row["document_id"], row["created_at"], row["version"] - 1)
            later.setdefault(place, []).append(row)
    found: dict[str, VersionRow] = {}
    held = col("superseded_by").is_null() & (col("level") == "memory")
    for batch in snapshot.batches("memories", held, list(_IDENTITY_COLUMNS)) if later else ():
        for row in batch.to_pylist():
            for new in later.get((row["document_id"], row["created_at"], row["version"]), ()):
                if _is_next(row["id"], new):
                    found[row["id"]] = new
    return found


def _is_next(old: str, new: VersionRow) -> bool:
    salt = f"{old}/{new['version']}"
    made = stated_memory_id(new["namespace"], new["type"], new["text"], salt=salt)
    return bool(made == new["id"])


def end_predecessors(transaction: Transaction, pairs: Mapping[str, VersionRow]) -> None:
    """Let memories end where their next versions begin."""
    import pyarrow as pa

    columns = {
        "id": pa.array(pairs.keys(), pa.string()),
        "valid_to": pa.array(
            [row["valid_from"] for row in pairs.values()], pa.timestamp("us", tz="UTC")
        ),
        "superseded_by": pa.array([row["id"] for row in pairs.values()], pa.string()),
    }
    transaction.update("memories", pa.table(columns))

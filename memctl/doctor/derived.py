"""Entities and relations made anew from the documents that they were derived from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memctl.ingest.batch import Prepared
from memctl.ingest.derive import entities_of, merged, relations_of
from memctl.records import Document, Entity, EntityMention, Memory, Relation, SourceText
from memctl.store.filters import col

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot
    from memctl.store.transaction import Transaction

READ_BYTES = 8 << 20
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
            Prepared(each, tuple(passages.get(each.id, ())), (), tuple(mentions[each.id]))
            for each in documents
        ]
        for id_, entity in entities_of(items).items():
            known = found.entities.get(id_)
            found.entities[id_] = merged(known, entity) if known else entity
        found.relations |= {relation.id: relation for relation in relations_of(items)}
    return found


def add_missing(transaction: Transaction, derived: Derived) -> int:
    """Add entities and wikilinks that are not there; those that are stay as they are.

    Returns:
        How many were added.
    """
    from memctl.store.schema import entities_table, relations_table

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

    from memctl.store.schema import document_rows

    for batch in snapshot.batches("documents", batch_bytes=READ_BYTES):
        yield document_rows(pa.Table.from_batches([batch]))


def _passages(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, list[Memory]]:
    from memctl.store.schema import memory_rows

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
    from memctl.understand import BuiltinUnderstander

    sources = [SourceText(each.text, each.media_type, each.reader) for each in documents]
    found = BuiltinUnderstander().understand(sources)
    return {
        document.id: {mention.name: mention.type for mention in understood.entities}
        for document, understood in zip(documents, found, strict=True)
    }

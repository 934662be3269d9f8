"""The entities and relations that follow from documents and stated memories.

Entities are names and pages; relations are wikilinks, and what a sentence states of two names.

Ingest and editing derive those of new rows, and a rebuild those of all; none of them knows how.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from memctl.ids import entity_id, relation_id
from memctl.language.inline_tags import PageLink, find_wikilinks, page_links
from memctl.records import Document, Entity, EntityMention, Memory, Relation, SourceText
from memctl.rows.derived_rows import add_up
from memctl.rows.references import BETWEEN_ENTITIES, page_of
from memctl.rows.row_changes import last_end
from memctl.store.tables.filter_expressions import col
from memctl.understanding.relation_extraction import extract_relations

if TYPE_CHECKING:
    from datetime import datetime

    from memctl.store.tables.snapshot import Snapshot

PAGE = "page"
OTHER = "other"
"""The type of a name of which nothing says what it is."""
LINKS_TO = "links_to"
MAX_LINK_SOURCES = 16
"""An edge names at most this many memories as its evidence."""
READ_BYTES = 8 << 20
_PASSAGE = (
    "id", "document_id", "level", "type", "text", "namespace", "created_at", "valid_from",
    "valid_to",
)  # fmt: skip
_STATED_CONFIDENCE = 0.8
SUBJECT, OBJECT = "subject", "object"
"""The names of the entities that a stated relation is between, in its metadata."""
VALUE = "value"
"""In its metadata: of what kind its object is where that is no name, such as ``money``."""


class DocumentRows(Protocol):
    """A document with what was made of it."""

    @property
    def document(self) -> Document:
        """Its row."""

    @property
    def memories(self) -> Sequence[Memory]:
        """The memories made of it."""

    @property
    def mentions(self) -> Sequence[EntityMention]:
        """The names in it."""


# --- of some documents ---------------------------------------------------------------------------


def entities_of(items: Iterable[DocumentRows]) -> dict[str, Entity]:
    """Return the entities that documents mention, each once, by id."""
    found: dict[str, Entity] = {}
    for item in items:
        add_up(found, _entities(item))
    return found


def relations_of(items: Iterable[DocumentRows]) -> list[Relation]:
    """Return the edges from documents to the pages that they link to, and what they state."""
    found: list[Relation] = []
    for item in items:
        found += _links(item)
        evidence = [memory for memory in item.memories if memory.level == "evidence"]
        found += _stated_relations(item.document.id, evidence, item.mentions)
    return found


def derive_statement(
    memory: Memory, mentions: Iterable[EntityMention]
) -> tuple[dict[str, Entity], dict[str, Relation]]:
    """Return the entities and links of a memory that belongs to no document, by id."""
    pages = pages_of(find_wikilinks(memory.text))
    names = [each for each in mentions if each.name not in pages]
    entities: dict[str, Entity] = {}
    add_up(entities, _named_entities(names, pages, memory.created_at))
    written = _first_links(memory.text) if pages else {}
    links = [
        _link(memory.id, page, (memory.id,), memory.valid_from, written.get(page)) for page in pages
    ]
    links += _stated_relations(
        memory.id, [memory], [*names, *(EntityMention(page, PAGE) for page in pages)]
    )
    return entities, {link.id: link for link in links}


def pages_of(links: Iterable[str]) -> list[str]:
    """Return the pages that wikilinks name, each once."""
    return [page for page in dict.fromkeys(map(page_of, links)) if page]


def _entities(item: DocumentRows) -> Iterator[Entity]:
    return _named_entities(item.mentions, pages_of(item.document.links), item.document.created_at)


def _named_entities(
    mentions: Iterable[EntityMention], pages: Iterable[str], when: datetime
) -> Iterator[Entity]:
    for mention in mentions:
        identifier = entity_id(mention.name, mention.type)
        yield Entity(identifier, mention.name, mention.type, (), mention.count, when, when)
    for name in pages:
        yield Entity(entity_id(name, PAGE), name, PAGE, (), 1, when, when)


def _links(item: DocumentRows) -> Iterator[Relation]:
    document = item.document
    if not document.links:
        return
    linking, written = _memories_linking(item), _first_links(document.text)
    for page in pages_of(document.links):
        ids = tuple(linking.get(page, ()))
        yield _link(document.id, page, ids, document.ingested_at, written.get(page))


def _first_links(text: str) -> dict[str, PageLink]:
    """Return the first link to each page, by the page's name."""
    return {page_of(link.target): link for link in reversed(page_links(text))}


def _link(
    source_id: str,
    page: str,
    memory_ids: tuple[str, ...],
    since: datetime,
    link: PageLink | None,
) -> Relation:
    target = entity_id(page, PAGE)
    return Relation(
        id=relation_id(source_id, LINKS_TO, target),
        source_id=source_id,
        target_id=target,
        relation_type=LINKS_TO,
        text=page,
        weight=1.0,
        confidence=1.0,
        memory_ids=memory_ids,
        valid_from=since,
        metadata={"link_text": link.written, "anchor": link.anchor} if link else {},
    )


def _stated_relations(
    origin: str, memories: Iterable[Memory], mentions: Sequence[EntityMention]
) -> list[Relation]:
    """Return what memories of one document, or one that is stated, say of two names.

    Each origin has rows of its own, so that a relation ends and goes with what states it.
    """
    types, names = {each.name: each.type for each in mentions}, _names_to_find(mentions)
    found: dict[str, Relation] = {}
    for memory in memories:
        for each in extract_relations(memory.text, names):
            one = entity_id(each.subject, types[each.subject])
            # A value is no entity; the row then leads to what states it.
            other = origin if each.kind else entity_id(each.object, types[each.object])
            end = each.object if each.kind else other
            id_ = relation_id(one, f"{each.relation}/{origin}", end)
            known = found.get(id_)
            ids = (*(known.memory_ids if known else ()), memory.id)
            ends = [memory.valid_to, *([known.valid_to] if known else [])]
            found[id_] = Relation(
                id=id_,
                source_id=one,
                target_id=other,
                relation_type=each.relation,
                text=f"{each.subject} {each.relation.replace('_', ' ')} {each.object}",
                weight=1.0,
                confidence=_STATED_CONFIDENCE,
                memory_ids=ids[:MAX_LINK_SOURCES],
                valid_from=min(known.valid_from, memory.valid_from) if known else memory.valid_from,
                valid_to=last_end(ends),
                metadata={SUBJECT: each.subject, OBJECT: each.object}
                | ({VALUE: each.kind} if each.kind else {}),
            )
    return list(found.values())


def _names_to_find(mentions: Iterable[EntityMention]) -> list[EntityMention]:
    """Return names for which to look; of a page nothing says what it is."""
    return [replace(each, type=OTHER) if each.type == PAGE else each for each in mentions]


def unsupported_relations(snapshot: Snapshot, memory_ids: Iterable[str]) -> list[str]:
    """Return the stated relations that none of their memories says any more.

    Args:
        snapshot: The tables.
        memory_ids: Memories that have lost some of their words.
    """
    from memctl.schema.arrow_tables import relation_rows

    where = BETWEEN_ENTITIES & col("memory_ids").has_any(sorted(memory_ids))
    rows = relation_rows(snapshot.scan("relations", where))
    ends = sorted({id_ for row in rows for id_ in (row.source_id, row.target_id)})
    types = {e["id"]: e["type"] for e in snapshot.get("entities", ends, ["id", "type"]).to_pylist()}
    texts = {
        row.id: snapshot.get("memories", list(row.memory_ids), ["text"])["text"].to_pylist()
        for row in rows
    }
    return [row.id for row in rows if not any(_says(text, row, types) for text in texts[row.id])]


def _says(text: str, relation: Relation, types: Mapping[str, str]) -> bool:
    places = {SUBJECT: relation.source_id, OBJECT: relation.target_id}
    names = [
        EntityMention(str(relation.metadata.get(name, "")), types.get(id_, OTHER))
        for name, id_ in places.items()
    ]
    found = extract_relations(text, _names_to_find(names))
    return any(each.relation == relation.relation_type for each in found)


def _memories_linking(item: DocumentRows) -> dict[str, list[str]]:
    """Return the first memories that each page is linked from, by the page's name."""
    found: dict[str, list[str]] = {}
    for memory in item.memories:
        if memory.level != "evidence":
            continue
        for page in dict.fromkeys(map(page_of, find_wikilinks(memory.text))):
            linking = found.setdefault(page, [])
            if len(linking) < MAX_LINK_SOURCES:
                linking.append(memory.id)
    return found


# --- of all documents ----------------------------------------------------------------------------


class _StoredDocument(Struct, frozen=True):
    """A stored document; see ``DocumentRows``."""

    document: Document
    memories: Sequence[Memory]
    mentions: Sequence[EntityMention]


def derive_all(snapshot: Snapshot) -> tuple[dict[str, Entity], dict[str, Relation]]:
    """Return the entities and links that follow from all documents and statements, by id.

    Names are those that the documents have; of what type each is the former entities say, and of
    a name that none of them has, the built-in understanding.
    """
    entities: dict[str, Entity] = {}
    relations: dict[str, Relation] = {}
    types = _types(snapshot)
    for documents in _documents(snapshot):
        passages = _passages(snapshot, [each.id for each in documents])
        mentions = _mentions(documents, types)
        items = [
            _StoredDocument(each, passages.get(each.id, ()), mentions[each.id])
            for each in documents
        ]
        add_up(entities, entities_of(items).values())
        relations |= {relation.id: relation for relation in relations_of(items)}
    for memory in _statements(snapshot):
        named, links = derive_statement(
            memory, [EntityMention(n, _most_specific(types.get(n))) for n in memory.entities]
        )
        add_up(entities, named.values())
        relations |= links
    return entities, relations


def derive_links(
    snapshot: Snapshot, documents: Sequence[Document]
) -> tuple[dict[str, Entity], dict[str, Relation]]:
    """Return the pages that some documents link to, and the links, by id."""
    passages = _passages(snapshot, [each.id for each in documents if each.links])
    items = [_StoredDocument(each, passages.get(each.id, ()), ()) for each in documents]
    return entities_of(items), {each.id: each for each in relations_of(items)}


def _statements(snapshot: Snapshot) -> list[Memory]:
    from memctl.schema.arrow_tables import memory_rows

    where = col("document_id").is_null() & (col("level") == "memory")
    return memory_rows(snapshot.scan("memories", where, (*_PASSAGE, "entities")))


def _documents(snapshot: Snapshot) -> Iterator[list[Document]]:
    import pyarrow as pa

    from memctl.schema.arrow_tables import document_rows

    for batch in snapshot.batches("documents", batch_bytes=READ_BYTES):
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
    """Return of what types each name is, that of most mentions last; pages are no names.

    One that says what it is goes before "other", however often the name was found without it.
    """
    columns = ["name", "aliases", "type", "mention_count"]
    rows = snapshot.scan("entities", col("type") != PAGE, columns).to_pylist()
    rows.sort(key=lambda row: row["mention_count"])
    types: dict[str, list[str]] = {}
    for row in rows:
        for name in (*(row["aliases"] or ()), row["name"]):
            types.setdefault(name, []).append(row["type"])
    return {
        name: [type_ for type_ in found if type_ != OTHER] or [OTHER]
        for name, found in types.items()
    }


def _mentions(
    documents: Sequence[Document], types: Mapping[str, Sequence[str]]
) -> Mapping[str, list[EntityMention]]:
    """Return the names of each document with their types; understands it only to tell those."""
    unsure = [each for each in documents if any(len(types.get(n, ())) != 1 for n in each.entities)]
    understood = _builtin_types(unsure) if unsure else {}
    mentions: dict[str, list[EntityMention]] = {}
    for each in documents:
        own = understood.get(each.id, {})
        mentions[each.id] = [
            EntityMention(
                name, own.get(name) or _most_specific(types.get(name)), each.text.count(name) or 1
            )
            for name in each.entities
        ]
    return mentions


def _most_specific(types: Sequence[str] | None) -> str:
    return types[-1] if types else OTHER


def _builtin_types(documents: Sequence[Document]) -> Mapping[str, Mapping[str, str]]:
    """Return the types that the built-in understanding knows of names, by document."""
    from memctl.understanding.builtin_understander import BuiltinUnderstander

    sources = [SourceText(each.text, each.media_type, each.reader) for each in documents]
    found = BuiltinUnderstander().understand(sources)
    return {
        document.id: {
            mention.name: mention.type for mention in understood.entities if mention.type != OTHER
        }
        for document, understood in zip(documents, found, strict=True)
    }

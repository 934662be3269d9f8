"""The graph's nodes and edges that can be told from documents alone; they are derived rows.

Entities are counted up by each new document that names them; a wikilink is an edge from the
document to what it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from memctl.ids import entity_id, relation_id
from memctl.ingest.batches import PreparedDocument
from memctl.records import Entity, Relation
from memctl.understanding.inline_tags import find_wikilinks

if TYPE_CHECKING:
    from memctl.store.tables.transaction import Transaction

PAGE = "page"
LINKS_TO = "links_to"
MOST_LINK_SOURCES = 16
"""An edge names at most so many memories as its evidence."""


class DerivedRows:
    """What follows from the documents of one transaction, gathered and then written at once."""

    def __init__(self) -> None:
        self._entities: dict[str, Entity] = {}
        self._perhaps_new: dict[str, Entity] = {}
        self._relations: dict[str, Relation] = {}

    def add(self, entities: Mapping[str, Entity], relations: Iterable[Relation]) -> None:
        """Take in what follows from a group of new documents."""
        for entity in entities.values():
            _count(self._entities, entity)
        for relation in relations:
            self._relations[relation.id] = relation

    def add_missing(self, entities: Mapping[str, Entity]) -> None:
        """Take in the entities of documents made anew, whose mentions have been counted once."""
        for entity in entities.values():
            _count(self._perhaps_new, entity)

    def write(self, transaction: Transaction) -> None:
        """Add it to what the graph has."""
        from memctl.schema.arrow_tables import relations_table

        _count_up(transaction, self._entities)
        _add_missing(transaction, self._perhaps_new)
        if self._relations:
            rows = relations_table(list(self._relations.values()))
            transaction.upsert("relations", rows)


def entities_of(items: Iterable[PreparedDocument]) -> dict[str, Entity]:
    """The entities that documents mention, each once, by id."""
    found: dict[str, Entity] = {}
    for item in items:
        for entity in _entities(item):
            _count(found, entity)
    return found


def relations_of(items: Iterable[PreparedDocument]) -> list[Relation]:
    """The edges from documents to the pages that they link to."""
    return [relation for item in items for relation in _links(item)]


def _count(counted: dict[str, Entity], entity: Entity) -> None:
    known = counted.get(entity.id)
    counted[entity.id] = merge_entities(known, entity) if known else entity


def merge_entities(known: Entity, more: Entity) -> Entity:
    """One entity out of two counts of it; another spelling becomes an alias."""
    aliases = dict.fromkeys((*known.aliases, *more.aliases, more.name))
    aliases.pop(known.name, None)
    return replace(
        known,
        aliases=tuple(aliases),
        mention_count=known.mention_count + more.mention_count,
        first_seen=min(known.first_seen, more.first_seen),
        last_seen=max(known.last_seen, more.last_seen),
    )


def _count_up(transaction: Transaction, new: dict[str, Entity]) -> None:
    from memctl.schema.arrow_tables import entities_table, entity_rows

    if not new:
        return
    stored = entity_rows(transaction.snapshot().get("entities", list(new)))
    added = new.keys() - {entity.id for entity in stored}
    transaction.append("entities", entities_table([new[identifier] for identifier in added]))
    if stored:
        counted = [merge_entities(entity, new[entity.id]) for entity in stored]
        transaction.upsert("entities", entities_table(counted))


def _add_missing(transaction: Transaction, found: dict[str, Entity]) -> None:
    from memctl.schema.arrow_tables import entities_table

    if not found:
        return
    stored = set(transaction.snapshot().get("entities", list(found), ["id"])["id"].to_pylist())
    new = [entity for identifier, entity in found.items() if identifier not in stored]
    transaction.append("entities", entities_table(new))


def _entities(item: PreparedDocument) -> Iterable[Entity]:
    when = item.document.created_at
    for mention in item.mentions:
        identifier = entity_id(mention.name, mention.type)
        yield Entity(identifier, mention.name, mention.type, (), mention.count, when, when)
    for name in dict.fromkeys(map(page_of, item.document.links)):
        if name:
            yield Entity(entity_id(name, PAGE), name, PAGE, (), 1, when, when)


def _links(item: PreparedDocument) -> Iterable[Relation]:
    document = item.document
    naming = _memories_naming(item)
    for link in dict.fromkeys(map(page_of, document.links)):
        if link:
            target = entity_id(link, PAGE)
            yield Relation(
                id=relation_id(document.id, LINKS_TO, target),
                source_id=document.id,
                target_id=target,
                relation_type=LINKS_TO,
                text=link,
                weight=1.0,
                confidence=1.0,
                memory_ids=tuple(naming.get(link, ())),
                valid_from=document.ingested_at,
            )


def _memories_naming(item: PreparedDocument) -> dict[str, list[str]]:
    """The first memories that each page is linked from, by the page's name."""
    found: dict[str, list[str]] = {}
    for memory in item.memories:
        if memory.level != "evidence":
            continue
        for page in dict.fromkeys(map(page_of, find_wikilinks(memory.text))):
            named = found.setdefault(page, [])
            if len(named) < MOST_LINK_SOURCES:
                named.append(memory.id)
    return found


def page_of(link: str) -> str:
    """The page that a link names, without its section and its label."""
    return link.partition("|")[0].partition("#")[0].strip()

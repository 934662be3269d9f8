"""One read and understood document becomes the records that are stored of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from memctl.ids import memory_id
from memctl.ingest.batches import PIPELINE_VERSION, PreparedDocument, WantedSource
from memctl.ingest.chunking import ChunkSizes, Passage, chunk
from memctl.language.inline_tags import find_hashtags, without_wikilinks
from memctl.language.term_analysis import embedding_text, passage_terms
from memctl.literals import (
    ARCHIVED,
    DAILY_SUMMARY,
    DATED_BY_FILE,
    EXCHANGE,
    NOT_IN_FORCE,
    QUOTED,
    SESSION_READER,
    DocType,
)
from memctl.patterns import lazy_regex
from memctl.records import (
    AskedTurn,
    Distilled,
    Document,
    Memory,
    Metadata,
    Segment,
    SourceText,
    Understanding,
)
from memctl.rows.row_lifecycle import WITHOUT_MEMORIES
from memctl.schema.document_types import doc_type_of, memory_kind, source_type
from memctl.understanding.entity_extraction import is_named
from memctl.understanding.sentence_reading import bare_turn
from memctl.understanding.text_outline import speaker_of, spoken_text, with_speaker
from memctl.understanding.triggers import plain_words

MOST_GIST_SOURCES = 8
"""A gist names at most this many passages as its evidence."""

MOST_TAGS = 200
"""Every memory of a document has its tags, so of those found in it no more are taken."""

MOST_LINKS = 2_000
"""Each page that a document links to becomes an entity and a relation; an index names hundreds."""

TRIGGERING = frozenset({"user", "human"})
"""Whose messages may ask for something: that it is kept, or a reply."""
REPLYING = frozenset({"agent", "assistant"})
"""Who replies to these."""
BESIDE_THE_TALK = frozenset({"tool", "system"})
"""Whose messages may stand between a message and its reply."""
_EXCHANGE_IMPORTANCE = 0.3
"""An exchange matters no more than this: what is important in it is a memory of its own."""
_LONGEST_SIDE = 2_000
"""Characters of a message, or of a reply, in an exchange."""

_SHORTEST_STATEMENT = 20
"""Characters of a statement that is looked for in other turns."""

QUOTED_HEADING = "Quoted message"
_FEWEST_WORDS = 4
"""Words of a quotation."""

_BEGINNING = 1_000
"""Characters in which a document says whether it is still in force."""
_NO_LONGER = rf"{NOT_IN_FORCE}(?:[^\S\n]+[^\n]{{1,60}})?"
_STATUS = lazy_regex(
    rf"^\W{{0,6}}(?:status|statut|estado|stato)\W{{1,12}}(?P<field>{_NO_LONGER})"
    rf"|^\W{{0,6}}(?P<line>{NOT_IN_FORCE}(?: by [^\n]{{1,60}})?)\W*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A field ("Status: superseded by ADR 19"), or a line."""
_OWN_NOUN = (
    r"(?:document|note|page|article|policy|guideline|guide|record|decision|version|draft|adr|rfc"
    r"|memo|readme|file|spec|specification|proposal|wiki"
    r"|dokument|notiz|seite|richtlinie|anleitung|beschluss|entscheidung|fassung|entwurf)s?"
)
"""A word for a document itself: what else a text begins with may be a thing that was replaced."""
_STATED_STATUS = lazy_regex(
    rf"(?:^|[.:!?] )\W{{0,6}}(?:this|these|diese[rs]?|dies) {_OWN_NOUN} "
    r"(?:is|are|was|has been|have been|ist|wurde) "
    rf"(?:now )?(?P<said>{NOT_IN_FORCE}(?: by [^\n.]{{1,60}})?)",
    re.IGNORECASE | re.MULTILINE,
)
"""A sentence of the first lines ("This note is obsolete")."""
_FIRST_LINES = lazy_regex(r"(?:---\n(?:[^\n]*\n)*?---\n)?(?:\s*[^\n]+\n?){0,5}")
"""The first lines that are not empty, after the front matter."""

IMPORTANCE_REASON = "importance_reason"
"""Where the metadata of a document says why it matters as much."""


class DocumentInputs(Struct, frozen=True):
    """All that is known of one document, or of one part of it, when its rows are made."""

    wanted: WantedSource
    read: SourceText
    passages: Sequence[Passage]
    understood: Understanding
    now: datetime


def prepare_document(parts: DocumentInputs) -> PreparedDocument:
    """Return the rows of a document and the texts that their vectors are of."""
    document = _document(parts)
    evidence = _passages(parts, document)
    if _is_daily_summary(document):  # what it restates is known
        return _prepared(parts, document, evidence)
    is_restated = parts.wanted.item.source.type == ARCHIVED  # the messages were distilled before
    distilled = [] if is_restated else list(_distilled_memories(parts, document, evidence))
    restated = (*_gist(parts, document, evidence), *_exchanges(parts, document, evidence))
    made = (*evidence, *restated, *distilled, *_quotations(parts, document))
    return _prepared(parts, document, tuple({memory.id: memory for memory in made}.values()))


def _is_daily_summary(document: Document) -> bool:
    """Return whether a document is a page about a day, which memctl has written by itself."""
    name = document.source
    return name == document.external_id and name.startswith(f"{DAILY_SUMMARY} ")


def _prepared(
    parts: DocumentInputs, document: Document, memories: Sequence[Memory]
) -> PreparedDocument:
    return PreparedDocument(
        document,
        tuple(memories),
        tuple(_for_embedding(memory) for memory in memories),
        parts.understood.entities,
        parts.understood.dropped,
        parts.read.redacted,
    )


def _document(parts: DocumentInputs) -> Document:
    read, understood, item = parts.read, parts.understood, parts.wanted.item
    source, root = item.source, parts.wanted.document_id
    links = _distinct(read.links, understood.links)
    left_out = (f"links beyond the first {MOST_LINKS:,}",) if len(links) > MOST_LINKS else ()
    return Document(
        id=f"{root}.{read.part}" if read.part else root,
        root_id=root,
        part=read.part,
        external_id=source.external_id,
        namespace=source.namespace,
        source=source.source,
        title=source.title or read.title,
        doc_type=_doc_type(parts),
        agent_id=source.agent_id,
        media_type=read.media_type,
        sha256=item.sha256,
        size=item.size,
        status="indexed",
        text=read.text,
        summary=without_wikilinks(understood.gist),
        entities=tuple(mention.name for mention in understood.entities),
        topics=understood.topics,
        keywords=understood.keywords,
        importance=understood.importance,
        language=understood.language,
        tags=_distinct(source.tags, islice(_distinct(read.tags, understood.tags), MOST_TAGS)),
        links=links[:MOST_LINKS],
        authors=read.authors,
        dates=understood.dates,
        missing=_distinct(read.missing, understood.missing, left_out),
        reader=read.reader,
        method=understood.method,
        signals=understood.signals,
        pipeline_version=PIPELINE_VERSION,
        created_at=source.created_at or read.created_at or item.modified_at or parts.now,
        ingested_at=parts.now,
        session_id=_session(parts),
        metadata={**_status(parts), **_metadata(parts), **_dated_by(parts), **_why(understood)},
    )


def _doc_type(parts: DocumentInputs) -> DocType:
    """What was said that it is, else what its format and its turns tell."""
    source = parts.wanted.item.source
    is_turn = source.turn is not None or source.speaker is not None
    is_conversation = is_turn or any(passage.kind == "turn" for passage in parts.passages)
    found = doc_type_of(parts.read.media_type, is_conversation=is_conversation)
    return source.doc_type or found


def _metadata(parts: DocumentInputs) -> Metadata:
    """What the file says and what was given with it; what was given once outlasts a rereading."""
    read, given = parts.read.metadata, parts.wanted.item.source.metadata
    return {**given, **read} if parts.wanted.redo else {**read, **given}


def _status(parts: DocumentInputs) -> dict[str, str]:
    """Return the status of a text that says at its beginning that it is no longer in force."""
    beginning = parts.read.text[:_BEGINNING]
    if found := _STATUS.search(beginning):
        return {"status": (found["field"] or found["line"]).strip()}
    first = _FIRST_LINES.match(beginning)
    found = _STATED_STATUS.search(first[0]) if first else None
    return {"status": found["said"].strip()} if found else {}


def _dated_by(parts: DocumentInputs) -> dict[str, str]:
    """Return when the file was written, where nothing else says of which day the document is."""
    item = parts.wanted.item
    if item.source.created_at or parts.read.created_at or not item.modified_at:
        return {}
    return {DATED_BY_FILE: item.modified_at.isoformat(timespec="seconds")}


def _why(understood: Understanding) -> dict[str, str]:
    return {IMPORTANCE_REASON: understood.reason} if understood.reason else {}


def original_metadata(metadata: Metadata) -> Metadata:
    """The metadata of a document without what memctl added that a new reading finds anew."""
    added = (IMPORTANCE_REASON, WITHOUT_MEMORIES)
    return {key: value for key, value in metadata.items() if key not in added}


def _session(parts: DocumentInputs) -> str | None:
    """The session that was given; a chat log is one of its own."""
    given = parts.wanted.item.source.session_id
    if given:
        return given
    is_chat = any(passage.kind == "turn" for passage in parts.passages)
    return parts.wanted.document_id if is_chat else None


def _distinct(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(groups)))


# --- memories ------------------------------------------------------------------------------------


def _passages(parts: DocumentInputs, document: Document) -> list[Memory]:
    source = parts.wanted.item.source
    memories: list[Memory] = []
    kept = [(turn.start, turn.end) for turn in parts.read.segments if turn.kept is not None]
    for number, passage in enumerate(parts.passages):
        own_tags: tuple[str, ...] = ()
        if passage.kind == "turn" and not any(
            a < passage.end and passage.start < b for a, b in kept
        ):
            own_tags = find_hashtags(document.text[passage.start : passage.end])
        is_turn = passage.kind == "turn" or source.session_id is not None
        type_ = passage.type or source.type or ("turn" if is_turn else "passage")
        place = number if passage.turn is None else passage.turn
        memories.append(
            _memory(
                parts,
                document,
                type_=type_,
                text=document.text[passage.start : passage.end],
                span=(passage.start, passage.end),
                passage=passage,
                turn=place if passage.kind == "turn" else source.turn,
                tags=_distinct(document.tags, own_tags),
            )
        )
    return memories


def _quotations(parts: DocumentInputs, document: Document) -> Iterator[Memory]:
    """Yield what a message quotes of others.

    It has no names, so that nothing is derived from it, and matters less than the message.
    """
    read = parts.read
    for start, end in read.quotations:
        if len(read.text[start:end].split()) < _FEWEST_WORDS:
            continue
        segment = Segment(start, end, heading=QUOTED_HEADING)
        for passage in chunk(replace(read, segments=(segment,)), ChunkSizes()):
            made = _memory(
                parts,
                document,
                type_=QUOTED,
                text=read.text[passage.start : passage.end],
                span=(passage.start, passage.end),
                passage=passage,
                turn=None,
                tags=document.tags,
            )
            yield replace(
                made,
                entities=(),
                topics=(),
                keywords=(),
                importance=document.importance / 2,
            )


def _memory(
    parts: DocumentInputs,
    document: Document,
    *,
    type_: str,
    text: str,
    span: tuple[int, int],
    passage: Passage,
    turn: int | None,
    tags: tuple[str, ...],
) -> Memory:
    whole = len(parts.passages) == 1
    speaker = passage.speaker or parts.wanted.item.source.speaker or _spoken_by(parts, type_)
    return Memory(
        id=memory_id(document.id, type_, *span),
        document_id=document.id,
        level="evidence",
        type=type_,
        text=text,
        namespace=document.namespace,
        created_at=passage.said_at or document.created_at,
        valid_from=parts.now,
        search_text=_terms(document, passage.heading, with_speaker(text, speaker)),
        title=document.title,
        source=document.source,
        external_id=passage.external_id or document.external_id,
        start=span[0],
        end=span[1],
        page=passage.page,
        row=passage.row,
        time_start=passage.time_start,
        time_end=passage.time_end,
        heading=passage.heading,
        speaker=speaker,
        session_id=document.session_id,
        turn=turn,
        entities=document.entities if whole else _entities_in(document.entities, text),
        topics=document.topics,
        keywords=document.keywords if whole else _named_in(document.keywords, text.casefold()),
        tags=tags,
        importance=document.importance,
        method=document.reader,
        doc_type=document.doc_type,
        agent_id=document.agent_id,
        source_type=source_type(document.agent_id),
        kind=memory_kind(type_),
    )


def _spoken_by(parts: DocumentInputs, type_: str) -> str | None:
    """Who says a turn that came on its own, as its first words tell: ``Ann: I prefer tea``."""
    is_one_turn = type_ == "turn" and len(parts.passages) == 1
    return speaker_of(parts.read.text) if is_one_turn else None


def _gist(
    parts: DocumentInputs, document: Document, evidence: Sequence[Memory]
) -> Iterator[Memory]:
    """The gist of a document; one of a single passage, or a later part, has none of its own."""
    if len(evidence) < 2 or document.part or not document.summary.strip():
        return
    gist = document.summary
    yield Memory(
        id=memory_id(document.id, "gist", 0, len(document.text)),
        document_id=document.id,
        level="memory",
        type="gist",
        text=gist,
        namespace=document.namespace,
        created_at=document.created_at,
        valid_from=parts.now,
        search_text=_terms(document, "", gist),
        title=document.title,
        source=document.source,
        external_id=document.external_id,
        session_id=document.session_id,
        source_ids=_gist_sources(gist, evidence),
        entities=document.entities,
        topics=document.topics,
        keywords=document.keywords,
        tags=document.tags,
        importance=document.importance,
        method=document.method,
        doc_type=document.doc_type,
        agent_id=document.agent_id,
        source_type="system",
        kind=memory_kind("gist"),
    )


def _exchanges(
    parts: DocumentInputs, document: Document, evidence: Sequence[Memory]
) -> Iterator[Memory]:
    """The messages of a user, each with the reply to it."""
    of_turn: dict[int | None, tuple[str, ...]] = {}
    for memory in evidence:
        of_turn[memory.turn] = (*of_turn.get(memory.turn, ()), memory.id)
    asked = parts.read.asked
    for turn in parts.read.segments:
        if turn.turn is None or turn.turn not in of_turn or turn.speaker in BESIDE_THE_TALK:
            continue
        words = document.text[turn.start : turn.end]
        said = f"{turn.speaker}: {words}"
        if asked is None or turn.speaker not in REPLYING or not any(map(str.isalnum, words)):
            asked = AskedTurn(turn.turn, said) if turn.speaker in TRIGGERING else None
            continue
        text = "\n\n".join(map(_shorten, (asked.text, said)))
        sources = (*(asked.evidence or of_turn.get(asked.turn, ())), *of_turn[turn.turn])
        asked = None
        yield Memory(
            id=memory_id(document.id, EXCHANGE, turn.start, turn.end),
            document_id=document.id,
            level="memory",
            type=EXCHANGE,
            text=text,
            namespace=document.namespace,
            created_at=turn.said_at or document.created_at,
            valid_from=parts.now,
            search_text=_terms(document, "", text),
            title=document.title,
            source=document.source,
            external_id=document.external_id,
            session_id=document.session_id,
            turn=turn.turn,
            source_ids=sources,
            entities=_entities_in(document.entities, text),
            topics=document.topics,
            keywords=_named_in(document.keywords, text.casefold()),
            tags=document.tags,
            importance=min(document.importance, _EXCHANGE_IMPORTANCE),
            method=document.reader,
            doc_type=document.doc_type,
            agent_id=document.agent_id,
            source_type="system",
            kind=memory_kind(EXCHANGE),
        )


def _shorten(text: str) -> str:
    """A side of an exchange; of a long one its beginning, as its turn has all of it."""
    if len(text) <= _LONGEST_SIDE:
        return text
    return f"{text[:_LONGEST_SIDE].rsplit(maxsplit=1)[0]} …"


def _gist_sources(gist: str, evidence: Sequence[Memory]) -> tuple[str, ...]:
    """The passages that the gist's sentences stand in; the first one where none is found."""
    from memctl.language.sentence_splitting import split_sentences

    shown = [(memory.id, without_wikilinks(memory.text)) for memory in evidence]
    found: list[str] = []
    for start, end in split_sentences(gist):
        sentence = gist[start:end]
        found += [id_ for id_, text in shown if sentence in text][:1]
    return _distinct(found)[:MOST_GIST_SOURCES] or (evidence[0].id,)


def _distilled_memories(
    parts: DocumentInputs, document: Document, evidence: Sequence[Memory]
) -> Iterator[Memory]:
    is_session = document.reader == SESSION_READER
    turns = [(each.id, plain_words(each.text)) for each in evidence] if is_session else []
    for statement in parts.understood.distilled:
        stands_in = _stands_in(statement, evidence)
        if not stands_in:
            continue
        first, said = stands_in[0], without_wikilinks(statement.text)
        words = (spoken_text(said, "memory", None), *_statement_parts(statement).values())
        yield Memory(
            id=memory_id(document.id, statement.type, statement.start, statement.end),
            document_id=document.id,
            level="memory",
            type=statement.type,
            text=said,
            namespace=document.namespace,
            created_at=first.created_at,
            valid_from=parts.now,
            search_text=_terms(document, "", " ".join(words)),
            title=document.title,
            source=document.source,
            external_id=first.external_id,
            start=statement.start,
            end=statement.end,
            page=first.page,
            row=first.row,
            time_start=first.time_start,
            time_end=first.time_end,
            heading=first.heading,
            speaker=first.speaker,
            session_id=document.session_id,
            turn=first.turn,
            source_ids=_distinct(
                statement.evidence,
                _also_said_in(said, turns),
                (memory.id for memory in stands_in),
            ),
            entities=_entities_in(document.entities, said),
            topics=document.topics,
            keywords=_named_in(document.keywords, said.casefold()),
            tags=_distinct(document.tags, statement.tags),
            importance=statement.importance,
            confidence=statement.confidence,
            method=document.method,
            doc_type=document.doc_type,
            agent_id=document.agent_id,
            source_type="system",
            kind=memory_kind(statement.type),
            metadata={"reason": statement.reason, **_statement_parts(statement)},
        )


def _also_said_in(statement: str, turns: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield those turns of a conversation that say the same: a statement is kept once."""
    words = plain_words(bare_turn(statement))
    if len(words) >= _SHORTEST_STATEMENT:
        yield from (id_ for id_, said in turns if words in said)


def _statement_parts(statement: Distilled) -> dict[str, str]:
    """Return subject, relation and object, as far as they are known."""
    parts = {
        "subject": statement.subject,
        "relation": statement.relation,
        "object": statement.object,
    }
    return {key: value for key, value in parts.items() if value}


def _stands_in(statement: Distilled, evidence: Sequence[Memory]) -> list[Memory]:
    """The passages that hold the whole statement, else those that hold some of it."""
    start, end = statement.start, statement.end
    spans = [(memory, memory.start or 0, memory.end or 0) for memory in evidence]
    whole = [memory for memory, first, last in spans if first <= start and end <= last]
    return whole or [memory for memory, first, last in spans if first < end and start < last]


def _entities_in(names: Sequence[str], text: str) -> tuple[str, ...]:
    return tuple(name for name in names if is_named(name, text))


def _named_in(names: Sequence[str], text: str) -> tuple[str, ...]:
    return tuple(name for name in names if name in text)


def _terms(document: Document, heading: str, text: str) -> str:
    return " ".join(passage_terms(document.title, heading, text, document.language))


def _for_embedding(memory: Memory) -> str:
    text = spoken_text(memory.text, memory.level, memory.speaker)
    return embedding_text(memory.title, memory.heading, text)

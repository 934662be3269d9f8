"""Single memories and documents are added, edited and forgotten.

Each change is one commit.  Knows how one row hangs on another; never how text becomes memories in
bulk, which is ingest's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from memctl.errors import UsageError
from memctl.graph.derivation import derive_statement, pages_of
from memctl.identity import DEFAULT_NAMESPACE
from memctl.ids import next_version_id, root_id, stated_memory_id, storable
from memctl.ingest.source_reading import redacted_metadata
from memctl.language.inline_tags import find_wikilinks
from memctl.language.term_analysis import embedding_text, passage_terms
from memctl.literals import LEARNING, STATED, LearningOutcome, MemoryKind, SourceType
from memctl.memories.memory_views import (
    get_memory,
    memories_by_id,
    resolve,
    versions_of,
)
from memctl.records import Entity, EntityMention, Memory, Metadata, Relation, SourceText
from memctl.redaction import redact_name, redact_secrets
from memctl.rows.derived_rows import EntityCounts, add_missing, add_up
from memctl.rows.row_changes import append_rows, supersede_memories
from memctl.rows.row_lifecycle import erase_rows, mark_without_memories
from memctl.schema.arrow_tables import memories_table
from memctl.schema.document_types import memory_kind, source_type
from memctl.store.ledger.content_tables import ContentOwner, clear_content
from memctl.store.tables.filter_expressions import EVERYTHING, Expr, col
from memctl.store.tables.transaction import record_changes
from memctl.understanding.triggers import KEPT_IMPORTANCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memctl.models.protocols import Embedder, Understander
    from memctl.schema.table_names import TableName
    from memctl.store.ledger.repository import LedgerConnection
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction


_IMPORTANCE = {
    **KEPT_IMPORTANCE, "reflection": 0.8, "conversation_summary": 0.8, "tool_output": 0.3,
}  # fmt: skip
"""Of stated memories by type: what sums up counts like an insight, what a tool printed little."""
_USUAL_IMPORTANCE = 0.7


class Statement(Struct, frozen=True):
    """A stated memory: what it says and how it is classified."""

    text: str
    type: str | None = None
    """As its text says by default: ``decision``, ``preference``, ..., else ``fact``."""
    namespace: str = DEFAULT_NAMESPACE
    tags: tuple[str, ...] = ()
    importance: float | None = None
    """From 0 to 1; by default as its type tells."""
    confidence: float = 1.0
    """From 0 to 1: how sure it is."""
    session_id: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    """It no longer holds from then on."""
    source_ids: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    agent_id: str | None = None
    """The agent that states it."""
    source_type: SourceType | None = None
    """Who it is from; by default the agent where one is named, else a person."""
    kind: MemoryKind | None = None
    """By default as its type tells."""
    method: str = STATED
    """How it came to be."""
    source: str = STATED
    """Where it comes from."""


def owned_rows(owner: ContentOwner) -> Expr:
    """Return the condition on documents and memories that are of an owner."""
    if owner.namespaces is None:
        return EVERYTHING
    return col("namespace").is_in(owner.namespaces)


class Edit(Struct, frozen=True):
    """What a new version of a memory has instead; None leaves it as it was."""

    text: str | None = None
    type: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    edited_by: str | None = None


class PreparedMemory(Struct, frozen=True):
    """A memory that is ready to be written."""

    memory: Memory
    mentions: tuple[EntityMention, ...]
    vector: NDArray[np.float32]


def write_memories(
    transaction: Transaction,
    prepared: Sequence[PreparedMemory],
    successors: Mapping[str, str],
    now: datetime,
) -> None:
    """Write memories that are not there yet, with what follows from them for the graph.

    Args:
        transaction: What to write with.
        prepared: Which, each with an id of its own.
        successors: Ids of memories that end now, each with that of its next version.
        now: When that is.
    """
    import numpy as np

    if not prepared:
        return
    vectors = np.stack([each.vector for each in prepared])
    rows = memories_table([each.memory for each in prepared], vectors)
    append_rows(transaction, "memories", rows)
    supersede_memories(transaction, successors, now)
    entities: dict[str, Entity] = {}
    relations: dict[str, Relation] = {}
    for each in prepared:
        found, links = derive_statement(each.memory, each.mentions)
        add_up(entities, found.values())
        relations |= links
    EntityCounts().write(transaction, entities)
    add_missing(transaction, {}, relations)


def _as_stored(statement: Statement) -> Statement:
    """Return a statement as it comes back from the tables: without lone surrogates."""
    session = statement.session_id
    return replace(
        statement,
        text=storable(statement.text),
        type=statement.type and storable(statement.type),
        namespace=storable(statement.namespace),
        source=storable(statement.source),
        session_id=None if session is None else storable(session),
        tags=tuple(map(storable, statement.tags)),
    )


def _with_texts(edit: Edit, changed: Callable[[str], str]) -> Edit:
    """Return an edit with each of its texts changed."""
    return replace(
        edit,
        text=edit.text and changed(edit.text),
        type=edit.type and changed(edit.type),
        tags=edit.tags and tuple(map(changed, edit.tags)),
    )


class Editor(Struct, frozen=True):
    """Changes single memories and documents of one knowledge base.

    Args:
        store: Where they are.
        embedder: Gives the embedder; called only when there is text to embed.
        clock: What tells the time.
        understander: Returns what understands statements of a namespace.
        redacts: Whether keys and passwords are taken out of texts.
    """

    store: Store
    embedder: Callable[[], Embedder]
    clock: Callable[[], datetime]
    understander: Callable[[str], Understander]
    redacts: bool

    def add(self, statement: Statement, *, dry_run: bool = False, job: int | None = None) -> Memory:
        """Remember a statement, or only return what it would be; the same one is there once.

        Args:
            statement: What to remember.
            dry_run: Write nothing.
            job: The job that it is part of, with which it is taken back.

        Raises:
            UsageError: It is empty or expired, its importance or confidence is not from 0 to 1, or
                its metadata say of a learning what cannot be.
            NotFoundError: It names evidence that does not exist.
        """
        now = self.clock()
        memory, mentions, ids = self._as_memory(statement, now)
        if dry_run:
            return next(iter(memories_by_id(self.store.snapshot(), ids)), memory)
        prepared = self._embed(memory, mentions)
        with self.store.write() as transaction:
            snapshot = transaction.snapshot()
            if known := memories_by_id(snapshot, ids):
                return known[0]
            sources = tuple(resolve(snapshot, "memories", id_) for id_ in statement.source_ids)
            memory = replace(memory, source_ids=sources)
            stored = replace(prepared.memory, source_ids=sources)
            write_memories(transaction, [replace(prepared, memory=stored)], {}, now)
            self._note(transaction, snapshot, [memory.id], job)
        return memory

    def add_all(
        self,
        statements: Iterable[Statement],
        refused: Callable[[Statement, UsageError], None],
        *,
        job: int | None = None,
    ) -> list[str]:
        """Remember statements that rest on nothing, in one commit; return the ids of what is new.

        Args:
            statements: What to remember.
            refused: Receives what ``add`` would refuse, which is left out.
            job: The job that they are part of, with which they are taken back.
        """
        now, read = self.clock(), dict[str, tuple[Memory, tuple[EntityMention, ...], list[str]]]()
        for statement in statements:
            try:
                made = self._as_memory(statement, now)
            except UsageError as error:
                refused(statement, error)
            else:
                read.setdefault(made[0].id, made)
        prepared = {id_: self._embed(memory, names) for id_, (memory, names, _) in read.items()}
        if not prepared:
            return []
        with self.store.write() as transaction:
            before = transaction.snapshot()
            asked = [id_ for *_, ids in read.values() for id_ in ids]
            there = {each.id for each in memories_by_id(before, asked)}
            new = [id_ for id_, (*_, ids) in read.items() if there.isdisjoint(ids)]
            write_memories(transaction, [prepared[id_] for id_ in new], {}, now)
            self._note(transaction, before, new, job)
        return new

    def _note(
        self, transaction: Transaction, before: Snapshot, ids: Sequence[str], job: int | None
    ) -> None:
        """Record under a job, if there is one, which memories it has added."""
        if job is not None:
            changes, after = self.store.ledger.changes, transaction.snapshot()
            written: dict[TableName, Sequence[str]] = {"memories": ids}
            record_changes(transaction, changes, job, before, after, written)

    def _as_memory(
        self, statement: Statement, now: datetime
    ) -> tuple[Memory, tuple[EntityMention, ...], list[str]]:
        """Return a statement as a memory, the names in it, and the ids that it may have already.

        Raises:
            UsageError: As ``add``.
        """
        _check(statement.text, _importance(statement), statement.type)
        if not 0 <= statement.confidence <= 1:
            raise UsageError(f"confidence is from 0 to 1, not {statement.confidence:g}")
        if statement.expires_at is not None and statement.expires_at <= now:
            raise UsageError(
                f"{statement.expires_at:%Y-%m-%d %H:%M} UTC is past", "name a later date"
            )
        statement = _as_stored(statement)
        if self.redacts:
            session = statement.session_id
            statement = replace(
                statement,
                text=redact_secrets(statement.text),
                session_id=session and redact_name(session),
                tags=tuple(map(redact_secrets, statement.tags)),
                metadata=redacted_metadata(statement.metadata),
                source=redact_secrets(statement.source),
            )
        memory = Memory(
            id="",
            document_id=None,
            level="memory",
            type=statement.type or "",
            text=statement.text,
            namespace=statement.namespace,
            created_at=statement.created_at or now,
            valid_from=now,
            source=statement.source,
            session_id=statement.session_id,
            tags=statement.tags,
            importance=_importance(statement),
            confidence=statement.confidence,
            expires_at=statement.expires_at,
            method=statement.method,
            metadata=statement.metadata,
            agent_id=statement.agent_id,
            source_type=statement.source_type or source_type(statement.agent_id),
        )
        memory, mentions = self._understand(memory)
        memory = replace(memory, kind=statement.kind or memory_kind(memory.type))
        if memory.type == LEARNING:
            _check_learning(memory.metadata)
        ids = [
            stated_memory_id(memory.namespace, type_, memory.text)
            for type_ in dict.fromkeys((memory.type, statement.type or "fact"))
        ]
        return replace(memory, id=ids[0]), mentions, ids

    def edit(self, reference: str, edit: Edit, *, dry_run: bool = False) -> Memory:
        """Write a new version of a memory, or only return what it would be; the old one stays.

        Raises:
            NotFoundError: There is none.
            UsageError: It is evidence, which is verbatim, or it has a newer version.
        """
        old = get_memory(self.store.snapshot(), reference)
        _check_editable(old)
        now = self.clock()
        edit = _with_texts(edit, storable)
        if self.redacts:
            edit = _with_texts(edit, redact_secrets)
        new = _apply_edit(old, edit, now)
        if new is None:
            return old
        _check(new.text, new.importance, new.type)
        mentions: tuple[EntityMention, ...] = ()
        if new.text != old.text:
            new, mentions = self._understand(new)
        if dry_run:
            return new
        prepared = self._embed(new, mentions)
        with self.store.write() as transaction:
            _check_editable(get_memory(transaction.snapshot(), old.id))
            write_memories(transaction, [prepared], {old.id: new.id}, now)
        return new

    def delete_memory(self, reference: str) -> int:
        """Forget a memory with all its versions and the insights that rest on it.

        Returns:
            How many rows of ``memories`` are gone.

        Raises:
            NotFoundError: There is none.
        """
        with self.store.write() as transaction:
            snapshot = transaction.snapshot()
            memory = get_memory(snapshot, reference)
            documents = {each.id: each.document_id for each in versions_of(snapshot, memory)}
            is_unwanted = memory.level == "insight"  # and not to be drawn again
            erased = erase_rows(transaction, "memories", documents, reconsider=not is_unwanted)
            transaction.deletions.keep(dict.fromkeys(erased.ids["memories"]) | documents)
            mark_without_memories(transaction, documents.values())
            return erased.counts["memories"]

    def delete_document(self, reference: str) -> int:
        """Forget a document, all its parts, and every memory made from it.

        Returns:
            How many rows of ``memories`` are gone.

        Raises:
            NotFoundError: There is none.
        """
        with self.store.write() as transaction:
            snapshot = transaction.snapshot()
            root = root_id(resolve(snapshot, "documents", reference))
            parts = snapshot.scan("documents", col("root_id") == root, ["id"])["id"].to_pylist()
            erased = erase_rows(transaction, "documents", parts)
            transaction.deletions.remove_documents(parts)
            transaction.deletions.keep(dict.fromkeys(parts))
            transaction.ledger(lambda _: self.store.ledger.files.release_document(root))
            return erased.counts.get("memories", 0)

    def prepare(self, memory: Memory) -> PreparedMemory:
        """Return a memory with what its text tells and its vector; nothing is written yet."""
        memory, mentions = self._understand(memory)
        kind = memory.kind or memory_kind(memory.type)
        return self._embed(replace(memory, kind=kind), mentions)

    def clear(self, owner: ContentOwner) -> None:
        """Delete every document, memory and stored word of an owner, in one commit.

        The questions that were limited to its namespaces go from the query log.  Files that were
        ingested do not come back by themselves.
        """
        where = owned_rows(owner)
        with self.store.write() as transaction:
            snapshot = transaction.snapshot()
            rows = snapshot.scan("documents", where, ["id", "root_id"]).to_pylist()
            documents = [row["id"] for row in rows]
            memories = snapshot.scan("memories", where, ["id"])["id"].to_pylist()
            erase_rows(transaction, "documents", documents)
            erase_rows(transaction, "memories", memories, reconsider=False)
            transaction.deletions.remove_documents(documents)
            transaction.deletions.keep(dict.fromkeys([*memories, *documents]))
            roots = {row["root_id"] for row in rows}

            def erase(connection: LedgerConnection) -> None:
                """Strike the words of users and agents, and the questions, from the ledger."""
                for root in sorted(roots):
                    self.store.ledger.files.release_document(root)
                clear_content(connection, owner)
                self.store.ledger.queries.forget_namespaces(owner.namespaces)
                if owner.user is not None:
                    self.store.ledger.queries.forget_user(owner.user)

            transaction.ledger(erase)

    def _understand(self, memory: Memory) -> tuple[Memory, tuple[EntityMention, ...]]:
        """Return a memory with the names, topics, keywords, tags and type that its text tells."""
        source = SourceText(
            memory.text, "text/plain", STATED, created_at=memory.created_at, tags=memory.tags
        )
        (found,) = self.understander(memory.namespace).understand([source])
        says = max(found.distilled, key=lambda each: each.importance, default=None)
        names = (each.name for each in found.entities)
        understood = replace(
            memory,
            type=memory.type or (says.type if says else "fact"),
            entities=tuple(dict.fromkeys((*names, *pages_of(find_wikilinks(memory.text))))),
            topics=found.topics,
            keywords=found.keywords,
            tags=found.tags,
        )
        return understood, found.entities

    def _embed(self, memory: Memory, mentions: tuple[EntityMention, ...]) -> PreparedMemory:
        terms = passage_terms(memory.title, memory.heading, memory.text)
        text = embedding_text(memory.title, memory.heading, memory.text)
        (vector,) = self.embedder().embed([text])
        return PreparedMemory(replace(memory, search_text=" ".join(terms)), mentions, vector)


def _importance(statement: Statement) -> float:
    if statement.importance is not None:
        return statement.importance
    return _IMPORTANCE.get(statement.type or "", _USUAL_IMPORTANCE)


def _check(text: str, importance: float, type_: str | None) -> None:
    if not text.strip():
        raise UsageError("a memory needs a text", 'say what to remember: "..."')
    if not 0 <= importance <= 1:
        raise UsageError(f"importance is from 0 to 1, not {importance:g}")
    if type_ is not None and (not type_.isidentifier() or type_ == "insight"):
        raise UsageError(f"{type_!r} cannot be a type", "use fact, decision, preference, plan, ...")


def learning_metadata(
    outcome: LearningOutcome | None, context: str | None, *, share: bool
) -> dict[str, Any]:
    """Return the metadata of a learning; what is not known is left out."""
    values = {"outcome": outcome, "context": context, "share": share or None}
    return {name: value for name, value in values.items() if value is not None}


def _check_learning(metadata: Metadata) -> None:
    outcome, context, share = (metadata.get(name) for name in ("outcome", "context", "share"))
    outcomes = get_args(LearningOutcome)
    if outcome is not None and outcome not in outcomes:
        raise UsageError(
            f"the outcome of a learning cannot be {outcome!r}", f"use {' or '.join(outcomes)}"
        )
    if context is not None and not isinstance(context, str):
        raise UsageError(f"the context of a learning is a text, not {context!r}")
    if share is not None and not isinstance(share, bool):
        raise UsageError(f"the share of a learning is true or false, not {share!r}")


def _check_editable(memory: Memory) -> None:
    if memory.level == "insight":
        raise UsageError(
            f"{memory.id} is an insight, which is drawn from memories and not edited",
            f"edit those that it names: memctl insight show {memory.id}",
        )
    if memory.level == "evidence":
        raise UsageError(
            f"{memory.id} is evidence, which stays as the source has it",
            "state what is right instead: memctl memory add, or the tool remember",
        )
    if memory.superseded_by is not None:
        raise UsageError(
            f"{memory.id} has been superseded by {memory.superseded_by}", "edit that one"
        )


def _apply_edit(old: Memory, edit: Edit, now: datetime) -> Memory | None:
    """Return the next version, or None where nothing would differ."""
    reference = {key: value for key, value in asdict(edit).items() if value is not None}
    editor = reference.pop("edited_by", None)
    if all(getattr(old, key) == value for key, value in reference.items()):
        return None
    version = old.version + 1
    changed = replace(old, **reference)
    rests_on = old.source_ids or ((old.id,) if old.start is not None else ())
    return replace(
        changed,
        id=next_version_id(old.id, version, old.namespace, changed.type, changed.text),
        source_ids=rests_on,
        valid_from=now,
        version=version,
        method=STATED,
        edited_by=editor,
        start=None,
        end=None,
        is_consolidated=False,
        access_count=0,
        last_accessed_at=None,
    )

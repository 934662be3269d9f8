"""Operations on documents: a list to page through, and the text of one, piece by piece."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memctl.errors import NotFoundError
from memctl.literals import DocType
from memctl.operations.operation_context import OperationContext
from memctl.operations.parameters import parameter
from memctl.operations.recall import opened
from memctl.plain_values import plain_rows, to_plain
from memctl.schema.document_types import doc_type_of

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.records import Document, Filters

_SHOWN = ("id", "title", "media_type", "doc_type", "source", "created_at", "ingested_at", "size",
          "namespace")  # fmt: skip
_METADATA = ("media_type", "doc_type", "source", "created_at", "namespace", "size", "summary",
             "tags", "topics", "language", "session_id", "metadata")  # fmt: skip
MOST_CHARACTERS = 20_000
_NEAR_TITLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDocumentsParameters:
    """Parameters of ``list_documents``."""

    namespace: str | None = parameter("Only this namespace.", default=None)
    doc_type: DocType | None = parameter("Only this kind of document.", default=None)
    search: str | None = parameter("Only documents with these words in the title.", default=None)
    limit: int = parameter("At most this many.", default=20, low=1, high=200)
    offset: int = parameter("How many to skip.", default=0, low=0, high=10**9)


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """One document of a list."""

    id: str
    title: str
    doc_type: str
    date: str
    size: int
    passages: int
    kb: str
    namespace: str
    source: str


@dataclass(frozen=True, slots=True)
class DocumentList:
    """Documents, the last ingested first."""

    documents: tuple[ListedDocument, ...]
    total: int
    next_offset: int | None
    """Where the rest begins; None where this is all."""


def list_documents(context: OperationContext, asked: ListDocumentsParameters) -> DocumentList:
    """List documents as ``memctl document list`` does, of all knowledge bases together."""
    filters = context.filters(namespace=asked.namespace)
    found = [(base, row) for base in opened(context) for row in _rows(base, filters, asked)]
    found.sort(key=lambda each: str(each[1]["ingested_at"]), reverse=True)
    end = asked.offset + asked.limit
    shown = found[asked.offset : end]
    return DocumentList(
        documents=tuple(_listed(base, row) for base, row in _with_passages(shown)),
        total=len(found),
        next_offset=end if end < len(found) else None,
    )


def _rows(
    base: KnowledgeBase, filters: Filters, asked: ListDocumentsParameters
) -> list[dict[str, Any]]:
    table = base.documents.list(filters)
    words = (asked.search or "").casefold().split()
    return [
        row
        for row in plain_rows(table.select(_SHOWN))
        if all(word in row["title"].casefold() for word in words)
        and asked.doc_type in (None, _doc_type(row))
    ]


def _doc_type(row: dict[str, Any]) -> str:
    return str(row["doc_type"] or doc_type_of(row["media_type"]))


def _with_passages(
    shown: list[tuple[KnowledgeBase, dict[str, Any]]],
) -> list[tuple[KnowledgeBase, dict[str, Any]]]:
    """Give each row the number of its document's passages."""
    from memctl.store.tables.filter_expressions import col

    for base in {id(base): base for base, _ in shown}.values():
        rows = [row for owner, row in shown if owner is base]
        ids = col("document_id").is_in([row["id"] for row in rows])
        where = ids & (col("level") == "evidence") & col("superseded_by").is_null()
        passages = base.store.snapshot().scan("memories", where, ["document_id"])
        counts = Counter(passages["document_id"].to_pylist())
        for row in rows:
            row["passages"] = counts[row["id"]]
    return shown


def _listed(base: KnowledgeBase, row: dict[str, Any]) -> ListedDocument:
    return ListedDocument(
        id=row["id"],
        title=row["title"],
        doc_type=_doc_type(row),
        date=row["created_at"],
        size=row["size"],
        passages=row["passages"],
        kb=base.name,
        namespace=row["namespace"],
        source=row["source"],
    )


# --- one document ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GetDocumentParameters:
    """Parameters of ``get_document``."""

    document_id: str = parameter("The id of the document, or its title.")
    start: int = parameter("From which character on.", default=0, low=0, high=10**12)
    max_chars: int = parameter(
        "At most this many characters.", default=8000, low=1, high=MOST_CHARACTERS
    )


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document, and a piece of its text."""

    id: str
    title: str
    kb: str
    metadata: dict[str, Any]
    text: str
    start: int
    end: int
    length: int
    """Of the whole text, in characters."""
    has_more: bool
    note: str
    """How to get the rest, if there is any."""


def get_document(context: OperationContext, asked: GetDocumentParameters) -> DocumentText:
    """Return a piece of a document's text, as ``memctl document show --text`` has it."""
    base, document = _found(context, asked.document_id)
    length = len(document.text)
    start = min(asked.start, length)
    end = min(start + asked.max_chars, length)
    plain = to_plain(document)
    rest = f"characters {start:,} to {end:,} of {length:,}; start={end} gives what follows"
    return DocumentText(
        id=document.id,
        title=document.title,
        kb=base.name,
        metadata={key: plain[key] for key in _METADATA if plain.get(key) not in (None, [], {}, "")},
        text=document.text[start:end],
        start=start,
        end=end,
        length=length,
        has_more=end < length,
        note=rest if end < length else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenParameters:
    """Parameters of ``open``."""

    id: str = parameter("The id or title of a document, or the id of a memory.")
    start: int = parameter("From which character on.", default=0, low=0, high=10**12)
    max_chars: int = parameter(
        "At most this many characters.", default=8000, low=1, high=MOST_CHARACTERS
    )


def open_item(context: OperationContext, asked: OpenParameters) -> DocumentText:
    """Return a piece of a document's text, or a memory with the evidence that it rests on."""
    if not asked.id.startswith(("m_", "i_")):
        wanted = GetDocumentParameters(
            document_id=asked.id, start=asked.start, max_chars=asked.max_chars
        )
        return get_document(context, wanted)
    base = opened(context).owner("memories", asked.id)
    view = base.memories.get(asked.id)
    memory = view.memory
    context.check_readable(base, memory.namespace, f"memory {asked.id!r}")
    evidence = [to_plain(each) for each in view.evidence]
    metadata = {"type": memory.type, "level": memory.level, "created_at": memory.created_at}
    return DocumentText(
        id=memory.id,
        title=memory.title,
        kb=base.name,
        metadata=to_plain({**metadata, "tags": memory.tags, "evidence": evidence}),
        text=memory.text,
        start=0,
        end=len(memory.text),
        length=len(memory.text),
        has_more=False,
        note="",
    )


def _found(context: OperationContext, given: str) -> tuple[KnowledgeBase, Document]:
    """Return the document with an id or a title, and its knowledge base.

    Raises:
        NotFoundError: There is none that is open to this caller.
    """
    what = f"document {given!r}"
    bases = opened(context)
    id_, base = given, None
    try:
        base = bases.owner("documents", given)
    except NotFoundError:
        titles = _by_title(context)
        if given.casefold() not in titles:
            near = _near(given, titles)
            raise NotFoundError(f"there is no {what}", near) from None
        base, id_ = titles[given.casefold()]
    document = base.documents.get(id_).document
    context.check_readable(base, document.namespace, what)
    return base, document


def _by_title(context: OperationContext) -> dict[str, tuple[KnowledgeBase, str]]:
    """Return the open documents by title, the last ingested where several have one."""
    found: dict[str, tuple[KnowledgeBase, str]] = {}
    for base in opened(context):
        table = base.documents.list(context.filters()).select(["id", "title"])
        for row in plain_rows(table):
            found.setdefault(row["title"].casefold(), (base, row["id"]))
    return found


def _near(given: str, titles: dict[str, tuple[KnowledgeBase, str]]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(given.casefold(), titles, _NEAR_TITLES, 0.5)
    return f"near titles: {', '.join(near)}" if near else "list_documents lists all of them"

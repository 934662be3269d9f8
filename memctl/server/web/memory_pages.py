"""Memories, documents, conversations: lists, one with all that hangs on it, and changes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import UsageError, VersionConflict
from memctl.forget import ForgetReport, Selection
from memctl.literals import RESTATING_TYPES, DocType, DocumentSort, SessionStatus, Sort
from memctl.operations.adding_documents import LinkMentionParameters, link_mention
from memctl.operations.finding import opened, readable_session
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import to_plain
from memctl.records import LEVELS, Memory
from memctl.server.web.listing import (
    Row,
    RowList,
    bases_of,
    collect_rows,
    filter_fields,
    filters_of,
)
from memctl.server.web.pages import PAGE_ROWS, ChangeResult, Page, PageRequest, address

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.links.link_records import Backlink, Mention, OutgoingLink, RelatedPage
    from memctl.memories.memory_views import DocumentView, MemoryView
    from memctl.store.ledger.session_repositories import Session

_TYPES = ("fact", "important_fact", "decision", "preference", "plan", "observation", "event",
          "reflection", "gist")  # fmt: skip
_SORT_KEYS = {
    "created": "created_at",
    "known": "valid_from",
    "importance": "importance",
    "accessed": "last_accessed_at",
    "relevance": "importance",
}
_PIECE = 20_000
"""Characters of a document's text on one page."""
_LEAD = 2_000
"""Characters before a place that is asked for."""
_LINKED, _RELATED = 20, 8
_FORGET = "forget"
_TURNS = 200
"""The latest of a conversation are shown."""
_Span = tuple[int, int, str]
"""Where something begins and ends, and its id or address."""


# --- memories -------------------------------------------------------------------------------------


def memories(context: OperationContext, parameters: PageRequest) -> Page:
    """List memories as ``memctl memory list`` does."""
    level = parameters.text("level", "memory")
    filters = replace(filters_of(context, parameters), levels=(level,) if level in LEVELS else ())
    sort: Sort = parameters.choice("sort", Sort, "created")
    found = collect_rows(
        context,
        lambda base, limit, offset: base.memories.list(
            filters, limit=limit, offset=offset, sort=sort, descending=True
        ),
        lambda row: _sort_key(row, _SORT_KEYS[sort]),
        parameters.offset,
        count=lambda base: base.memories.count(filters),
    )
    shown = {
        "fields": {**filter_fields(parameters), "level": level, "sort": sort},
        "sorts": get_args(Sort),
        "types": _TYPES,
        "previous_offset": found.previous_offset,
    }
    return Page("memories.html", "Memories", found, shown)


def _sort_key(row: Row, column: str) -> tuple[bool, Any, str]:
    """Return what a row is sorted by; one that lacks it comes last."""
    return row[column] is not None, row[column], row["id"]


def memory(context: OperationContext, parameters: PageRequest) -> Page:
    """Show a memory with its evidence, versions, insights and connections."""
    base, view = _memory(context, parameters)
    others = _related_memories(base, view)
    row = view.memory
    named = (
        base.store.ledger.sessions.find_by_name(row.session_id, row.namespace)
        if row.session_id
        else ()
    )
    shown = {
        "base": base.name,
        "related": others,
        "types": _TYPES,
        "is_open": parameters.has("edit"),
        "is_conversation": bool(named),
    }
    title = "Insight" if view.memory.level == "insight" else "Memory"
    return Page("memory.html", title, view, shown)


def _memory(context: OperationContext, parameters: PageRequest) -> tuple[KnowledgeBase, MemoryView]:
    id_ = parameters.path["id"]
    base = context.owner("memories", id_)
    view = base.memories.get(id_)
    context.check_readable(base, view.memory.namespace, f"memory {id_!r}")
    return base, view


class RelatedMemory(Struct, frozen=True):
    """A memory that another one is connected with."""

    relation: str
    weight: float
    memory: Memory


def _related_memories(base: KnowledgeBase, view: MemoryView) -> Sequence[RelatedMemory]:
    from memctl.memories.memory_views import memories_by_id

    ends = {
        (each.target_id if each.source_id == view.memory.id else each.source_id): each
        for each in view.relations
    }
    rows = memories_by_id(base.store.snapshot(), list(ends))
    return [
        RelatedMemory(ends[row.id].relation_type, ends[row.id].weight, row)
        for row in rows
        if row.superseded_by is None
    ]


def new_memory(context: OperationContext, _: PageRequest) -> Page:
    """Show the form for a memory of one's own."""
    return Page("memory_new.html", "Add a memory", {"kb": context.kb_to_write}, {"types": _TYPES})


def add_memory(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Remember a statement as ``memctl memory add`` does.

    Raises:
        UsageError: It has no words.
    """
    text, importance = parameters.text("text"), parameters.share("importance")
    if not text:
        raise UsageError("there is nothing to remember", "write a sentence that stands alone")
    base = context.writing()
    made = base.memories.add(
        text,
        type_=parameters.text("type") or None,
        tags=[tag.removeprefix("#") for tag in parameters.texts("tags")],
        importance=importance,
    )
    return ChangeResult(address(f"/memories/{made.id}", kb=base.name), made, "added")


def edit_memory(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Write a new version of a memory as ``memctl memory edit`` does."""
    base, view = _memory(context, parameters)
    now, text, importance = view.memory, parameters.text("text"), parameters.share("importance")
    tags = tuple(tag.removeprefix("#") for tag in parameters.texts("tags"))
    context.check_changeable(base, now.namespace, f"memory {now.id!r}")
    changes: dict[str, Any] = {
        "text": None if text in ("", now.text.strip()) else text,
        "type_": None if parameters.text("type") in ("", now.type) else parameters.text("type"),
        "tags": None if "tags" not in parameters.fields or tags == now.tags else tags,
        "importance": None if importance == round(now.importance, 2) else importance,
    }
    if all(value is None for value in changes.values()):
        raise UsageError(
            "nothing was changed", "change the text, the type, the tags or how important it is"
        )
    made = base.memories.edit(now.id, **changes)
    return ChangeResult(address(f"/memories/{made.id}", kb=base.name), made, "edited")


def preview_memory(context: OperationContext, parameters: PageRequest) -> Page:
    """Show what would go with a memory, as ``memctl forget --memory ID --dry-run`` does."""
    base, view = _memory(context, parameters)
    report = base.forget(Selection(memories=(view.memory.id,)), dry_run=True)
    row = view.memory
    return forget_page(base, report, "memory", f"/memories/{row.id}", row.text)


def remove_memory(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Delete a memory, or forget it for good, as the commands of these names do."""
    base, view = _memory(context, parameters)
    id_ = view.memory.id
    context.check_changeable(base, view.memory.namespace, f"memory {id_!r}")
    if parameters.text("how") == _FORGET:
        return forgotten_reply(base, base.forget(Selection(memories=(id_,))), "/memories")
    return ChangeResult(
        address("/memories", kb=base.name), {"deleted": base.memories.delete(id_)}, "deleted"
    )


def forget_page(base: KnowledgeBase, report: ForgetReport, what: str, back: str, name: str) -> Page:
    """Return the page that shows what would go with something that is forgotten.

    Args:
        base: The knowledge base that has it.
        report: What a dry run came to.
        what: ``memory``, ``document`` or ``conversation``.
        back: The address of its own page.
        name: What it says, or what it is called.
    """
    shown = {"base": base.name, "what": what, "name": name, "back": back}
    return Page("forget.html", f"Forget a {what}", report, shown)


def forgotten_reply(base: KnowledgeBase, report: ForgetReport, to: str) -> ChangeResult:
    """Lead back to a list from which something was forgotten."""
    notice = "partly-forgotten" if report.left else "forgotten"
    return ChangeResult(address(to, kb=base.name), report, notice)


# --- documents ------------------------------------------------------------------------------------


def documents(context: OperationContext, parameters: PageRequest) -> Page:
    """List documents as ``memctl document list`` does."""
    filters = filters_of(context, parameters)
    sort: DocumentSort | None = parameters.choice("sort", DocumentSort, None)
    is_incomplete = parameters.has("incomplete")
    column = _SORT_KEYS[sort] if sort else "ingested_at"
    found: RowList = collect_rows(
        context,
        lambda base, limit, offset: base.documents.list(
            filters,
            incomplete=is_incomplete,
            limit=limit,
            offset=offset,
            sort=sort,
            descending=True,
        ),
        lambda row: _sort_key(row, column),
        parameters.offset,
        count=lambda base: base.documents.count(filters, incomplete=is_incomplete),
    )
    shown = {
        "fields": {
            **filter_fields(parameters),
            "sort": sort or "",
            "incomplete": "1" if is_incomplete else "",
        },
        "sorts": get_args(DocumentSort),
        "doc_types": get_args(DocType),
        "previous_offset": found.previous_offset,
    }
    return Page("documents.html", "Documents", found, shown)


def document(context: OperationContext, parameters: PageRequest) -> Page:
    """Show a document: its text with what was made of it, what is known of it, its receipts."""
    base, view = _document(context, parameters)
    text = view.document.text
    start = parameters.number("start", -1) if parameters.has("start") else -1
    end = parameters.number("end", start, high=len(text)) if start >= 0 else -1
    first = parameters.number("from", max(0, start - _LEAD) if start > _PIECE - _LEAD else 0)
    first = min(first, len(text))
    last = min(first + _PIECE, len(text))
    current = [each for each in view.memories if each.superseded_by is None]
    links = _links_in(context, base, view, first, last)
    shown = {
        "base": base.name,
        "runs": runs(text, first, last, current, (start, end), links),
        "first": first,
        "last": last,
        "length": len(text),
        "previous": max(0, first - _PIECE),
        "distilled": [each for each in current if each.level == "memory"],
        "passages": sum(each.level == "evidence" for each in current),
        "neighbours": _neighbours(view),
        "receipts": _receipts(base, view),
        "can_edit": _can_edit(base, view),
        "is_open": parameters.has("edit"),
        "former": _former(base, view, parameters.text("former")),
        "signals": sorted(view.document.signals.items(), key=lambda pair: pair[1], reverse=True),
    }
    return Page("document.html", view.document.title or view.document.source, view, shown)


def _neighbours(view: DocumentView) -> Sequence[tuple[str, str]]:
    """Return the parts before and after one of a long document: what leads there, and the id."""
    root, part = view.document.root_id, view.document.part
    before = [("previous part", root if part == 1 else f"{root}.{part - 1}")] if part else []
    after = [("next part", f"{root}.{part + 1}")] if part + 1 < view.parts else []
    return before + after


def _links_in(
    context: OperationContext, base: KnowledgeBase, view: DocumentView, first: int, last: int
) -> Sequence[_Span]:
    """Return where a piece of a text links to other documents, and the address of each."""
    row = view.document
    if not row.links:
        return ()
    links = base.links.view(context.filters()).links_in_piece(row.id, row.text, first, last)
    return [
        (start, end, address(f"/documents/{quote(page.id, safe='')}", kb=page.kb))
        for start, end, page in links
    ]


def _can_edit(base: KnowledgeBase, view: DocumentView) -> bool:
    """Return whether a browser sends the text of a document back as it got it."""
    text = view.document.text
    return (
        not view.document.superseded_by
        and not base.documents.why_unchangeable(view)
        and all(each.isprintable() or each in "\n\t" for each in text)
    )


def _former(base: KnowledgeBase, view: DocumentView, id_: str) -> str:
    """Return the id of the version before, where a page that has just changed it names it."""
    if not id_ or base.documents.get(id_).document.superseded_by != view.document.id:
        return ""
    return id_


class Conflict(Struct, frozen=True):
    """A change of a document that has changed meanwhile; nothing of it is lost."""

    kb: str
    id: str
    """Of the version that holds now."""
    title: str
    text: str
    """Of that version."""
    written: str
    """The text that was not written."""
    message: str


def edit_document(context: OperationContext, parameters: PageRequest) -> ChangeResult | Page:
    """Write a new version of a document, as the operation ``revise_document`` does.

    Raises:
        VersionConflict: It has changed meanwhile, and no version of it holds now.
    """
    base, view = _document(context, parameters)
    _check_own(context, base, view)
    restored = parameters.text("restore")
    text = base.documents.get(restored).document.text if restored else parameters.verbatim("text")
    try:
        done = base.documents.revise(view.document.id, text)
    except VersionConflict as error:
        newer = view.document
        while newer.superseded_by is not None:
            newer = base.documents.get(newer.superseded_by).document
        if newer is view.document:
            raise
        found = Conflict(base.name, newer.id, newer.title, newer.text, text, error.message)
        return Page("conflict.html", "It has changed meanwhile", found, status=409)
    replaced = "" if restored else done.supersedes
    to = address(f"/documents/{done.document_id}", kb=base.name, former=replaced)
    return ChangeResult(to, done, "taken-back" if restored else "revised")


def preview_link(context: OperationContext, parameters: PageRequest) -> Page:
    """Show what making a link of a mention would come to."""
    found = link_mention(context, _link_parameters(parameters, dry_run=True))
    shown = {
        "back": f"/documents/{parameters.path['id']}/links",
        "fields": {"start": parameters.number("start", 0), "end": parameters.number("end", 0)},
    }
    return Page("link.html", "Make it a link", found, shown)


def make_link(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Make a link of a mention, as the operation ``link_mention`` does."""
    found = link_mention(context, _link_parameters(parameters, dry_run=False))
    done = found.document
    to = address(f"/documents/{done.document_id}", kb=done.kb, former=done.supersedes)
    return ChangeResult(to, found, "linked")


def _link_parameters(parameters: PageRequest, *, dry_run: bool) -> LinkMentionParameters:
    return LinkMentionParameters(
        document_id=parameters.path["id"],
        named_in=parameters.text("in"),
        start=parameters.number("start", 0),
        end=parameters.number("end", 0),
        dry_run=dry_run,
    )


def _receipts(base: KnowledgeBase, view: DocumentView) -> Sequence[Any]:
    found = base.documents.provenance(view.document.source) if view.document.source else ()
    return [each for each in found if each.document_id in (view.document.id, None)]


def _document(
    context: OperationContext, parameters: PageRequest
) -> tuple[KnowledgeBase, DocumentView]:
    id_ = parameters.path["id"]
    base = opened(context).owner("documents", id_)
    view = base.documents.get(id_)
    context.check_readable(base, view.document.namespace, f"document {id_!r}")
    return base, view


class LinkedPages(Struct, frozen=True):
    """How a document is linked with others."""

    id: str
    title: str
    kb: str
    links: tuple[OutgoingLink, ...]
    backlinks: tuple[Backlink, ...]
    unlinked_mentions: tuple[Mention, ...]
    related: tuple[RelatedPage, ...]


def linked_pages(context: OperationContext, parameters: PageRequest) -> Page:
    """Show what a document links to, what links to it or names it, and what is about the same."""
    base, view = _document(context, parameters)
    document = view.document
    pages = base.links.view(context.filters())
    data = LinkedPages(
        document.id,
        document.title,
        base.name,
        tuple(pages.outgoing(document.id, _LINKED)),
        tuple(pages.backlinks(document.id, _LINKED)),
        tuple(pages.mentions(document.id, _LINKED)),
        tuple(pages.related(document.id, _RELATED)),
    )
    naming = (base.documents.get(each.id) for each in data.unlinked_mentions)
    changeable = {each.document.id for each in naming if not base.documents.why_unchangeable(each)}
    shown = {"changeable": changeable}
    return Page("links.html", document.title or document.source, data, shown)


class Run(Struct, frozen=True):
    """A run of a document's text, with what stands there."""

    text: str
    memory_id: str = ""
    """The statement that was distilled from it; "" for none."""
    link: str = ""
    """The address of the document that it is a link to; "" for none."""
    is_cited: bool = False
    """Whether it is the place that was asked for."""
    is_first_cited: bool = False


def runs(
    text: str,
    first: int,
    last: int,
    memories: Sequence[Memory],
    cited: tuple[int, int],
    links: Sequence[_Span] = (),
) -> Sequence[Run]:
    """Return a text cut where statements, links and a cited place begin and end.

    Args:
        text: The whole text.
        first: Where the piece that is shown begins.
        last: Where it ends.
        memories: What was made of the document.
        cited: Where the cited place begins and ends; negative for none.
        links: Where links to other documents begin and end, and their addresses, in their order.
    """
    stated = [
        (each.start, each.end, each.id)
        for each in memories
        if each.level == "memory" and each.type not in RESTATING_TYPES and each.start is not None
        and each.end is not None and each.end > first and each.start < last
    ]  # fmt: skip
    stated.sort(key=lambda span: (span[0], -span[1]))
    edges = {first, last, *(edge for span in (*stated, *links) for edge in span[:2]), *cited}
    cuts = sorted(edge for edge in edges if first <= edge <= last)
    made: list[Run] = []
    has_cited = False
    covering = zip(_covering(stated, cuts), _covering(links, cuts), strict=True)
    for (start, end), (over, linked) in zip(pairwise(cuts), covering, strict=True):
        is_cited = cited[0] <= start and end <= cited[1]
        made.append(
            Run(
                text[start:end],
                memory_id=over[-1][2] if over else "",
                link=linked[0][2] if linked else "",
                is_cited=is_cited,
                is_first_cited=is_cited and not has_cited,
            )
        )
        has_cited = has_cited or is_cited
    return made


def _covering(spans: Sequence[_Span], cuts: Sequence[int]) -> Iterator[Sequence[_Span]]:
    """Yield the spans that each stretch between two cuts lies in.

    Args:
        spans: In the order in which they begin; none begins or ends within a stretch.
        cuts: Where stretches begin and end, in ascending order.
    """
    over: list[_Span] = []
    at = 0
    for start in cuts[:-1]:
        while at < len(spans) and spans[at][0] <= start:
            over.append(spans[at])
            at += 1
        over = [span for span in over if span[1] > start]
        yield over


def reprocess(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Read a document's source again as ``memctl document reprocess`` does.

    Raises:
        UsageError: Its source cannot be read.
    """
    base, view = _document(context, parameters)
    _check_own(context, base, view)
    report = base.documents.reprocess([view.document.id])
    if report.failed:
        failed = next(each for each in report.outcomes if each.outcome == "failed")
        raise UsageError(failed.reason, failed.hint)
    new = next((each.document_id for each in report.outcomes if each.document_id), None)
    id_ = new or view.document.id
    return ChangeResult(address(f"/documents/{id_}", kb=base.name), report, "reprocessed")


def preview_document(context: OperationContext, parameters: PageRequest) -> Page:
    """Show what would go with a document, as ``memctl forget --document ID --dry-run`` does."""
    base, view = _document(context, parameters)
    report = base.forget(Selection(documents=(view.document.id,)), dry_run=True)
    row = view.document
    return forget_page(base, report, "document", f"/documents/{row.id}", row.title or row.source)


def remove_document(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Delete a document, or forget it for good, as the commands of these names do."""
    base, view = _document(context, parameters)
    _check_own(context, base, view)
    id_ = view.document.id
    if parameters.text("how") == _FORGET:
        return forgotten_reply(base, base.forget(Selection(documents=(id_,))), "/documents")
    gone = {"deleted_memories": base.documents.delete(id_)}
    return ChangeResult(address("/documents", kb=base.name), gone, "deleted")


def _check_own(context: OperationContext, base: KnowledgeBase, view: DocumentView) -> None:
    """Refuse to change what all users share.

    Raises:
        NotFoundError: It is not open to this caller.
    """
    what = f"document {view.document.id!r}"
    context.check_changeable(base, view.document.namespace, what)


# --- conversations --------------------------------------------------------------------------------


def sessions(context: OperationContext, parameters: PageRequest) -> Page:
    """List conversations as ``memctl session list`` does, the latest first."""
    status: SessionStatus | None = parameters.choice("status", SessionStatus, None)
    offset = parameters.offset
    found = [
        {"kb": base.name, **to_plain(each)}
        for base in bases_of(context)
        for each in base.sessions.list(
            namespaces=context.namespaces("conversations"),
            status=status,
            limit=offset + PAGE_ROWS + 1,
        )
    ]
    found.sort(key=lambda row: str(row["last_at"]), reverse=True)
    rows = found[offset : offset + PAGE_ROWS]
    more = offset + PAGE_ROWS if len(found) > offset + PAGE_ROWS else None
    data = RowList(tuple(rows), None, offset, more)
    shown = {
        "fields": {"status": status or ""},
        "states": get_args(SessionStatus),
        "previous_offset": data.previous_offset,
    }
    return Page("sessions.html", "Sessions", data, shown)


def session(context: OperationContext, parameters: PageRequest) -> Page:
    """Show a conversation with what was said last."""
    base, found = _session(context, parameters)
    turns = base.sessions.turns(found, last=_TURNS)
    data = {"kb": base.name, "session": found, "turns": turns}
    return Page("session.html", found.title or found.session_id, data)


def _session(context: OperationContext, parameters: PageRequest) -> tuple[KnowledgeBase, Session]:
    namespace = parameters.text("namespace") or None
    return readable_session(context, bases_of(context), parameters.path["id"], namespace)


def archive_session(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Summarise a conversation and put it away, as ``memctl session archive`` does."""
    base, found = _session(context, parameters)
    made = base.sessions.archive(found)
    to = address(f"/sessions/{found.session_id}", kb=base.name, namespace=found.namespace)
    return ChangeResult(to, made, "archived")


def preview_session(context: OperationContext, parameters: PageRequest) -> Page:
    """Show what would go with a conversation."""
    base, found = _session(context, parameters)
    report = base.sessions.forget(found, dry_run=True)
    back, name = f"/sessions/{found.session_id}", found.title or found.session_id
    return forget_page(base, report, "conversation", back, name)


def forget_session(context: OperationContext, parameters: PageRequest) -> ChangeResult:
    """Remove a conversation for good, as ``memctl forget --session`` does."""
    base, found = _session(context, parameters)
    return forgotten_reply(base, base.sessions.forget(found), "/sessions")

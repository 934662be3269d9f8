"""Operations that add documents, read them again, or change their texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import MemctlError, UsageError, VersionConflict
from memctl.identity import documents_of
from memctl.knowledge_base.document_revision import RevisedDocument
from memctl.operations.lookup import count_passages
from memctl.operations.operation_context import OperationContext, Unavailable
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.records import FileOutcome, IngestReport

_LONGEST = 10_000_000


class AddDocumentParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``add_document``."""

    content: Annotated[str | None, Rule("The text of the document.")] = None
    path: Annotated[str | None, Rule("A file on this machine, instead of content.")] = None
    title: Annotated[str, Rule("What it is called.")] = ""
    knowledge_base: Annotated[str | None, Rule("Where it goes.")] = None
    namespace: Annotated[str | None, Rule("The namespace it goes to.")] = None
    tags: Annotated[tuple[str, ...], Rule("Words to file it under.")] = ()
    session_id: Annotated[str | None, Rule("The conversation it belongs to.")] = None
    source: Annotated[str, Rule("Where it comes from.")] = ""
    dry_run: Annotated[bool, Rule("Write nothing; only say what would become of it.")] = False


class DocumentOutcome(Struct, frozen=True):
    """What became of a document."""

    document_id: str | None
    outcome: str
    passages: int
    memories: int
    kb: str
    dry_run: bool


def add_document(context: OperationContext, parameters: AddDocumentParameters) -> DocumentOutcome:
    """Ingest a text or a file as ``memctl ingest`` does; the same one twice is known.

    Raises:
        Unavailable: Files of that folder were not allowed to this caller.
    """
    if (parameters.content is None) == (parameters.path is None):
        raise UsageError("one of content and path is needed", "give the text, or name the file")
    if parameters.content is not None and not 0 < len(parameters.content.strip()) <= _LONGEST:
        raise UsageError(f"content must have from 1 to {_LONGEST:,} characters")
    paths = [] if parameters.path is None else [_allowed_path(context, parameters.path)]
    names = () if parameters.knowledge_base is None else (parameters.knowledge_base,)
    with (
        context.limited_to(names) as limited,
        limited.open_for_adding(dry_run=parameters.dry_run) as base,
    ):
        namespace = parameters.namespace
        if namespace is not None and not limited.reads(base, namespace):
            raise Unavailable(f"the namespace {namespace!r} is not open to this caller")
        if namespace is None and limited.identity.user is not None:
            namespace = documents_of(limited.home.config.namespaces, limited.identity.user)
        report = base.documents.ingest(
            paths,
            text=parameters.content,
            namespace=namespace,
            tags=[tag.removeprefix("#") for tag in parameters.tags],
            source=parameters.source or None,
            session=parameters.session_id,
            title=parameters.title,
            dry_run=parameters.dry_run,
            progress=limited.progress,
        )
        return _outcome(report, base, dry_run=parameters.dry_run)


def _allowed_path(context: OperationContext, text: str) -> Path:
    """Return a path, if it lies below a folder whose files the caller may have read."""
    try:
        path = Path(text).expanduser().resolve()
    except (ValueError, RuntimeError, OSError):  # a NUL, an unknown user's home, a circle of links
        raise UsageError(f"{text[:200]!r} is no path") from None
    if not any(path.is_relative_to(folder) for folder in context.allow_paths):
        raise Unavailable(
            "files of that folder are not allowed here", "give the text as content instead"
        )
    if not path.is_file():
        raise UsageError(f"there is no file {text!r}")
    return path


def _outcome(report: IngestReport, base: KnowledgeBase, *, dry_run: bool) -> DocumentOutcome:
    """Return what became of the one input; an archive has several, which are counted together.

    Raises:
        MemctlError: It could not be read.
    """
    outcomes = report.outcomes
    failed = next((each for each in outcomes if each.outcome == "failed"), None)
    if failed is not None:
        raise MemctlError(failed.reason, failed.hint)
    first: FileOutcome | None = outcomes[0] if outcomes else None
    ids = [] if dry_run else [each.document_id for each in outcomes if each.document_id]
    return DocumentOutcome(
        document_id=first.document_id if first else None,
        outcome=first.outcome if first else "empty",
        passages=sum(count_passages(base, ids).values()),
        memories=sum(each.memories for each in outcomes),
        kb=base.name,
        dry_run=dry_run,
    )


class ProcessDocumentParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``process_document``."""

    document_id: Annotated[str, Rule("The id of the document, or its title.")]
    dry_run: Annotated[bool, Rule("Read nothing; only check that it may be.")] = False


def process_document(
    context: OperationContext, parameters: ProcessDocumentParameters
) -> DocumentOutcome:
    """Read a document again from where it is, as ``memctl document reprocess`` does."""
    base, document = context.changeable_document(parameters.document_id)
    if parameters.dry_run:
        return DocumentOutcome(document.id, "unchanged", 0, 0, base.name, True)
    report = base.documents.reprocess([document.id], progress=context.progress)
    done = _outcome(report, base, dry_run=False)
    return replace(done, document_id=done.document_id or document.id)


_NOT_IN_A_LINK = "[]|#^\n"
_CONTEXT_CHARS = 80
"""Characters shown before and after a link."""
_DRY_RUN = "Write nothing; only say what would come of it."


class ReviseDocumentParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``revise_document``."""

    document_id: Annotated[str, Rule("The id of the version that was read.")]
    text: Annotated[str, Rule("Its new text, whole.")]
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


def revise_document(
    context: OperationContext, parameters: ReviseDocumentParameters
) -> RevisedDocument:
    """Write a new version of a document; one that has changed since it was read stays."""
    base, _ = context.changeable_document(parameters.document_id)
    return base.documents.revise(
        parameters.document_id, parameters.text, dry_run=parameters.dry_run
    )


class LinkMentionParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``link_mention``."""

    document_id: Annotated[str, Rule("The document that is named.")]
    named_in: Annotated[str, Rule("The document that names it, as unlinked_mentions says.")]
    start: Annotated[int, Rule("Where the name begins in its text.", low=0)]
    end: Annotated[int, Rule("Where it ends.", low=1)]
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


class LinkedMention(Struct, frozen=True):
    """A name that has become a link."""

    document: RevisedDocument
    """The document in which it stands; ``revise_document`` with its former text takes it back."""
    link: str
    before: str
    """The text around it, as it was."""
    after: str


def link_mention(context: OperationContext, parameters: LinkMentionParameters) -> LinkedMention:
    """Turn a mention of another document into a link.

    Raises:
        VersionConflict: The name is no longer there.
        UsageError: The document's title cannot be written into a link.
    """
    base, document = context.changeable_document(parameters.named_in)
    text = document.text
    view = base.links.view(context.filters())
    page = view.map.pages[view.map.find(parameters.document_id).page]
    places = {
        (place.document_id, place.start, place.end)
        for each in view.mentions(page.id, None)
        for place in each.places
    }
    if (parameters.named_in, parameters.start, parameters.end) not in places:
        raise VersionConflict(
            f"{page.title!r} is not named there without a link", "list its mentions again"
        )
    name = text[parameters.start : parameters.end]
    if any(character in page.title + name for character in _NOT_IN_A_LINK):
        raise UsageError(f"{page.title!r} cannot be written into a link", "rename the document")
    link = f"[[{name}]]" if name == page.title else f"[[{page.title}|{name}]]"
    new = text[: parameters.start] + link + text[parameters.end :]
    done = base.documents.revise(parameters.named_in, new, dry_run=parameters.dry_run)
    first = max(0, parameters.start - _CONTEXT_CHARS)
    rest = text[parameters.end : parameters.end + _CONTEXT_CHARS]
    lead = text[first : parameters.start]
    return LinkedMention(done, link, f"{lead}{name}{rest}", f"{lead}{link}{rest}")

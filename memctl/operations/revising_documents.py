"""Operations that change the text of a document: all of it, or a name in it that becomes a link."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from memctl.errors import UsageError, VersionConflict
from memctl.operations.operation_context import OperationContext
from memctl.records import RevisedDocument
from memctl.validation import Rule

_NOT_IN_A_LINK = "[]|#^\n"
_AROUND = 80
"""Characters shown before and after a link."""
_DRY_RUN = "Write nothing; only say what would come of it."


class ReviseDocumentParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``revise_document``."""

    document_id: Annotated[str, Rule("The id of the version that was read.")]
    text: Annotated[str, Rule("Its new text, whole.")]
    dry_run: Annotated[bool, Rule(_DRY_RUN)] = False


def revise_document(context: OperationContext, asked: ReviseDocumentParameters) -> RevisedDocument:
    """Write a new version of a document; one that has changed since it was read stays."""
    base, _ = context.changeable_document(asked.document_id)
    return base.documents.revise(asked.document_id, asked.text, dry_run=asked.dry_run)


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


def link_mention(context: OperationContext, asked: LinkMentionParameters) -> LinkedMention:
    """Make a link of a place at which a document names another one.

    Raises:
        VersionConflict: No such name stands there any more.
        UsageError: The document's title cannot be written into a link.
    """
    base, document = context.changeable_document(asked.named_in)
    text = document.text
    view = base.links.view(context.filters())
    page = view.map.pages[view.map.find(asked.document_id).page]
    places = {
        (place.document_id, place.start, place.end)
        for each in view.mentions(page.id, None)
        for place in each.places
    }
    if (asked.named_in, asked.start, asked.end) not in places:
        raise VersionConflict(
            f"{page.title!r} is not named there without a link", "list its mentions again"
        )
    name = text[asked.start : asked.end]
    if any(character in page.title + name for character in _NOT_IN_A_LINK):
        raise UsageError(f"{page.title!r} cannot be written into a link", "rename the document")
    link = f"[[{name}]]" if name == page.title else f"[[{page.title}|{name}]]"
    new = text[: asked.start] + link + text[asked.end :]
    done = base.documents.revise(asked.named_in, new, dry_run=asked.dry_run)
    first = max(0, asked.start - _AROUND)
    rest = text[asked.end : asked.end + _AROUND]
    lead = text[first : asked.start]
    return LinkedMention(done, link, f"{lead}{name}{rest}", f"{lead}{link}{rest}")

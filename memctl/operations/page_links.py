"""Operations on the links between documents: what a page links to, what links here, what is near.

Each gives what ``memctl document links`` and its siblings give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Struct
from msgspec.structs import replace

from memctl.links.link_records import (
    Backlink,
    LinkCheck,
    LinkExtraction,
    Mention,
    MissingLink,
    OutgoingLink,
    RelatedPage,
    VectorRenewal,
)
from memctl.operations.finding import opened
from memctl.operations.operation_context import OperationContext
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.links.link_views import PageLinks

_PAGE = "The id of the document, its title, its slug or an alias."
_LIMIT = "At most this many."
_NAMESPACE = "Only documents of this namespace."


class PageParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``page_links``, ``backlinks`` and ``unlinked_mentions``."""

    document_id: Annotated[str, Rule(_PAGE)]
    namespace: Annotated[str | None, Rule(_NAMESPACE)] = None
    limit: Annotated[int, Rule(_LIMIT, low=1, high=200)] = 20


class RelatedParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``related_pages``."""

    document_id: Annotated[str, Rule(_PAGE)]
    namespace: Annotated[str | None, Rule(_NAMESPACE)] = None
    limit: Annotated[int, Rule(_LIMIT, low=1, high=50)] = 10


class LinksParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``missing_links`` and ``check_links``."""

    namespace: Annotated[str | None, Rule(_NAMESPACE)] = None
    limit: Annotated[int, Rule(_LIMIT, low=1, high=1000)] = 50


class RenewParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``extract_links`` and ``embed_document``."""

    document_id: Annotated[str, Rule(_PAGE)]
    dry_run: Annotated[bool, Rule("Write nothing; say what would come of it.")] = False


class PageLinksReply(Struct, frozen=True):
    """Where a document links to."""

    id: str
    title: str
    links: tuple[OutgoingLink, ...]


class BacklinksReply(Struct, frozen=True):
    """The documents that link to one."""

    id: str
    title: str
    backlinks: tuple[Backlink, ...]


class MentionsReply(Struct, frozen=True):
    """The documents that name one without a link."""

    id: str
    title: str
    unlinked_mentions: tuple[Mention, ...]


class RelatedReply(Struct, frozen=True):
    """The documents that are about the same as one."""

    id: str
    title: str
    related_pages: tuple[RelatedPage, ...]


class MissingLinksReply(Struct, frozen=True):
    """The names that links use and no document has."""

    missing: tuple[MissingLink, ...]


def page_links(context: OperationContext, parameters: PageParameters) -> PageLinksReply:
    """Return where a document links to."""
    view, id_, title = _page(context, parameters.document_id, parameters.namespace)
    return PageLinksReply(id_, title, tuple(view.outgoing(id_, parameters.limit)))


def backlinks(context: OperationContext, parameters: PageParameters) -> BacklinksReply:
    """Return the documents that link to one."""
    view, id_, title = _page(context, parameters.document_id, parameters.namespace)
    return BacklinksReply(id_, title, tuple(view.backlinks(id_, parameters.limit)))


def unlinked_mentions(context: OperationContext, parameters: PageParameters) -> MentionsReply:
    """Return the documents that name one without a link."""
    view, id_, title = _page(context, parameters.document_id, parameters.namespace)
    return MentionsReply(id_, title, tuple(view.mentions(id_, parameters.limit)))


def related_pages(context: OperationContext, parameters: RelatedParameters) -> RelatedReply:
    """Return the documents that are about the same as one."""
    view, id_, title = _page(context, parameters.document_id, parameters.namespace)
    return RelatedReply(id_, title, tuple(view.related(id_, parameters.limit)))


def missing_links(context: OperationContext, parameters: LinksParameters) -> MissingLinksReply:
    """Return the names that links use and no document has."""
    return MissingLinksReply(tuple(_view(context, parameters.namespace).missing(parameters.limit)))


def check_links(context: OperationContext, parameters: LinksParameters) -> LinkCheck:
    """Return how the links stand, and what is wrong with some."""
    found = _view(context, parameters.namespace).check()
    return replace(found, problems=found.problems[: parameters.limit])


def extract_links(context: OperationContext, parameters: RenewParameters) -> LinkExtraction:
    """Find the links of a document in its text again."""
    base, id_ = _changeable(context, parameters.document_id)
    return base.documents.extract_links([id_], dry_run=parameters.dry_run)


def embed_document(context: OperationContext, parameters: RenewParameters) -> VectorRenewal:
    """Make the vectors of a document anew."""
    base, id_ = _changeable(context, parameters.document_id)
    return base.documents.renew_vectors([id_], dry_run=parameters.dry_run)


def _changeable(context: OperationContext, reference: str) -> tuple[KnowledgeBase, str]:
    """Return the knowledge base that is written to, and the document in it that is meant.

    Raises:
        NotFoundError: There is none that is open to this caller.
        Unavailable: It is shared, and its reader may not change it.
    """
    base = context.reading_existing()
    base.resources.require_writable()
    view = base.links.view(context.filters())
    page = view.map.pages[view.map.find(reference).page]
    context.check_changeable(base, page.namespace, f"document {reference!r}")
    return base, page.id


def _view(context: OperationContext, namespace: str | None) -> PageLinks:
    return opened(context).links.view(context.filters(namespace=namespace))


def _page(
    context: OperationContext, reference: str, namespace: str | None
) -> tuple[PageLinks, str, str]:
    """Return the links, and id and title of the document that is meant.

    Raises:
        NotFoundError: There is none that is open to this caller.
    """
    view = _view(context, namespace)
    page = view.map.pages[view.map.find(reference).page]
    return view, page.id, page.title

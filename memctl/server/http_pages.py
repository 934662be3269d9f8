"""What documents link to, are linked from and are like: under ``/v1``, and as pages of a wiki."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Struct

from memctl.operations.operation_context import OperationContext
from memctl.operations.page_links import (
    LinksParameters,
    PageParameters,
    RelatedParameters,
    backlinks,
    check_links,
    missing_links,
    page_links,
    related_pages,
    unlinked_mentions,
)
from memctl.server.http_endpoints import Endpoint, Listing, Place
from memctl.validation import Rule

Rows = Callable[[OperationContext, Any, Place], Listing]


class PageRows(Struct, frozen=True, kw_only=True):
    """How many links."""

    limit: Annotated[int, Rule("At most this many.", low=1, high=200)] = 20
    namespace: Annotated[str | None, Rule("Only documents of this namespace.")] = None


class RelatedRows(Struct, frozen=True, kw_only=True):
    """How many documents."""

    limit: Annotated[int, Rule("At most this many.", low=1, high=50)] = 10
    namespace: Annotated[str | None, Rule("Only documents of this namespace.")] = None


class Forced(Struct, frozen=True, kw_only=True):
    """Whether to do it again."""

    force: Annotated[bool, Rule("Do it again, even if it was done.")] = False


def _page(parameters: PageRows, place: Place) -> PageParameters:
    return PageParameters(
        document_id=place["id"], namespace=parameters.namespace, limit=parameters.limit
    )


def _listing(rows: Sequence[Any]) -> Listing:
    return Listing(rows, len(rows))


def _links(context: OperationContext, parameters: PageRows, place: Place) -> Listing:
    return _listing(page_links(context, _page(parameters, place)).links)


def _backlinks(context: OperationContext, parameters: PageRows, place: Place) -> Listing:
    return _listing(backlinks(context, _page(parameters, place)).backlinks)


def _mentions(context: OperationContext, parameters: PageRows, place: Place) -> Listing:
    return _listing(unlinked_mentions(context, _page(parameters, place)).unlinked_mentions)


def _related_listing(context: OperationContext, parameters: RelatedRows, place: Place) -> Listing:
    wanted = RelatedParameters(
        document_id=place["id"], namespace=parameters.namespace, limit=parameters.limit
    )
    return _listing(related_pages(context, wanted).related_pages)


def _missing_listing(context: OperationContext, parameters: LinksParameters, _: Place) -> Listing:
    return _listing(missing_links(context, parameters).missing)


def _check(context: OperationContext, parameters: LinksParameters, _: Place) -> object:
    return check_links(context, parameters)


def _wrap_rows(name: str, rows: Rows) -> Callable[[OperationContext, Any, Place], object]:
    """Return an endpoint's function that wraps its rows as programs of a wiki expect them."""

    def run(context: OperationContext, parameters: Any, place: Place) -> object:
        return {"success": True, "data": {name: rows(context, parameters, place).plain()["items"]}}

    return run


def _extract(context: OperationContext, _: Forced, place: Place) -> object:
    """Return the links of a page, which are read from its text whenever they are asked for."""
    found = page_links(context, PageParameters(document_id=place["id"], limit=200))
    return {"success": True, "data": {"links": found.links, "total": len(found.links)}}


def _embed(context: OperationContext, parameters: Forced, place: Place) -> object:
    """Make the vectors of a page anew with ``force``; without, it has them since it was read."""
    base, document = context.changeable_document(place["id"])
    memories = base.documents.get(document.id).memories
    done: dict[str, Any] = {"id": document.id, "passages": len(memories)}
    if parameters.force:
        done["report"] = base.documents.renew_vectors([document.id])
    return {"success": True, "data": {**done, "generated": parameters.force}}


_KB, _WIKI = "/v1/kbs/{kb}", "/api/v1/admin/pages/{id}"
_DOCUMENT = f"{_KB}/documents/{{id}}"
PAGES: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", f"{_DOCUMENT}/links", "List what a document links to.", _links, PageRows,
        operation="page_links",
    ),
    Endpoint(
        "GET", f"{_DOCUMENT}/backlinks", "List the documents that link to one.", _backlinks,
        PageRows, operation="backlinks",
    ),
    Endpoint(
        "GET", f"{_DOCUMENT}/mentions", "List the documents that name one without a link.",
        _mentions, PageRows, operation="unlinked_mentions",
    ),
    Endpoint(
        "GET", f"{_DOCUMENT}/related", "List the documents that are like one.", _related_listing,
        RelatedRows, operation="related_pages",
    ),
    Endpoint(
        "GET", f"{_KB}/links/missing", "List the names that no document has.", _missing_listing,
        LinksParameters, operation="missing_links",
    ),
    Endpoint(
        "GET", f"{_KB}/links", "Tell how the links stand.", _check, LinksParameters,
        operation="check_links",
    ),
    Endpoint(
        "GET", f"{_WIKI}/backlinks", "List the pages that link to one.",
        _wrap_rows("backlinks", _backlinks), PageRows, operation="backlinks",
    ),
    Endpoint(
        "GET", f"{_WIKI}/unlinked_mentions", "List the pages that name one without a link.",
        _wrap_rows("unlinked_mentions", _mentions), PageRows, operation="unlinked_mentions",
    ),
    Endpoint(
        "GET", f"{_WIKI}/related_pages", "List the pages that are like one.",
        _wrap_rows("related_pages", _related_listing), RelatedRows, operation="related_pages",
    ),
    Endpoint(
        "POST", f"{_WIKI}/extract_links", "List what a page links to.", _extract, Forced,
        operation="page_links",
    ),
    Endpoint(
        "POST", f"{_WIKI}/generate_embedding", "Make the vectors of a page.", _embed, Forced,
        "write",
    ),
)  # fmt: skip

"""Views of links: pages with excerpts, places, names in vain, problems."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

LinkStatus = Literal["resolved", "ambiguous", "missing"]
Problem = Literal["missing", "ambiguous", "anchor", "orphan"]


class Place(Struct, frozen=True):
    """Where something stands: ``document.text[start:end]``, with the sentence around it."""

    document_id: str
    """Of a document of several parts, the part."""
    start: int
    end: int
    sentence: str


class PageView(Struct, frozen=True):
    """A document that is linked with another one."""

    id: str
    title: str
    slug: str
    type: str
    excerpt: str
    kb: str
    namespace: str


class Backlink(PageView, frozen=True):
    """A document that links here; its excerpt is the sentence with the first link."""

    places: tuple[Place, ...]


class Mention(PageView, frozen=True):
    """A document that names another one without a link; its excerpt is the first sentence."""

    places: tuple[Place, ...]


class RelatedPage(PageView, frozen=True):
    """A document that is about the same."""

    similarity: float
    """From 0 to 1."""


class OutgoingLink(Struct, frozen=True):
    """An edge: all links of one document to another one, or to a name that no document has."""

    name: str
    status: LinkStatus
    id: str | None
    """Of the document that it leads to."""
    title: str
    slug: str
    type: str
    excerpt: str
    kb: str
    written: tuple[str, ...]
    """As the links stand there, each once."""
    anchors: tuple[str, ...]
    """Headings, and blocks with ``^``, that they lead to."""
    others: tuple[str, ...]
    """Ids of the documents that the name could mean just as well."""
    places: tuple[Place, ...]


class PageReference(Struct, frozen=True):
    """A document that has a link."""

    id: str
    title: str
    kb: str


class MissingLink(Struct, frozen=True):
    """A name that documents link to and that no document has."""

    name: str
    count: int
    """How many documents link to it."""
    spellings: tuple[str, ...]
    documents: tuple[PageReference, ...]


class LinkProblem(Struct, frozen=True):
    """Something that is wrong with a link, or a note that no link leads to or from."""

    problem: Problem
    id: str
    title: str
    kb: str
    name: str
    """What the link names; "" for an orphan."""
    detail: str


class LinkCheck(Struct, frozen=True):
    """How the links of some documents stand."""

    documents: int
    links: int
    """From one document to another one, or to a name."""
    missing: int
    """Names that no document has, however many documents link to them."""
    ambiguous: int
    anchors: int
    """Links to a heading or a block that is not there."""
    orphans: int
    problems: tuple[LinkProblem, ...]


class LinkExtraction(Struct, frozen=True):
    """What reading the links of documents again came to."""

    documents: int
    links: int
    """Edges that they have now, one for each name that a document links to."""
    changed: int
    """Documents that link to something else now."""


class VectorRenewal(Struct, frozen=True):
    """What making the vectors of documents anew came to."""

    documents: int
    memories: int

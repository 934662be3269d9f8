"""Views of links: pages with excerpts, places, names in vain, problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LinkStatus = Literal["resolved", "ambiguous", "missing"]
Problem = Literal["missing", "ambiguous", "anchor", "orphan"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: ``document.text[start:end]``, with the sentence around it."""

    document_id: str
    """Of a document of several parts, the part."""
    start: int
    end: int
    sentence: str


@dataclass(frozen=True, slots=True)
class PageView:
    """A document that is linked with another one."""

    id: str
    title: str
    slug: str
    type: str
    excerpt: str
    kb: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Backlink(PageView):
    """A document that links here; its excerpt is the sentence with the first link."""

    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Mention(PageView):
    """A document that names another one without a link; its excerpt is the first sentence."""

    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class RelatedPage(PageView):
    """A document that is about the same."""

    similarity: float
    """From 0 to 1."""


@dataclass(frozen=True, slots=True)
class OutgoingLink:
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


@dataclass(frozen=True, slots=True)
class PageReference:
    """A document that has a link."""

    id: str
    title: str
    kb: str


@dataclass(frozen=True, slots=True)
class MissingLink:
    """A name that documents link to and that no document has."""

    name: str
    count: int
    """How many documents link to it."""
    spellings: tuple[str, ...]
    documents: tuple[PageReference, ...]


@dataclass(frozen=True, slots=True)
class LinkProblem:
    """Something that is wrong with a link, or a note that no link leads to or from."""

    problem: Problem
    id: str
    title: str
    kb: str
    name: str
    """What the link names; "" for an orphan."""
    detail: str


@dataclass(frozen=True, slots=True)
class LinkCheck:
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


@dataclass(frozen=True, slots=True)
class LinkExtraction:
    """What reading the links of documents again came to."""

    documents: int
    links: int
    """Edges that they have now, one for each name that a document links to."""
    changed: int
    """Documents that link to something else now."""


@dataclass(frozen=True, slots=True)
class VectorRenewal:
    """What making the vectors of documents anew came to."""

    documents: int
    memories: int

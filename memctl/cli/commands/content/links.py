"""memctl links, and memctl document links|backlinks|mentions|related: what links documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memctl.cli.arguments import parse_filters
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    KnowledgeBasesOption,
    NamespacesOption,
    Output,
    command,
    group,
)
from memctl.cli.commands.content import document
from memctl.cli.commands.content.document import Document, resolve_document
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import Column, emit, emit_one
from memctl.cli.rendering.terminal_text import one_line, short_id, shortened
from memctl.formatting import format_count

if TYPE_CHECKING:
    from memctl.links.link_records import LinkCheck

app = group("links", "Links between documents that lead nowhere, or to several.")

_MAX_SHOWN = 20


def _titles(references: Sequence[dict[str, Any]]) -> str:
    return ", ".join(one_line(each["title"], 40) for each in references)


_EXCERPT = Column("excerpt", "EXCERPT", lambda text: one_line(text, 100), wrap=True)
_PAGES = (Column("id", "ID", short_id), Column("title", "TITLE"), _EXCERPT)
_RELATED = (
    Column("similarity", "SIMILARITY", lambda number: f"{number:.2f}", right=True),
    *_PAGES,
)
_OUTGOING = (
    Column("name", "LINK", lambda name: shortened(name, 40)),
    Column("status", "STATUS"),
    Column("id", "ID", lambda id_: short_id(id_) if id_ else ""),
    Column("title", "TITLE"),
    _EXCERPT,
)
_MISSING = (
    Column("name", "NAME", lambda name: shortened(name, 60)),
    Column("count", "DOCUMENTS", right=True),
    Column("documents", "LINKED FROM", lambda found: one_line(_titles(found), 80), wrap=True),
)
_PROBLEMS = (
    Column("problem", "PROBLEM"),
    Column("id", "ID", short_id),
    Column("title", "TITLE"),
    Column("name", "LINK", lambda name: shortened(name, 40)),
    Column("detail", "DETAIL", lambda text: one_line(text, 100), wrap=True),
)


@command(
    document.app,
    "links",
    """
    memctl document links d_3fa2b1
    memctl document links "Release Plan" -o json
    """,
    identity=True,
)
def links(
    context: CommandContext,
    id_: Document,
    kb: KnowledgeBasesOption = None,
    namespace: NamespacesOption = None,
    page: Page = Page(50),
    output: Output = None,
) -> None:
    """List where a document links to, and which links lead nowhere.

    All links to one document are one row.
    """
    with context.reading(kb) as bases:
        view = bases.links.view(parse_filters(namespaces=namespace))
        rows = view.outgoing(resolve_document(context, view, id_).id, page.needed)
    emit(context.page(rows, page), _OUTGOING, output)
    if not rows:
        context.say(f"note: nothing is linked from {one_line(id_, 60)!r}")


@command(
    document.app,
    "backlinks",
    """
    memctl document backlinks d_3fa2b1
    memctl document backlinks "Release Plan" -n 5
    """,
    identity=True,
)
def backlinks(
    context: CommandContext,
    id_: Document,
    kb: KnowledgeBasesOption = None,
    namespace: NamespacesOption = None,
    page: Page = Page(50),
    output: Output = None,
) -> None:
    """List the documents that link to one."""
    with context.reading(kb) as bases:
        view = bases.links.view(parse_filters(namespaces=namespace))
        rows = view.backlinks(resolve_document(context, view, id_).id, page.needed)
    emit(context.page(rows, page), _PAGES, output)
    if not rows:
        context.say(f"note: nothing links to {one_line(id_, 60)!r}")


@command(
    document.app,
    "mentions",
    """
    memctl document mentions d_3fa2b1
    memctl document mentions "Release Plan" -o json
    """,
    identity=True,
)
def mentions(
    context: CommandContext,
    id_: Document,
    kb: KnowledgeBasesOption = None,
    namespace: NamespacesOption = None,
    page: Page = Page(20),
    output: Output = None,
) -> None:
    """List the documents that name one without linking to it.

    They have its title or an alias in their text, as whole words.  Names of fewer than four letters
    are not looked for, unless they are of several words.
    """
    with context.reading(kb) as bases:
        view = bases.links.view(parse_filters(namespaces=namespace))
        rows = view.mentions(resolve_document(context, view, id_).id, page.needed)
    emit(context.page(rows, page), _PAGES, output)
    if not rows:
        context.say(f"note: nothing names {one_line(id_, 60)!r} without linking to it")


@command(
    document.app,
    "related",
    """
    memctl document related d_3fa2b1
    memctl document related "Release Plan" -n 3
    """,
    identity=True,
)
def related(
    context: CommandContext,
    id_: Document,
    kb: KnowledgeBasesOption = None,
    namespace: NamespacesOption = None,
    page: Page = Page(10),
    output: Output = None,
) -> None:
    """List the documents that are about the same.

    They are compared by the vectors that are stored of their passages; nothing is embedded.
    """
    with context.reading(kb) as bases:
        view = bases.links.view(parse_filters(namespaces=namespace))
        rows = view.related(resolve_document(context, view, id_).id, page.needed)
    emit(page.of(rows), _RELATED, output)
    if not rows:
        context.say(f"note: nothing is about the same as {one_line(id_, 60)!r}")


@command(
    app,
    "missing",
    """
    memctl links missing
    memctl links missing -k vault -o json
    """,
    identity=True,
)
def missing(
    context: CommandContext,
    kb: KnowledgeBasesOption = None,
    namespace: NamespacesOption = None,
    page: Page = Page(50),
    output: Output = None,
) -> None:
    """List the names that links use and no document has.

    Such a link leads to its document as soon as there is one of that name.
    """
    with context.reading(kb) as bases:
        view = bases.links.view(parse_filters(namespaces=namespace))
        rows = view.missing(page.needed)
    emit(context.page(rows, page), _MISSING, output)


@command(
    app,
    "check",
    """
    memctl links check
    memctl links check -k vault -o json
    """,
    identity=True,
)
def check(
    context: CommandContext,
    kb: KnowledgeBasesOption = None,
    namespace: NamespacesOption = None,
    output: Output = None,
) -> None:
    """Look for broken and ambiguous links, and notes without any.

    If no note of a knowledge base links to another, notes without links are not reported.
    """
    with context.reading(kb) as bases:
        found = bases.links.view(parse_filters(namespaces=namespace)).check()
    emit_one(found, output, lambda: _show_check(context, found))


def _show_check(context: CommandContext, check: LinkCheck) -> None:
    documents, links = format_count(check.documents, "document"), format_count(check.links, "link")
    if not check.links and not check.problems:
        context.console.print(f"{documents}, no links between them")
        return
    parts = (
        format_count(check.missing, "missing page"),
        format_count(check.ambiguous, "ambiguous link"),
        format_count(check.anchors, "missing heading or block", "missing headings or blocks"),
        format_count(check.orphans, "note without links", "notes without links"),
    )
    context.console.print(f"{documents}, {links}: {', '.join(parts)}")
    if check.problems:
        context.console.print()
        emit(check.problems[:_MAX_SHOWN], _PROBLEMS, "table")
    if len(check.problems) > _MAX_SHOWN:
        context.say(f"note: only the first {_MAX_SHOWN} are shown; -o json has all")

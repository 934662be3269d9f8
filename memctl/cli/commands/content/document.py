"""memctl document: what was taken in, one row a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBaseOption,
    KnowledgeBasesOption,
    Output,
    Yes,
    command,
    flag,
    group,
)
from memctl.cli.commands.content.ingest import raise_failures, reporting_a_stop, show_report
from memctl.cli.completion import complete_document
from memctl.cli.paging import DocumentPage
from memctl.cli.rendering.output_formats import (
    Column,
    Format,
    emit,
    emit_one,
    format_instant,
    print_facts,
    print_paragraph,
    print_text,
    to_plain,
    with_kb_column,
)
from memctl.cli.rendering.terminal_text import format_moment, one_line, short_id, shortened
from memctl.errors import NotFoundError, UsageError
from memctl.formatting import format_count, format_size

if TYPE_CHECKING:
    from memctl.graph.page_names import Page
    from memctl.knowledge_base import KnowledgeBase
    from memctl.links.link_records import LinkExtraction, VectorRenewal
    from memctl.links.link_views import PageLinks
    from memctl.memories.memory_views import DocumentView
    from memctl.records import Filters

app = group("document", "List, show, delete and read again what was ingested.")

Document = Annotated[
    str,
    typer.Argument(
        metavar="ID_OR_TITLE",
        help="The id of the document, enough of its beginning, its title or an alias.",
        autocompletion=complete_document,
    ),
]

_LIST = (
    Column("id", "ID", short_id),
    Column("status", "STATUS"),
    Column("created_at", "DATE", format_instant),
    Column("size", "SIZE", format_size, right=True),
    Column("importance", "IMP.", right=True),
    Column("title", "TITLE", lambda text: shortened(text, 40)),
    Column("missing", "MISSING"),
    Column("source", "SOURCE", lambda text: shortened(text.rsplit("/", 1)[-1], 40)),
)


@command(
    app,
    "list",
    """
    memctl document list --since 7d
    memctl document list --source '*.pdf' -o csv
    memctl document list --incomplete
    """,
    without=("types", "levels", "archived"),  # which only memories have
    identity=True,
)
def list_(
    context: CommandContext,
    filters: Filters,
    incomplete: bool = flag("--incomplete", "Only those that lack something."),
    kb: KnowledgeBasesOption = None,
    page: DocumentPage = DocumentPage(50),
    output: Output = None,
) -> None:
    """List documents, the latest ingested first."""
    with context.reading(kb) as bases:
        rows = context.collect_rows(
            bases,
            lambda base, n, skipped: base.documents.list(
                filters,
                incomplete=incomplete,
                limit=n,
                offset=skipped,
                sort=page.sort,
                descending=page.desc,
            ),
            page,
            lambda base, rows: base.documents.order_values(rows, page.sort),
        )
        emit(rows, with_kb_column(_LIST, len(bases)), output)


def resolve_document(context: CommandContext, view: PageLinks, reference: str) -> Page:
    """Return the document of that id or name; if several fit, say which one is taken.

    Raises:
        NotFoundError: There is no such document.
    """
    target = view.map.find(reference)
    pages = view.map.pages
    if target.others:
        others = ", ".join(short_id(pages[at].id) for at in target.others[:3])
        taken = short_id(pages[target.page].id)
        context.say(
            f"note: {one_line(reference, 60)!r} is taken for {taken}; there is also {others}"
        )
    return pages[target.page]


@contextmanager
def _open_owner(
    context: CommandContext, reference: str, names: Sequence[str] | None
) -> Iterator[tuple[KnowledgeBase, str]]:
    """Open the knowledge base that has a document, and tell the document's id.

    Ids go first: they are looked up without reading all titles.
    """
    with context.home.open_for_reading(names or ()) as bases:
        id_ = reference
        try:
            base = bases.owner("documents", id_)
        except NotFoundError:
            id_ = resolve_document(context, bases.links.view(), reference).id
            base = bases.owner("documents", id_)
        yield base, id_


@command(
    app,
    "show",
    """
    memctl document show d_3fa2b1
    memctl document show "Release Plan" --text
    """,
    identity=True,
)
def show(
    context: CommandContext,
    id_: Document,
    text: bool = flag("--text", "Print only its text, all of its parts."),
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Show what was understood of a document, and its memories."""
    with _open_owner(context, id_, kb) as (base, found):
        view = base.documents.get(found)
        whole = base.documents.whole_text(view.document) if text else ""
    if text:
        print_text(whole)
        return
    emit_one(view, output, lambda: _show_view(context, view))


def _show_view(context: CommandContext, view: DocumentView) -> None:
    out, d = context.console, view.document
    out.print(one_line(d.title or d.source), style="bold")
    print_paragraph(out, d.summary, indent=2)
    out.print()
    rows = {
        "id": d.id,
        "source": d.source,
        "status": d.status,
        "type": d.doc_type,
        "kind": f"{d.media_type}, {format_size(d.size)}, read by {d.reader}",
        "parts": view.parts if view.parts > 1 else "",
        "date": format_moment(d.created_at),
        "ingested": format_moment(d.ingested_at),
        "authors": ", ".join(d.authors),
        "language": d.language,
        "namespace": d.namespace,
        "session": d.session_id,
        "agent": d.agent_id,
        "metadata": ", ".join(f"{key}: {one_line(str(d.metadata[key]), 80)}" for key in d.metadata),
        "tags": ", ".join(d.tags),
        "entities": ", ".join(d.entities),
        "topics": ", ".join(d.topics),
        "dates": ", ".join(d.dates),
        "links": ", ".join(d.links),
        "importance": f"{d.importance:.2f} = {_signals(d.signals)}",
        "missing": ", ".join(d.missing),
        "understood by": d.method,
    }
    print_facts(out, rows)
    distilled = [m for m in view.memories if m.level == "memory"]
    for m in distilled:
        out.print()
        print_paragraph(out, f"{m.type}  {m.text}", indent=2)
        print_paragraph(out, f"{m.id}, importance {m.importance:.2f}", "dim", 4)
    passages = len(view.memories) - len(distilled)
    out.print(f"\n  {format_count(passages, 'passage')}; --text prints the text", style="dim")


def _signals(signals: object) -> str:
    if not isinstance(signals, dict):
        return ""
    ordered = sorted(signals.items(), key=lambda pair: -float(pair[1]))
    return " + ".join(f"{name} {share:.2f}" for name, share in ordered if share)


@command(
    app,
    "delete",
    "memctl document delete d_3fa2b1\nmemctl document delete d_3fa2b1 --yes",
    identity=True,
)
def delete(
    context: CommandContext,
    id_: Document,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBasesOption = None,
) -> None:
    """Delete a document and every memory made from it.

    Insights that rest on those go too.  Its file is left alone, and so is what snapshots and
    earlier versions hold: `memctl forget` erases that from the disk as well.
    """
    with _open_owner(context, id_, kb) as (base, found):
        view = base.documents.get(found)
        memories = format_count(len(view.memories), "memory", "memories")
        what = f"{view.document.id} with {memories} and what rests on them"
        name = view.document.title or view.document.source
        question = f"delete {what}: {one_line(name, 80)!r}?"
        if not context.confirm_or_preview(f"delete {what}", question, yes=yes, dry_run=dry_run):
            return
        gone = base.documents.delete(view.document.id)
    context.say(f"deleted {format_count(gone, 'memory', 'memories')}")


@command(
    app,
    "reprocess",
    """
    memctl document reprocess --incomplete
    memctl document reprocess --upgrade
    memctl document reprocess --older
    memctl document reprocess d_3fa2b1 "Release Plan"
    memctl document reprocess "Release Plan" --links
    """,
)
def reprocess(
    context: CommandContext,
    ids: list[str] | None = typer.Argument(
        None,
        metavar="ID",
        help="Documents to read again, by id, title or slug.",
        autocompletion=complete_document,
    ),
    incomplete: bool = flag("--incomplete", "All that lack something that may be available now."),
    upgrade: bool = flag(
        "--upgrade", "All documents that the configured model has not understood."
    ),
    older: bool = flag("--older", "All that an earlier version of memctl took in."),
    links: bool = flag("--links", "Only find links in the stored texts; without ID in all."),
    vectors: bool = flag("--vectors", "Only make vectors of the stored texts; without ID of all."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Read sources again: what was not available may be now.

    Use it once there is a transcript beside a recording, tesseract is installed, or a model is
    configured.  What came without a file, through a pipe, by HTTP or from the web, is understood
    again from its stored text.  If interrupted, the same command continues where it stopped, and
    replies that a model has already given cost nothing.
    """
    if links or vectors:
        if incomplete or upgrade or older or (links and vectors):
            raise UsageError("these do not go together", "give --links or --vectors alone")
        _derive_again(context, ids or (), kb, output, links=links)
        return
    if bool(ids) == (incomplete or upgrade or older):
        hint = "give their ids, or --incomplete, --upgrade or --older"
        raise UsageError("which documents?", hint)
    with (
        context.writing_existing(kb) as base,
        context.progress("reading again") as listener,
        reporting_a_stop(context, base.name, output),
    ):
        wanted = [_id_in(context, base, given) for given in ids or ()]
        report = base.documents.reprocess(
            wanted, incomplete=incomplete, upgrade=upgrade, older=older, progress=listener
        )
    show_report(context, base.name, report, output)
    raise_failures(report, one_input=len(report.outcomes) == 1)


def _id_in(context: CommandContext, base: KnowledgeBase, given: str) -> str:
    """Return the id of a document of a knowledge base by its id or name; ids go first."""
    try:
        return base.documents.get(given).document.id
    except NotFoundError:
        return resolve_document(context, base.links.view(), given).id


def _derive_again(
    context: CommandContext,
    ids: Sequence[str],
    kb: list[str] | None,
    output: Format | None,
    *,
    links: bool,
) -> None:
    """Find links or make vectors in stored texts, and print the report."""
    with context.writing_existing(kb) as base:
        wanted = [_id_in(context, base, given) for given in ids]
        documents = base.documents
        report: LinkExtraction | VectorRenewal = (
            documents.extract_links(wanted) if links else documents.renew_vectors(wanted)
        )
    facts = {key: f"{value:,}" for key, value in to_plain(report).items()}
    emit_one(report, output, lambda: print_facts(context.console, facts, indent=0))

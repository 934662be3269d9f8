"""memctl export and memctl import: tables leave and come back."""

from __future__ import annotations

import sys
from functools import partial

import typer

from memctl.cli.arguments import input_file, parse_path, refuse_empty, replacing
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    KnowledgeBaseOption,
    NamespacesOption,
    TargetOption,
    command,
    flag,
)
from memctl.cli.rendering.output_formats import terminal_file
from memctl.cli.rendering.terminal_text import json_safe, one_line
from memctl.errors import UsageError
from memctl.formatting import escape_hidden, format_count
from memctl.literals import ExportFormat
from memctl.schema.table_names import TABLES

_MARKDOWN = "markdown"
_ARCHIVE_HINT = "give what memctl export all wrote, or -"


app = typer.Typer()


def _complete_table(incomplete: str) -> list[str]:
    """Offer the tables that can be exported."""
    from memctl.store.ledger.content_tables import CONTENT_TABLES

    names = (*TABLES, *(declared.name for declared in CONTENT_TABLES), "all", _MARKDOWN)
    return [name for name in names if name.startswith(incomplete)]


@command(
    app,
    "export",
    """
    memctl export memories -f parquet --to memories.parquet
    memctl export documents -f jsonl | jq .title
    memctl export all --to backup.memctl
    memctl export markdown --to vault
    memctl export memories -f arrow | python -c 'import sys, pyarrow as pa; ...'
    """,
    identity=True,
)
def export(
    context: CommandContext,
    table: str = typer.Argument(
        ...,
        metavar="TABLE",
        help="documents, memories, entities, relations, pools, sessions, ..., all, or markdown.",
        autocompletion=_complete_table,
    ),
    format_: ExportFormat | None = typer.Option(
        None, "-f", "--format", help="By default as FILE ends, else jsonl."
    ),
    to: TargetOption = None,
    dry_run: bool = flag("--dry-run", "With markdown: write nothing; say what would be done."),
    kb: KnowledgeBaseOption = None,
    namespace: NamespacesOption = None,
) -> None:
    """Write tables as Arrow, Parquet, JSON lines, CSV or Markdown.

    Vectors are included.  Pools, conversations and the like are tables of the ledger, with objects
    as JSON text.

    `all` is one archive of every table that memctl import brings back as it was, with what was
    decided on names, the questions asked with feedback, the facts that wait to be compared, and
    the ids of what was deleted by hand, so that it does not come back there either.
    It has private namespaces too, and says that they are; a table has them where they are named.

    `markdown` is a folder of notes, one for each document and insight, with links between them.
    Written again it follows what has changed, and removes the notes of what was forgotten; notes
    that were edited are left alone.  memctl ingest knows the notes again.
    """
    refuse_empty({"--namespace": namespace})
    if table == _MARKDOWN:
        _export_markdown(context, format_, to, kb, namespace, dry_run=dry_run)
        return
    if dry_run:
        raise UsageError("--dry-run is for markdown", "leave it out: an export changes nothing")
    if table == "all" and namespace:
        raise UsageError("all tables are of all namespaces", "name one table with --namespace")
    if table == "all" and format_ is not None:
        raise UsageError("all tables go into one archive", "leave -f out, or name one table")
    with context.reading_one(kb) as base, context.progress(f"exporting {table}") as listener:
        write = partial(
            base.transfer.export_to,
            table=table,
            format_=format_,
            namespaces=namespace or (),
            progress=listener,
        )
        if to is None or to == "-":
            if sys.stdout.isatty() and (table == "all" or format_ in ("arrow", "parquet")):
                raise UsageError("that is binary, which a terminal cannot show", "add --to FILE")
            escape = escape_hidden if format_ == "csv" else json_safe
            out = terminal_file(escape) if sys.stdout.isatty() else sys.stdout.buffer
            write(out)
            out.flush()
            return
        path = parse_path(to)
        replaced = replacing(path)
        rows = write(path)
    context.say(f"wrote {format_count(rows, 'row')} to {to}{replaced}")


def _export_markdown(
    context: CommandContext,
    format_: ExportFormat | None,
    to: str | None,
    kb: list[str] | None,
    namespace: list[str] | None,
    *,
    dry_run: bool,
) -> None:
    if format_ is not None:
        raise UsageError("Markdown has no other format", "leave -f out")
    if to is None or to == "-":
        raise UsageError("Markdown goes into a folder", "name it: --to FOLDER")
    with context.reading_one(kb) as base, context.progress("exporting Markdown") as listener:
        found = base.transfer.export_markdown(
            parse_path(to), namespaces=namespace or (), dry_run=dry_run, progress=listener
        )
    would = "would have " if dry_run else ""
    wrote = f"{would}written" if dry_run else "wrote"
    removed = f", {would}removed {len(found.removed):,}" if found.removed else ""
    summary = (
        f"{wrote} {format_count(found.written, 'note')} to {to}, {found.unchanged:,} unchanged"
    )
    context.say(f"{summary}{removed}")
    if found.kept:
        names = ", ".join(one_line(name, 60) for name in found.kept[:3])
        context.say(f"note: left alone {len(found.kept):,} that were edited: {names}")


@command(
    app,
    "import",
    """
    memctl import backup.memctl -k restored
    """,
)
def import_(
    context: CommandContext,
    file: str = typer.Argument(
        ..., metavar="FILE", help="The output of memctl export all; - is stdin."
    ),
    kb: KnowledgeBaseOption = None,
) -> None:
    """Bring back what `memctl export all` wrote.

    The knowledge base must be empty; it is created if it does not exist.
    """
    source = sys.stdin.buffer if file == "-" else input_file(file, _ARCHIVE_HINT)
    with context.importing(kb) as base, context.progress("importing") as listener:
        rows = base.transfer.import_from(source, progress=listener)
    context.say(f"imported {format_count(rows, 'row')} into {base.name}")

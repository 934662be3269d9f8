"""memctl ingest: files, folders, web pages, standard input, text, JSON lines become memories."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memctl.cli.arguments import input_file, parse_metadata, parse_path, refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    KnowledgeBaseOption,
    NamespaceOption,
    Output,
    SessionOption,
    TagsOption,
    command,
    flag,
)
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_one,
    print_error,
    print_line,
    print_paragraph,
    resolve_format,
)
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import MemctlError, PartialFailure, UsageError
from memctl.formatting import format_count, format_duration, format_money
from memctl.literals import DocType
from memctl.paths import display_path

if TYPE_CHECKING:
    from memctl.records import FactComparison, FileOutcome, IngestReport, SkippedSource

_SHOWN_FAILURES = 20
_SHOWN_NOTES = 20
_SUMMARY = ("ingested", "superseded", "skipped", "empty", "gone", "failed", "memories")
_EXPECTED = ("hidden", "ignored", "subtitles", "log")


_TextOption = Annotated[
    str | None, typer.Option("--text", metavar="TEXT", help="Remember this text.")
]
_JsonlOption = Annotated[
    str | None,
    typer.Option("--jsonl", metavar="FILE", help="One document a line; - is standard input."),
]
_SourceOption = Annotated[
    str | None, typer.Option("--source", metavar="NAME", help="Where it comes from.")
]
_TitleOption = Annotated[
    str | None,
    typer.Option("--title", metavar="TITLE", help="What a single document is called."),
]
_DocTypeOption = Annotated[
    DocType | None,
    typer.Option("--doc-type", help="What it is; by default as its format tells."),
]
_MetadataOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata",
        metavar="KEY=VALUE",
        help="What else is known of it, also a JSON object; repeatable.",
    ),
]

app = typer.Typer()


@command(
    app,
    "ingest",
    """
    memctl ingest notes.md report.pdf ~/mail
    cat notes.md | memctl ingest -
    memctl ingest https://example.org/minutes.html
    memctl ingest --text "remember: the door code is 4711" --tag home
    memctl ingest --jsonl records.jsonl -k archive
    memctl ingest ~/mail --dry-run
    memctl ingest --sync ~/notes
    memctl ingest minutes.md --user ann --title "Minutes of March" --metadata project=aurora
    """,
    identity=True,
)
def ingest(
    context: CommandContext,
    paths: list[str] | None = typer.Argument(
        None, metavar="PATH", help="Files, folders and web addresses; - is standard input."
    ),
    text: _TextOption = None,
    jsonl: _JsonlOption = None,
    kb: KnowledgeBaseOption = None,
    namespace: NamespaceOption = None,
    tag: TagsOption = None,
    source: _SourceOption = None,
    session_id: SessionOption = None,
    title: _TitleOption = None,
    doc_type: _DocTypeOption = None,
    metadata: _MetadataOption = None,
    sync: bool = flag("--sync", "Also end what is known of files gone from the folders."),
    dry_run: bool = flag("--dry-run", "Only say what would be done, and estimate its cost."),
    allow_private: bool = flag(
        "--allow-private", "Also fetch pages of this machine and of private networks."
    ),
    output: Output = None,
) -> None:
    """Remember files, folders, web pages, stdin, text, JSON lines.

    What is already known is recognised by its content and left alone.  A file that has changed
    supersedes what was remembered of it in the same namespace; with --sync, documents whose files
    are gone from the folders become history too.  In folders, hidden files and those named in
    .gitignore and .memctlignore are skipped, and so are links; --verbose names each.  An empty file
    is skipped with a note.  One bad file never stops the others; with some failures the exit code
    is 3.

    An address that begins with http:// or https:// is fetched, with nothing that it refers to; it
    stands for the page as a path does for a file.  Addresses of this machine and of private
    networks are refused, also where another page leads to them, unless --allow-private is given.

    With --user the document goes to that user's documents, which no other user reads, and its
    metadata say who added it, when, and in which conversation.

    With --dry-run everything is read, web pages too, and nothing written or sent to models.  Where
    models are configured, it estimates their tokens and cost, as if they had never been asked any
    of it before.
    """
    _check_inputs(paths or [], text, jsonl, title, sync=sync)
    tags = [word.removeprefix("#") for word in tag or ()]
    refuse_empty(
        {"--namespace": namespace, "--tag": tags, "--source": source, "--session": session_id}
    )
    refuse_empty({"--title": title})
    skipped = _SkippedSources(context)
    with ExitStack() as stack:
        inputs = _inputs(paths or [], text, jsonl, stack)
        base = stack.enter_context(context.open_for_dry_run(kb) if dry_run else context.writing(kb))
        listener = stack.enter_context(context.progress("reading" if dry_run else "ingesting"))
        with reporting_a_stop(context, base.name, output):
            report = base.ingest(
                **inputs,
                namespace=namespace,
                tags=tags,
                source=source,
                session=session_id or context.config.session,
                title=title or "",
                doc_type=doc_type,
                metadata=parse_metadata(metadata or (), "--metadata"),
                sync=sync,
                dry_run=dry_run,
                allow_private=allow_private,
                progress=listener,
                left_out=skipped,
            )
    show_report(context, base.name, report, output)
    skipped.tell()
    raise_failures(report, one_input=jsonl is None and len(report.outcomes) == 1)


def _check_inputs(
    paths: list[str], text: str | None, jsonl: str | None, title: str | None, *, sync: bool
) -> None:
    """Refuse several kinds of inputs together, and options that do not go with the one given.

    Raises:
        UsageError: They cannot be used.
    """
    from memctl.ingest.discovery.sources import is_url

    kinds = [bool(paths), text is not None, jsonl is not None]
    if sum(kinds) != 1:
        hint = "give PATH..., or -, or --text TEXT, or --jsonl FILE"
        raise UsageError("nothing to ingest" if not any(kinds) else "one kind at a time", hint)
    files = [path for path in paths if path != "-" and not is_url(path)]
    if sync and (not files or files != paths or not all(map(_is_folder, files))):
        raise UsageError("--sync takes folders", "memctl ingest --sync FOLDER")
    if title and (jsonl is not None or len(paths) > 1 or any(map(_is_folder, files))):
        raise UsageError("--title names one document", "give one file, - or --text")


def _is_folder(name: str) -> bool:
    return parse_path(name).is_dir()


def _inputs(
    paths: list[str], text: str | None, jsonl: str | None, stack: ExitStack
) -> dict[str, Any]:
    from memctl.ingest.discovery.sources import is_url

    if text is not None:
        if not text.strip():
            raise UsageError("the text is empty", 'give some: --text "..."')
        return {"text": text}
    if jsonl is not None:
        return {"jsonl": _jsonl(jsonl, stack)}
    if "-" in paths:
        if len(paths) > 1:
            raise UsageError("- stands alone", "ingest paths and standard input one after another")
        return {"stream": sys.stdin.buffer}
    return {"paths": [path if is_url(path) else parse_path(path) for path in paths]}


def _jsonl(name: str, stack: ExitStack) -> Any:
    if name == "-":
        return sys.stdin.buffer
    path = input_file(name, "--jsonl takes a file of JSON lines, or - for standard input")
    return stack.enter_context(path.open("rb"))


class _SkippedSources:
    """Reports what was skipped in folders: each source with --verbose, otherwise how many."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._special = 0

    def __call__(self, left_out: SkippedSource) -> None:
        from memctl.ingest.discovery.skip_rules import SKIP_REASONS_IN_WORDS

        if self._context.verbose:
            self._context.say(
                f"skipped {display_path(left_out.source)}: {SKIP_REASONS_IN_WORDS[left_out.reason]}"
            )
        elif left_out.reason not in _EXPECTED:
            self._special += 1

    def tell(self) -> None:
        """Say how many links and special files were skipped."""
        if self._special:
            what = format_count(self._special, "link or special file", "links and special files")
            self._context.say(f"skipped {what} (use --verbose to see them)")


_OUTCOMES = (
    Column("outcome", "OUTCOME"),
    Column("source", "SOURCE"),
    Column("document_id", "DOCUMENT"),
    Column("memories", "MEMORIES", right=True),
    Column("reason", "REASON", wrap=True),
)


@contextmanager
def reporting_a_stop(context: CommandContext, name: str, output: Output) -> Iterator[None]:
    """Print what was done until something stopped it, then raise the error again."""
    from memctl.ingest.ingest_pipeline import IngestStopped

    try:
        yield
    except IngestStopped as stopped:
        show_report(context, name, stopped.report, output)
        raise


def show_report(context: CommandContext, name: str, report: IngestReport, output: Output) -> None:
    """Print what became of the sources: one line, the whole report if asked for, or nothing."""
    if context.quiet and output is None and not report.dry_run:
        return
    if resolve_format(output) in ("csv", "arrow"):
        emit(report.outcomes, _OUTCOMES, output)
        return
    is_short = output is None and not context.verbose

    def line() -> None:
        """Print the report on one line."""
        verb = "to ingest" if report.dry_run else "ingested"
        counts = {
            verb: report.ingested - report.superseded,
            "to update" if report.dry_run else "updated": report.superseded,
            "already known": report.skipped,
            "empty": report.empty,
            "to end" if report.dry_run else "ended": report.gone,
            "failed": report.failed,
        }
        parts = [f"{n:,} {what}" for what, n in counts.items() if n] or ["nothing to ingest"]
        made = f", {format_count(report.memories, 'memory', 'memories')}" if report.memories else ""
        what = ", ".join(parts)
        if context.verbose:
            emit(report.outcomes, _OUTCOMES, output)
        context.console.print(f"{name}: {what}{made}, in {format_duration(report.seconds)}")
        if report.estimates:
            _show_estimates(context, report)

    if is_short and resolve_format(output) != "table":
        short = {key: getattr(report, key) for key in _SUMMARY}
        dry = {"dry_run": True} if report.dry_run else {}
        print_line({**short, "seconds": round(report.seconds, 3), **dry})
    else:
        emit_one(report, output, line)
    _print_ended_documents(context, report)
    if report.dry_run:
        return
    notes = [note for outcome in report.outcomes for note in _notes(outcome)]
    for note in notes[:_SHOWN_NOTES]:
        context.say(f"note: {note}")
    if len(notes) > _SHOWN_NOTES:
        context.say(f"and {len(notes) - _SHOWN_NOTES:,} notes more (-o json has them all)")
    _say_facts(context, report.facts)


def _print_ended_documents(context: CommandContext, report: IngestReport) -> None:
    """Say which documents ended, or would end, because their files are gone."""
    gone = [outcome for outcome in report.outcomes if outcome.outcome == "gone"]
    verb = "would end" if report.dry_run else "ended"
    for outcome in gone if context.verbose else gone[:_SHOWN_NOTES]:
        context.say(f"{verb}: {display_path(outcome.source)} is gone")
    if len(gone) > _SHOWN_NOTES and not context.verbose:
        context.say(f"and {len(gone) - _SHOWN_NOTES:,} more (use --verbose to see them)")


def _say_facts(context: CommandContext, facts: FactComparison) -> None:
    """Say how new facts compare with known ones, unless all are simply new."""
    if facts.updated or facts.contradicted or facts.restated or (facts.added and context.verbose):
        context.say(f"facts: {facts.summary}")
    if facts.dropped:
        what = format_count(facts.dropped, "verdict")
        context.say(f"note: left out {what} on memories that the model was not asked about")
    if facts.note:
        what = format_count(facts.waiting, "fact")
        context.say(f"note: {what} still to be compared with what is known: {facts.note}")
        if facts.hint:
            context.hint(facts.hint)


def _notes(outcome: FileOutcome) -> Iterator[str]:
    """Yield the notes on a source that did not fail."""
    name = one_line(outcome.source)
    if outcome.outcome == "empty":
        yield f"{one_line(_reason(outcome))}; skipped"
    if outcome.missing and outcome.outcome != "failed":
        yield f"{name}: no {', '.join(outcome.missing)} yet"
    if outcome.dropped:
        yield f"{name}: left out {format_count(outcome.dropped, 'fact')} that it does not say"


def _show_estimates(context: CommandContext, report: IngestReport) -> None:
    """Print an estimate of what models would be asked."""
    for found in report.estimates:
        tokens = f"{found.input_tokens:,} tokens in and {found.output_tokens:,} out"
        used = tokens if found.input_tokens else "paid by the minute"
        calls = f"about {format_count(found.calls, 'call')}"
        text = f"{found.task} by {found.model}: {calls}, {used}, {format_money(found.cost)}"
        print_paragraph(context.console, text, indent=2)
    total = format_money(sum(found.cost for found in report.estimates))
    text = f"estimated cost: {total}, less what models have replied before"
    print_paragraph(context.console, text, indent=2)


def raise_failures(report: IngestReport, *, one_input: bool) -> None:
    """Report the sources that failed on standard error and end with the right exit code.

    Raises:
        MemctlError: The only input failed.
        PartialFailure: Some failed, more than can be shown.
        typer.Exit: Some failed; everything about them has been said.
    """
    failures = [outcome for outcome in report.outcomes if outcome.outcome == "failed"]
    if not failures:
        return
    if one_input:
        raise MemctlError(_reason(failures[0]), failures[0].hint)
    for failure in failures[:_SHOWN_FAILURES]:
        print_error(_reason(failure), failure.hint)
    if report.failed > _SHOWN_FAILURES:
        more = f"{report.failed - _SHOWN_FAILURES:,} more failed"
        raise PartialFailure(more, "-o json lists them all")
    raise typer.Exit(PartialFailure.exit_code)


def _reason(outcome: FileOutcome) -> str:
    """Return the reason with the source's name in it."""
    name = display_path(outcome.source)
    is_in_it = name in outcome.reason or PurePath(name).name in outcome.reason
    return outcome.reason if is_in_it else f"{name}: {outcome.reason}"

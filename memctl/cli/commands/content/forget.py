"""memctl forget: remove something for good, and prove it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from memctl.cli.arguments import parse_instant, refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import DryRun, KnowledgeBaseOption, Output, Yes, command, flag
from memctl.cli.completion import complete_document, complete_memory
from memctl.cli.rendering.output_formats import emit_one, print_facts
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import KnowledgeBaseNotFound, NotFoundError, PartialFailure, UsageError
from memctl.formatting import format_count, format_duration, format_size
from memctl.plain_values import to_plain

if TYPE_CHECKING:
    from memctl.forget import ForgetReport, RemainingPlace, Selection
    from memctl.knowledge_base import KnowledgeBase
    from memctl.schema.table_names import TableName

_Words = list[str] | None
_COUNTED = {"pool_keys": "key", "pool_versions": "version", "skill_versions": "version"}
"""What is reported of pools and skills as a count, by table."""
_LEFTOVERS = "what logs, earlier versions and snapshots have of it"

app = typer.Typer()


@command(
    app,
    "forget",
    """
    memctl forget --document d_3fa2b1 --dry-run
    memctl forget --memory m_77c0de --snapshots
    memctl forget --entity "Ann Lee"
    memctl forget --namespace user:ann --before 2025-01-01 --yes
    """,
)
def forget(
    context: CommandContext,
    document: _Words = typer.Option(
        None,
        "--document",
        metavar="ID",
        help="With all its versions; repeatable.",
        autocompletion=complete_document,
    ),
    memory: _Words = typer.Option(
        None,
        "--memory",
        metavar="ID",
        help="With all its versions; repeatable.",
        autocompletion=complete_memory,
    ),
    entity: _Words = typer.Option(
        None, "--entity", metavar="NAME", help="The name as it is written; repeatable."
    ),
    namespace: str | None = typer.Option(
        None, "--namespace", metavar="NAME", help="Everything in this namespace."
    ),
    session: str | None = typer.Option(
        None, "--session", metavar="ID", help="Everything said or stated in this conversation."
    ),
    before: str | None = typer.Option(
        None, "--before", metavar="DATE", help="What is dated or was ingested before that date."
    ),
    whole_documents: bool = flag(
        "--whole-documents", "Also remove documents that contain the memory or the name."
    ),
    snapshots: bool = flag("--snapshots", "Also delete all snapshots, which may contain it."),
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Remove something for good, and search what is left for it.

    A document goes with its versions, its memories, insights that rest on them, and its file in
    processed/.  A memory goes with its versions and insights; its document stays, with the words
    blocked out, and the file in processed/ goes.  For a name, memories and insights that contain
    it go, and it is blocked out of passages and documents.

    With them go vectors, index entries, earlier versions of the tables, all cached replies of
    models, previous vectors of kb reembed, and what the logs say about it.  Files given as PATH,
    or kept in an inbox, are yours: they are listed and left alone.

    Then every byte in the knowledge base's folder is searched for the text, tables unpacked.  If
    some of it is left, for example in a snapshot, that is reported with what to do, and the exit
    code is 3.  --snapshots alone deletes all snapshots and what only they had.  If it is
    interrupted, either nothing has happened, or the next change of the knowledge base completes
    it, as does memctl forget without options.
    """
    refuse_empty({"--document": document, "--memory": memory, "--entity": entity})
    refuse_empty({"--namespace": namespace, "--session": session, "--before": before})
    selection = _selection(
        document or [], memory or [], entity or [], namespace, session, before, whole_documents
    )
    with _open_for_forget(context, selection, kb) as base:
        others = _unsearched_kbs(context, base, kb)
        preview = _preview(base, selection, others, snapshots=snapshots)
        several = _called_alike(base, selection)
        if dry_run:
            if several:
                context.say(f"note: {several}")
            emit_one(preview, output, lambda: show_forgotten(context, preview))
            return
        if selection is not None:
            _confirm(context, preview, several, yes=yes)
        elif preview.snapshots:
            what = format_count(len(preview.snapshots), "snapshot")
            context.confirm(f"delete {what} of {base.name} for good?", yes=yes)
        report = base.forget(selection, snapshots=snapshots)
    emit_one(report, output, lambda: show_forgotten(context, report))
    if others and selection is not None:
        context.suggest(f"of {base.name} alone; name others with -k: {', '.join(others)}")
    raise_remaining(report.left)


def raise_remaining(left: Sequence[RemainingPlace]) -> None:
    """Say where some of what was forgotten is left, and why.

    Raises:
        PartialFailure: There is such a place.
    """
    if left:
        places = one_line(", ".join(dict.fromkeys(each.place for each in left)), 200)
        reasons = one_line("; ".join(dict.fromkeys(each.why for each in left)), 200)
        raise PartialFailure(f"some of it is left in {places}: {reasons}", left[0].hint)


@contextmanager
def _open_for_forget(
    context: CommandContext, selection: Selection | None, kb: list[str] | None
) -> Iterator[KnowledgeBase]:
    """Open the knowledge base to forget in; if none is named, the one that has the selection."""
    if not kb and context.config.kb is None and (owner := _owner(context, selection)):
        kb = [owner]
    with context.writing_existing(kb) as base:
        yield base


def _owner(context: CommandContext, selection: Selection | None) -> str | None:
    """Return which knowledge base queried by default has the first document or memory."""
    ids: list[tuple[TableName, str]] = []
    if selection is not None:
        ids += [("documents", id_) for id_ in selection.documents]
        ids += [("memories", id_) for id_ in selection.memories]
    for table, id_ in ids[:1]:
        with (
            suppress(NotFoundError, KnowledgeBaseNotFound),
            context.open_owner(table, id_, None) as b,
        ):
            return b.name
    return None


def _unsearched_kbs(
    context: CommandContext, base: KnowledgeBase, kb: list[str] | None
) -> list[str]:
    """Return the knowledge bases that are not searched, if none was named."""
    if kb or context.config.kb is not None:
        return []
    return [name for name in context.home.names() if name != base.name]


def _preview(
    base: KnowledgeBase, selection: Selection | None, others: list[str], *, snapshots: bool
) -> ForgetReport:
    """Say what would go.

    Raises:
        NotFoundError: There is nothing of the kind.
    """
    try:
        return base.forget(selection, snapshots=snapshots, dry_run=True)
    except NotFoundError as error:
        hint = f"name another with -k: {', '.join(others)}" if others else error.hint
        raise NotFoundError(f"{error.message} in {base.name}", hint) from error


def _confirm(context: CommandContext, preview: ForgetReport, several: str, *, yes: bool) -> None:
    """Ask whether to forget what is selected.

    Raises:
        UsageError: Names may mean several, and there is no answer that says which.
    """
    if several and yes:
        hint = "name all of them with --entity, too, or one of them alone"
        raise UsageError(several, hint)
    what = f"forget in {preview.kb} for good: {_describe(preview) or _LEFTOVERS}?"
    context.confirm(f"{several}; {what}" if several else what, yes=yes)


def _called_alike(base: KnowledgeBase, selection: Selection | None) -> str:
    """Return what to say where names are those of several, who are not all named in full."""
    from memctl.graph.entity_names import name_key

    if selection is None or not selection.entities:
        return ""
    view, named = base.graph.view(), {name_key(name) for name in selection.entities}
    for name in selection.entities:
        with suppress(NotFoundError):
            several = view.called_alike(name)
            if any(name_key(each) not in named for each in several):
                names = ", ".join(several)
                return f"{one_line(name, 60)!r} may mean {one_line(names, 200)}"
    return ""


def _selection(
    documents: list[str],
    memories: list[str],
    entities: list[str],
    namespace: str | None,
    session: str | None,
    before: str | None,
    whole_documents: bool,
) -> Selection | None:
    """Return what is selected; None where nothing is, to complete what was interrupted.

    Raises:
        UsageError: Several kinds at once, or a date that cannot be read.
    """
    from memctl.forget import Selection
    from memctl.instants import utc_now

    of_place = bool(namespace or session or before)
    kinds = [bool(documents), bool(memories), bool(entities), of_place]
    if not any(kinds):
        return None
    if sum(kinds) > 1:
        hint = "--before can narrow --namespace and --session"
        raise UsageError("one kind at a time", hint)
    return Selection(
        documents=tuple(documents),
        memories=tuple(memories),
        entities=tuple(entities),
        namespace=namespace,
        session=session,
        before=parse_instant(before, utc_now()) if before else None,
        whole=whole_documents,
    )


def _describe(report: ForgetReport) -> str:
    parts = [
        format_count(report.documents, "document") if report.documents else "",
        f"some words of {format_count(len(report.redacted), 'document')}"
        if report.redacted
        else "",
        format_count(report.memories, "memory", "memories") if report.memories else "",
        format_count(len(report.files), "file") if report.files else "",
        *_of_ledger(report),
    ]
    return ", ".join(part for part in parts if part)


def _of_ledger(report: ForgetReport) -> Iterator[str]:
    """Yield what goes of pools, of skills, and of what else users and agents have stored."""
    left = dict(report.entries)
    for kind, called in (("pool", report.pools), ("skill", report.skills)):
        of_kind = {name: left.pop(name) for name in report.entries if name.startswith(kind)}
        if called:
            parts = [
                format_count(count, _COUNTED[name])
                for name, count in of_kind.items()
                if name in _COUNTED
            ]
            yield f"{' and '.join(parts) or 'words'} of {format_count(len(called), kind)}"
        elif of_kind:
            yield format_count(sum(of_kind.values()), f"entry on {kind}s", f"entries on {kind}s")
    if left:
        yield format_count(sum(left.values()), "stored entry", "stored entries")


def show_forgotten(context: CommandContext, report: ForgetReport, what: str = "") -> None:
    """Print what was forgotten, or would be: ``what`` was named, and what went with it."""
    out = context.console
    done = "would forget" if report.dry_run else "forgot"
    nothing = "what was interrupted" if report.completed else _LEFTOVERS
    shown = ", ".join(filter(None, (what, _describe(report)))) or nothing
    out.print(f"{done} {one_line(shown)}", soft_wrap=True)
    values = {
        "insights": report.insights or "",
        "redacted": ", ".join(report.redacted),
        "files": "\n".join(report.files),
        "yours, left alone": "\n".join(report.yours),
        "pools": ", ".join(report.pools),
        "keys": ", ".join(report.pool_keys),
        "skills": ", ".join(report.skills),
        "entries": ", ".join(f"{count:,} of {name}" for name, count in report.entries.items()),
        "snapshots": ", ".join(report.snapshots),
        "freed": format_size(report.bytes_freed) if report.bytes_freed else "",
        "took": "" if report.dry_run else format_duration(report.seconds),
    }
    print_facts(out, to_plain(values))
    for left in report.left:
        line = f"  left in {one_line(left.place)}: {one_line(left.why)}; {one_line(left.hint)}"
        out.print(line, soft_wrap=True)
    if report.elsewhere:
        stand = "stands" if report.elsewhere == 1 else "stand"
        sentences = format_count(report.elsewhere, "sentence")
        out.print(f"  {sentences} also {stand} elsewhere: others say the same", soft_wrap=True)
    if report.too_short:
        from memctl.forget.search_patterns import MIN_PATTERN_BYTES

        texts = format_count(report.too_short, "text")
        out.print(
            f"  {texts} of less than {MIN_PATTERN_BYTES} bytes "
            "looked for in tables and ledger alone",
            soft_wrap=True,
        )
    if report.dry_run and report.snapshots:
        out.print("  --snapshots deletes the snapshots, which may hold it", soft_wrap=True)
    elif not report.dry_run and not report.left and not report.joined:
        out.print("  nothing of it is left", soft_wrap=True)
    if report.joined:
        names = " ".join(f"--entity {shlex.quote(name)}" for name in report.joined)
        what = "names and addresses taken for it that stay"
        out.print(f"  {what}: {one_line(', '.join(report.joined))}", soft_wrap=True)
        if report.joined_documents:
            documents = one_line(", ".join(report.joined_documents))
            out.print(f"  documents that have them: {documents}", soft_wrap=True)
        out.print(f"  memctl forget -k {report.kb} {one_line(names)}", soft_wrap=True)

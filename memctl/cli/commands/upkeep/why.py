"""memctl why: the receipt of one file."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING

import typer

from memctl.cli.arguments import refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, Output, command
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    format_instant,
    print_facts,
    resolve_format,
)
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import NothingFound
from memctl.formatting import format_clock, format_count, format_duration, format_money
from memctl.paths import display_path, expand_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from memctl.knowledge_base import KnowledgeBases
    from memctl.provenance.file_provenance import FileProvenance
    from memctl.records import Usage
    from memctl.store.ledger.log_repositories import Attempt

_OUTCOMES = {
    "ingested": "remembered",
    "superseded": "remembered, in place of an earlier version",
    "remembered": "remembered; how it was read is not noted",
    "known": "known already",
    "empty": "skipped: there is nothing in it",
    "failed": "failed",
    "left": "left in its inbox, and never taken as it is",
    "waiting": "waits in its inbox",
    "processing": "is being read",
}
_ID = re.compile(r"([mid])_[0-9a-f]{8,}(?:\.\d+)?")
_KINDS = {"m": "memory", "i": "insight", "d": "document"}
_UNCHANGED = "unchanged"
"""Of a file that is known already by itself, rather than by a copy of it."""


_SHOWN_WHOLE = 3
"""Of this many files of one name everything is shown; more are listed."""
_MAX_SIMILAR = 3
_FILES = (
    Column("kb", "KB"),
    Column("outcome", "OUTCOME"),
    Column("decided_at", "WHEN", format_instant),
    Column("path", "FILE", wrap=True),
)


app = typer.Typer()


@command(
    app,
    "why",
    """
    memctl why report.pdf
    memctl why ~/mail/2026/budget.eml -k notes
    memctl why failed/scan.pdf -o json
    """,
)
def why(
    context: CommandContext,
    file: str = typer.Argument(
        ..., metavar="FILE", help="Its path, at that time or now, or its name."
    ),
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Tell what became of a file, and why.

    It shows every reading of the file, or of all files of that name, the newest first: when it
    was seen, claimed, read, understood and moved, by which reader, what models used for it, what
    it became and what happened to that since, where it is now, or why it failed and how to
    retry.  For a file in an inbox it shows who will take it, or why it is never taken.  The
    latest 50,000 readings are kept.  The exit code is 4 if nothing is known of the file.
    """
    refuse_empty({"FILE": file})
    with context.reading(kb) as bases:
        found = [receipt for base in bases for receipt in base.documents.provenance(file)]
        if not found:
            raise _unknown_file_error(file, bases)
        names_kb = len(bases) > 1
    if resolve_format(output) != "table":
        emit(found, (), output)
        return
    latest = {(receipt.kb, receipt.path): receipt for receipt in reversed(found)}
    if len(latest) > _SHOWN_WHOLE:
        emit([latest[key] for key in reversed(latest)], _FILES, output)
        context.suggest(f"{len(latest)} files go by that name; give more of the path of one")
        return
    for number, receipt in enumerate(found):
        if number:
            context.console.print()
        _show(context, receipt, names_kb=names_kb)


def _unknown_file_error(file: str, bases: KnowledgeBases) -> NothingFound:
    from memctl.ingest.discovery.sources import printable

    like = dict.fromkeys(name for base in bases for name in base.documents.similar_file_names(file))
    path, name = expand_path(file), display_path(printable(file))
    if kind := _ID.fullmatch(file):
        hint = f"that is an id: memctl {_KINDS[kind[1]]} show {file}"
    elif os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
        hint = "that is a folder; name a file in it"
    elif os.path.isfile(path):  # noqa: PTH113 - as above
        hint = f"nothing has taken it in: memctl ingest {shlex.quote(name)}"
    elif like:
        names = " and ".join(map(display_path, list(like)[:_MAX_SIMILAR]))
        hint = f"there is {names}; or name another with -k"
    else:
        hint = "memctl document list shows what there is"
    searched = ", ".join(base.name for base in bases)
    return NothingFound(f"nothing is known of '{name}' in {searched}", hint)


def _show(context: CommandContext, receipt: FileProvenance, *, names_kb: bool) -> None:
    base = f"  ({receipt.kb})" if names_kb else ""
    context.console.print(f"{one_line(receipt.path)}{base}", style="bold", soft_wrap=True)
    print_facts(
        context.console,
        {
            "outcome": _outcome(receipt),
            "reason": receipt.reason,
            "hint": receipt.hint,
            "try again": receipt.retry,
            "seen": _instant(receipt.seen_at),
            "claimed": _instant(receipt.claimed_at, receipt.seen_at),
            "tried before": "\n".join(map(_try, receipt.tries)),
            "read": _reading(receipt),
            "understood": _understanding(receipt),
            **{f"{use.task} by model": _use(use) for use in receipt.models},
            _decision_text(receipt): _instant(receipt.decided_at, receipt.claimed_at),
            "moved": _instant(receipt.moved_at, receipt.decided_at),
            "document": _document(receipt),
            "memories": _memories(receipt),
            "since then": _since(receipt),
            "missing": ", ".join(receipt.missing),
            "now": _now(receipt),
        },
    )


def _outcome(receipt: FileProvenance) -> str:
    text = _OUTCOMES[receipt.outcome]
    if receipt.same_as == receipt.path:
        return _UNCHANGED
    return f"{text}: its content is that of {receipt.same_as}" if receipt.same_as else text


def _instant(at: datetime | None, after: datetime | None = None) -> str:
    """Show an instant to the second, and how long after another one it was."""
    if at is None:
        return ""
    text = f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
    return (
        text
        if after is None or after > at
        else f"{text}, {format_duration((at - after).total_seconds())} later"
    )


def _try(attempt: Attempt) -> str:
    times = "" if attempt.times == 1 else f" to {attempt.last_at.astimezone():%H:%M:%S}"
    often = "" if attempt.times == 1 else f" ({attempt.times:,} times)"
    return f"{_instant(attempt.first_at)}{times}: {attempt.reason}{often}"


def _reading(receipt: FileProvenance) -> str:
    if not receipt.reader:
        return ""
    took = "" if receipt.read_seconds is None else f" in {format_duration(receipt.read_seconds)}"
    version = f", pipeline {receipt.pipeline_version}" if receipt.pipeline_version else ""
    parts = [f"by {receipt.reader}{took}{version}", *_content(receipt)]
    if receipt.redacted:
        parts.append(f"{format_count(receipt.redacted, 'secret')} redacted")
    return "; ".join(parts)


def _content(receipt: FileProvenance) -> Iterator[str]:
    content = receipt.content
    if content is None:
        return
    if content.parts > 1:
        yield format_count(content.parts, "part")
    if content.pages:
        yield format_count(content.pages, "page")
    if content.seconds:
        yield f"{format_clock(content.seconds)} long"
    for units, number in content.holds.items():
        yield f"holds {format_count(number, units.removesuffix('s'))}"
    if content.attachments:
        yield f"attached: {', '.join(map(one_line, content.attachments))}"


def _understanding(receipt: FileProvenance) -> str:
    if not receipt.understood_by or receipt.outcome == "known":
        return ""
    seconds = receipt.understand_seconds
    took = "" if seconds is None else f" in {format_duration(seconds)}"
    return f"by {receipt.understood_by}{took}"


def _decision_text(receipt: FileProvenance) -> str:
    return {"failed": "given up", "known": "recognised", "empty": "skipped"}.get(
        receipt.outcome, "committed"
    )


def _document(receipt: FileProvenance) -> str:
    if receipt.document_id is None:
        return ""
    if not receipt.document_status:
        return f"{receipt.document_id}, which is not there any more"
    goes_by = receipt.document_source
    named = "" if receipt.path.endswith(goes_by) else f", goes by {one_line(goes_by)}"
    return f"{receipt.document_id} ({receipt.document_status}){named}"


def _memories(receipt: FileProvenance) -> str:
    made = receipt.memories
    return "" if made is None else ", ".join(map(_of_type, made.types.values(), made.types))


def _of_type(number: int, type_: str) -> str:
    name = type_.replace("_", " ")
    return format_count(number, name, f"{name[:-1]}ies" if name.endswith("y") else "")


def _since(receipt: FileProvenance) -> str:
    made = receipt.memories
    if made is None:
        return ""
    came = {
        "edited": made.edited, "superseded": made.superseded, "expired": made.expired,
        "deleted": made.gone,
    }  # fmt: skip
    text = [f"{number:,} {what}" for what, number in came.items() if number]
    if made.insights:
        text.append(f"{format_count(made.insights, 'insight')} drawn")
    return ", ".join(text)


def _use(use: Usage) -> str:
    parts = [
        format_count(use.calls, "call"),
        f"{use.input_tokens:,} tokens in, {use.output_tokens:,} out" if use.input_tokens else "",
        f"cost {format_money(use.cost)}" if use.cost else "",
        f"{format_duration(use.seconds)}" if use.seconds else "",
        f"{format_count(use.cached, 'reply', 'replies')} known before" if use.cached else "",
        f"{use.failed:,} failed" if use.failed else "",
    ]
    return f"{use.model}: {'; '.join(filter(None, parts))}"


def _now(receipt: FileProvenance) -> str:
    where = receipt.place or receipt.path
    if receipt.outcome == "processing":
        return receipt.place
    if receipt.is_there:
        return where
    return f"not at {where} any more" if PurePath(where).is_absolute() else ""

"""memctl why: the receipt of one file."""

from __future__ import annotations

import os
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.commands import KnowledgeBasesOption, Output, command
from memctl.cli.inputs import refuse_empty
from memctl.cli.output import Column, chosen, emit, facts, shown_instant
from memctl.cli.session import Session
from memctl.cli.text import count, duration, one_line
from memctl.errors import NothingFound
from memctl.paths import expanded, shown

if TYPE_CHECKING:
    from datetime import datetime

    from memctl.knowledge_bases import KnowledgeBases
    from memctl.receipts.receipt import Receipt

_TOLD = {
    "ingested": "remembered",
    "superseded": "remembered, in place of an earlier version",
    "remembered": "remembered; how it was read is not noted",
    "known": "known already",
    "failed": "failed",
    "left": "left in its inbox, and never taken as it is",
    "waiting": "waits in its inbox",
    "processing": "is being read",
}


_SHOWN_WHOLE = 3
"""Of so many files of one name everything is shown; more are listed."""
_LIKE = 3
_FILES = (
    Column("kb", "KB"),
    Column("outcome", "OUTCOME"),
    Column("decided_at", "WHEN", shown_instant),
    Column("path", "FILE", wrap=True),
)


def register(root: typer.Typer) -> None:
    """Add this verb to the command line."""
    command(
        root,
        "why",
        """
        memctl why report.pdf
        memctl why ~/mail/2026/budget.eml -k notes
        memctl why failed/scan.pdf -o json
        """,
    )(why)


def why(
    session: Session,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Its path, then or now, or its name.")
    ],
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Tell what became of a file, and why.

    When it was seen, claimed, read and moved, by which reader, what it became, where it is now, or
    why it failed; each time that it was taken in, the newest first, and all files of that name.
    The latest 50,000 readings are kept.  With a file that nothing is known of, the exit code is 4.
    """
    refuse_empty({"FILE": file})
    with session.reading(kb) as bases:
        found = [receipt for base in bases for receipt in base.receipts(file)]
        if not found:
            raise _nothing_known(file, bases)
        names_kb = len(bases) > 1
    if chosen(output) != "table":
        emit(found, (), output)
        return
    latest = {(receipt.kb, receipt.path): receipt for receipt in reversed(found)}
    if len(latest) > _SHOWN_WHOLE:
        emit([latest[key] for key in reversed(latest)], _FILES, output)
        session.suggest(f"{len(latest)} files go by that name; give more of the path of one")
        return
    for number, receipt in enumerate(found):
        if number:
            session.console.print()
        _show(session, receipt, names_kb=names_kb)


def _nothing_known(file: str, bases: KnowledgeBases) -> NothingFound:
    from memctl.ingest.sources import printable

    like = dict.fromkeys(name for base in bases for name in base.names_like(file))
    path, name = expanded(file), shown(printable(file))
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
        hint = "that is a folder; name a file in it"
    elif os.path.isfile(path):  # noqa: PTH113 - as above
        hint = f"nothing has taken it in: memctl ingest {shlex.quote(name)}"
    elif like:
        hint = f"there is {' and '.join(map(shown, list(like)[:_LIKE]))}; or name another with -k"
    else:
        hint = "memctl document list shows what there is"
    asked = ", ".join(base.name for base in bases)
    return NothingFound(f"nothing is known of '{name}' in {asked}", hint)


def _show(session: Session, receipt: Receipt, *, names_kb: bool) -> None:
    base = f"  ({receipt.kb})" if names_kb else ""
    session.console.print(f"{one_line(receipt.path)}{base}", style="bold", soft_wrap=True)
    facts(
        session.console,
        {
            "outcome": _TOLD[receipt.outcome],
            "reason": receipt.reason,
            "hint": receipt.hint,
            "seen": _instant(receipt.seen_at),
            "claimed": _instant(receipt.claimed_at),
            "read": _reading(receipt),
            "decided": _instant(receipt.decided_at),
            "moved": _instant(receipt.moved_at),
            "document": _document(receipt),
            "known as": "" if receipt.outcome != "known" else receipt.document_source,
            "understood by": receipt.understood_by,
            "missing": ", ".join(receipt.missing),
            "now": _now(receipt),
        },
    )


def _instant(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def _reading(receipt: Receipt) -> str:
    took = "" if receipt.read_seconds is None else f" in {duration(receipt.read_seconds)}"
    version = f", pipeline {receipt.pipeline_version}" if receipt.pipeline_version else ""
    return f"by {receipt.reader}{took}{version}" if receipt.reader else ""


def _document(receipt: Receipt) -> str:
    if receipt.document_id is None:
        return ""
    if not receipt.document_status:
        return f"{receipt.document_id}, which is not there any more"
    held = f"{count(receipt.passages, 'passage')}, {count(receipt.facts, 'fact')}"
    return f"{receipt.document_id} ({receipt.document_status}): {held}"


def _now(receipt: Receipt) -> str:
    where = receipt.place or receipt.path
    if receipt.outcome == "processing":
        return ""
    if receipt.is_there:
        return where
    return f"not at {where} any more" if PurePath(where).is_absolute() else ""

"""memctl why: the receipt of one file."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.commands import KnowledgeBasesOption, Output, command
from memctl.cli.inputs import refuse_empty
from memctl.cli.output import chosen, emit, facts
from memctl.cli.session import Session
from memctl.cli.text import count, duration, one_line
from memctl.errors import NothingFound

if TYPE_CHECKING:
    from datetime import datetime

    from memctl.receipts import Receipt

_TOLD = {
    "ingested": "remembered",
    "superseded": "remembered, in place of an earlier version",
    "remembered": "remembered; how it was read is not noted",
    "known": "known already",
    "failed": "failed",
    "waiting": "waits in its inbox",
    "processing": "is being read",
}


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
        asked = ", ".join(base.name for base in bases)
    if not found:
        raise NothingFound(
            f"nothing is known of {file!r} in {asked}", "give its name alone, or another -k NAME"
        )
    if chosen(output) != "table":
        emit(found, (), output)
        return
    for number, receipt in enumerate(found):
        if number:
            session.console.print()
        _show(session, receipt, name_kb="," in asked)


def _show(session: Session, receipt: Receipt, *, name_kb: bool) -> None:
    base = f"  ({receipt.kb})" if name_kb else ""
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
    if receipt.is_there:
        return where
    return f"not at {where} any more" if PurePath(where).is_absolute() else ""

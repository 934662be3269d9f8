"""memctl doctor: is what is on disk whole, and if not, put it right."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from memctl.cli.commands import KnowledgeBasesOption, Output, command
from memctl.cli.output import Column, emit
from memctl.cli.session import Session
from memctl.cli.text import count
from memctl.errors import DamagedError

_COLUMNS = (
    Column("kb", "KB"),
    Column("subject", "WHAT"),
    Column("message", "FOUND", wrap=True),
)


def register(root: typer.Typer) -> None:
    """Add this verb to the command line."""
    command(
        root,
        "doctor",
        """
        memctl doctor
        memctl doctor -k notes --repair
        """,
    )(doctor)


def doctor(
    session: Session,
    kb: KnowledgeBasesOption = None,
    repair: Annotated[bool, typer.Option("--repair", help="Put right what is damaged.")] = False,
    output: Output = None,
) -> None:
    """Read every table and the ledger once and say what is damaged.

    It changes nothing without --repair, which keeps every row that can be read and leaves the
    unreadable files beside.  The exit code is 12 when something is damaged.
    """
    names = list(dict.fromkeys(kb or session.home.names()))
    check = session.home.repair if repair else session.home.examine
    findings = [{"kb": name, **asdict(finding)} for name in names for finding in check(name)]
    emit(findings, _COLUMNS, output)
    bases = count(len(names), "knowledge base")
    if not findings:
        session.say(f"{bases} whole" if names else "no knowledge base yet")
    elif not repair:
        by_hand = all(finding["subject"] == "settings" for finding in findings)
        hint = "correct those files by hand" if by_hand else "put it right: memctl doctor --repair"
        raise DamagedError(f"{count(len(findings), 'finding')} in {bases}", hint)

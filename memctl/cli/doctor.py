"""memctl doctor: is what is on disk whole, and if not, put it right."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memctl.cli.commands import KnowledgeBasesOption, Output, Yes, command
from memctl.cli.output import Column, chosen, emit
from memctl.cli.progress import progress
from memctl.cli.session import Session
from memctl.cli.text import count, one_line
from memctl.errors import DamagedError, PartialFailure, UsageError

if TYPE_CHECKING:
    from memctl.doctor.doctor import Doctor

_COLUMNS = (
    Column("kb", "KB"),
    Column("verdict", "VERDICT"),
    Column("layer", "LAYER"),
    Column("subject", "WHAT"),
    Column("message", "FOUND", wrap=True),
    Column("hint", "HINT", wrap=True),
)
_STEPS = (Column("kb", "KB"), Column("subject", "WHAT"), Column("message", "DONE", wrap=True))


def register(root: typer.Typer) -> None:
    """Add this verb to the command line."""
    command(
        root,
        "doctor",
        """
        memctl doctor
        memctl doctor -k notes --verbose
        memctl doctor -k notes --repair --dry-run
        memctl doctor -k notes --repair
        memctl doctor -k notes --rebuild
        """,
    )(doctor)


def doctor(
    session: Session,
    kb: KnowledgeBasesOption = None,
    repair: Annotated[bool, typer.Option("--repair", help="Put right what is damaged.")] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make all that is derived anew, if it is the same.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repair: say what it would do.")
    ] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Look at every row, not a sample.")] = False,
    yes: Yes = False,
    output: Output = None,
) -> None:
    """Check every layer of what is on disk, and put it right.

    That is folders, settings, locks, the ledger, the tables' files and indexes, whether rows have
    what they belong to, vectors, citations, and files on their way.  It changes nothing and sends
    nothing without --repair.  A table shows what is not in order, with --verbose every check; every
    other format has them all.  The exit code is 12 when something is damaged, and 0 when there are
    warnings alone.

    --repair keeps every row that can be read, reads lost documents again from processed/, leaves
    unreadable files beside, and does not bring back what you deleted.  What is lost for good it
    names, and the exit code is 3.

    --rebuild makes vectors, indexes, entities and relations anew from the stored texts.  They
    become what counts only when documents, memories, texts and vectors are the same as before;
    where vectors are from an endpoint, it asks before it sends those texts there.
    """
    from memctl.doctor.doctor import Doctor

    if dry_run and not repair:
        raise UsageError("--dry-run is for --repair", "without either, nothing is changed anyway")
    attending = Doctor(session.home)
    names = list(dict.fromkeys(kb or attending.names()))
    if repair and rebuild:
        raise UsageError("--repair and --rebuild are two things", "first the one, then the other")
    if rebuild:
        _rebuild(session, attending, names, yes, output)
        return
    if repair:
        _repair(session, attending, names, dry_run, output)
        return
    findings = list(_findings(session, attending, names, deep))
    is_table = chosen(output) == "table"
    told = findings if session.verbose or not is_table else _not_ok(findings)
    emit(told, _COLUMNS, output)
    _conclude(session, names, findings)


def _findings(
    session: Session, attending: Doctor, names: Sequence[str], deep: bool
) -> Iterator[dict[str, Any]]:
    for finding in attending.machine(session.config_path):
        yield {"kb": "", **asdict(finding)}
    for name in names:
        for finding in attending.examine(name, deep=deep):
            yield {"kb": name, **asdict(finding)}


def _repair(
    session: Session, attending: Doctor, names: Sequence[str], dry_run: bool, output: Output
) -> None:
    steps = [
        {"kb": name, **asdict(step)}
        for name in names
        for step in attending.repair(name, dry_run=dry_run)
    ]
    emit(steps, _STEPS, output)
    if not steps:
        _say_whole(session, names)
    elif dry_run:
        session.say("nothing has been changed")
    if lost := [step["message"] for step in steps if step["lost_rows"]]:
        hint = "bring it from a backup, or ingest it again; -o json names each row"
        raise PartialFailure(one_line("; ".join(lost), 300), hint)


def _rebuild(
    session: Session, attending: Doctor, names: Sequence[str], yes: bool, output: Output
) -> None:
    for name in names:
        if where := attending.sends(name):
            session.confirm(f"send the text of every memory of {name} to {where}?", yes=yes)
    began = time.monotonic()
    with progress(session, "rebuilding") as listener:
        steps = [
            {"kb": name, **asdict(step)}
            for name in names
            for step in attending.rebuild(name, listener)
        ]
    emit(steps, _STEPS, output)
    session.say(f"{count(len(names), 'knowledge base')} in {time.monotonic() - began:.1f} s")


def _not_ok(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [finding for finding in findings if finding["verdict"] != "ok"]


def _conclude(session: Session, names: Sequence[str], findings: Sequence[dict[str, Any]]) -> None:
    verdicts = Counter(finding["verdict"] for finding in findings)
    session.say(f"{count(verdicts['ok'], 'check')} ok, {count(verdicts['warning'], 'warning')}")
    if not verdicts["damaged"]:
        _say_whole(session, names)
        return
    worst = next(finding for finding in findings if finding["verdict"] == "damaged")
    bases = count(len(names), "knowledge base")
    raise DamagedError(f"{count(verdicts['damaged'], 'finding')} in {bases}", worst["hint"])


def _say_whole(session: Session, names: Sequence[str]) -> None:
    bases = count(len(names), "knowledge base")
    session.say(f"{bases} whole" if names else "no knowledge base yet")

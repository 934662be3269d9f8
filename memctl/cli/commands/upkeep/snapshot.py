"""memctl snapshot: states of a knowledge base under a name, and the way back to them."""

from __future__ import annotations

from collections.abc import Iterator
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
    group,
)
from memctl.cli.completion import complete_snapshot
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import Column, emit, emit_if_asked, format_instant
from memctl.cli.rendering.terminal_text import format_moment
from memctl.formatting import format_count, format_size
from memctl.plain_values import to_plain

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.snapshots import NamedSnapshot, RestoreResult

app = group("snapshot", "Name the state of a knowledge base, and go back to it.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="1 to 64 of a-z, 0-9, - and _.")]
ExistingName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="See memctl snapshot list.", autocompletion=complete_snapshot
    ),
]

_COLUMNS = (
    Column("name", "NAME"),
    Column("kb", "KB"),
    Column("created_at", "CREATED", format_instant),
    Column("documents", "DOCUMENTS", right=True),
    Column("memories", "MEMORIES", right=True),
    Column("own_bytes", "ITS ALONE", format_size, right=True),
    Column("problem", "PROBLEM", wrap=True),
)


@command(
    app,
    "create",
    """
    memctl snapshot create before-cleanup
    memctl snapshot create monday -k notes
    """,
)
def create(
    context: CommandContext, name: Name, kb: KnowledgeBaseOption = None, output: Output = None
) -> None:
    """Name the present state of a knowledge base.

    Nothing is copied, and it does not wait for writers.  A snapshot has all tables, decisions on
    names, and which files were ingested; it does not have the files themselves (in processed/ and
    inboxes), settings or logs.  Later changes take space until the snapshot is deleted.
    """
    with context.writing_existing(kb) as base:
        made = base.snapshots.create(name)
        context.say(f"made snapshot {name} of {base.name}: {_size(made)}")
        emit_if_asked(_row(base, made), output)


@command(app, "list", "memctl snapshot list\nmemctl snapshot list -k notes -o json")
def list_(
    context: CommandContext,
    kb: KnowledgeBasesOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List snapshots, the oldest first.

    ITS ALONE is the space that deleting it would free.
    """
    with context.reading(kb) as bases:
        found = [(base, snapshot) for base in bases for snapshot in base.snapshots.list()]
        found.sort(key=lambda pair: pair[1].created_at)
        rows = [_row(base, snapshot) for base, snapshot in found]
    emit(context.page(rows, page), _COLUMNS, output)
    if not rows:
        context.hint("there is none yet: memctl snapshot create NAME")


@command(
    app,
    "restore",
    """
    memctl snapshot restore before-cleanup
    memctl snapshot restore monday -k notes --yes
    """,
)
def restore(
    context: CommandContext,
    name: ExistingName,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Take a knowledge base back to a snapshot.

    The present state becomes a snapshot first, so restoring can be undone.  Files stay where they
    are: one that was ingested since is no longer remembered, though it is in processed/; one in
    an inbox that keeps its files is ingested again when that is watched.  What was forgotten
    since stays forgotten.  Queries go on meanwhile, and writers wait.
    """
    with context.writing_existing(kb) as base:
        snapshot = base.snapshots.get(name)
        what = f"{base.name} to {name} of {format_moment(snapshot.created_at)} ({_size(snapshot)})"
        if not context.confirm_or_preview(f"set {what}", yes=yes, dry_run=dry_run):
            return
        restored = base.snapshots.restore(name)
        context.say(f"set {what}")
        for line in _describe(restored):
            context.say(line)
        emit_if_asked(restored, output)


@command(app, "delete", "memctl snapshot delete monday\nmemctl snapshot delete monday --dry-run")
def delete(
    context: CommandContext,
    name: ExistingName,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Delete a snapshot.

    What the knowledge base holds now stays as it is.
    """
    with context.writing_existing(kb) as base:
        snapshot = base.snapshots.get(name)
        what = f"snapshot {name} of {base.name} ({_size(snapshot)})"
        question = f"delete {what} for good?"
        if not context.confirm_or_preview(f"delete {what}", question, yes=yes, dry_run=dry_run):
            return
        freed = base.snapshots.delete(name)
    context.say(f"deleted {what}, {format_size(freed)} freed")


def _describe(restored: RestoreResult) -> Iterator[str]:
    documents, memories = restored.forgotten_documents, restored.forgotten_memories
    if documents or memories:
        gone = (
            f"{format_count(documents, 'document')}, {format_count(memories, 'memory', 'memories')}"
        )
        yield f"what was forgotten since stays so: {gone}"
    if restored.redacted:
        reason = "stay as they are now, because words of them were forgotten since"
        yield f"{format_count(len(restored.redacted), 'document')} {reason}"
    yield f"what was there before is the snapshot {restored.saved_as}"


def _row(base: KnowledgeBase, snapshot: NamedSnapshot) -> dict[str, object]:
    return {"kb": base.name, **to_plain(snapshot)}


def _size(snapshot: NamedSnapshot) -> str:
    if snapshot.problem:
        return snapshot.problem
    memories = format_count(snapshot.memories or 0, "memory", "memories")
    return f"{format_count(snapshot.documents or 0, 'document')}, {memories}"

"""memctl prompt: variants of the instructions that models are given."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.arguments import input_file
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBaseOption,
    Output,
    Yes,
    command,
    flag,
    group,
)
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import Column, emit, emit_one, print_text
from memctl.cli.rendering.terminal_text import format_score, shortened
from memctl.errors import UsageError

if TYPE_CHECKING:
    from memctl.feedback.prompt_variants import VariantView

_WHOLE = 100
"""Per cent that the shares of a split add up to."""
app = group("prompt", "Instructions for models: their versions, and how they do.")

Task = Annotated[str, typer.Argument(metavar="TASK", help="See memctl prompt list.")]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="See memctl prompt list TASK.")]
TextFile = Annotated[
    str, typer.Argument(metavar="FILE", help="The file with the text; - is standard input.")
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it was made.")]


def _percent(value: float) -> str:
    return f"{value:.0%}" if value else ""


_COLUMNS = (
    Column("task", "TASK"),
    Column("version", "VERSION"),
    Column("origin", "ORIGIN"),
    Column("parent", "FROM"),
    Column("share", "SHARE", _percent, right=True),
    Column("uses", "USES", right=True),
    Column("judged", "JUDGED", right=True),
    Column("mean_reward", "REWARD", format_score, right=True),
    Column("low", "FROM 95 %", format_score, right=True),
    Column("high", "TO 95 %", format_score, right=True),
    Column("is_winner", "BETTER", lambda is_winner: "yes" if is_winner else ""),
    Column("reason", "REASON", lambda text: shortened(text, 40)),
)


@command(app, "list", "memctl prompt list\nmemctl prompt list answer -o json")
def list_(
    context: CommandContext,
    task: str | None = typer.Argument(None, metavar="[TASK]", help="Only this prompt."),
    all_: bool = flag("--all", "Retired ones too."),
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List the versions of prompts, with uses and rewards.

    A reward is a mean over conversations, with the bounds within which it lies with 95 %
    confidence (bootstrap).  A version is called better when it beats every other one in use by
    more than chance, and by at least 0.05, over 30 judged conversations of each.
    """
    with context.reading_existing(kb) as base:
        found = base.prompts.list(task)
    shown = [each for each in found if all_ or not each.is_retired]
    emit(context.page(shown, page), _COLUMNS, output)


@command(
    app,
    "show",
    """
    memctl prompt show answer
    memctl prompt show support v2
    memctl prompt show support --session standup-1
    """,
)
def show(
    context: CommandContext,
    task: Task,
    version: str | None = typer.Argument(
        None, metavar="[VERSION]", help="By default the one in use."
    ),
    session: str | None = typer.Option(
        None, "--session", metavar="ID", help="The one that this conversation uses; noted as a use."
    ),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Print the text of a version.

    With --session it is the version that this conversation gets, always the same one, and the use
    is noted, so that the conversation's reward counts for it.  What a task of memctl rests on for
    safety is added to the text when it is used, and cannot be edited.
    """
    with context.reading_existing(kb) as base:
        if session is not None:
            found = base.prompts.use(task, session, version)
        else:
            found = base.prompts.variants.show(task, version)
    if output is None:  # in a pipe too: it is to be edited and added
        print_text(found.text)
    else:
        emit_one(found, output, lambda: print_text(found.text))


@command(
    app,
    "add",
    """
    memctl prompt add answer shorter.md --reason "answers were too long"
    memctl prompt add support - < system-prompt.md
    """,
)
def add(
    context: CommandContext,
    task: Task,
    file: TextFile,
    reason: Reason = "",
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Keep a new version, which is not in use yet.

    TASK is one of memctl's own, or any name for the system prompt of an agent of yours, whose
    first version is in use at once.
    """
    text = _read(file)
    with context.writing_existing(kb) as base:
        made = base.prompts.writable().add(task, text, reason=reason)
    context.say(f"kept {task} {made.version}; use it: memctl prompt activate {task} {made.version}")
    emit_one(made, output, lambda: None)


@command(app, "edit", "memctl prompt show answer 1 > mine.md\nmemctl prompt edit answer 1 mine.md")
def edit(
    context: CommandContext,
    task: Task,
    version: Version,
    file: TextFile,
    reason: Reason = "",
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Save a changed version beside the original."""
    text = _read(file)
    with context.writing_existing(kb) as base:
        made = base.prompts.writable().edit(task, version, text, reason)
    context.say(f"kept {task} {made.version}, made from {version}")
    emit_one(made, output, lambda: None)


def _read(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return input_file(name, "give a file with the text, or -").read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{shortened(name, 80)} is no text", "save it as UTF-8") from error


@command(app, "activate", "memctl prompt activate answer v2\nmemctl prompt activate answer 1")
def activate(
    context: CommandContext, task: Task, version: Version, kb: KnowledgeBaseOption = None
) -> None:
    """Have every conversation use one version."""
    with context.writing_existing(kb) as base:
        base.prompts.writable().activate(task, version)
    context.say(f"{task} is {version} from now on")


@command(
    app, "split", "memctl prompt split answer 1=50 v2=50\nmemctl prompt split support v1=90 v2=10"
)
def split(
    context: CommandContext,
    task: Task,
    shares: list[str] = typer.Argument(
        ..., metavar="VERSION=PERCENT", help="At least two, 100 together."
    ),
    kb: KnowledgeBaseOption = None,
) -> None:
    """Share conversations out among versions.

    A conversation keeps its version.  memctl prompt list says which one does better.
    """
    parsed = _shares(shares)
    with context.writing_existing(kb) as base:
        base.prompts.writable().split(task, parsed)
    listed = ", ".join(f"{version} {share:g}%" for version, share in parsed.items())
    context.say(f"{task}: {listed}")


def _shares(words: list[str]) -> dict[str, float]:
    """Return the share of each version.

    Raises:
        UsageError: One is no number above 0, a version is named twice, there is but one, or they
            do not add up to 100.
    """
    found: dict[str, float] = {}
    for word in words:
        version, _, share = word.partition("=")
        try:
            number = float(share.removesuffix("%"))
        except ValueError:
            number = -1.0
        if not version or not 0 < number < 1e9:
            raise UsageError(
                f"{shortened(word, 40)!r} is no share",
                "such as v1=90; for one version alone: memctl prompt activate TASK VERSION",
            )
        if version in found:
            raise UsageError(f"{shortened(version, 40)} is named twice", "name each version once")
        found[version] = number
    if len(found) < 2:
        raise UsageError("one version is no split", "memctl prompt activate TASK VERSION")
    if not math.isclose(total := math.fsum(found.values()), _WHOLE):
        raise UsageError(f"the shares add up to {total:g}, not {_WHOLE}", "such as v1=90 v2=10")
    return found


@command(app, "retire", "memctl prompt retire answer v2 --dry-run\nmemctl prompt retire answer v2")
def retire(
    context: CommandContext,
    task: Task,
    version: Version,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Have no conversation use a version any more.

    It stays to be looked at; what shares it had go to the others.
    """
    with context.writing_existing(kb) as base:
        shown = next((e for e in base.prompts.list(task) if e.version == version), None)
        action = f"retire {task} {version}"
        if shown is not None and shown.share:
            action += f", which {shown.share:.0%} of conversations use"
        if context.confirm_or_preview(action, yes=yes or not _has_share(shown), dry_run=dry_run):
            base.prompts.writable().retire(task, version)
            context.say(f"retired {task} {version}")


def _has_share(view: VariantView | None) -> bool:
    return view is not None and view.share > 0


@command(app, "diff", "memctl prompt diff answer v2\nmemctl prompt diff answer v2 v3")
def diff(
    context: CommandContext,
    task: Task,
    version: Version,
    other: str | None = typer.Argument(
        None,
        metavar="[OTHER]",
        help="Show how this one differs; by default what it changes in what it is from.",
    ),
    kb: KnowledgeBaseOption = None,
) -> None:
    """Show what a version changes, or how two versions differ."""
    before, changed = (None, version) if other is None else (version, other)
    with context.reading_existing(kb) as base:
        print_text(base.prompts.variants.diff(task, changed, before))


@command(app, "improve", "memctl prompt improve answer\nmemctl prompt diff answer v1")
def improve(
    context: CommandContext, task: Task, kb: KnowledgeBaseOption = None, output: Output = None
) -> None:
    """Have the configured model suggest a version.

    It gets the version in use, and the conversations that went worst with it, with feedback and
    examples.  What it writes is kept as suggested, and never used unless you activate it.
    """
    with context.writing_existing(kb) as base:
        made = base.prompts.improve(task)
    context.say(
        f"kept {task} {made.version} as suggested: memctl prompt diff {task} {made.version}"
    )
    emit_one(made, output, lambda: print_text(made.reason))

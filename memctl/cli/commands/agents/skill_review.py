"""memctl skill: proposals of skills, and conflicts between them, which a person reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.arguments import refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import DryRun, KnowledgeBaseOption, Output, Yes, command, flag
from memctl.cli.commands.agents.skill import CategoryOption, app, skill_text
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_facts,
    emit_if_asked,
    emit_one,
    format_instant,
    print_facts,
    to_plain,
)
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import UsageError
from memctl.formatting import format_count
from memctl.literals import ConflictStatus, ProposalStatus

if TYPE_CHECKING:
    from memctl.skills.skill_conflicts import SkillRepairReport
    from memctl.skills.skill_proposals import SkillApproval

ProposalWord = Annotated[
    str, typer.Argument(metavar="PROPOSAL", help="Its id; see memctl skill proposals.")
]
ConflictWord = Annotated[
    str, typer.Argument(metavar="CONFLICT", help="Its id; see memctl skill conflicts.")
]
Because = Annotated[str, typer.Option("--because", metavar="TEXT", help="The reason.")]

_PROPOSALS = (
    Column("proposal_id", "PROPOSAL"),
    Column("status", "STATUS"),
    Column("name", "NAME"),
    Column("category", "CATEGORY"),
    Column("confidence", "CONFIDENCE", right=True),
    Column("agent", "AGENT"),
    Column("expires_at", "EXPIRES", format_instant),
)
_CONFLICTS = (
    Column("conflict_id", "CONFLICT"),
    Column("type", "TYPE"),
    Column("severity", "SEVERITY"),
    Column("priority", "PRIORITY", right=True),
    Column("status", "STATUS"),
    Column("explanation", "WHAT", one_line, wrap=True),
)


# --- proposals -----------------------------------------------------------------------------------


@command(
    app,
    "propose",
    """
    memctl skill propose "Kubernetes deployment automation"
    memctl skill propose "invoice checks" --requires read-pdf --requires send-mail --submit
    """,
    identity=True,
)
def propose(
    context: CommandContext,
    topic: Annotated[list[str], typer.Argument(metavar="TOPIC", help="What it is to be for.")],
    name: Annotated[
        str, typer.Option("--name", metavar="TEXT", help="By default as the topic.")
    ] = "",
    description: Annotated[
        str, typer.Option("--description", metavar="TEXT", help="What it does, and when to use it.")
    ] = "",
    category: CategoryOption = None,
    requires: Annotated[
        list[str] | None,
        typer.Option("--requires", metavar="SKILL", help="A skill that it needs; repeatable."),
    ] = None,
    submit_: bool = flag("--submit", "Hand it in for review."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Look into a topic and propose a skill for it."""
    with context.reading_existing(kb) as base:
        made = base.skills.proposals().propose(
            " ".join(topic),
            name=name,
            description=description,
            category=category,
            requires=requires or (),
            submitted=submit_,
        )
    emit_facts(made, output)
    if not submit_:
        context.hint(f"hand it in: memctl skill submit {made.proposal_id}")


@command(
    app,
    "proposals",
    "memctl skill proposals\nmemctl skill proposals --status submitted -o json",
    identity=True,
)
def proposals(
    context: CommandContext,
    status: Annotated[
        ProposalStatus | None, typer.Option("--status", help="Only in this one.")
    ] = None,
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List proposals of skills, the latest first."""
    with context.reading_existing(kb) as base:
        rows = base.skills.proposals().list(status)
    emit(context.page(rows, page), _PROPOSALS, output)


@command(app, "submit", "memctl skill submit pr_4f2a", identity=True)
def submit(
    context: CommandContext,
    proposal: ProposalWord,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Hand a draft in for review."""
    with context.reading_existing(kb) as base:
        made = base.skills.proposals().submit(proposal)
    context.say(f"{made.proposal_id} is submitted, until {made.expires_at:%Y-%m-%d}")
    emit_if_asked(made, output)


@command(app, "review", "memctl skill review pr_4f2a", identity=True)
def review(
    context: CommandContext,
    proposal: ProposalWord,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Take a proposal up for review, and show it."""
    with context.reading_existing(kb) as base:
        made = base.skills.proposals().review(proposal)
    emit_facts(made, output)


@command(
    app,
    "approve",
    """
    memctl skill approve pr_4f2a
    memctl skill approve pr_4f2a --create --file SKILL.md
    """,
    identity=True,
)
def approve(
    context: CommandContext,
    proposal: ProposalWord,
    because: Because = "",
    create_: bool = flag("--create", "Make its skill at once."),
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="With --create, its text; - for input."),
    ] = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Approve a proposal; what it requires is proposed, too."""
    if file is not None and not create_:
        raise UsageError("--file goes with --create", "add --create")
    content = "" if file is None else skill_text(file)
    with context.reading_existing(kb) as base:
        reviewing = base.skills.proposals()
        done = reviewing.approve(proposal, because)
        made = reviewing.create(proposal, content) if create_ else None
    for each in done.proposed:
        context.say(f"proposed {each.name} as {each.proposal_id}, which it requires")
    if made is None:
        context.hint(f"make its skill: memctl skill create {done.proposal.proposal_id}")
        emit_one(done, output, lambda: _show_approval(context, done))
        return
    context.say(f"made skill {made.slug}")
    emit_facts(made, output)


def _show_approval(context: CommandContext, done: SkillApproval) -> None:
    proposed = [each.name for each in done.proposed]
    print_facts(context.console, {**to_plain(done.proposal), "proposed": proposed}, indent=0)


@command(
    app,
    "create",
    "memctl skill create pr_4f2a\nmemctl skill create pr_4f2a --file SKILL.md",
    identity=True,
)
def create(
    context: CommandContext,
    proposal: ProposalWord,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="Its text; by default the draft; - for input."),
    ] = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Make the skill of an approved proposal."""
    content = "" if file is None else skill_text(file)
    with context.reading_existing(kb) as base:
        made = base.skills.proposals().create(proposal, content)
    for missing in made.missing:
        context.say(f"note: {missing} is required and not there yet")
    emit_facts(made, output)


@command(
    app, "reject", 'memctl skill reject pr_4f2a --because "we have one already"', identity=True
)
def reject(
    context: CommandContext,
    proposal: ProposalWord,
    because: Because = "",
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Reject a proposal, and say why."""
    with context.reading_existing(kb) as base:
        made = base.skills.proposals().reject(proposal, because)
    context.say(f"{made.proposal_id} is rejected")
    emit_if_asked(made, output)


@command(
    app,
    "learn",
    "memctl skill learn --dry-run\nmemctl skill learn deploy-to-kubernetes",
    identity=True,
)
def learn(
    context: CommandContext,
    skill: Annotated[
        str | None, typer.Argument(metavar="SKILL", help="By default every active one.")
    ] = None,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Propose versions from the notes of uses; activate none."""
    with context.reading_existing(kb) as base:
        rows = base.skills.proposals().learn(skill, dry_run=dry_run)
    emit(rows, (Column("slug", "SKILL"), Column("version", "VERSION"), _NOTES), output)


_NOTES = Column("notes", "NOTES", "; ".join, wrap=True)


# --- conflicts -----------------------------------------------------------------------------------


@command(
    app,
    "conflicts",
    """
    memctl skill conflicts --scan
    memctl skill conflicts --skill deploy-to-kubernetes
    memctl skill conflicts --status dismissed -o json
    """,
    identity=True,
)
def conflicts(
    context: CommandContext,
    scan: bool = flag("--scan", "Look for them first."),
    status: Annotated[
        ConflictStatus | None, typer.Option("--status", help="By default those that are open.")
    ] = None,
    skill: Annotated[
        str | None, typer.Option("--skill", metavar="SKILL", help="Only of this one.")
    ] = None,
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List what skills have against each other.

    Types are overlap, contradiction, dependency, version_mismatch and naming; the most pressing
    comes first.
    """
    refuse_empty({"--skill": skill})
    with context.reading_existing(kb) as base:
        found = base.skills.conflicts()
        if scan:
            report = found.scan()
            context.say(
                f"{format_count(report.skills, 'skill')} compared: {report.new} new,"
                f" {report.resolved} gone"
            )
        rows = found.list(status=status, skill=skill)
    emit(context.page(rows, page), _CONFLICTS, output)


@command(app, "acknowledge", "memctl skill acknowledge cf_91b0", identity=True)
def acknowledge(
    context: CommandContext, conflict: ConflictWord, kb: KnowledgeBaseOption = None
) -> None:
    """Say that a conflict is known; it stays open."""
    _settle(context, conflict, "acknowledged", kb)


@command(app, "resolve", "memctl skill resolve cf_91b0", identity=True)
def resolve(
    context: CommandContext, conflict: ConflictWord, kb: KnowledgeBaseOption = None
) -> None:
    """Say that a conflict is resolved; a scan checks it."""
    _settle(context, conflict, "resolved", kb)


@command(app, "dismiss", "memctl skill dismiss cf_91b0", identity=True)
def dismiss(
    context: CommandContext, conflict: ConflictWord, kb: KnowledgeBaseOption = None
) -> None:
    """Say that a conflict is none; scans leave it alone."""
    _settle(context, conflict, "dismissed", kb)


def _settle(
    context: CommandContext, conflict: str, status: ConflictStatus, kb: Sequence[str] | None
) -> None:
    with context.reading_existing(kb) as base:
        changed = base.skills.conflicts().settle(conflict, status)
    context.say(f"{changed.conflict_id} is {changed.status}")


@command(
    app,
    "repair",
    "memctl skill repair --dry-run\nmemctl skill repair --yes",
    identity=True,
)
def repair(
    context: CommandContext,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Repair simple conflicts; memctl job undo takes it back.

    The newer of two skills with like names gets a suffix; what requires a deprecated skill with a
    successor, or a version that is not active, requires the right one.
    """
    with context.reading_existing(kb) as base:
        found = base.skills.conflicts()
        planned = found.repair(dry_run=True)
        count = format_count(len(planned.repaired), "conflict")
        if dry_run or not planned.repaired:
            _emit_repair(planned, output)
            return
        context.confirm(f"repair {count} of skills in {base.name}?", yes=yes)
        done = found.repair()
    context.say(f"repaired {count}; memctl job undo {done.job} takes it back")
    _emit_repair(done, output)


def _value_text(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _emit_repair(report: SkillRepairReport, output: Output) -> None:
    columns = (
        Column("type", "CONFLICT"),
        Column("skill_id", "SKILL"),
        Column("field", "FIELD"),
        Column("before", "BEFORE", _value_text),
        Column("after", "AFTER", _value_text),
    )
    emit_one(report, output, lambda: emit(report.repaired, columns, "table"))

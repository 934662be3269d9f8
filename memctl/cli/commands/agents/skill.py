"""memctl skill: capabilities of agents, found by what they do and judged by how they do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.arguments import input_file, input_path, parse_path, read_question, refuse_empty
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
from memctl.cli.completion import complete_skill
from memctl.cli.paging import Limit, Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_if_asked,
    emit_one,
    format_instant,
    print_facts,
    print_text,
    to_plain,
)
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import NothingFound, PartialFailure, UsageError
from memctl.formatting import format_count
from memctl.literals import ChangeType, SkillCategory, SkillStatus

if TYPE_CHECKING:
    from memctl.skills.skill_views import SkillImport

app = group("skill", "Keep, find, version and judge the skills of agents.")
version_app = group("version", "Versions of a skill: which one agents get.")
app.add_typer(version_app)

SkillWord = Annotated[
    str,
    typer.Argument(metavar="SKILL", help="Its slug, name or id.", autocompletion=complete_skill),
]
CategoryOption = Annotated[
    SkillCategory | None, typer.Option("--category", help="One of 21; see docs/skills.md.")
]
Change = Annotated[
    ChangeType, typer.Option("--type", help="How it differs from the version before.")
]
Notes = Annotated[str, typer.Option("--notes", metavar="TEXT", help="What is new in it.")]

_LIST = (
    Column("slug", "SKILL"),
    Column("category", "CATEGORY"),
    Column("status", "STATUS"),
    Column("version", "VERSION", right=True),
    Column("health", "HEALTH", right=True),
    Column("uses", "USES", right=True),
    Column("open_conflicts", "CONFLICTS", right=True),
    Column("description", "DESCRIPTION", one_line, wrap=True),
)
_HITS = (
    Column("rank", "#", right=True),
    Column("slug", "SKILL"),
    Column("score", "SCORE", right=True),
    Column("health", "HEALTH", right=True),
    Column("category", "CATEGORY"),
    Column("description", "DESCRIPTION", one_line, wrap=True),
)
_IMPORTS = (
    Column("outcome", "OUTCOME"),
    Column("slug", "SKILL"),
    Column("version", "VERSION", right=True),
    Column("category", "CATEGORY"),
    Column("source", "FILE"),
    Column("reason", "REASON", wrap=True),
)
_VERSIONS = (
    Column("number", "VERSION", right=True),
    Column("change_type", "TYPE"),
    Column("share", "SHARE", right=True),
    Column("uses", "USES", right=True),
    Column("success", "SUCCESS", right=True),
    Column("created_at", "MADE", format_instant),
    Column("notes", "NOTES", one_line, wrap=True),
)
_SUGGESTIONS = (
    Column("slug", "SKILL"),
    Column("kind", "KIND"),
    Column("text", "WHY", wrap=True),
    Column("command", "COMMAND"),
)
_GAPS = (
    Column("team", "TEAM"),
    Column("kind", "KIND"),
    Column("name", "NAME"),
    Column("weight", "QUESTIONS", lambda count: str(count or ""), right=True),
)
_USES = (
    Column("at", "AT", format_instant),
    Column("version", "VERSION", right=True),
    Column("success", "OK"),
    Column("agent", "AGENT"),
    Column("task", "TASK", one_line),
    Column("note", "NOTE", one_line, wrap=True),
)


# --- skills --------------------------------------------------------------------------------------


@command(
    app,
    "add",
    """
    memctl skill add ~/.claude/skills
    memctl skill add skills/deploy/SKILL.md --category deployment
    memctl skill add skills/ --dry-run
    """,
    identity=True,
)
def add(
    context: CommandContext,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A SKILL.md, a Markdown file, or a folder.")
    ],
    category: CategoryOption = None,
    type_: Change = "minor",
    notes: Notes = "",
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Import skills from files; nothing of them is ever run.

    A folder with a SKILL.md is one skill with all its files; of any other folder, every folder
    below it that has a SKILL.md, and the Markdown files in it.  What is there already is
    recognised; a file that has changed becomes the next version, which is active.  With an agent
    named, skills are drafts and versions wait until a person activates them.
    """
    source = input_path(path, "give a folder with skills")
    opened = context.open_for_dry_run(kb) if dry_run else context.writing(kb)
    with opened as base:
        found = base.skills.acting_as().add(
            source, category=category, change_type=type_, notes=notes, dry_run=dry_run
        )
    emit(found, _IMPORTS, output)
    for each in found:
        for left_out in each.left_out:
            context.say(f"note: {each.slug}: left out {left_out}")
        if each.outcome == "failed":
            context.say(f"failed: {each.source}: {each.reason}")
            context.suggest(each.hint)
    _say_imported(context, found, dry_run=dry_run)


def _say_imported(
    context: CommandContext, imports: Sequence[SkillImport], *, dry_run: bool
) -> None:
    counts = {kind: sum(e.outcome == kind for e in imports) for kind in
              ("added", "version", "unchanged", "failed")}  # fmt: skip
    if not imports:
        raise NothingFound("no skill was found there", "a skill is a folder with a SKILL.md")
    would = "would be " if dry_run else ""
    context.say(
        f"{would}{counts['added']} added, {format_count(counts['version'], 'new version')},"
        f" {counts['unchanged']} unchanged"
    )
    if counts["failed"]:
        raise PartialFailure(f"{format_count(counts['failed'], 'file')} could not be imported")


@command(
    app,
    "list",
    """
    memctl skill list
    memctl skill list --category deployment --status active
    memctl skill list --of coder -o json
    """,
    identity=True,
)
def list_(
    context: CommandContext,
    category: CategoryOption = None,
    status: Annotated[
        SkillStatus | None, typer.Option("--status", help="By default all but archived.")
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", metavar="AGENT", help="Those that this agent has.")
    ] = None,
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List skills with their health."""
    refuse_empty({"--of": of})
    with context.reading_existing(kb) as base:
        rows = base.skills.acting_as().list(category=category, status=status, agent=of)
    emit(context.page(rows, page), _LIST, output)
    if not rows:
        context.hint("import some: memctl skill add FOLDER")


@command(
    app,
    "show",
    "memctl skill show deploy-to-kubernetes\nmemctl skill show deploy-to-kubernetes -o json",
    identity=True,
)
def show(
    context: CommandContext,
    skill: SkillWord,
    text: bool = flag("--text", "Print its text, as it was imported."),
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, help="With --text, which one.")
    ] = None,
    uses: bool = flag("--uses", "List its uses instead."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Show a skill: versions, files, agents and what it requires."""
    with context.reading_existing(kb) as base:
        skills = base.skills.acting_as()
        if text or version is not None:
            found = skills.find(skill)
            print_text(skills.version(found, version or found.active_version).content)
            return
        if uses:
            emit(skills.uses(skill), _USES, output)
            return
        details = skills.show(skill)

    def table() -> None:
        """Print it for people."""
        plain = to_plain(details)
        out = context.console
        print_facts(out, {**plain["skill"], "source": details.source}, indent=0)
        for name in ("execution", "metadata"):
            if plain[name]:
                out.print(f"{name}:")
                print_facts(out, plain[name])
        for circle in details.cycles:
            out.print(f"circle: {' -> '.join(circle)}")
        for missing in details.missing:
            out.print(f"missing: {missing}")
        for file in details.files:
            out.print(f"file: {file.path} ({file.size:,} bytes)")
        emit(details.versions, _VERSIONS, "table")

    emit_one(details, output, table)


@command(
    app,
    "search",
    """
    memctl skill search "deploy to kubernetes"
    memctl skill search review a pull request --category code_review -o json
    """,
    identity=True,
)
def search(
    context: CommandContext,
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS", help="What is to be done; - is standard input.")
    ],
    category: CategoryOption = None,
    every: bool = flag("--all", "Also drafts, and what is deprecated or archived."),
    limit: Limit = 10,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Find skills by what they do, ranked with their health."""
    task = read_question(words, 'say what is to be done: memctl skill search "deploy an app"')
    with context.reading_existing(kb) as base:
        hits = base.skills.acting_as().search(
            task, limit=limit or sys.maxsize, category=category, every_status=every
        )
    emit(hits, _HITS, output)
    if not hits:
        context.hint("nothing fits; propose one: memctl skill propose TOPIC")


@command(
    app,
    "context",
    """
    memctl skill context deploy-to-kubernetes --task "roll out release 4.2"
    memctl skill context deploy-to-kubernetes --budget 1000 -o json
    """,
    identity=True,
)
def context_(
    context: CommandContext,
    skill: SkillWord,
    task: Annotated[
        str | None, typer.Option("--task", metavar="TEXT", help="What it is to be used for.")
    ] = None,
    budget: Annotated[
        int, typer.Option("--budget", metavar="TOKENS", min=50, help="At most this many tokens.")
    ] = 4_000,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Print a skill for a run, with what bears on it.

    Its text comes first, then what it requires, open conflicts, earlier outcomes, and with --task
    what is known of the task.  Where several versions are active, the task decides which one it
    is, always the same for the same task.
    """
    refuse_empty({"--task": task})
    with context.reading_existing(kb) as base:
        found = base.skills.context(skill, task=task, budget=budget)
    emit_one(found, output, lambda: print_text(found.text))
    for circle in found.cycles:
        context.say(f"note: {' -> '.join(circle)} require each other")
    for missing in found.missing:
        context.say(f"note: {missing} is required and not there")
    if found.is_cut:
        context.say(f"note: cut to {found.tokens:,} tokens; --budget gives more")


@command(
    app,
    "assign",
    """
    memctl skill assign code-review --agent coder
    memctl skill assign code-review --agent coder --off
    """,
)
def assign(
    context: CommandContext,
    skill: SkillWord,
    to: Annotated[str, typer.Option("--agent", metavar="NAME", help="The agent that gets it.")],
    off: bool = flag("--off", "Switch it off: that agent no longer finds it."),
    remove: bool = flag("--remove", "Take it away instead."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Give a skill to an agent, or switch it off for one."""
    if off and remove:
        raise UsageError("--off and --remove do not go together", "give one of them")
    with context.reading_existing(kb) as base:
        skills = base.skills.acting_as()
        if remove:
            skills.unassign(skill, to)
            context.say(f"{to} no longer has {skill}")
            return
        made = skills.assign(skill, to, enabled=not off)
    context.say(f"{skill} is switched off for {to}" if off else f"{to} has {skill}")
    emit_if_asked(made, output)


@command(
    app,
    "used",
    """
    memctl skill used deploy-to-kubernetes --ok --task release-4.2 --seconds 93
    memctl skill used deploy-to-kubernetes --failed --note "the cluster needs a login first"
    """,
    identity=True,
)
def used(
    context: CommandContext,
    skill: SkillWord,
    ok: bool = flag("--ok", "It went well."),
    failed: bool = flag("--failed", "It did not go well."),
    task: Annotated[str, typer.Option("--task", metavar="TEXT", help="What it was used for.")] = "",
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="What is to be learned from it.")
    ] = "",
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="N", help="How long it took.")
    ] = None,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", min=1, help="By default the task's version."),
    ] = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Record how a use of a skill went."""
    if ok and failed:
        raise UsageError("--ok and --failed do not go together", "leave out one")
    if not (ok or failed):
        raise UsageError("how did it go?", "say --ok or --failed")
    with context.reading_existing(kb) as base:
        use = base.skills.acting_as().record_use(
            skill, success=ok, task=task, note=note, duration=seconds, version=version
        )
    how = "went well" if use.success else "failed"
    context.say(f"noted that version {use.version} of {skill} {how}")
    emit_if_asked(use, output)


@command(
    app,
    "health",
    "memctl skill health\nmemctl skill health --compare -o json",
    identity=True,
)
def health(
    context: CommandContext,
    compare: bool = flag("--compare", "Compare versions: is the newer one better?"),
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List skills by health, the least healthy first."""
    with context.reading_existing(kb) as base:
        skills = base.skills.acting_as()
        if compare:
            emit(context.page(skills.evolution(), page), _EVOLUTION, output)
            return
        rows = sorted(skills.list(), key=lambda each: (each.health, each.slug))
    emit(context.page(rows, page), _LIST, output)


_EVOLUTION = (
    Column("name", "SKILL"),
    Column("older", "OLDER", right=True),
    Column("newer", "NEWER", right=True),
    Column("older_success", "SUCCESS", right=True),
    Column("newer_success", "SUCCESS", right=True),
    Column("chance", "CHANCE", right=True),
    Column("better", "BETTER", right=True),
)


@command(app, "suggest", "memctl skill suggest\nmemctl skill suggest -o json")
def suggest(
    context: CommandContext,
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """Suggest what to do about skills; nothing is changed."""
    with context.reading_existing(kb) as base:
        rows = base.skills.suggestions()
    emit(context.page(rows, page), _SUGGESTIONS, output)


@command(
    app,
    "gaps",
    "memctl skill gaps\nmemctl skill gaps --coverage -o json",
    identity=True,
)
def gaps(
    context: CommandContext,
    coverage: bool = flag("--coverage", "List what each team has skills for instead."),
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List what no skill is for, by team.

    Topics of questions that memory could not answer, and categories without an active skill.
    """
    with context.reading_existing(kb) as base:
        if coverage:
            emit(context.page(base.skills.coverage(), page), _COVERAGE, output)
            return
        rows = base.skills.gaps()
    emit(context.page(rows, page), _GAPS, output)


_COVERAGE = (
    Column("team", "TEAM"),
    Column("skills", "SKILLS", right=True),
    Column("coverage", "COVERAGE", right=True),
    Column("lacking", "LACKING", ", ".join, wrap=True),
)


@command(
    app,
    "activate",
    "memctl skill activate deploy-to-kubernetes",
    identity=True,
)
def activate(context: CommandContext, skill: SkillWord, kb: KnowledgeBaseOption = None) -> None:
    """Make a draft or deprecated skill active."""
    _set_status(context, skill, "active", None, kb)


@command(
    app,
    "deprecate",
    "memctl skill deprecate deploy-by-hand --successor deploy-to-kubernetes",
    identity=True,
)
def deprecate(
    context: CommandContext,
    skill: SkillWord,
    successor: Annotated[
        str | None, typer.Option("--successor", metavar="SKILL", help="What replaces it.")
    ] = None,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Say that a skill should no longer be used."""
    refuse_empty({"--successor": successor})
    _set_status(context, skill, "deprecated", successor, kb)


@command(app, "archive", "memctl skill archive deploy-by-hand", identity=True)
def archive(context: CommandContext, skill: SkillWord, kb: KnowledgeBaseOption = None) -> None:
    """Put a skill away; listings leave it out."""
    _set_status(context, skill, "archived", None, kb)


def _set_status(
    context: CommandContext,
    skill: str,
    status: SkillStatus,
    successor: str | None,
    kb: Sequence[str] | None,
) -> None:
    with context.reading_existing(kb) as base:
        changed = base.skills.acting_as().set_status(skill, status, successor)
    context.say(f"{changed.slug} is {changed.status}")


@command(app, "delete", "memctl skill delete deploy-by-hand --yes", identity=True)
def delete(
    context: CommandContext,
    skill: SkillWord,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Delete a skill with its versions, files and uses."""
    with context.reading_existing(kb) as base:
        skills = base.skills.acting_as()
        found = skills.find(skill)
        count = format_count(len(skills.versions(found.skill_id)), "version")
        what = f"skill {found.slug} of {base.name} ({count})"
        if context.confirm_or_preview(f"delete {what}", yes=yes, dry_run=dry_run):
            skills.delete(found.skill_id)
            context.say(f"deleted {what}")


@command(app, "export", "memctl skill export --to skills-of-today", identity=True)
def export(
    context: CommandContext,
    to: Annotated[str, typer.Option("--to", metavar="FOLDER", help="Where they go.")],
    every: bool = flag("--all", "Also drafts, and what is deprecated or archived."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Write skills as folders with a SKILL.md, to read or for git.

    The registry is what counts: the folder is not kept up to date.
    """
    folder = parse_path(to)
    if folder.is_file():
        raise UsageError(f"{to} is a file", "name a folder, or one that is not there yet")
    with context.reading_existing(kb) as base:
        written, left_out = base.skills.acting_as().export(folder.absolute(), every_status=every)
    emit([{"folder": str(each)} for each in written], (Column("folder", "FOLDER"),), output)
    for each in left_out:
        context.say(f"note: left out {each}")


# --- versions ------------------------------------------------------------------------------------


@command(
    version_app,
    "add",
    """
    memctl skill version add deploy-to-kubernetes SKILL.md --type patch --notes "mention helm"
    memctl skill version add deploy-to-kubernetes - --activate < SKILL.md
    """,
    identity=True,
)
def version_add(
    context: CommandContext,
    skill: SkillWord,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Its whole text; - is standard input.")
    ],
    type_: Change = "minor",
    notes: Notes = "",
    at_once: bool = flag("--activate", "Have agents get it at once."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Add a version of a skill; it waits until it is activated."""
    content = skill_text(file)
    with context.reading_existing(kb) as base:
        skills = base.skills.acting_as()
        if at_once:
            skills.require_person("activate a version")
        made = skills.add_version(skill, content, type_, notes, "" if file == "-" else file)
        if at_once:
            skills.activate(skill, made.number)
        views = skills.versions(skill)
    context.say(f"version {made.number} of {skill} is {'active' if at_once else 'not active yet'}")
    emit_if_asked(views[-1], output)


def skill_text(file: str) -> str:
    """Return the text of a SKILL.md, or of standard input for ``-``."""
    from memctl.skills.skill_files import checked_skill_text, read_skill_text

    if file == "-":
        return checked_skill_text(sys.stdin.buffer.read())
    return read_skill_text(input_file(file, "give a Markdown file"))


@command(version_app, "list", "memctl skill version list deploy-to-kubernetes", identity=True)
def version_list(
    context: CommandContext,
    skill: SkillWord,
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List the versions of a skill, and how each did."""
    with context.reading_existing(kb) as base:
        rows = base.skills.acting_as().versions(skill)
    emit(context.page(rows, page), _VERSIONS, output)


@command(
    version_app, "activate", "memctl skill version activate deploy-to-kubernetes 2", identity=True
)
def version_activate(
    context: CommandContext,
    skill: SkillWord,
    number: Annotated[
        int, typer.Argument(metavar="N", min=1, help="See memctl skill version list.")
    ],
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Have agents get one version; the others are kept."""
    with context.reading_existing(kb) as base:
        made = base.skills.acting_as().activate(skill, number)
    context.say(f"version {number} of {skill} is active")
    emit_if_asked(made, output)


@command(
    version_app, "split", "memctl skill version split deploy-to-kubernetes 1=90 2=10", identity=True
)
def version_split(
    context: CommandContext,
    skill: SkillWord,
    shares: Annotated[
        list[str], typer.Argument(metavar="N=PERCENT", help="At least two, 100 together.")
    ],
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Share tasks out among versions; a task keeps its version."""
    with context.reading_existing(kb) as base:
        rows = base.skills.acting_as().split(skill, _shares(shares))
    emit(rows, _VERSIONS, output)


def _shares(words: Sequence[str]) -> dict[int, int]:
    found: dict[int, int] = {}
    for word in words:
        number, equals, share = word.partition("=")
        digits = share.removesuffix("%")
        if not (equals and _is_number(number) and _is_number(digits)):
            raise UsageError(f"{word!r} is no share", "write 1=90 2=10")
        if int(number) in found:
            raise UsageError(f"version {number} is named twice", "write 1=90 2=10")
        found[int(number)] = int(digits)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 7

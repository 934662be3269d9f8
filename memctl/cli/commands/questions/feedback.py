"""memctl feedback, reflect and enrich: answers are judged, looked back on and added to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from memctl.cli.arguments import parse_instant, read_question, refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBaseOption,
    KnowledgeBasesOption,
    Output,
    SinceOption,
    Yes,
    command,
    flag,
    group,
)
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_each,
    emit_facts,
    emit_one,
    format_instant,
    print_facts,
    print_marked,
    print_paragraph,
    resolve_format,
    to_plain,
    with_kb_column,
)
from memctl.cli.rendering.terminal_text import format_moment, format_score, shortened
from memctl.errors import NotFoundError, PartialFailure, UsageError
from memctl.formatting import format_count

if TYPE_CHECKING:
    from datetime import datetime

    from memctl.feedback.feedback_statistics import FeedbackStatistics, RewardMeans
    from memctl.feedback.judging import Judgement
    from memctl.feedback.reflection import Reflection
    from memctl.knowledge_base import KnowledgeBases
    from memctl.knowledge_base.feedback_parts import EnrichmentResult, JudgementResult
    from memctl.store.ledger.feedback_repositories import ConversationSummary

app = group("feedback", "Say how good answers and conversations were.")
single_app = typer.Typer()

_WORDS = {"good": 1.0, "bad": 0.0}
_SCORE_HINT = "good, bad, or a score from 0 to 1"


_LIST = (
    Column("feedback_id", "ID"),
    Column("at", "WHEN", format_instant),
    Column("score", "SCORE", format_score, right=True),
    Column("about", "OF"),
    Column("text", "TEXT", lambda text: shortened(text, 60)),
)


def parse_since(context: CommandContext, since: str | None) -> datetime | None:
    """Return the instant that --since means; None for the beginning."""
    return None if since is None else parse_instant(since, context.home.now())


def parse_score(word: str) -> float:
    """Return the score that a word stands for.

    Raises:
        UsageError: It is neither good nor bad, nor a number from 0 to 1.
    """
    if word in _WORDS:
        return _WORDS[word]
    try:
        score = float(word)
    except ValueError:
        score = -1.0
    if not 0 <= score <= 1:
        raise UsageError(f"{shortened(word, 40)!r} is no judgement", _SCORE_HINT)
    return score


@command(
    app,
    "add",
    """
    memctl feedback add last good
    memctl feedback add standup-1 --score 0.2 --text "the date was wrong" --task-failed
    memctl feedback add last bad --example "We ship on 3 July."
    """,
    identity=True,
)
def add(
    context: CommandContext,
    target: str = typer.Argument(
        ..., metavar="QUERY_OR_SESSION", help="A query_id, a conversation, or last."
    ),
    verdict: str | None = typer.Argument(
        None, metavar="[good|bad|SCORE]", help="How good it was, from 0 (bad) to 1 (good)."
    ),
    score: str | None = typer.Option(
        None, "--score", metavar="SCORE", help="The same: good, bad, or from 0 to 1."
    ),
    text: str = typer.Option("", "--text", metavar="TEXT", help="What was good or bad."),
    example: str = typer.Option(
        "", "--example", metavar="TEXT", help="What the answer should have been."
    ),
    task_done: bool = flag("--task-done", "What was to be done was done."),
    task_failed: bool = flag("--task-failed", "What was to be done was not done."),
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Judge an answer or a conversation.

    Memories that the answer relies on gain or lose a little importance, at most 0.05 a judgement;
    memctl feedback undo takes it back.  An example becomes a memory of type preference.  A score
    replaces an earlier one by the same person; 0.5 is neither good nor bad.  A conversation gets a
    record with its reward, which memctl feedback show prints.  See [feedback] of the settings.
    """
    if verdict is not None and score is not None:
        raise UsageError("the judgement is given twice", "leave out --score")
    if task_done and task_failed:
        raise UsageError("--task-done and --task-failed do not go together", "leave out one")
    from memctl.feedback.judging import Judgement

    rating = verdict if verdict is not None else score
    judgement = Judgement(
        score=None if rating is None else parse_score(rating),
        text=text,
        example=example,
        task="done" if task_done else "failed" if task_failed else "",
    )
    with context.reading(context.all_names(kb)) as bases:
        judged = judge(context, bases, target, judgement)
    emit_one(_flat(judged), output, lambda: None)


def judge(
    context: CommandContext, bases: KnowledgeBases, target: str, judgement: Judgement
) -> JudgementResult:
    """Record a judgement and print its effect."""
    judged = bases.judge(target, judgement)
    made, what = judged.feedback, []
    if judged.changed:
        what.append(f"{format_count(judged.changed, 'memory', 'memories')} changed")
    if made.example_id is not None:
        what.append(f"the example is kept as {made.example_id}")
    parts = f": {', '.join(what)}" if what else ""
    score = "" if made.score is None else f" as {_score_word(made.score)}"
    context.say(f"noted {made.query_id or made.session_id}{score}{parts}")
    return judged


def _score_word(score: float) -> str:
    return next((word for word, value in _WORDS.items() if value == score), f"{score:g}")


def _flat(judged: JudgementResult) -> dict[str, Any]:
    plain = to_plain(judged)
    return {**plain.pop("feedback"), **plain}


@command(
    app,
    "list",
    "memctl feedback list\nmemctl feedback list --since 30d -o json",
    identity=True,
)
def list_(
    context: CommandContext,
    since: SinceOption = None,
    session: str | None = typer.Option(
        None, "--session", metavar="ID", help="Only of this conversation."
    ),
    kb: KnowledgeBasesOption = None,
    page: Page = Page(50),
    output: Output = None,
) -> None:
    """List judgements, the latest first."""
    start = parse_since(context, since)
    with context.reading(kb) as bases:
        found = [
            (base.name, each)
            for base in bases
            for each in base.judgements.list(start, session=session)
        ]
        found.sort(key=lambda pair: pair[1].at, reverse=True)
        rows = [
            {"kb": name, **to_plain(each), "about": each.query_id or each.session_id}
            for name, each in found
        ]
        emit(context.page(rows, page), with_kb_column(_LIST, len(bases)), output)


@command(
    app,
    "show",
    "memctl feedback show standup-1\nmemctl feedback show f_12ab34cd56ef -o json",
    identity=True,
)
def show(
    context: CommandContext,
    target: str = typer.Argument(
        ..., metavar="ID_OR_SESSION", help="A judgement, or a conversation."
    ),
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Show a judgement, or what became of a conversation.

    A conversation has a record for its end and for each judgement of it, the latest first: prompt,
    feedback, example, suggestion, version of the prompt, reward with its parts, and summary.
    """
    with context.reading(kb) as bases:
        for base in bases:
            if base.store.ledger.feedback.find(target) is not None:
                found, changed = base.judgements.show(target)
                value = {"kb": base.name, **to_plain(found), "changed": dict(changed)}
                emit_facts(value, output)
                return
        records = [each for base in bases for each in base.judgements.records(target)]
    if not records:
        raise NotFoundError(
            f"nothing was said of {shortened(target, 80)!r}", "memctl feedback list names what was"
        )
    emit_each(records, output, lambda record: _show_record(context, record))


def _show_record(context: CommandContext, record: ConversationSummary) -> None:
    out = context.console
    out.print(f"{record.conversation_id}  {format_moment(record.timestamp)}", style="bold")
    parts = {
        "reward": format_score(record.reward_score) or "unknown",
        "satisfaction": format_score(record.satisfaction) or "unknown",
        "completion": format_score(record.completion) or "unknown",
        "grounding": format_score(record.grounding) or "unknown",
        "prompt version": record.prompt_version or None,
        "began with": shortened(record.prompt, 200),
        "feedback": record.feedback_text or None,
        "example": record.example or None,
        "suggestion": record.improvement_suggestion or None,
    }
    print_facts(out, {name: value for name, value in parts.items() if value is not None})
    for line in record.conversation_summary.splitlines():
        print_paragraph(out, line, indent=2)


@command(
    app, "summary", "memctl feedback summary\nmemctl feedback summary --since 30d", identity=True
)
def summary(
    context: CommandContext,
    since: SinceOption = None,
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Show judgements and rewards in numbers."""
    show_statistics(context, kb, output, since)


def show_statistics(
    context: CommandContext,
    kb: KnowledgeBasesOption,
    output: Output,
    since: str | None = None,
) -> None:
    """Show the rewards of conversations: by day, by version of a prompt, by agent."""
    start = parse_since(context, since)
    with context.reading(context.all_names(kb)) as bases:
        found = [base.judgements.statistics(start) for base in bases]
    if resolve_format(output) in ("csv", "arrow"):
        rows = [
            {"kb": each.kb, "by": by, **row}
            for each in found
            for by, means in (
                ("all", (_overall(each),)),
                ("day", each.by_day),
                ("prompt", each.by_prompt),
                ("agent", each.by_agent),
            )
            for row in map(to_plain, means)
        ]
        emit(rows, _means_columns("LABEL"), output)
        return
    emit_each(found, output, lambda numbers: _show_numbers(context, numbers))


def _overall(numbers: FeedbackStatistics) -> RewardMeans:
    from memctl.feedback.feedback_statistics import RewardMeans
    from memctl.records import record_like

    return record_like(RewardMeans, numbers, label="")


def _means_columns(label: str) -> list[Column]:
    return [
        Column("label", label),
        Column("conversations", "CONVERSATIONS", right=True),
        Column("reward", "REWARD", format_score, right=True),
        Column("satisfaction", "SATISFACTION", format_score, right=True),
        Column("completion", "COMPLETION", format_score, right=True),
        Column("grounding", "GROUNDING", format_score, right=True),
    ]


def _show_numbers(context: CommandContext, numbers: FeedbackStatistics) -> None:
    out = context.console
    out.print(numbers.kb, style="bold")
    if not numbers.judgements and not numbers.conversations:
        out.print("  nothing was judged\n")
        return
    out.print(
        f"  {format_count(numbers.judgements, 'judgement')}, {numbers.good:,} good,"
        f" {numbers.bad:,} bad, {numbers.with_text:,} with text,"
        f" {numbers.with_example:,} with an example"
    )
    reward = format_score(numbers.reward) or "unknown"
    out.print(f"  {format_count(numbers.conversations, 'conversation')}, reward {reward}\n")
    for label, rows in (
        ("DAY", numbers.by_day), ("PROMPT", numbers.by_prompt), ("AGENT", numbers.by_agent)
    ):  # fmt: skip
        if rows:
            emit(rows, _means_columns(label), "table")
            out.print()


@command(
    app,
    "undo",
    "memctl feedback undo f_12ab34cd56ef --dry-run\nmemctl feedback undo f_12ab34cd56ef --yes",
    identity=True,
)
def undo(
    context: CommandContext,
    feedback_id: str = typer.Argument(..., metavar="ID", help="See memctl feedback list."),
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBasesOption = None,
) -> None:
    """Take a judgement back, with what it changed.

    Memories get back the importance that it gave or took, and the example goes.
    """
    with context.reading(kb) as bases:
        having = [base for base in bases if base.store.ledger.feedback.find(feedback_id)]
        if not having:
            raise NotFoundError(
                f"there is no judgement {shortened(feedback_id, 80)!r}",
                "memctl feedback list names them",
            )
        found, changed = having[0].judgements.show(feedback_id)
        what = f"take back the judgement of {found.query_id or found.session_id}"
        action = f"{what}, which changed {format_count(len(changed), 'memory', 'memories')}"
        if context.confirm_or_preview(action, yes=yes, dry_run=dry_run):
            for base in having:
                base.judgements.undo(feedback_id)
            context.say(f"took back {feedback_id}")


# --- memctl reflect -------------------------------------------------------------------------------


@command(
    single_app,
    "reflect",
    """
    memctl reflect
    memctl reflect --since 7d --write
    memctl reflect -o json | jq '.[].findings[].suggestion'
    """,
    identity=True,
)
def reflect(
    context: CommandContext,
    since: SinceOption = None,
    write: bool = flag("--write", "Keep what is found as a memory of type reflection."),
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Look back: what went badly, and what could be done about it.

    Conversations and answers that were judged bad, questions without an answer, by topic; what
    memories contradict each other; versions of prompts that do worse; what is asked for most.
    Each finding names its evidence.  Nothing is changed.
    """
    start = parse_since(context, since)
    with context.reading(kb) as bases:
        found = [base.judgements.reflect(start, write=write) for base in bases]
    emit_each(found, output, lambda each: _show_reflection(context, each))
    for each in found:
        if each.memory_id is not None:
            context.say(f"kept as {each.memory_id} in {each.kb}")


def _show_reflection(context: CommandContext, reflection: Reflection) -> None:
    out = context.console
    out.print(reflection.kb, style="bold")
    if not reflection.findings:
        out.print("  nothing to tell\n")
    for each in reflection.findings:
        print_marked(out, "-", f"{each.text} {each.suggestion}", 2)


# --- memctl enrich --------------------------------------------------------------------------------

WithOption = typer.Option(
    None, "--with", metavar="NAME", help="A program of [sources] to ask as well; repeatable."
)


@command(
    single_app,
    "enrich",
    """
    memctl enrich "who founded Aurora?" --with wiki
    memctl enrich "who founded Aurora?" -k work -o json
    """,
    identity=True,
)
def enrich(
    context: CommandContext,
    question: list[str] = typer.Argument(
        ..., metavar="QUESTION", help="The question; - is standard input."
    ),
    sources: list[str] | None = WithOption,
    namespace: str | None = typer.Option(
        None, "--namespace", metavar="NAME", help="Where the documents go; by default the user's."
    ),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Ask programs of yours, and keep what they say as documents.

    Such a program gets the question on standard input and prints lines of JSON with text, source,
    url and date.  [sources.NAME] of the settings says how to run it; without such a section nothing
    is run.  Its results are tagged outside and trusted less than what you ingest; it is never asked
    for a private knowledge base.
    """
    refuse_empty({"--namespace": namespace})
    words = read_question(question, 'ask something: memctl enrich "who is ...?" --with NAME')
    names = sources or list(context.config.sources)
    if not names:
        raise UsageError(
            "no program is named that could be asked",
            "write [sources.NAME] with command in the config file",
        )
    with context.writing(kb) as base:
        done = [base.judgements.enrich(name, words, namespace=namespace) for name in names]
    emit_each(done, output, lambda each: _show_enriched(context, each))
    report_bad_lines(done)


def report_bad_lines(done: list[EnrichmentResult]) -> None:
    """Report lines of a program that could not be read.

    Raises:
        PartialFailure: It is so; the others are kept.
    """
    bad = [each for each in done if each.bad_lines]
    if bad:
        first = bad[0]
        raise PartialFailure(
            f"source {first.source!r} printed {format_count(len(first.bad_lines), 'bad line')},"
            f" the first is line {first.bad_lines[0]}",
            'each line is {"text": "...", "source": "...", "url": "...", "date": "..."}',
        )


def _show_enriched(context: CommandContext, each: EnrichmentResult) -> None:
    context.console.print(
        f"{each.source}: {format_count(each.texts, 'text')}, {each.report.ingested:,} new in"
        f" {each.kb}",
        soft_wrap=True,
    )

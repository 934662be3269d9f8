"""memctl query and context: questions become answers with citations, or context for a prompt."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer
from msgspec import Struct
from msgspec.structs import replace

from memctl.cli.arguments import check_types, input_file, read_question
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, ModeOption, Output, command, flag
from memctl.cli.rendering.answer_view import is_found, show_result
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_one,
    print_json,
    print_line,
    print_piece,
    print_text,
    resolve_format,
)
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import MemctlError, NothingFound, PartialFailure, UsageError
from memctl.formatting import format_count
from memctl.literals import (
    MAX_COMMUNITIES,
    MAX_HOPS,
    MAX_ROUNDS,
    Duplicates,
    Fusion,
    Headings,
    Mode,
)
from memctl.plain_values import to_plain

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBases
    from memctl.queries import QueryOptions
    from memctl.records import Context, Filters, QueryResult, Question

_BUDGET, _STANDING_BUDGET = 2000, 1000
_HITS = (
    Column("rank", "#", right=True),
    Column("score", "SCORE", right=True),
    Column("relevance", "RELEVANCE", right=True),
    Column("source", "SOURCE"),
    Column("text", "TEXT", lambda text: one_line(text, 80)),
)
HopsOption = Annotated[
    int | None,
    typer.Option("--hops", min=1, max=MAX_HOPS, help="How far --mode graph goes; 2 by default."),
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        min=1,
        max=MAX_ROUNDS,
        help="How many rounds --mode agentic searches at most; 3 by default.",
    ),
]
CommunitiesOption = Annotated[
    int | None,
    typer.Option(
        "--communities",
        metavar="N",
        min=0,
        max=MAX_COMMUNITIES,
        help="How many communities --mode graph shows at most; 3 by default.",
    ),
]
FusionOption = Annotated[
    Fusion | None,
    typer.Option("--fusion", help="How hybrid combines keywords and vectors; zscore by default."),
]
LimitOption = Annotated[
    int | None, typer.Option("-n", "--limit", min=1, max=10_000, help="How many hits.")
]
OffsetOption = Annotated[
    int,
    typer.Option(
        "--offset", metavar="N", min=0, max=10_000, help="Leave out the best N hits; 0 by default."
    ),
]
DiversityOption = Annotated[
    float | None,
    typer.Option(
        "--diversity",
        metavar="X",
        min=0,
        max=1,
        help="How much similarity to a better hit lowers a hit, 0 to 1; 0 by default.",
    ),
]
PerDocumentOption = Annotated[
    int | None,
    typer.Option(
        "--per-document",
        metavar="N",
        min=0,
        max=10_000,
        help="At most this many hits per document; 0, the default, means no limit.",
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="X",
        min=0,
        max=1,
        help="Least relevance of a hit, 0 to 1; 0.7 is clearly relevant.",
    ),
]
QuestionArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="QUESTION", help="The question; - is standard input."),
]
BatchOption = Annotated[
    str | None,
    typer.Option("--batch", metavar="FILE", help='Lines of {"id", "question", "namespace"?}.'),
]
SourcesOption = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="NAME", help="First ask this program of [sources]; repeatable."),
]
FeedbackOption = Annotated[
    str | None,
    typer.Option(
        "--feedback",
        metavar="ID",
        help="Judge an earlier answer: good, bad or 0 to 1, then words; last is the latest.",
    ),
]
TierOption = Annotated[
    Literal["shared"] | None,
    typer.Option("--tier", help="Search the values of pools that you may read, by meaning."),
]
DuplicatesOption = Annotated[
    Duplicates | None,
    typer.Option(
        "--duplicates",
        help="Which memories become one hit: with the same text (exact, the default) or nearly so.",
    ),
]


app = typer.Typer()


@command(
    app,
    "query",
    """
    memctl query "when is the launch, and who decided?"
    memctl query "the budget" --since 2026-01-01 --type decision
    memctl query "door code" -o ndjson | jq -r '.hits[0].text'
    memctl query '"door code" -office'
    memctl query "where did the painter's father work?" --mode agentic --explain
    memctl query "who belongs to the harbour?" --mode graph --hops 3 --communities 5
    memctl query "what do we know of the harbour?" --per-document 1 --diversity 0.3
    memctl query "what is still open?" --stream
    memctl query --batch questions.jsonl -o ndjson > answers.jsonl
    memctl query "who founded Aurora?" --with wiki
    memctl query "market regime" --tier shared --as agent1
    memctl query --feedback last 0.2 "the date is wrong"
    """,
    identity=True,
)
def query(
    context: CommandContext,
    filters: Filters,
    question: QuestionArgument = None,
    batch: BatchOption = None,
    kb: KnowledgeBasesOption = None,
    mode: ModeOption = None,
    hops: HopsOption = None,
    rounds: RoundsOption = None,
    communities: CommunitiesOption = None,
    no_communities: bool = flag("--no-communities", "Show no communities."),
    fusion: FusionOption = None,
    limit: LimitOption = None,
    offset: OffsetOption = 0,
    diversity: DiversityOption = None,
    per_document: PerDocumentOption = None,
    duplicates: DuplicatesOption = None,
    threshold: ThresholdOption = None,
    tier: TierOption = None,
    no_answer: bool = flag("--no-answer", "Show memories, but no answer."),
    stream: bool = flag("--stream", "Print the answer while the model writes it."),
    explain: bool = flag("--explain", "Show what each retriever and signal contributed."),
    exit_code: bool = flag("--exit-code", "Exit with 4 when nothing was found, or no sure answer."),
    strict: bool = flag("--strict", "JSON of answer, confidence, results and error, and no more."),
    sources: SourcesOption = None,
    feedback: FeedbackOption = None,
    output: Output = None,
) -> None:
    """Ask, and get an answer with citations.

    A citation [n] names the document, page, row or time, and the characters that support the
    sentence.  Hits that may not answer the question are shown as the closest ones.

    "..." is an exact phrase; pars* matches words that begin like this, aurroa~ words that may be
    misspelt; +word, -word, AND, OR, NOT and (...) say what must be there.  A sentence is never
    read as such an expression.

    A text remembered from several documents is one hit that names the others; --duplicates near
    also folds texts that differ in a few words, keep folds none.  --offset shows what comes after
    the first hits, --diversity puts hits that say something new before those similar to a better
    one, and --per-document 1 shows the best of each document; the answer stays the same.
    --threshold 0.7 leaves out hits that are not clearly relevant; the answer is drawn from the
    others.

    With --tier shared only pools are searched: a hit is a value, its source names pool and key.

    --with NAME first asks a program of yours that the settings name under [sources], and keeps what
    it says as documents from outside; see memctl enrich.  --strict prints one JSON object with
    answer, confidence, results (content, source, kb, confidence) and error, also on failure.

    Every question is written to the query log, which memctl stats --queries summarises.
    --feedback ID good|bad|0.7 judges an answer; the ID is the query_id in JSON, or last.
    """
    from memctl.queries import QueryOptions

    if feedback is not None:
        _judge(context, feedback, question or [], kb)
        return
    of_graph = {"--hops": hops, "--communities": communities}
    _check_mode(context, mode, graph=of_graph, agentic={"--rounds": rounds})
    options = QueryOptions(
        mode=mode,
        hops=hops,
        rounds=rounds,
        communities=_communities(communities, hidden=no_communities),
        fusion=fusion,
        filters=filters,
        limit=limit,
        offset=offset,
        diversity=diversity,
        per_document=per_document,
        duplicates=duplicates,
        threshold=threshold,
        answer=not no_answer,
        explain=explain,
    )
    plan = _QueryPlan(batch, tuple(sources or ()), tier, stream=stream, strict=strict)
    if not _run_query(context, kb, question, options, plan, output) and exit_code:
        raise NothingFound(f"{'no sure answer' if plan.answers(options) else 'nothing'} was found")


def _communities(number: int | None, *, hidden: bool) -> int | None:
    """Return how many communities to show; None for as many as usual."""
    if hidden and number is not None:
        raise UsageError("--communities and --no-communities do not go together")
    return 0 if hidden else number


class _QueryPlan(Struct, frozen=True):
    """Where a question comes from, what is asked, and how the result is printed."""

    batch: str | None
    sources: tuple[str, ...]
    tier: str | None
    stream: bool
    strict: bool

    def answers(self, options: QueryOptions) -> bool:
        """Return whether an answer is asked for, and not only hits."""
        return self.tier is None and (options.answer or self.strict)


def _check_query(
    question: list[str] | None, options: QueryOptions, plan: _QueryPlan, output: Output
) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: There are some, or there is no question.
    """
    is_batch = plan.batch is not None
    _check_question(question, is_batch=is_batch)
    if plan.stream:
        _check_stream(output, is_batch=is_batch, no_answer=not options.answer)
    if plan.tier is not None:
        if (
            plan.batch
            or plan.stream
            or plan.strict
            or plan.sources
            or options != _hits_only(options)
        ):
            raise UsageError("--tier shared goes with -n, --offset and -k", "leave out the others")
    elif plan.strict:
        if plan.batch or plan.stream or output not in (None, "json", "ndjson"):
            raise UsageError(
                "--strict prints one JSON object", "leave out --batch, --stream and -o"
            )
        if plan.sources:
            raise UsageError(
                "--with and --strict do not go together", "memctl enrich QUESTION, then query"
            )
    elif plan.sources and is_batch:
        raise UsageError("--with and --batch do not go together", "memctl enrich QUESTION")


def _run_query(
    context: CommandContext,
    kb: KnowledgeBasesOption,
    question: list[str] | None,
    options: QueryOptions,
    plan: _QueryPlan,
    output: Output,
) -> bool:
    """Answer a question, or every line of a file; say whether an answer was found.

    Raises:
        UsageError: Some of the options do not go together, or there is no question.
        PartialFailure: Some lines of the file were no questions; the others have been answered.
    """
    _check_query(question, options, plan, output)
    words = question or []
    if plan.tier is not None:
        return _ask_pools(context, kb, read_question(words), options, output)
    if plan.strict:
        return _ask_strictly(context, kb, words, options, output)
    if plan.sources:
        words = [read_question(words)]
        _enrich(context, kb, words[0], plan.sources)
    with context.reading(kb) as bases:
        check_types(bases, options.filters)
        if plan.batch is not None:
            return ask_batch(context, bases, plan.batch, options, output)
        if plan.stream:
            return is_found(_stream(context, bases, read_question(words), options))
        return is_found(_ask(context, bases, read_question(words), options, output))


def _judge(
    context: CommandContext, query_id: str, words: list[str], kb: KnowledgeBasesOption
) -> None:
    """Record how good an earlier question's answer was.

    Raises:
        UsageError: It is not said how good it was.
        NotFoundError: There is no such question.
    """
    from memctl.cli.commands.questions.feedback import judge, parse_score
    from memctl.feedback.judging import Judgement

    if not words:
        raise UsageError(
            "--feedback takes good, bad or a score", f"memctl query --feedback {query_id} good"
        )
    judgement = Judgement(score=parse_score(words[0]), text=" ".join(words[1:]))
    with context.reading(context.all_names(kb)) as bases:
        judge(context, bases, query_id or "q_", judgement)


def _enrich(
    context: CommandContext, kb: KnowledgeBasesOption, question: str, sources: Sequence[str]
) -> None:
    """Ask the user's programs, and ingest what they reply before the question is asked."""
    with context.writing(kb) as base:
        for name in sources:
            done = base.judgements.enrich(name, question)
            context.say(f"{name}: {format_count(done.texts, 'text')}, {done.report.ingested:,} new")
            if done.bad_lines:
                bad = format_count(len(done.bad_lines), "line")
                context.say(f"note: {bad} of {name} could not be read")


def _ask_strictly(
    context: CommandContext,
    kb: KnowledgeBasesOption,
    question: list[str],
    options: QueryOptions,
    output: Output,
) -> bool:
    """Print a result in a fixed shape, errors inside it; say whether it has an answer.

    Raises:
        MemctlError: The question failed; that is printed, too.
    """
    write = print_json if output == "json" else print_line
    try:
        with context.reading(kb) as bases:
            check_types(bases, options.filters)
            result = bases.queries.ask(read_question(question), options)
    except MemctlError as error:
        write({"answer": None, "confidence": 0.0, "results": [], "error": error.message})
        raise
    answer = result.answer
    write(
        {
            "answer": answer.text if answer and answer.found else None,
            "confidence": answer.confidence if answer else 0.0,
            "results": [
                {
                    "content": hit.text,
                    "source": hit.source,
                    "kb": hit.kb,
                    "confidence": hit.relevance,
                }
                for hit in result.hits
            ],
            "error": None,
        }
    )
    return is_found(result)


def _check_question(question: list[str] | None, *, is_batch: bool) -> None:
    if bool(question) == is_batch:
        what = "a question and --batch do not go together" if question else "no question"
        raise UsageError(what, 'memctl query "when is ...?", or memctl query --batch FILE')


def _check_mode(
    context: CommandContext, mode: Mode | None, **options: Mapping[str, int | None]
) -> None:
    """Refuse options, which are given by their mode, in another one."""
    mode = mode or context.config.query.mode
    for required_mode, values in options.items():
        for option, value in values.items():
            if value is not None and mode != required_mode:
                raise UsageError(
                    f"{option} means nothing to --mode {mode}", f"add --mode {required_mode}"
                )


def _check_stream(output: Output, *, is_batch: bool, no_answer: bool) -> None:
    if output not in (None, "table"):
        raise UsageError(f"--stream cannot write {output}", "leave out -o, or leave out --stream")
    if is_batch or no_answer:
        other = "--batch" if is_batch else "--no-answer"
        raise UsageError(f"--stream and {other} do not go together", "leave out one of them")


def _ask(
    context: CommandContext,
    bases: KnowledgeBases,
    question: str,
    options: QueryOptions,
    output: Output,
) -> QueryResult:
    """Print what was found, and its answer."""
    result = bases.queries.ask(question, options)
    context.note_answer(result.answer)
    _write_result(context, result, output, explain=options.explain)
    context.note_all(result.notes)
    return result


def _hits_only(options: QueryOptions) -> QueryOptions:
    """Return options with nothing asked for but some hits."""
    from memctl.queries import QueryOptions

    return QueryOptions(limit=options.limit, offset=options.offset, answer=options.answer)


def _ask_pools(
    context: CommandContext,
    kb: KnowledgeBasesOption,
    question: str,
    options: QueryOptions,
    output: Output,
) -> bool:
    """Print the values of pools that are near to a question; say whether there are any."""
    from memctl.records import QueryResult

    started = time.monotonic()
    with context.reading(kb) as bases:
        most = options.offset + (options.limit or context.config.query.limit)
        hits = [hit for base in bases for hit in base.tiers.find_in_pools(question, most)]
    hits.sort(key=lambda hit: -hit.score)
    ranked = tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits[:most], start=1))
    seconds = time.monotonic() - started
    shown = ranked[options.offset :]
    result = QueryResult(question, shown, (), None, "vector", seconds, total_results=len(shown))
    _write_result(context, result, output, explain=False)
    return bool(result.hits)


def _stream(
    context: CommandContext, bases: KnowledgeBases, question: str, options: QueryOptions
) -> QueryResult:
    """Print an answer as it arrives, then what it rests on; the built-in one if it breaks off."""
    pieces = 0

    def on_token(piece: str) -> None:
        """Print a piece, and count those that are not empty."""
        nonlocal pieces
        pieces += bool(piece)
        print_piece(piece)

    result = bases.queries.ask(question, replace(options, on_token=on_token))
    note = bool(result.answer and result.answer.note)
    if pieces:
        print_piece(" [broken off]\n\n" if note else "\n")
    context.note_answer(result.answer, begun=bool(pieces))
    context.note_all(result.notes)
    streamed = bool(pieces) and not note
    show_result(context.console, result, explain=options.explain, streamed=streamed)
    return result


def _write_result(
    context: CommandContext, result: QueryResult, output: Output, *, explain: bool
) -> None:
    from memctl.records import Hit

    if resolve_format(output) in ("csv", "arrow"):
        emit(result.hits, _HITS, output, Hit)
        if result.answer is not None and result.answer.citations:
            context.suggest("csv and arrow have the hits alone; -o json has the answer too")
    else:
        emit_one(result, output, lambda: show_result(context.console, result, explain=explain))


def ask_batch(
    context: CommandContext, bases: KnowledgeBases, name: str, options: QueryOptions, output: Output
) -> bool:
    """Answer every line; say whether anything was found.

    Raises:
        PartialFailure: Some lines were no questions; the others have been answered.
    """
    if output in ("csv", "arrow", "table"):
        raise UsageError(f"--batch cannot write {output}", "use -o ndjson or -o json")
    bad: list[int] = []
    with _open_input(name) as lines:
        results = bases.queries.ask_many(_questions(lines, name, bad), options)
        found = _write_results(_with_notes(context, results), as_document=output == "json")
    if bad:
        hint = 'each line is {"id": "...", "question": "..."}'
        raise PartialFailure(f"{format_count(len(bad), 'bad line')} in {name}", hint)
    return found


def _with_notes(context: CommandContext, results: Iterable[QueryResult]) -> Iterator[QueryResult]:
    """Pass results on; say the first time that the model did not answer, and at the end how often.

    Each note of a search is printed once.
    """
    without = 0
    reported: set[str] = set()
    for result in results:
        context.note_all([note for note in result.notes if note not in reported])
        reported.update(result.notes)
        if result.answer is not None and result.answer.note:
            if not without:
                context.note_answer(result.answer)
            without += 1
        yield result
    if without > 1:
        context.say(f"note: {format_count(without, 'question')} answered without the model")


def _write_results(results: Iterable[QueryResult], *, as_document: bool) -> bool:
    """Write one object a question, as soon as it is there, or all of them as one document."""
    found = False
    waiting: list[Any] = []
    for result in results:
        found = found or is_found(result)
        if as_document:
            waiting.append(to_plain(result))
        else:
            print_line(result)
    if as_document:
        print_json(waiting)
    return found


@contextmanager
def _open_input(name: str) -> Iterator[IO[str]]:
    if name == "-":
        yield sys.stdin
        return
    path = input_file(name, "--batch takes a file of JSON lines, or -")
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        yield lines


def _questions(lines: Iterable[str], name: str, bad: list[int]) -> Iterator[Question]:
    """Yield the questions; a bad line is reported on standard error and noted in ``bad``."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _parse_line(line)
            except ValueError as error:
                bad.append(number)
                sys.stderr.write(f"error: {one_line(name)}, line {number}: {error}\n")


def _parse_line(line: str) -> Question:
    from memctl.records import Question

    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    text, id_, namespace = value.get("question"), value.get("id"), value.get("namespace")
    if not isinstance(text, str) or not any(map(str.isalnum, text)):
        raise ValueError("no question in it")
    if namespace is not None and not isinstance(namespace, str):
        raise ValueError("namespace must be a text")
    return Question(text, None if id_ is None else str(id_), namespace)


# --- memctl context -------------------------------------------------------------------------------


@command(
    app,
    "context",
    """
    memctl context "the launch" --budget 2000
    memctl context "the launch" -o json | jq '.tokens'
    memctl context --auto "what did we decide about the launch?"
    memctl context --standing --user ann
    memctl context --standing --headings plain
    memctl context "the lease" --session today --other-sessions
    """,
    identity=True,
)
def context(
    context: CommandContext,
    filters: Filters,
    question: list[str] | None = typer.Argument(
        None, metavar="QUESTION", help="The question; - is standard input."
    ),
    budget: int | None = typer.Option(
        None,
        "--budget",
        metavar="TOKENS",
        min=16,
        help="At most this many tokens; 2000, or 1000 with --standing alone.",
    ),
    kb: KnowledgeBasesOption = None,
    mode: ModeOption = None,
    hops: HopsOption = None,
    threshold: ThresholdOption = None,
    auto: bool = flag("--auto", "Print nothing unless the message looks like it needs memory."),
    standing: bool = flag("--standing", "First what to know without a question, or only that."),
    headings: Headings | None = typer.Option(
        None,
        "--headings",
        help='Of --standing: "What is known" and so on, or (seed, by default) "Memory Context".',
    ),
    other_sessions: bool = flag("--other-sessions", "All but the conversation of --session."),
    exit_code: bool = flag("--exit-code", "Exit with 4 when nothing was found."),
    output: Output = None,
) -> None:
    """Print what is known, ready to paste above a prompt.

    The text stays within a budget of tokens and cites its sources.  It is empty if nothing known
    bears on the question.  With --auto it can run before every prompt: it stays empty for small
    talk, for orders, and if memory has nothing clear to say.

    --standing prints the profile of the user, what is important and holds, what changed in the last
    days, and the newest insights.  It is the same, byte for byte, while nothing that is known
    changes; with a question, what bears on that follows.
    """
    if other_sessions:
        filters = _other_sessions(filters)
    if not question and not standing:
        raise UsageError("no question", 'memctl context "the launch", or memctl context --standing')
    if standing and (auto or mode or hops or threshold is not None):
        raise UsageError("--standing goes with --budget and filters alone", "leave out the others")
    if standing:
        found = _standing(context, filters, question, budget, kb, headings or "seed")
        context.note_all(found.notes)
        _write_context(found, output)
        if not found.text and exit_code:
            raise NothingFound("nothing was found")
        return
    _check_mode(context, mode, graph={"--hops": hops})
    if headings:
        raise UsageError("--headings goes with --standing", "memctl context --standing")
    with context.reading(kb) as bases:
        check_types(bases, filters)
        found = bases.context(
            read_question(question or []),
            budget=budget or _BUDGET,
            mode=mode,
            hops=hops,
            filters=filters,
            auto=auto,
            threshold=threshold,
        )
        context.note_all(found.notes)
    _write_context(found, output)
    if not found.text:
        if not auto:
            context.say("note: nothing in memory has to do with that")
        if exit_code:
            raise NothingFound("nothing was found")


def _other_sessions(filters: Filters) -> Filters:
    if filters.session is None:
        raise UsageError("--other-sessions needs --session", "name the conversation to leave out")
    return replace(filters, other_sessions=True)


def _standing(
    context: CommandContext,
    filters: Filters,
    question: list[str] | None,
    budget: int | None,
    kb: KnowledgeBasesOption,
    headings: Headings,
) -> Context:
    """Return what to know without a question."""
    words = read_question(question) if question else ""
    default = _BUDGET if words else _STANDING_BUDGET
    with context.reading(kb) as bases:
        check_types(bases, filters)
        return bases.queries.standing_context(
            words, budget=budget or default, filters=filters, headings=headings
        )


def _write_context(context: Context, output: Output) -> None:
    if output is not None and output != "table":
        emit_one(context, output, lambda: None)
    elif context.text:
        print_text(context.text)

"""memctl eval: how well and how fast questions with known evidence are answered."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import typer
from msgspec import Struct

from memctl.cli.arguments import input_file, input_folder, parse_path
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, Output, command, flag
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_one,
    format_instant,
    print_paragraph,
    resolve_format,
    to_plain,
)
from memctl.cli.rendering.terminal_text import json_text
from memctl.errors import PartialFailure, UsageError
from memctl.formatting import format_count
from memctl.literals import Mode

if TYPE_CHECKING:
    from memctl.evaluation.evaluation_runs import Comparison, QuestionResult, Run, Score
    from memctl.evaluation.question_sets import QuestionSet
    from memctl.knowledge_base import KnowledgeBases

_HITS = 25
_DRAFTS = 50
_FORMAT_HINT = "a set is a folder with corpus.jsonl and queries.jsonl; see memctl eval --help"
_MAX_SHOWN = 5


def _percent(value: float) -> str:
    return f"{value:.1f}"


def _format_signed(value: float) -> str:
    return f"{value:+.2f}"


_METRICS = (
    Column("recall@5", "R@5", _percent, right=True),
    Column("recall@10", "R@10", _percent, right=True),
    Column("ndcg@10", "NDCG@10", _percent, right=True),
    Column("mrr", "MRR", _percent, right=True),
)
_SCORES = (
    Column("mode", "MODE"),
    Column("category", "CATEGORY"),
    Column("questions", "QUESTIONS", right=True),
    *_METRICS,
    Column("p50_ms", "P50 MS", _percent, right=True),
    Column("p95_ms", "P95 MS", _percent, right=True),
)
_COMPARISONS = (
    Column("modes", "MODE"),
    Column("metric", "METRIC"),
    Column("before", "BEFORE", _percent, right=True),
    Column("after", "AFTER", _percent, right=True),
    Column("difference", "MEAN", _format_signed, right=True),
    Column("interval", "95 %", right=True),
    Column("better", "BETTER", right=True),
    Column("worse", "WORSE", right=True),
)


app = typer.Typer()


@command(
    app,
    "eval",
    """
    memctl eval questions/ --mode hybrid --mode keyword
    memctl eval questions/ --save before.json
    memctl eval questions/ --compare before.json
    memctl eval questions/ --embedder builtin --embedder onnx/~/models/minilm
    memctl eval --history
    memctl eval --make mine.jsonl -k notes    # then correct mine.jsonl
    memctl eval mine.jsonl -k notes
    """,
)
def evaluate(
    context: CommandContext,
    folder: str | None = typer.Argument(
        None, metavar="FOLDER", help="The question set; with -k, a file of questions works too."
    ),
    mode: list[str] | None = typer.Option(
        None, "--mode", metavar="MODE", help=f"{', '.join(get_args(Mode))}; repeatable."
    ),
    limit: int | None = typer.Option(
        None,
        "-n",
        "--limit",
        min=1,
        max=1000,
        help="How many hits a question gets (25); with --make, how many questions (50).",
    ),
    save: str | None = typer.Option(
        None, "--save", metavar="FILE", help="Save the scores of each question."
    ),
    compare: str | None = typer.Option(
        None, "--compare", metavar="FILE", help="Compare with a saved run."
    ),
    make: str | None = typer.Option(
        None, "--make", metavar="FILE", help="Draft questions about a knowledge base; - is stdout."
    ),
    embedder: list[str] | None = typer.Option(
        None, "--embedder", metavar="MODEL", help="Measure with this model of vectors; repeatable."
    ),
    history: bool = flag("--history", "Show the runs that were saved, the oldest first."),
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Measure how well questions with known evidence are answered.

    FOLDER holds two files of JSON lines.  corpus.jsonl is what `memctl ingest --jsonl` takes: a
    record a line with an `id` and a `text`, and optionally `namespace`, `title`, `created_at`,
    `session_id`, `turn`.  queries.jsonl has a question a line: `id`, `question`, `relevant` (a
    list of ids of records), and optionally `namespace` (it is asked of that alone) and `category`.
    The records go into a knowledge base, made as configured (a model that is set up to understand
    documents reads them), that is thrown away afterwards.

    With -k the questions are asked of a knowledge base that is there, and only queries.jsonl, or
    any file like it, is needed.  `relevant` may then name documents and memories too.  The query
    log notes none of them.

    Recall, nDCG and MRR are in percent, the latter two over the first 10 hits and over all of
    them.  Evidence that is not there counts as not found.

    --compare pairs the questions of both runs: the mean of what they gained, within which bounds
    it lies with 95 % confidence (paired bootstrap of 10,000 draws), and how many got better or
    worse.

    --embedder builtin --embedder endpoint/MODEL measures the same questions with each model of
    vectors, beside each other.

    Each run that is saved is noted in the home, too: --history shows recall, nDCG and MRR over
    time, all of them or those of one FOLDER.

    --make FILE writes questions on what you have in a knowledge base for you to correct; the
    sentence that each was made from is written beside it.
    """
    measures = bool(mode or save or compare or embedder)
    if history:
        if measures or make or kb:
            raise UsageError("--history goes with FOLDER alone", "memctl eval --history")
        _show_history(context, folder, limit, output)
    elif make is not None:
        if measures or folder:
            raise UsageError("--make goes with -k alone", "memctl eval --make FILE -k NAME")
        _make(context, make, kb, limit or _DRAFTS)
    else:
        models = tuple(dict.fromkeys(embedder or ()))
        questions = _question_set(folder, kb, models)
        options = _EvaluationOptions(
            questions, _modes(mode or []), limit or _HITS, save, compare, models
        )
        _evaluate(context, options, kb, output)


def _question_set(folder: str | None, kb: KnowledgeBasesOption, models: Sequence[str]) -> str:
    """Return the question set to measure.

    Raises:
        UsageError: None is named, or models are for a knowledge base that has one.
    """
    if folder is None:
        raise UsageError("which question set?", "memctl eval FOLDER, or memctl eval --make FILE")
    if models and kb:
        raise UsageError(
            "--embedder and -k do not go together",
            "a knowledge base has one model: memctl kb reembed NAME --embedder MODEL",
        )
    return folder


def _modes(names: Sequence[str]) -> tuple[Mode, ...]:
    """Return the modes of some names, each once; Typer 0.29 cannot do that for several.

    Raises:
        UsageError: There is none of that name.
    """
    known = get_args(Mode)
    for name in names:
        if name not in known:
            raise UsageError(f"no mode {name!r}", f"use one of: {', '.join(known)}")
    return cast("tuple[Mode, ...]", tuple(dict.fromkeys(names)))


class _EvaluationOptions(Struct, frozen=True):
    """What to measure, and what to do with the result."""

    folder: str
    modes: tuple[Mode, ...]
    limit: int
    save: str | None
    compare: str | None
    embedders: tuple[str, ...] = ()


# --- measuring -----------------------------------------------------------------------------------


def _evaluate(
    context: CommandContext, options: _EvaluationOptions, kb: KnowledgeBasesOption, output: Output
) -> None:
    from memctl.evaluation.evaluation_runs import load_run, note_run, save_run
    from memctl.evaluation.question_sets import read_questions
    from memctl.instants import utc_now

    corpus, queries = _files(options.folder, needs_corpus=not kb)
    saved = None
    if options.compare is not None:
        saved = load_run(input_file(options.compare, "give what memctl eval --save FILE wrote"))
    if options.save is not None:  # before anything is done
        input_folder(
            str(parse_path(options.save).parent), "--save takes a file in a folder that is there"
        )
    questions = read_questions(queries)
    _report_bad_lines(context, queries, questions)
    if not questions.questions:
        raise UsageError(f"no question with evidence in {queries}", _FORMAT_HINT)
    modes: Sequence[Mode] = options.modes or (context.config.query.mode,)
    run: dict[str, Sequence[QuestionResult]] = {}
    failed, named = 0, list[str]()
    for embedder in options.embedders or ("",):
        with _handle_signals(), ExitStack() as stack:
            if kb:
                bases = stack.enter_context(context.reading(kb))
                named = [base.name for base in bases]
            else:
                bases, failed = _fill_base(context, stack, corpus, embedder)
            found = _run(context, bases, questions, modes, options.limit)
        label = f" {embedder}" if len(options.embedders) > 1 else ""
        run |= {f"{mode}{label}": results for mode, results in found.items()}
    if options.save is not None:
        save_run(parse_path(options.save), run, utc_now())
        note_run(context.home.config.home, run, str(queries.resolve()), named, utc_now())
    _write(context, run, saved, output)
    if questions.bad or failed:
        wrong = [format_count(len(questions.bad), "bad line")] if questions.bad else []
        wrong += [f"{format_count(failed, 'record')} that could not be taken in"] if failed else []
        raise PartialFailure(f"{options.folder} has {' and '.join(wrong)}", "the rest was measured")


_HISTORY = (
    Column("at", "WHEN", format_instant),
    Column("memctl", "MEMCTL"),
    Column("set", "SET"),
    Column("mode", "MODE"),
    Column("questions", "QUESTIONS", right=True),
    *_METRICS,
)


def _show_history(
    context: CommandContext, folder: str | None, limit: int | None, output: Output
) -> None:
    """Show the runs that were saved, or those of one question set."""
    from memctl.evaluation.evaluation_runs import saved_history

    about = None
    if folder is not None:
        about = str(_files(folder, needs_corpus=False)[1].resolve())
    rows = saved_history(context.home.config.home, about)
    emit(rows[-limit:] if limit else rows, _HISTORY, output)


def _files(name: str, *, needs_corpus: bool) -> tuple[Path, Path]:
    """Return the files of a question set.

    Raises:
        UsageError: One that is needed is not there.
    """
    from memctl.evaluation.question_sets import CORPUS, QUERIES

    path = parse_path(name)
    if not needs_corpus and not path.is_dir():
        return path, input_file(name, _FORMAT_HINT)
    if not path.is_dir():
        raise UsageError(
            f"{'not a folder' if path.exists() else 'no such folder'}: {name}",
            "with -k NAME a file of questions will do" if path.exists() else _FORMAT_HINT,
        )
    corpus = path / CORPUS
    if needs_corpus and not corpus.is_file():
        hint = "with -k NAME the questions are asked of a knowledge base that is there"
        raise UsageError(
            f"no {CORPUS} in {name}", hint if (path / QUERIES).is_file() else _FORMAT_HINT
        )
    return corpus, input_file(str(path / QUERIES), _FORMAT_HINT)


def _report_bad_lines(context: CommandContext, path: Path, questions: QuestionSet) -> None:
    """Say which lines are left out."""
    for line in questions.bad[:_MAX_SHOWN]:
        context.say(f"error: {path.name}, line {line.line}: {line.reason}")
    if len(questions.bad) > _MAX_SHOWN:
        context.say(f"error: and {len(questions.bad) - _MAX_SHOWN} more")
    if questions.without_evidence:
        left = format_count(questions.without_evidence, "question")
        context.say(f"note: {left} left out, for no evidence is named")


@contextmanager
def _handle_signals() -> Iterator[None]:
    """Handle signals like Ctrl-C, so that temporary files are removed."""
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = {
        name: signal.signal(getattr(signal, name), signal.default_int_handler) for name in names
    }
    try:
        yield
    finally:
        for name, handler in previous.items():
            signal.signal(getattr(signal, name), handler)


def _fill_base(
    context: CommandContext, stack: ExitStack, corpus: Path, embedder: str
) -> tuple[KnowledgeBases, int]:
    """Fill a temporary knowledge base with a corpus; return it, and how many records failed."""
    from memctl.evaluation.evaluation_runs import temporary_base
    from memctl.knowledge_base import KnowledgeBases

    base = stack.enter_context(temporary_base(context.config, embedder))
    with context.progress("remembering") as listener:
        report = base.ingest(jsonl=corpus, progress=listener)
    failures = [outcome for outcome in report.outcomes if outcome.outcome == "failed"]
    for outcome in failures[:_MAX_SHOWN]:
        context.say(f"error: {outcome.reason}")
    if report.failed > _MAX_SHOWN:
        context.say(f"error: and {report.failed - _MAX_SHOWN} more")
    if report.skipped:
        context.say(f"note: {format_count(report.skipped, 'record')} of {corpus.name} there twice")
    return KnowledgeBases([base]), report.failed


def _run(
    context: CommandContext,
    bases: KnowledgeBases,
    questions: QuestionSet,
    modes: Sequence[Mode],
    limit: int,
) -> Run:
    from memctl.evaluation.evaluation_runs import known_ids, run_questions
    from memctl.evaluation.question_sets import missing_evidence

    asked = questions.questions
    if missing := missing_evidence(asked, known_ids(bases)):
        ids = format_count(missing, "id of evidence is", "ids of evidence are")
        context.say(f"warning: {ids} not there, so never found")
    notes: set[str] = set()
    run: dict[str, Sequence[QuestionResult]] = {}
    for mode in modes:
        with context.progress("asking") as listener:
            run[mode] = run_questions(bases, asked, mode, limit, notes, listener)
    for note in sorted(notes):
        context.say(f"note: {note}")
    return run


def _write(context: CommandContext, run: Run, saved: Run | None, output: Output) -> None:
    from memctl.evaluation.evaluation_runs import summarize

    scores = [_flat(score) for mode, found in run.items() for score in summarize(mode, found)]
    comparisons = None if saved is None else _compare_runs(context, run, saved)
    if resolve_format(output) in ("csv", "arrow"):
        emit(scores if comparisons is None else comparisons, _SCORES, output)
        return
    value: dict[str, Any] = {"scores": scores}
    if comparisons is not None:
        value["comparison"] = comparisons

    def show() -> None:
        """Print the scores, and the comparison below them."""
        emit(scores, _SCORES, "table")
        if comparisons:
            context.console.print()
            emit([_readable(item) for item in comparisons], _COMPARISONS, "table")
            pairs = format_count(comparisons[0].questions, "question")
            about = f"{pairs} in both runs; percentage points, an interval without 0 is no chance"
            print_paragraph(context.console, about, "dim")

    emit_one(value, output, show)


def _flat(score: Score) -> dict[str, Any]:
    return {
        "mode": score.mode,
        "category": score.category,
        "questions": score.questions,
        **score.means,
        "p50_ms": score.p50_ms,
        "p95_ms": score.p95_ms,
    }


def _compare_runs(context: CommandContext, run: Run, saved: Run) -> list[Comparison]:
    from memctl.evaluation.evaluation_runs import comparable_mode, compare_runs

    found: list[Comparison] = []
    for mode, outcomes in run.items():
        other = comparable_mode(mode, saved, len(run))
        if other is None:
            context.say(f"note: the saved run has no mode {mode}; it has {', '.join(saved)}")
            continue
        pairs = compare_runs(mode, other, saved[other], outcomes)
        found += pairs
        in_both = pairs[0].questions if pairs else 0
        if in_both != len(outcomes):
            context.say(f"note: {in_both:,} of {len(outcomes):,} questions are in the saved run")
    return found


def _readable(item: Comparison) -> dict[str, Any]:
    same = item.mode == item.before_mode
    low, high = item.low, item.high
    return {
        **to_plain(item),
        "modes": item.mode if same else f"{item.before_mode} -> {item.mode}",
        "interval": "" if low is None or high is None else f"{low:+.2f} to {high:+.2f}",
    }


# --- writing questions ---------------------------------------------------------------------------


def _make(context: CommandContext, name: str, kb: KnowledgeBasesOption, limit: int) -> None:
    from memctl.evaluation.question_sets import drafts_as_lines, make_questions
    from memctl.files import save_file

    path = None if name == "-" else parse_path(name)
    if path is not None and path.exists():
        raise UsageError(f"{name} is there already", "it may have been corrected: name another")
    with context.reading_one(kb) as base:
        drafts = make_questions(base, limit)
        base_name = base.name
    text = "".join(f"{json_text(line)}\n" for line in drafts_as_lines(drafts))
    if path is None:
        sys.stdout.write(text)
    elif drafts:
        save_file(path, text.encode())
    if not drafts:
        raise UsageError(f"nothing in {base_name} to ask about", "ingest something first")
    if path is not None:
        context.say(f"wrote {format_count(len(drafts), 'question')} to {name}")
        context.hint(f"correct them, then: memctl eval {name} -k {base_name}")

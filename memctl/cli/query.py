"""memctl query and memctl context: questions become answers with citations, or ready context."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from memctl.choices import MOST_HOPS, Fusion, Mode
from memctl.cli.answers import show_result, tell_note
from memctl.cli.commands import KnowledgeBasesOption, Output, command
from memctl.cli.filters import type_hint
from memctl.cli.output import (
    Column,
    chosen,
    emit,
    emit_one,
    plain,
    print_json,
    print_line,
    print_piece,
)
from memctl.cli.session import Session
from memctl.cli.text import count, one_line
from memctl.errors import NothingFound, PartialFailure, UsageError

if TYPE_CHECKING:
    from memctl.choices import Verdict
    from memctl.knowledge_bases import AskOptions, KnowledgeBases
    from memctl.records import Context, Filters, QueryResult, Question

_HITS = (
    Column("rank", "#", right=True),
    Column("score", "SCORE", right=True),
    Column("source", "SOURCE"),
    Column("text", "TEXT", lambda text: one_line(text, 80)),
)
ModeOption = Annotated[
    Mode | None, typer.Option("--mode", help="How memories are found; hybrid by default.")
]
HopsOption = Annotated[
    int | None,
    typer.Option("--hops", min=1, max=MOST_HOPS, help="How far --mode graph goes; 2 by default."),
]
FusionOption = Annotated[
    Fusion | None,
    typer.Option("--fusion", help="How hybrid joins words and meaning; zscore by default."),
]
LimitOption = Annotated[
    int | None, typer.Option("-n", "--limit", min=1, max=10_000, help="How many hits.")
]


def register(root: typer.Typer) -> None:
    """Add these verbs to the command line."""
    command(
        root,
        "query",
        """
        memctl query "when is the launch, and who decided?"
        memctl query "the budget" --since 2026-01-01 --type decision
        memctl query "door code" -o ndjson | jq -r '.hits[0].text'
        memctl query '"door code" -office'
        memctl query "what is still open?" --stream
        memctl query --batch questions.jsonl -o ndjson > answers.jsonl
        memctl query --feedback last good
        """,
    )(query)
    command(
        root,
        "context",
        """
        memctl context "the launch" --budget 2000
        memctl context "the launch" -o json | jq '.tokens'
        memctl context --auto "what did we decide about the launch?"
        """,
    )(context)


def query(
    session: Session,
    filters: Filters,
    question: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUESTION]...", help="The question; - is standard input."),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option("--batch", metavar="FILE", help='Lines of {"id", "question", "namespace"?}.'),
    ] = None,
    kb: KnowledgeBasesOption = None,
    mode: ModeOption = None,
    hops: HopsOption = None,
    fusion: FusionOption = None,
    limit: LimitOption = None,
    no_answer: Annotated[bool, typer.Option("--no-answer", help="Only find memories.")] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print the answer while the model writes it.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each leg gave.")] = False,
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code", help="Exit with 4 when nothing was found, or no answer."),
    ] = False,
    feedback: Annotated[
        str | None,
        typer.Option(
            "--feedback", metavar="ID", help="Note that an earlier one was good or bad; last."
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Ask, and get an answer with citations.

    A citation [n] names the document, page, row or time, and the characters that say so.

    In quotes stands an exact phrase; pars* is the beginning of a word, aurroa~ one that may be
    misspelt; +word, -word, AND, OR, NOT and (...) say what must be there.  A sentence is never
    taken for any of that.

    Every question is noted in the query log of what was asked, which memctl stats --queries sums
    up.  --feedback ID good|bad adds how good the answer was; the ID is the query_id in JSON, or
    last.
    """
    if feedback is not None:
        _judge(session, feedback, question or [], kb)
        return
    if bool(question) == (batch is not None):
        what = "a question and --batch do not go together" if question else "no question"
        raise UsageError(what, 'memctl query "when is ...?", or memctl query --batch FILE')
    if hops is not None and mode not in (None, "graph"):
        raise UsageError(f"--hops means nothing to --mode {mode}", "add --mode graph")
    if stream:
        _check_stream(output, is_batch=batch is not None, no_answer=no_answer)
    options: AskOptions = {
        "mode": mode,
        "hops": hops,
        "fusion": fusion,
        "filters": filters,
        "limit": limit,
        "answer": not no_answer,
        "explain": explain,
    }
    with session.reading(kb) as bases:
        if batch is not None:
            found = _ask_batch(session, bases, batch, options, output)
        elif stream:
            found = _is_found(_stream(session, bases, _question(question or []), options))
        else:
            result = bases.query(_question(question or []), **options)
            tell_note(session, result.answer)
            _write_result(session, result, output, explain=explain)
            _tell(session, result.notes)
            if not result.hits:
                session.suggest(type_hint(filters.types))
            found = _is_found(result)
    if exit_code and not found:
        raise NothingFound("nothing was found")


def _judge(session: Session, query_id: str, words: list[str], kb: KnowledgeBasesOption) -> None:
    """Note how good an earlier question's answer was.

    Raises:
        UsageError: It is neither said to be good nor bad, or there is no such question.
    """
    if words not in (["good"], ["bad"]):
        raise UsageError("--feedback takes good or bad", f"memctl query --feedback {query_id} good")
    verdict: Verdict = "good" if words == ["good"] else "bad"
    with session.reading(session.all_names(kb)) as bases:
        session.say(f"noted {bases.feedback(query_id, verdict)} as {verdict}")


def _check_stream(output: Output, *, is_batch: bool, no_answer: bool) -> None:
    if output not in (None, "table"):
        raise UsageError(f"--stream cannot write {output}", "leave out -o, or leave out --stream")
    if is_batch or no_answer:
        other = "--batch" if is_batch else "--no-answer"
        raise UsageError(f"--stream and {other} do not go together", "leave out one of them")


def _stream(
    session: Session, bases: KnowledgeBases, question: str, options: AskOptions
) -> QueryResult:
    """Print an answer as it arrives, then what it rests on; the built-in one if it breaks off."""
    pieces = 0

    def told(piece: str) -> None:
        """Print a piece, and count those that are not empty."""
        nonlocal pieces
        pieces += bool(piece)
        print_piece(piece)

    options["told"] = told
    result = bases.query(question, **options)
    note = bool(result.answer and result.answer.note)
    if pieces:
        print_piece(" [broken off]\n\n" if note else "\n")
    tell_note(session, result.answer, begun=bool(pieces))
    _tell(session, result.notes)
    explain = options.get("explain", False)
    show_result(session.console, result, explain=explain, streamed=bool(pieces) and not note)
    return result


def _is_found(result: QueryResult) -> bool:
    """Say whether what was asked for is there: hits that are only near are no answer."""
    return bool(result.hits) if result.answer is None else result.answer.found


def _question(words: list[str]) -> str:
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    if not text.strip():
        raise UsageError("the question is empty", 'ask something: memctl query "when is ...?"')
    if not any(map(str.isalnum, text)):
        raise UsageError("the question has no words", 'ask something: memctl query "when is ...?"')
    return text.strip()


def _write_result(session: Session, result: QueryResult, output: Output, *, explain: bool) -> None:
    if chosen(output) in ("csv", "arrow"):
        emit(result.hits, _HITS, output)
    else:
        emit_one(result, output, lambda: show_result(session.console, result, explain=explain))


def _tell(session: Session, notes: Iterable[str]) -> None:
    for note in notes:
        session.say(f"note: {note}")


def _ask_batch(
    session: Session, bases: KnowledgeBases, name: str, options: AskOptions, output: Output
) -> bool:
    """Answer every line; say whether anything was found.

    Raises:
        PartialFailure: Some lines were no questions; the others have been answered.
    """
    if output in ("csv", "arrow", "table"):
        raise UsageError(f"--batch cannot write {output}", "use -o ndjson or -o json")
    bad: list[int] = []
    with _opened(name) as lines:
        results = bases.query_many(_questions(lines, name, bad), **options)
        found = _write_results(_noted(session, results), as_document=output == "json")
    if bad:
        hint = 'each line is {"id": "...", "question": "..."}'
        raise PartialFailure(f"{count(len(bad), 'bad line')} in {name}", hint)
    return found


def _noted(session: Session, results: Iterable[QueryResult]) -> Iterator[QueryResult]:
    """Tell the first time that the model did not answer, and at the end how often.

    What a search did without is told once.
    """
    without = 0
    told: set[str] = set()
    for result in results:
        _tell(session, [note for note in result.notes if note not in told])
        told.update(result.notes)
        if result.answer is not None and result.answer.note:
            if not without:
                tell_note(session, result.answer)
            without += 1
        yield result
    if without > 1:
        session.say(f"note: {count(without, 'question')} answered without the model")


def _write_results(results: Iterable[QueryResult], *, as_document: bool) -> bool:
    """Write one object a question, as soon as it is there, or all of them as one document."""
    found = False
    kept: list[Any] = []
    for result in results:
        found = found or _is_found(result)
        if as_document:
            kept.append(plain(result))
        else:
            print_line(result)
    if as_document:
        print_json(kept)
    return found


@contextmanager
def _opened(name: str) -> Iterator[IO[str]]:
    if name == "-":
        yield sys.stdin
        return
    path = Path(name).expanduser()
    if not path.is_file():
        raise UsageError(f"no such file: {name}", "--batch takes a file of JSON lines, or -")
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        yield lines


def _questions(lines: Iterable[str], name: str, bad: list[int]) -> Iterator[Question]:
    """Yield the questions; a bad line is told on standard error and noted in ``bad``."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _parsed(line)
            except ValueError as error:
                bad.append(number)
                sys.stderr.write(f"error: {one_line(name)}, line {number}: {error}\n")


def _parsed(line: str) -> Question:
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


def context(
    session: Session,
    filters: Filters,
    question: Annotated[
        list[str], typer.Argument(metavar="QUESTION...", help="The question; - is standard input.")
    ],
    budget: Annotated[
        int, typer.Option("--budget", metavar="TOKENS", min=16, help="How long it may be.")
    ] = 2000,
    kb: KnowledgeBasesOption = None,
    mode: ModeOption = None,
    auto: Annotated[
        bool,
        typer.Option("--auto", help="Print nothing unless the message looks like it needs memory."),
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 4 when nothing was found.")
    ] = False,
    output: Output = None,
) -> None:
    """Print what is known, ready to paste above a prompt.

    The text stays within a budget of tokens and cites its sources.  It is empty where nothing that
    is known has to do with the question.  With --auto it can stand in front of every prompt: it
    stays empty for small talk, for orders, and for what memory has nothing clear to say about.
    """
    with session.reading(kb) as bases:
        found = bases.context(
            _question(question), budget=budget, mode=mode, filters=filters, auto=auto
        )
        _tell(session, found.notes)
    _write_context(found, output)
    if not found.text:
        if not auto:
            session.say("note: nothing in memory has to do with that")
            session.suggest(type_hint(filters.types))
        if exit_code:
            raise NothingFound("nothing was found")


def _write_context(found: Context, output: Output) -> None:
    if output is not None and output != "table":
        emit_one(found, output, lambda: None)
    elif found.text:
        from memctl.cli.output import print_text

        print_text(found.text)

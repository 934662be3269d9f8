"""memctl query --batch: many questions from a file, one result a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memctl.cli.answers import is_found, tell_note, tell_notes
from memctl.cli.commands import Output
from memctl.cli.output import plain, print_json, print_line
from memctl.cli.session import Session
from memctl.cli.text import count, one_line
from memctl.errors import PartialFailure, UsageError

if TYPE_CHECKING:
    from memctl.knowledge_bases import AskOptions, KnowledgeBases
    from memctl.records import QueryResult, Question


def ask_batch(
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
        tell_notes(session, [note for note in result.notes if note not in told])
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
        found = found or is_found(result)
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

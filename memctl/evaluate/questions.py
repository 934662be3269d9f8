"""Question sets: what is asked, and which records the answer stands in.

A set is a folder with two files of JSON lines.  ``corpus.jsonl`` is what ``memctl ingest --jsonl``
takes, each record with an ``id``; ``queries.jsonl`` has one question a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question with the ids of its evidence: of records, of documents or of memories."""

    id: str
    text: str
    relevant: tuple[str, ...]
    namespace: str | None = None
    """It is asked of that alone."""
    category: str = ""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of a question set that is no question; lines count from 1."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of a file that can be asked and scored."""

    questions: tuple[EvalQuestion, ...]
    bad: tuple[BadLine, ...]
    without_evidence: int
    """Questions that name no evidence, so that there is nothing to score."""


def read_questions(path: Path) -> QuestionSet:
    """Read ``queries.jsonl``: ``id``, ``question``, ``relevant``, ``namespace``?, ``category``?.

    Raises:
        OSError: It cannot be read.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        return parse_questions(lines)


def parse_questions(lines: Iterable[str]) -> QuestionSet:
    """Read questions, one JSON object a line; of those that share an id the first one counts."""
    found: dict[str, EvalQuestion] = {}
    bad: list[BadLine] = []
    without = 0
    for number, value in _objects(lines, bad):
        try:
            question = _question(value, number)
            if question.id in found:
                raise ValueError(f"the id {question.id!r} is that of an earlier line")
        except ValueError as error:
            bad.append(BadLine(number, str(error)))
            continue
        if question.relevant:
            found[question.id] = question
        else:
            without += 1
    return QuestionSet(tuple(found.values()), tuple(bad), without)


def _objects(lines: Iterable[str], bad: list[BadLine]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            bad.append(BadLine(number, f"no JSON: {error}"))
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            bad.append(BadLine(number, "not a JSON object"))


def _question(value: dict[str, Any], number: int) -> EvalQuestion:
    text, relevant = value.get("question"), value.get("relevant", [])
    namespace, category = value.get("namespace"), value.get("category")
    if not isinstance(text, str) or not any(map(str.isalnum, text)):
        raise ValueError("no question in it")
    if not isinstance(relevant, list) or not all(isinstance(id_, (str, int)) for id_ in relevant):
        raise ValueError("relevant must be a list of ids")
    if namespace is not None and not isinstance(namespace, str):
        raise ValueError("namespace must be a text")
    return EvalQuestion(
        id=str(value.get("id", f"line {number}")),
        text=text,
        relevant=tuple(dict.fromkeys(map(str, relevant))),
        namespace=namespace,
        category="" if category is None else str(category),
    )


def missing_evidence(questions: Sequence[EvalQuestion], known: set[str]) -> int:
    """Return how many pieces of evidence there are that are not among what is known."""
    return len({id_ for question in questions for id_ in question.relevant} - known)

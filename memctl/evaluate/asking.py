"""Question sets asked of knowledge bases: throw-away ones, or those that are there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.choices import Mode
from memctl.evaluate.questions import EvalQuestion
from memctl.evaluate.scores import Outcome, measured, ranked_ids
from memctl.home import Home
from memctl.knowledge_bases import KnowledgeBases
from memctl.records import Filters, Progress, ProgressListener, Question

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.knowledge_base import KnowledgeBase

_NAME = "eval"
_ID_COLUMNS = ("id", "document_id", "external_id")


@contextmanager
def throw_away(config: Config) -> Iterator[KnowledgeBase]:
    """Give a new knowledge base, made as configured, that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="memctl-eval-", ignore_cleanup_errors=True) as folder:
        home = Home(replace(config, home=Path(folder)))
        home.create(_NAME)
        with home.open(_NAME) as base:
            yield base


def known_ids(bases: KnowledgeBases) -> set[str]:
    """Return every id by which evidence can be named."""
    found: set[str] = set()
    for base in bases:
        rows = base.store.snapshot().scan("memories", columns=list(_ID_COLUMNS))
        for column in _ID_COLUMNS:
            found.update(rows[column].to_pylist())
    return found


def ask(
    bases: KnowledgeBases,
    questions: Sequence[EvalQuestion],
    mode: Mode,
    limit: int,
    notes: set[str],
    progress: ProgressListener | None = None,
) -> list[Outcome]:
    """Ask every question and score what is found; nothing is noted in the query log.

    Args:
        bases: What is asked.
        questions: Each is asked of its own namespace.
        mode: How memories are found.
        limit: How many hits each gets.
        notes: Gets what a search did without, because a model could not be had.
        progress: Told how far it is.
    """
    asked = [Question(item.text, item.id, item.namespace) for item in questions]
    results = bases.query_many(
        asked, mode=mode, filters=Filters(), limit=limit, answer=False, log=False
    )
    outcomes: list[Outcome] = []
    for item, result in zip(questions, results, strict=True):
        notes.update(result.notes)
        scores = measured(item.relevant, ranked_ids(result.hits, item.relevant))
        outcomes.append(Outcome(item.id, item.category, scores, result.seconds))
        if progress is not None:
            progress(Progress(len(outcomes), len(questions), "questions", mode))
    return outcomes

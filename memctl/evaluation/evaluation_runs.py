"""Runs of a question set, asked of temporary or existing knowledge bases, and saved to files.

A saved run has the scores of each question, but no texts and no hits.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl import __version__
from memctl.errors import UsageError
from memctl.evaluation.metrics import METRICS, QuestionResult, measure, ranked_ids
from memctl.evaluation.question_sets import EvalQuestion
from memctl.files import save_file
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBases
from memctl.literals import Mode
from memctl.paths import display_path
from memctl.records import Filters, Progress, ProgressListener, Question

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.knowledge_base import KnowledgeBase

_NAME = "eval"
_ID_COLUMNS = ("id", "document_id", "external_id")


@contextmanager
def temporary_base(config: Config) -> Iterator[KnowledgeBase]:
    """Yield a new knowledge base with the configured settings, which is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="memctl-eval-", ignore_cleanup_errors=True) as folder:
        home = Home(replace(config, home=Path(folder)))
        home.create(_NAME)
        with home.open(_NAME) as base:
            yield base


def known_ids(bases: KnowledgeBases) -> set[str]:
    """Return every id that evidence can be given by."""
    found: set[str] = set()
    for base in bases:
        rows = base.store.snapshot().scan("memories", columns=list(_ID_COLUMNS))
        for column in _ID_COLUMNS:
            found.update(rows[column].to_pylist())
    return found


def run_questions(
    bases: KnowledgeBases,
    questions: Sequence[EvalQuestion],
    mode: Mode,
    limit: int,
    notes: set[str],
    progress: ProgressListener | None = None,
) -> list[QuestionResult]:
    """Ask every question and score its hits; the query log is left alone.

    Args:
        bases: The knowledge bases to ask.
        questions: Each is asked of its own namespace.
        mode: How memories are found.
        limit: Most hits for each.
        notes: Receives what a search did without because a model was unavailable.
        progress: Receives the progress.
    """
    asked = [Question(item.text, item.id, item.namespace) for item in questions]
    results = bases.query_many(
        asked, mode=mode, filters=Filters(), limit=limit, answer=False, log=False
    )
    outcomes: list[QuestionResult] = []
    for item, result in zip(questions, results, strict=True):
        notes.update(result.notes)
        scores = measure(item.relevant, ranked_ids(result.hits, item.relevant))
        outcomes.append(QuestionResult(item.id, item.category, scores, result.seconds))
        if progress is not None:
            progress(Progress(len(outcomes), len(questions), "questions", mode))
    return outcomes


_FORMAT = "memctl-eval"
_VERSION = 1

Run = Mapping[str, Sequence[QuestionResult]]
"""The results of all questions, by mode."""


def save_run(path: Path, run: Run, now: datetime) -> None:
    """Write a run to a file, atomically.

    Raises:
        OSError: The file cannot be written.
    """
    value = {
        "format": _FORMAT,
        "version": _VERSION,
        "memctl": __version__,
        "made_at": now.isoformat(),
        "modes": {mode: [asdict(outcome) for outcome in found] for mode, found in run.items()},
    }
    save_file(path, json.dumps(value, ensure_ascii=False, indent=1).encode())


def load_run(path: Path) -> Run:
    """Read a saved run.

    Raises:
        UsageError: The file is no saved run.
        OSError: The file cannot be read.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["format"] != _FORMAT or value["version"] != _VERSION:
            raise ValueError("another format")
        return {mode: [_outcome(item) for item in found] for mode, found in value["modes"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{display_path(path)} is no saved run", "give what memctl eval --save FILE wrote"
        ) from error


def _outcome(item: Any) -> QuestionResult:
    scores = {metric: float(item["scores"][metric]) for metric in METRICS}
    return QuestionResult(str(item["id"]), str(item["category"]), scores, float(item["seconds"]))
